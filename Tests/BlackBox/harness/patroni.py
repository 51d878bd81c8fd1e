"""Debian's Patroni with etcd: a primary and a synchronous standby, with the configuration of deploy/patroni."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

from .ports import free_port
from .postgres import Cluster, SQLError, alive, children_of, clean_environment
from .settings import ETCD, PATRONI, POSTGRES_BIN, REPOSITORY

PASSWORD = "correct-horse"
AVAILABLE = bool(ETCD and PATRONI)
MISSING = "patroni or etcd is not installed"


class Member:
    """One PostgreSQL and the Patroni that looks after it."""

    def __init__(self, name, cluster):
        self.name, self._cluster = name, cluster
        self.port, self._rest = free_port(), free_port()
        self.folder = cluster.root / name
        self.folder.mkdir()
        shutil.chown(self.folder, "postgres", "postgres")
        self.data = self.folder / "data"
        self._file = self.folder / "patroni.yml"
        self.process = None

    def configure(self, etcd):
        """Writes the shipped configuration with what belongs to this machine and this test."""
        text = (REPOSITORY / "deploy" / "patroni" / "patroni.yml").read_text(encoding="utf-8")
        for pattern, replacement, times in [
            (r"name: db1", f"name: {self.name}", 1), (r"127\.0\.0\.1:8008", f"127.0.0.1:{self._rest}", 2),
            (r"127\.0\.0\.1:2379", f"127.0.0.1:{etcd}", 1), (r"127\.0\.0\.1:5432", f"127.0.0.1:{self.port}", 2),
            (r"/var/lib/postgresql/15/postern", str(self.data), 1), (r"/usr/lib/postgresql/15/bin", str(POSTGRES_BIN), 1),
            (r"/var/run/postgresql", str(self.folder), 1), (r"change-me", PASSWORD, 3), (r"mode: automatic", "mode: off", 1),
        ]:
            text, count = re.subn(pattern, replacement, text)
            assert count == times, pattern
        self._file.write_text(text, encoding="utf-8")

    def start(self):
        """Starts Patroni, which starts PostgreSQL."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self._cluster.as_postgres, PATRONI, str(self._file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**clean_environment(), "HOME": str(self.folder)}, cwd="/")

    def postmaster(self):
        """The process id of PostgreSQL, or None."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if alive(pid) else None

    def kill_postgresql(self):
        """SIGKILL for PostgreSQL; Patroni stays."""
        postmaster = self.postmaster()
        if postmaster is None:
            return
        for pid in [postmaster, *children_of(postmaster)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just ended by itself

    def kill(self):
        """SIGKILL for everything, as if the machine lost its power."""
        self.process.kill()
        self.kill_postgresql()
        self.process.wait(10)

    def freeze(self):
        """SIGSTOP for Patroni; its PostgreSQL goes on."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def ask(self, path, document=None):
        """A request to Patroni's REST interface; the document, or None."""
        data = json.dumps(document).encode() if document is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self._rest}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body = answer.read()
        except urllib.error.HTTPError as problem:
            body = problem.read()
        except OSError:
            return None
        try:
            return json.loads(body)
        except ValueError:
            return {"text": body.decode(errors="replace")}

    def stop(self):
        """Ends Patroni and PostgreSQL, whatever state they are in."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
        self.kill_postgresql()

    def log(self):
        """What Patroni wrote last."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]


