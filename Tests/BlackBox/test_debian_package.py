"""The Debian package on a machine of its own: installed as docs/operate.md says, started by systemd, and removed."""

import json
import os
import re
import shutil
import subprocess

import pytest

from harness import report
from harness.machine import Machine
from harness.settings import BINARY, REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("dpkg-buildpackage") is None, reason="dpkg-dev is not installed")]

GIBIBYTE = 1 << 30

#: In a namespace and on a file system of its own above this machine's: $1 a folder, $2 the package.
INSTALLATION = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/system"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/system"
mount -t proc proc "$1/system/proc"
cp "$2" "$1/system/postern.deb"
printf '#!/bin/sh\nexit 101\n' > "$1/system/usr/sbin/policy-rc.d"; chmod +x "$1/system/usr/sbin/policy-rc.d"
exec chroot "$1/system" env DEBIAN_FRONTEND=noninteractive sh -ec '
    dpkg --install /postern.deb
    stat -c "%U %G %a" /etc/postern | grep -qx "root postern 750"
    getent passwd postern | grep -q /usr/sbin/nologin
    test -e /lib/systemd/system/postern.service
    setpriv --reuid=postern --regid=postern --init-groups postern --version | head -n 1
    touch /etc/postern/secret.key
    dpkg --install /postern.deb
    dpkg --purge postern
    test -e /etc/postern/secret.key
    rm /etc/postern/secret.key
    dpkg --install /postern.deb
    dpkg --purge postern
    for left in /etc/postern /usr/bin/postern /lib/systemd/system/postern.service; do test ! -e "$left"; done
    echo removed'
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The `.deb` of this binary."""
    folder = tmp_path_factory.mktemp("package")
    done = subprocess.run(
        [REPOSITORY / "scripts" / "build-deb", folder], env={**os.environ, "POSTERN_BIN": str(BINARY)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("postern_*.deb")
    return made


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """With PostgreSQL and a mail server."""
    folder = tmp_path_factory.mktemp("machine") / "root"
    folder.mkdir()
    made = Machine(folder)
    try:
        if made.unavailable:
            pytest.skip(made.unavailable)
        made.boot()
        made.run("""
            ip link set lo up
            for cluster in $(pg_lsclusters -h | awk '{print $1 "/" $2}'); do rm -rf "/etc/postgresql/$cluster"; done
            pg_createcluster 15 machine --port 5432
            systemctl start postgresql@15-machine
            systemd-run --unit=mail-server /usr/bin/python3 -u -m aiosmtpd --nosetuid --listen 127.0.0.1:25 --class aiosmtpd.handlers.Debugging stdout
            rm -rf /etc/postern""")
        yield made
    finally:
        made.close()


def block(heading):
    """The first commands of docs/operate.md below it."""
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8").split(f"### {heading}\n", 1)[1]
    return re.search(r"```sh no-run:[^\n]*\n(.*?)```", text, re.DOTALL)[1]


def as_documented():
    """What installs the package, without its first line, which needs a network."""
    first, rest = block("With the Debian package").split("\n", 1)
    assert first.startswith("apt-get install ./postern_*.deb ")
    for pattern, replacement in [(r"smtp://user:…@mail\.example\.com:587", "smtp://127.0.0.1:25"), ("PASSWORD '…'", "PASSWORD 'olga'")]:
        rest, count = re.subn(pattern, replacement, rest)
        assert count == 1, pattern
    return rest


def files_left(machine):
    """Everything that is not of the system's own book-keeping."""
    found = machine.run(
        "find / -xdev \\( -path /proc -o -path /tmp -o -path /run -o -path /sys -o -path /dev -o -path /var/lib/dpkg -o -path /var/log"
        f" -o -path /var/lib/postgresql -o -path /var/cache -o -path {REPOSITORY} \\) -prune -o -print").stdout
    return {path for path in found.splitlines() if "postern" in path}


def state(machine, name):
    """A property of the service."""
    return machine.run(f"systemctl show --property={name} --value postern").stdout.strip()


def journal(machine):
    """What the service wrote."""
    return machine.run("journalctl --unit=postern --output=cat --no-pager").stdout


def wait_ready(machine):
    """Until `/readyz` says so."""
    answer = machine.run("curl -sS --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1:9090/readyz").stdout
    assert answer.strip() == "ready", answer + journal(machine)


