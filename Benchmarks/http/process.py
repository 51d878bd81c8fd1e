"""What processes cost: CPU seconds and memory, from /proc."""

import os
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
    fields = _fields(pid)
    total = sum(int(fields[i]) for i in (11, 12, 13, 14))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            fields = _fields(child)
        except OSError:
            continue  # ended a moment ago: the parent has its time soon
        total += sum(int(fields[i]) for i in (11, 12, 13, 14))
    return total / _TICK


def memory(pid):
    """Resident and peak resident MiB of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(round(int(status[key].split()[0]) / 1024, 1) for key in ("VmRSS", "VmHWM"))
