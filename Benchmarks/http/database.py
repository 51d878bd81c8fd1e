"""A durable throw-away PostgreSQL with our schema and the floor's, and what a run costs it."""

import subprocess

from harness.postgres import Cluster, clean_environment

import process
from paths import FLOOR, POSTGRES_BIN, SQL, say

#: The only settings that differ from Debian's defaults, beside the socket and max_connections.
SETTINGS = "shared_buffers = '1GB'\nmax_wal_size = '16GB'\ncheckpoint_timeout = '30min'\n"


class Database(Cluster):
    """`postern` holds our schema and sql/bench/seed.sql; `floor` the reference statements, when they are there."""

    def __init__(self, users, sessions):
        super().__init__("bench")
        self.users, self.sessions = users, sessions
        self.has_floor = (FLOOR / "schema.sql").exists()

    def open(self, binary):
        """Makes the cluster, migrates with the product's own command and seeds."""
        self.create()
        with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as conf:
            conf.write(SETTINGS + "max_connections = 200\n")
        self.restart()
        done = subprocess.run(
            [str(binary), "migrate"], env={**clean_environment(), "POSTERN_MIGRATE_DATABASE_URL": self.url("postgres")},
            capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"migrate: {done.stdout}{done.stderr}")
        self.create_login("bench_app", "postern_app")
        say(f"seeding {self.users} users and {self.sessions} sessions …")
        self.script(SQL / "seed.sql", users=self.users, sessions=self.sessions)
        if self.has_floor:
            say("seeding the floor …")
            self.sql("CREATE DATABASE floor", database="postgres")
            self.script(FLOOR / "schema.sql", database="floor")
        self.sql("VACUUM ANALYZE")
        return self

    def restart(self, **settings):
        """Restarts, with more settings if given."""
        self.stop()
        with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.start()

    def script(self, path, database=None, **variables):
        """Runs an SQL file by psql."""
        command = [str(POSTGRES_BIN / "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-h", str(self.root), "-U", "postgres",
                   "-d", database or self.database, "-f", str(path)]
        for name, value in variables.items():
            command += ["-v", f"{name}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
        if done.returncode != 0:
            raise RuntimeError(f"{path}: {done.stderr}")

    def copy(self, table, path):
        """Loads a tab-separated file into a new unlogged table of text columns and returns nothing."""
        with open(path, encoding="ascii") as file:
            columns = len(file.readline().split("\t"))
        names = ", ".join(f"c{i} text" for i in range(1, columns + 1))
        self.sql(f"DROP TABLE IF EXISTS {table}; CREATE UNLOGGED TABLE {table} ({names});\n\\copy {table} FROM '{path}'")

    def number(self, text, database=None):
        """One number."""
        return float(self.sql(text, database=database)[0][0])

    @property
    def pid(self):
        """The postmaster's."""
        return self._postmaster.pid

    def settle(self):
        """Leaves the worker and the sender of mails nothing to do, so that runs begin alike."""
        self.sql("UPDATE postern.sign_in_request SET pending = false WHERE pending; DELETE FROM postern.message_outbox")


class Meter:
    """What happens to PostgreSQL, and to the server if given, between `start` and `stop`."""

    def __init__(self, database, server_pid=None):
        self.database, self.server_pid = database, server_pid

    def _read(self):
        wal = self.database.number("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
        server = process.cpu(self.server_pid) if self.server_pid else 0
        return process.cpu_with_children(self.database.pid), server, wal

    def __enter__(self):
        self._before = self._read()
        return self

    def __exit__(self, *_):
        self.postgres, self.server, self.wal = (b - a for a, b in zip(self._before, self._read()))

    def per(self, count):
        """CPU in µs and bytes of WAL, each per request."""
        count = max(count, 1)
        return {"postgres_us": self.postgres * 1e6 / count, "server_us": self.server * 1e6 / count, "wal_bytes": self.wal / count}