def test_it_is_built_installed_and_removed_and_lintian_has_no_complaint(package, tmp_path):
    """It brings the binary, a unit that runs this binary, a manual page, and no settings; a purge leaves the key file and nothing else."""
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "files"], check=True)
    unit = (tmp_path / "files" / "lib/systemd/system/postern.service").read_text(encoding="utf-8")
    assert re.findall(r"^ExecStart\w*=(\S+)", unit, re.MULTILINE) == ["/usr/bin/postern"] * 2
    assert not (tmp_path / "files" / "etc").exists() and (tmp_path / "files" / "usr/share/man/man1/postern.1.gz").exists()
    documents = tmp_path / "files" / "usr/share/doc/postern"
    pages = list(documents.rglob("*.md"))
    assert {"operate.md", "security.md", "CHANGELOG.md", "README.md"} <= {page.name for page in pages}
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"
    version = subprocess.run([tmp_path / "files" / "usr/bin/postern", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("postern ")
    if os.geteuid() != 0:
        report.say("Debian package: not installed, which needs root")
        return
    (tmp_path / "machine").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", INSTALLATION, "sh", tmp_path / "machine", package], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("removed\n"), done.stdout + done.stderr
    report.say("Debian package: installed, installed again, purged; the key file stays, nothing else does")


@pytest.mark.skipif(shutil.which("pg_createcluster") is None, reason="postgresql-common is not installed")
def test_the_package_serves_under_systemd_and_a_purge_leaves_settings_only(machine, package):
    """As docs/operate.md says: install, set up, start, sign in, crash, restart, upgrade, stop, purge."""
    before = files_left(machine)
    machine.put(package, "/var/cache/apt/archives/postern.deb")
    machine.run("dpkg --install /var/cache/apt/archives/postern.deb")
    assert state(machine, "ActiveState") == "inactive"
    assert machine.run("systemctl is-enabled postern", check=False).stdout.strip() == "disabled"

    done = machine.run(as_documented())
    assert done.stdout.rstrip().endswith("ready"), done.stdout + done.stderr + journal(machine)
    assert "FAIL" not in done.stdout and "ok    SMTP" in done.stdout, done.stdout
    lines = [line for line in journal(machine).splitlines() if not line.startswith(("Starting", "Started"))]
    assert lines[0].startswith("The database is up to date") and " notice " in lines[1], lines
    assert all(" notice " in line for line in lines[1:]), lines

    restrictions(machine)
    sign_in(machine)
    after_a_crash(machine)
    upgrade(machine)
    second_process(machine)

    machine.run("systemctl stop postern")
    assert (state(machine, "ActiveState"), state(machine, "Result")) == ("inactive", "success")
    assert journal(machine).splitlines()[-3].endswith("notice stopped"), journal(machine)
    machine.run("systemctl start postern")
    wait_ready(machine)
    purge(machine, before)
    report.say("Debian package: served under systemd with all restrictions, crashed, upgraded, purged")


def restrictions(machine):
    """What the unit says is what the process has."""
    process = state(machine, "MainPID")
    status = dict(re.findall(r"^(\w+):\s+(.*)$", machine.run(f"cat /proc/{process}/status").stdout, re.MULTILINE))
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and status["Uid"].split()[0] != "0", status
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}, status
    inside = f"nsenter --target {process} --mount"
    for place in ("/etc/postern/x", "/usr/x", "/var/lib/x", "/opt/x", "/home/x"):
        refused = machine.run(f"{inside} touch {place}", check=False)
        assert refused.returncode != 0 and "Read-only file system" in refused.stderr, place
    mounts = machine.run(f"cat /proc/{process}/mountinfo").stdout
    assert re.search(r" /tmp rw,nosuid", mounts) and "hidepid=invisible" in mounts and "subset=pid" in mounts, mounts
    # Root and the service's user are themselves, and there is no other user.
    assert machine.run(f"cat /proc/{process}/uid_map").stdout.split() == ["0", "0", "1", *[status["Uid"].split()[0]] * 2, "1"]
    limits = machine.run(f"cat /proc/{process}/limits").stdout
    assert re.search(r"Max core file size +0 ", limits), limits
    assert state(machine, "MemoryMax") == str(2 * GIBIBYTE)
    group = machine.run(f"cat /proc/{process}/cgroup").stdout
    path = re.search(r"^\d+:memory:(.*)$", group, re.MULTILINE)
    file = f"/sys/fs/cgroup/memory{path[1]}/memory.limit_in_bytes" if path else "/sys/fs/cgroup/system.slice/postern.service/memory.max"
    limit = machine.run(f"cat {file}", check=False).stdout.strip()
    if limit:
        assert limit == str(2 * GIBIBYTE), limit
    else:
        report.say("Debian package: the memory controller is not to be had here, MemoryMax was not seen in force")
    assert machine.run("stat -c '%U %G %a' /etc/postern /etc/postern/secret.key /etc/postern/postern.env").stdout.splitlines() == [
        "root postern 750", "postern postern 600", "root postern 640"]


def sign_in(machine):
    """By a code from the mail, which leaves through the restrictions, too."""
    machine.run("""psql 'host=127.0.0.1 dbname=postern user=olga password=olga' -v ON_ERROR_STOP=1 <<'SQL'
        SELECT admin.put_realm('acme', primary_domain => 'auth.acme.example', display_name => 'Acme');
        SELECT admin.set_native_grants('acme', enabled => true);
        SELECT admin.put_client('acme', 'app', client_type => 'public');
        SELECT admin.grant_permission('acme', 'app', permission) FROM unnest(ARRAY['ept:token', 'gt:urn:cocoar:otp', 'gt:refresh_token',
            'scp:openid', 'scp:offline_access']) AS permission;
        SELECT admin.put_user('acme', 'mike@example.com', email_verified => true);
SQL""")
    host = "-sS -H 'Host: auth.acme.example' http://127.0.0.1:8080"
    asked = machine.run(
        f"""curl {host}/api/account/native/otp/request -H 'Content-Type: application/json' -d '{{"Email":"mike@example.com","ClientId":"app"}}'""")
    handle = json.loads(asked.stdout)
    assert handle, asked.stdout
    mail = machine.run(
        "for _ in $(seq 50); do journalctl --unit=mail-server --output=cat --no-pager | grep -q 'END MESSAGE' && break; sleep 0.2; done;"
        " journalctl --unit=mail-server --output=cat --no-pager").stdout
    assert "mike@example.com" in mail and re.search(r"\b\d{6}\b", mail), mail
    return handle


def after_a_crash(machine):
    """It comes back by itself."""
    former = state(machine, "MainPID")
    machine.run(f"kill -KILL {former}; sleep 1.5")
    wait_ready(machine)
    assert state(machine, "MainPID") != former and state(machine, "NRestarts") == "1"


def upgrade(machine):
    """Another version of the package restarts nothing: `postern migrate` comes first."""
    former = state(machine, "MainPID")
    machine.run("dpkg --install /var/cache/apt/archives/postern.deb")
    assert state(machine, "MainPID") == former and state(machine, "ActiveState") == "active"
    assert machine.run("systemctl is-enabled postern").stdout.strip() == "enabled"
    machine.run("systemctl restart postern")
    wait_ready(machine)
    assert state(machine, "MainPID") != former


def second_process(machine):
    """It serves while the first one is away."""
    done = machine.run(block("A second process"))
    assert done.stdout.rstrip().endswith("ready"), done.stdout + done.stderr
    machine.run("systemctl stop postern")
    answer = machine.run("curl -sS -H 'Host: auth.acme.example' http://127.0.0.1:8081/.well-known/openid-configuration").stdout
    assert json.loads(answer)["issuer"] == "https://auth.acme.example", answer
    machine.run("systemctl start postern")
    wait_ready(machine)
    machine.run("systemctl disable --now postern-2; rm /etc/systemd/system/postern-2.service; systemctl daemon-reload")


def purge(machine, before):
    """With the service running and enabled."""
    former = state(machine, "MainPID")
    done = machine.run("dpkg --purge postern")
    assert "/etc/postern is not empty and stays" in done.stderr, done.stderr
    assert machine.run(f"test -e /proc/{former}", check=False).returncode != 0, "the process lives on"
    assert state(machine, "LoadState") == "not-found"
    assert machine.run("systemctl list-units --failed --no-legend --plain 'postern*'").stdout == ""
    assert files_left(machine) - before == {"/etc/postern", "/etc/postern/postern.env", "/etc/postern/secret.key"}
    assert machine.run("stat -c '%U %G %a' /etc/postern/secret.key").stdout.strip() == "postern postern 600"
    machine.run("rm -r /etc/postern; dpkg --install /var/cache/apt/archives/postern.deb; dpkg --purge postern")
    assert files_left(machine) == before
