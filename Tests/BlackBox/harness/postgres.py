"""A throw-away PostgreSQL cluster on a unix socket, and the ways to hurt it."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from .settings import POSTGRES_BIN


def literal(value):
    """A Python value as an SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "ARRAY[" + ", ".join(literal(item) for item in value) + "]::text[]"
    return "'" + str(value).replace("'", "''") + "'"


class SQLError(Exception):
    """psql ended with an error; the text is the server's."""


class Session:
    """A psql that runs one text after another, each as if it were the session's first."""

    _END = "\x1dend\x1d"

    def __init__(self, command, keeps=False):
        """`keeps`: what one text leaves behind is there for the next, for example a lock."""
        self._between = "" if keeps else "DISCARD ALL;\n"
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())

    def run(self, text, timeout=120):
        """Returns what psql prints; an error ends psql, as it does in a script."""
        watchdog = threading.Timer(timeout, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(f"{text}\n;\n{self._between}\\echo {self._END}\n".encode())
            self._process.stdin.flush()
            out = bytearray()
            while not out.endswith(self._END.encode() + b"\n"):
                chunk = os.read(self._process.stdout.fileno(), 65536)
                if not chunk:
                    raise BrokenPipeError
                out += chunk
            return out.decode().removesuffix(self._END + "\n")
        except BrokenPipeError:
            _, problem = self._process.communicate()
            raise SQLError(problem.decode(errors="replace").strip()) from None
        finally:
            watchdog.cancel()

    def end(self):
        """Ends psql."""
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
        self._process.stderr.close()


class Cluster:
    """initdb, start, stop, kill. Drops to user `postgres` when the suite runs as root."""

    database = "postern"

    def __init__(self, name, lasting=False):
        """`lasting`: nobody stops or kills it, so that psql's sessions are kept and nothing waits for a disk."""
        self.lasting = lasting
        self.environment = {}
        #: Seconds that `harness/clock.py` has let pass.
        self.travelled = 0.0
        self._sessions = {}
        self.root = Path(tempfile.mkdtemp(prefix=f"postern-{name}-"))
        self.data = self.root / "data"
        self.log = self.root / "postgresql.log"
        self._postmaster = None
        self._as_postgres = []
        if os.geteuid() == 0:
            self._as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(self.root, "postgres", "postgres")
        self.root.chmod(0o755)

    def create(self, settings=""):
        """Makes the cluster (`settings`: more lines of its configuration), starts it and creates the database."""
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale")
        with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as conf:
            conf.write(
                "listen_addresses = ''\n"
                f"unix_socket_directories = '{self.root}'\n"
                f"fsync = {'off' if self.lasting else 'on'}\nsynchronous_commit = on\nmax_connections = 200\n"
                "log_line_prefix = '%m '\nlog_min_messages = warning\n" + settings
            )
        self.start()
        self.sql(f"CREATE DATABASE {self.database}", database="postgres")

    def create_login(self, role, member_of):
        """A login role that is a member of one of Postern's NOLOGIN roles."""
        self.sql(f"CREATE ROLE {role} LOGIN IN ROLE {member_of}")

    def url(self, role):
        """The libpq URI of a role."""
        host = str(self.root).replace("/", "%2F")
        return f"postgresql://{role}@/{self.database}?host={host}"

    # -- life and death ---------------------------------------------------------------------

    def start(self):
        """Starts and waits until connections are accepted."""
        with open(self.log, "ab") as log:
            self._postmaster = subprocess.Popen(
                [*self._as_postgres, str(POSTGRES_BIN / "postgres"), "-D", str(self.data)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**clean_environment(), **self.environment}, cwd="/",
            )
        deadline = time.monotonic() + 60
        while self._run("pg_isready", "-q", "-h", self.root, "-d", "postgres", check=False).returncode != 0:
            assert self._postmaster.poll() is None and time.monotonic() < deadline, self.log.read_text(errors="replace")[-2000:]
            time.sleep(0.01)

    @property
    def postmaster(self):
        """Its process id."""
        return self._postmaster.pid

    def reap(self):
        """Lets a postmaster that was killed go; returns whether it has ended."""
        return self._postmaster is None or self._postmaster.poll() is not None

    def ensure_up(self):
        """Starts unless it runs."""
        if self.reap():
            self.start()

    def stop(self, mode="fast"):
        """Stops as `pg_ctl -m fast|immediate` would; a cluster that is down stays down."""
        if self._postmaster is not None:
            self._postmaster.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
            self._postmaster.wait(60)
            self._postmaster = None

    def kill(self):
        """SIGKILL for the postmaster and every backend at once, as a crash of the machine would."""
        postmaster = self._postmaster.pid
        os.kill(postmaster, signal.SIGSTOP)  # so that it starts nothing while we look
        victims = children_of(postmaster)
        for pid in [postmaster, *victims]:
            os.kill(pid, signal.SIGKILL)
        self._postmaster.wait(10)
        self._postmaster = None
        deadline = time.monotonic() + 10
        while any(alive(pid) for pid in victims):
            assert time.monotonic() < deadline, "PostgreSQL did not die"
            time.sleep(0.01)

    def remove(self):
        """Stops and deletes."""
        for session in itertools.chain(*self._sessions.values()):
            session.end()
        self.stop("immediate")
        shutil.rmtree(self.root, ignore_errors=True)

    # -- SQL --------------------------------------------------------------------------------

    def sql(self, text, role="postgres", database=None, one_transaction=False):
        """Runs SQL by psql and returns the rows as lists of strings (NULL is '')."""
        if self.lasting:
            if one_transaction:
                text = f"BEGIN;\n{text}\n;COMMIT;"
            out = self._in_session(role, database or self.database, text)
        else:
            return self._rows(self.psql(role, database or self.database) + (["-1"] if one_transaction else []), text)
        return self._split(out)

    def run_long(self, text, timeout=3600):
        """Runs SQL that takes minutes, without rows."""
        self._rows(self.psql("postgres", self.database), text, timeout)

    @classmethod
    def _rows(cls, command, text, timeout=120):
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=timeout, env=clean_environment())
        if done.returncode != 0:
            raise SQLError(done.stderr.decode(errors="replace").strip())
        return cls._split(done.stdout.decode())

    @staticmethod
    def _split(out):
        out = out.rstrip("\n\x1e")
        # psql ends the record of each statement with a newline, whatever the separator.
        records = [r for part in out.split("\x1e") for r in part.strip("\n").split("\n")] if out else []
        return [record.split("\x1f") for record in records if record != ""]

    def hold(self, text):
        """A superuser's session in which SQL has run; it lasts until its `end`."""
        session = Session(self.psql("postgres", self.database), keeps=True)
        session.run(text)
        return session

    def psql(self, role, database):
        """The command of a psql that prints what `sql` reads."""
        return self._psql_with(f"host={self.root} user={role} dbname={database}")

    @staticmethod
    def _psql_with(conninfo):
        return [
            str(POSTGRES_BIN / "psql"), "-X", "-q", "-A", "-t", "-F", "\x1f", "-R", "\x1e", "-v", "ON_ERROR_STOP=1", "-d", conninfo,
        ]

    def _in_session(self, role, database, text):
        """Runs SQL in a session that is kept; one that met an error is not."""
        idle = self._sessions.setdefault((role, database), [])
        try:
            session = idle.pop()
        except IndexError:
            session = Session(self.psql(role, database))
        out = session.run(text)
        idle.append(session)
        return out

    def value(self, text, role="postgres"):
        """The first column of the first row, or None."""
        rows = self.sql(text, role)
        return rows[0][0] if rows else None

    def psql_is_down(self):
        """Whether a new session is refused."""
        try:
            return self.value("SELECT 1") != "1"
        except SQLError:
            return True

    def dump(self):
        """The rows of the whole database as pg_dump writes them; functions, which hold numbers of their own, are the binary's."""
        done = self._run("pg_dump", "-h", self.root, "-U", "postgres", "-d", self.database, "--no-sync", "--data-only")
        return done.stdout

    def amcheck(self):
        """What pg_amcheck finds wrong with tables and indexes; nothing is ''."""
        return self._amcheck(["-h", str(self.root)])

    def _amcheck(self, server, **environment):
        done = subprocess.run(
            [str(POSTGRES_BIN / "pg_amcheck"), *server, "-U", "postgres", "-d", self.database, "--install-missing", "--heapallindexed",
             "--parent-check"], capture_output=True, text=True, env={**clean_environment(), **environment}, timeout=600, check=False)
        return "" if done.returncode == 0 else f"{done.returncode}: {done.stdout}{done.stderr}"

    def _run(self, program, *arguments, check=True):
        done = subprocess.run(
            [*self._as_postgres, str(POSTGRES_BIN / program), *map(str, arguments)],
            stdout=subprocess.PIPE if program == "pg_dump" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, env=clean_environment(), timeout=180, cwd="/",
        )
        if check and done.returncode != 0:
            log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
            raise RuntimeError(f"{program} failed: {done.stderr!r}\n{log}")
        return done


def clean_environment():
    """The environment without anything that libpq or initdb would read."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "POSTERN_"))}
    return {**kept, "LC_ALL": "C.UTF-8"}


def children_of(pid):
    """The direct children of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def alive(pid):
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
