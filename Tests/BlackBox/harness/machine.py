"""A machine of its own on this one: systemd as PID 1 in new namespaces, above this machine's files, which it does not change."""

import os
import subprocess
import time
from pathlib import Path

#: $1 is an empty folder, $2 what to run when the file systems are there. The files are those of this machine under a layer in memory.
MACHINE = r"""
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/system"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/system"
command=$2
cd "$1/system"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for device in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    set -- $device
    mknod -m 666 "dev/$1" c "$2" "$3"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
    mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd sys/fs/cgroup/memory
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    mount -t cgroup -o memory cgroup sys/fs/cgroup/memory
fi
# Images of containers forbid packages to start and stop services, and nothing fetches packages meanwhile.
rm -f usr/sbin/policy-rc.d
for timer in apt-daily apt-daily-upgrade; do ln -sf /dev/null "etc/systemd/system/$timer.timer"; done
mkdir former
pivot_root . former
cd /
umount -l /former
exec $command
"""
#: The machine's groups of processes are below these, so that it may limit memory.
ENTER = r"""
for group in $GROUPS_OF_MACHINE; do echo $$ > "$group/cgroup.procs"; done
exec unshare --pid --fork --kill-child --mount --uts --ipc --cgroup --net sh -ec "$@"
"""
SYSTEMD = "/lib/systemd/systemd"
BOOT = f"env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=unshare {SYSTEMD} --unit=basic.target --show-status=0"


def _groups():
    """A new group below this process's own, in each hierarchy that the machine uses."""
    made = []
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        root = {"": "unified", "name=systemd": "systemd", "memory": "memory"}.get(controllers)
        parent = Path("/sys/fs/cgroup") / (root or "") / path.lstrip("/")
        if root and parent.is_dir() and (controllers or not Path("/sys/fs/cgroup/cgroup.controllers").exists()):
            made.append(parent / f"postern-test-{os.getpid()}")
            made[-1].mkdir(exist_ok=True)
    return made


def _remove(group):
    for child in sorted(group.rglob("*/"), key=lambda path: -len(path.parts)):
        if child.is_dir():
            child.rmdir()
    group.rmdir()


class Machine:
    """Runs until `close`. `unavailable` says why it cannot, on systems that give no namespaces."""

    def __init__(self, folder):
        self._folder, self._groups, self._process, self._init = folder, [], None, None
        self.unavailable = self._obstacle()

    def _obstacle(self):
        if os.geteuid() != 0:
            return "namespaces need root"
        if not Path(SYSTEMD).exists():
            return "systemd is not installed"
        self._groups = _groups()
        done = subprocess.run(self._command("true"), env=self._environment(), capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()[-300:]}"

    def _command(self, what):
        return ["sh", "-ec", ENTER, "sh", MACHINE, "sh", str(self._folder), what]

    def _environment(self):
        return {**os.environ, "GROUPS_OF_MACHINE": " ".join(str(group) for group in self._groups)}

    def boot(self):
        """Until systemd says that everything has started."""
        with open(self._folder.parent / "machine.log", "wb") as log:
            self._process = subprocess.Popen(
                self._command(BOOT), env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self._state() not in ("running", "degraded"):
            assert self._process.poll() is None and time.monotonic() < deadline, (self._folder.parent / "machine.log").read_text(errors="replace")
            time.sleep(0.2)
        return self

    def _state(self):
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="ascii").split()
        if not children or Path(f"/proc/{children[0]}/comm").read_text(encoding="ascii").strip() != "systemd":
            return None
        self._init = children[0]
        return self.run("systemctl is-system-running", check=False).stdout.strip()

    def run(self, script, check=True):
        """By a shell of the machine, as root."""
        done = subprocess.run(
            ["nsenter", "--target", self._init, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "env", "-i", "HOME=/root", "LANG=C.UTF-8",
             "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-exc" if check else "-c", script],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        assert not check or done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def put(self, source, path):
        """Copies a file of this machine there."""
        with open(source, "rb") as file:
            subprocess.run(
                ["nsenter", "--target", self._init, "--mount", "sh", "-ec", f"cat > {path}"], stdin=file, check=True)

    def close(self):
        """Ends every process of it."""
        if self._process:
            self._process.kill()
            self._process.wait()
        deadline = time.monotonic() + 10
        for group in self._groups:
            while group.exists():
                try:
                    _remove(group)
                except OSError:
                    assert time.monotonic() < deadline, f"{group} has processes"
                    time.sleep(0.1)