class PatroniCluster(Cluster):
    """Two members and one etcd; to the rest of the suite one cluster, which is wherever writes are taken."""

    def __init__(self, name):
        super().__init__(name)
        self.members = []
        self._etcd = None

    @property
    def as_postgres(self):
        """The beginning of a command that runs as PostgreSQL's user."""
        return self._as_postgres

    def create(self, settings=""):
        """Starts etcd and both members, and creates the database."""
        assert not settings, "settings stand in deploy/patroni"
        client, peer = free_port(), free_port()
        folder = self.root / "etcd"
        folder.mkdir()
        shutil.chown(folder, "postgres", "postgres")
        folder.chmod(0o700)
        with open(self.root / "etcd.log", "ab") as log:
            self._etcd = subprocess.Popen(
                [*self._as_postgres, ETCD, "--name", "one", "--data-dir", str(folder), "--listen-client-urls", f"http://127.0.0.1:{client}",
                 "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                 "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster", f"one=http://127.0.0.1:{peer}",
                 "--logger", "zap"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(), cwd="/")
        self.members = [Member(name, self) for name in ("one", "two")]
        for member in self.members:
            member.configure(client)
            member.start()
        self.wait_healthy(120)
        self.sql(f"CREATE DATABASE {self.database}", database="postgres")
        for member in self.members:
            self._wait_for_database(member)

    def _wait_for_database(self, member):
        """A COMMIT waits until the standby has it on disk, not until sessions there see it."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.at(member, "SELECT 1", self.database)
                return
            except SQLError:
                assert time.monotonic() < deadline, f"{member.name} lacks the database"
                time.sleep(0.02)

    def create_login(self, role, member_of):
        """As ever, with a password."""
        self.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' IN ROLE {member_of}")

    def url(self, role):
        """The libpq URI of a role, with every member."""
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://{role}:{PASSWORD}@{hosts}/{self.database}"

    def psql(self, role, database):
        """psql at whichever member takes writes."""
        hosts = ",".join("127.0.0.1" for _ in self.members)
        ports = ",".join(str(member.port) for member in self.members)
        return self._psql_with(
            f"host={hosts} port={ports} user={role} password={PASSWORD} dbname={database} target_session_attrs=read-write connect_timeout=5")

    def at(self, member, text, database="postgres"):
        """The rows of a statement at one member."""
        return self._rows(self._psql_with(
            f"host=127.0.0.1 port={member.port} user=postgres password={PASSWORD} dbname={database} connect_timeout=5"), text)

    def states(self):
        """Role and state of each member, as Patroni sees them."""
        for member in self.members:
            if member.process and member.process.poll() is None:
                known = member.ask("/cluster")
                if known and "members" in known:
                    return {one["name"]: (one["role"], one["state"]) for one in known["members"]}
        return {}

    def primary(self):
        """The member that is not in recovery and holds the lock, or None."""
        roles = self.states()
        return next((member for member in self.members if roles.get(member.name) == ("leader", "running")), None)

    def wait_healthy(self, timeout=90.0):
        """Waits for a primary with a synchronous standby."""
        deadline = time.monotonic() + timeout
        while True:
            roles = self.states()
            # Patroni 3.0 says "running" of a standby that streams, too.
            if sorted(role for role, state in roles.values() if state in ("running", "streaming")) == ["leader", "sync_standby"]:
                primary = self.primary()
                try:
                    if primary and self.at(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == [["1"]]:
                        return
                except SQLError:
                    pass
            assert time.monotonic() < deadline, f"{roles}\n" + "\n".join(f"{one.name}: {one.log()}" for one in self.members)
            time.sleep(0.05)

    def wait_primary_other_than(self, member, timeout=60.0):
        """Waits until another member takes writes."""
        deadline = time.monotonic() + timeout
        while True:
            for other in self.members:
                if other is not member:
                    try:
                        if self.at(other, "SELECT pg_is_in_recovery()") == [["f"]]:
                            return other
                    except SQLError:
                        pass
            assert time.monotonic() < deadline, f"no failover: {self.states()}\n" + "\n".join(one.log() for one in self.members)
            time.sleep(0.05)

    def ensure_up(self):
        """Starts a Patroni that was killed."""
        for member in self.members:
            if member.process.poll() is not None:
                member.start()

    def psql_is_down(self):
        """Whether no member takes writes."""
        try:
            return self.value("SELECT 1") != "1"
        except SQLError:
            return True

    def amcheck(self):
        """Of the primary."""
        return self._amcheck(["-h", "127.0.0.1", "-p", str(self.primary().port)], PGPASSWORD=PASSWORD)

    def remove(self):
        """Ends and deletes everything."""
        for member in self.members:
            member.stop()
        if self._etcd:
            self._etcd.terminate()
            self._etcd.wait(20)
        shutil.rmtree(self.root, ignore_errors=True)
