"""A bare Debian 12 in a folder, with nothing installed, for what a newcomer does there."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

_INSIDE = 'ip link set lo up; mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" /usr/bin/env -i PATH="$PATH" HOME=/root bash -ec "$1"'


class BareDebian:
    """Made by debootstrap from the archive that this machine uses."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="postern-bare-"))
        # It is the root of other users too: of PostgreSQL's, for one.
        self.root.chmod(0o755)
        done = subprocess.run(
            ["debootstrap", "--variant=minbase", "bookworm", self.root], capture_output=True, text=True, check=False, timeout=1800)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        # How apt reaches the archive is a matter of this machine.
        shutil.copytree("/etc/apt/apt.conf.d", self.root / "etc/apt/apt.conf.d", dirs_exist_ok=True)
        if (sources := Path("/etc/apt/sources.list.d/debian.sources")).exists():
            shutil.copy(sources, self.root / "etc/apt/sources.list.d")
            (self.root / "etc/apt/sources.list").unlink(missing_ok=True)
        shutil.copyfile("/etc/resolv.conf", self.root / "etc/resolv.conf")
        self.run("apt-get update -q")

    def run(self, script, alone=False):
        """Runs commands as root; `alone` has a network of its own. Returns what they printed and the seconds they took."""
        began = time.monotonic()
        done = subprocess.run(
            ["unshare", "-m", *(["-n"] if alone else []), "-p", "-f", "sh", "-ec", _INSIDE, self.root, script],
            capture_output=True, text=True, check=False, timeout=1800, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout, time.monotonic() - began

    def remove(self):
        """Deletes it."""
        shutil.rmtree(self.root, ignore_errors=True)


def unattended(commands):
    """Commands of a page without questions."""
    return "export DEBIAN_FRONTEND=noninteractive\n" + re.sub(r"apt-get install", "apt-get install -q -y", commands)
