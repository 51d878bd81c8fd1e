"""Two PostgreSQL clusters, and nodes that serve the realms of both."""

import subprocess
import time

from .node import Node, run_postern, write_key_file
from .postgres import Cluster, clean_environment
from .realm import Admin
from .settings import BINARY
from .world import World

SETTINGS = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\n"


class TwoClusters(World):
    """`north` is the first cluster, which new realms get; `south` the other one."""

    def __init__(self, name, postgres=""):
        """`postgres`: more lines of the configuration of both."""
        super().__init__(name, postgres=SETTINGS + postgres)
        self.north = self.cluster
        self.south = Cluster(f"{name}-south")

    def open(self):
        """Brings both up, and two nodes."""
        for cluster in (self.north, self.south):
            cluster.create(self.postgres)
        migrated = run_postern("migrate", environment=self.commands())
        assert migrated.returncode == 0, f"migrate: {migrated.stdout}{migrated.stderr}"
        for cluster in (self.north, self.south):
            cluster.create_login("bb_serve", "postern_app")
            cluster.create_login(Admin.role, "postern_admin")
        self.key_file = write_key_file(self.north.root / "secret.key")
        self.node = self.start_node()
        self.second_node = self.start_node()
        return self

    def urls(self, role):
        """What both servers and commands connect with."""
        return {
            "POSTERN_DATABASE_URL": self.north.url(role), "POSTERN_DATABASE_URL_SOUTH": self.south.url(role),
            "POSTERN_CLUSTER": "north", "POSTERN_CLUSTERS": "south",
        }

    def commands(self):
        """The environment of commands of a superuser."""
        return {
            **self.urls("postgres"), "POSTERN_MIGRATE_DATABASE_URL": self.north.url("postgres"),
            "POSTERN_MIGRATE_DATABASE_URL_SOUTH": self.south.url("postgres"),
        }

    def start_node(self, **environment):
        """One more server process."""
        urls = self.urls("bb_serve")
        first = urls.pop("POSTERN_DATABASE_URL")
        node = Node(first, self.key_file, self.mailbox.port, **urls, **environment)
        self.nodes.append(node)
        return node.start()

    def close(self):
        """Takes everything down."""
        super().close()
        self.south.remove()

    def stamp(self):
        """The configuration of both clusters, as a node adds it up."""
        stamps = [c.value("SELECT postern.config_stamp()").split(":") for c in (self.north, self.south)]
        return f"{sum(int(s[0]) for s in stamps)}:{sum(int(s[1]) for s in stamps)}"

    def settle(self, timeout=5.0):
        """Waits until every running node serves the configuration as it is now."""
        deadline = time.monotonic() + timeout
        for node in self.nodes:
            while node.alive() and node.configuration() != self.stamp():
                assert time.monotonic() < deadline, f"configuration {node.configuration()} instead of {self.stamp()}"
                time.sleep(0.02)

    def postern(self, *arguments, timeout=300):
        """Runs `postern realm …` to its end."""
        return run_postern("realm", *arguments, environment=self.commands(), timeout=timeout)

    def move(self, realm, to="south"):
        """Moves a realm; returns what the command says."""
        done = self.postern("move", realm.slug, "--to", to)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def started(self, *arguments):
        """Starts `postern realm …`; what it says can be read line by line."""
        return subprocess.Popen(
            [str(BINARY), "realm", *arguments], env={**clean_environment(), **self.commands()},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def timed_move(self, realm, to="south"):
        """Moves a realm; returns the lines of the command, each with when it came."""
        with self.started("move", realm.slug, "--to", to) as process:
            lines = [(time.monotonic(), line.strip()) for line in process.stdout]
        assert process.returncode == 0, lines
        return lines

    def killed_when(self, line, *arguments):
        """Starts `postern realm …` and kills it when it says a line."""
        with self.started(*arguments) as process:
            said = []
            for text in process.stdout:
                said.append(text)
                if line in text:
                    process.kill()
        assert any(line in text for text in said), said

    def killed_at(self, realm, line, to="south"):
        """Begins to move a realm and kills the command when it says a line."""
        self.killed_when(line, "move", realm.slug, "--to", to)

    def listed(self, realm):
        """Cluster and state of each line of `postern realm list` about a realm."""
        done = self.postern("list")
        assert done.returncode == 0, done.stderr
        rows = [line.split("  ") for line in done.stdout.splitlines()]
        rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
        return {row[1]: row[2] for row in rows if row[0] == realm.slug}

    def realm_in_south(self):
        """A new realm with a user, that was moved at once; returns both."""
        realm = self.realm("s")
        email = realm.user()
        self.move(realm)
        self.settle()
        return realm, email

