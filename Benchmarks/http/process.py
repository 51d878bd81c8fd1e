"""What processes cost: CPU seconds and memory, from /proc."""

import os
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def _fields(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu(pid):
    """CPU seconds of a process, all threads."""
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK


def cpu_with_children(pid):
    """CPU seconds of a process and of all its children, those that ended included."""
    while True:
        parent = _fields(pid)[11:15]
        total = sum(map(int, parent))
        complete = True
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            try:
                fields = _fields(child)
            except OSError:
                complete = False
                break
            complete &= fields[0] != "Z"
            total += sum(map(int, fields[11:15]))
        # A child that ends while we look would be counted twice or not at all.
        if complete and _fields(pid)[13:15] == parent[2:]:
            return total / _TICK
        time.sleep(0.02)


def memory(pid):
    """Resident and peak resident MiB of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(round(int(status[key].split()[0]) / 1024, 1) for key in ("VmRSS", "VmHWM"))
