"""A database, a mail server, an administrator and nodes: everything one test module needs."""

import itertools
import re
import shutil
import time

from . import atrest, clock
from .ledger import LEDGER
from .mailbox import Mailbox
from .node import Node, run_postern, write_key_file
from .postgres import Cluster
from .realm import Admin, Realm
from .report import say
from .settings import BINARY, OUTPUT

_SLUGS = itertools.count(1)
#: Where the users of tests have their addresses.
MAIL_DOMAIN = "mail.example"


class World:
    """Creates the cluster, migrates it, makes the login roles and starts one node."""

    #: What migrates and serves.
    binary = BINARY

    def __init__(self, name, postgres="", lasting=False, **environment):
        """`lasting`: no test stops or kills this PostgreSQL."""
        self.name = name
        self.postgres = postgres
        self.cluster = Cluster(name, lasting)
        self.mailbox = Mailbox()
        self.admin = Admin(self.cluster)
        self.nodes = []
        self.node = None
        self._environment = environment

    def open(self):
        """Brings everything up."""
        self.cluster.create(self.postgres)
        migrated = run_postern("migrate", binary=self.binary, environment={
            "POSTERN_MIGRATE_DATABASE_URL": self.cluster.url("postgres"),
            "POSTERN_DATABASE_URL": self.cluster.url("postgres"),
        })
        assert migrated.returncode == 0, f"migrate: {migrated.stdout}{migrated.stderr}"
        # A number of six digits in a dump is a code then, and no row's number by chance.
        self.cluster.sql("SELECT setval(s.oid::regclass, 1000000007) FROM pg_class AS s WHERE s.relkind = 'S' AND s.relpersistence = 'p' "
                         "AND s.relnamespace = 'postern'::regnamespace")
        self.cluster.create_login("bb_serve", "postern_app")
        self.cluster.create_login(Admin.role, "postern_admin")
        self.key_file = write_key_file(self.cluster.root / "secret.key")
        self.node = self.start_node(**self._environment)
        return self

    def start_node(self, **environment):
        """One more server process on the same database and key."""
        node = Node(self.cluster.url("bb_serve"), self.key_file, self.mailbox.port, binary=self.binary, **environment)
        self.nodes.append(node)
        return node.start()

    def close(self):
        """Takes everything down; the PostgreSQL log is kept beside the servers' logs."""
        for node in self.nodes:
            node.stop()
        self.mailbox.down()
        if self.cluster.log.exists():
            OUTPUT.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.cluster.log, OUTPUT / f"postgresql-{self.name}.log")
        self.cluster.remove()

    def assert_no_secret_at_rest(self):
        """Neither the database nor a log nor the metrics hold a secret that this process has been told, and no server's log a whole address."""
        # The number of a request is no code, though after a hundred thousand of them it has six digits, too.
        log = re.sub(r' request="[0-9]+"', "", "".join(node.log() for node in self.nodes))
        for name, text in (
            ("the database", self.cluster.dump().decode(errors="replace")), ("a server's log", log),
            ("PostgreSQL's log", self.cluster.log.read_text(errors="replace")),
            ("the metrics", "".join(node.ops("/metrics").body.decode() for node in self.nodes if node.alive())),
        ):
            found = atrest.leaks(LEDGER.long_secrets(), text)
            # Figures of six digits are no codes.
            if name != "the metrics":
                found += [(code, lines[:1]) for code in LEDGER.of("code") if (lines := atrest.standalone(code, text))]
            assert not found, f"{name} holds {found[:3]}"
            say(f"secrets at rest: {len(LEDGER.long_secrets())} secrets searched in {len(text)} characters of {name}")
        addressed = [line for line in log.splitlines() if f"@{MAIL_DOMAIN}" in line]
        assert not addressed, f"a server's log holds an address: {addressed[0]}"

    def realm(self, name="r", **options):
        """A new realm with the usual clients."""
        return Realm(self, f"{name}{next(_SLUGS)}", **options)

    def sweep_until(self, query, expected):
        """Sweeps until a query gives this: a sweep looks at a part of each table, and does nothing while another one runs."""
        deadline = time.monotonic() + 20
        while (seen := self.cluster.value(query)) != expected:
            assert time.monotonic() < deadline, f"{query}: {seen}, and not {expected}"
            self.cluster.sql("SELECT postern.sweep(1000)")

    def time_travel(self, seconds):
        """Lets time pass."""
        clock.time_travel(self.cluster, seconds)

    def stopwatch(self):
        """A clock that starts now."""
        return clock.Stopwatch(self.cluster)

    def settle(self, timeout=5.0):
        """Waits until every running node says that it serves the configuration as it is now."""
        deadline = time.monotonic() + timeout
        for node in self.nodes:
            # The server changes it as well: a new realm gets its first keys a moment later.
            while node.alive() and (served := node.configuration()) != (stamp := self.cluster.value("SELECT postern.config_stamp()")):
                assert time.monotonic() < deadline, f"configuration {served} instead of {stamp}"
                time.sleep(0.02)

    def settle_messages(self, timeout=10.0):
        """Waits until every message is sent or dead: a mail server has a message before the sender records that it was sent."""
        deadline = time.monotonic() + timeout
        while queued := self.cluster.sql("SELECT template, recipient, attempts FROM postern.message_outbox WHERE state = 'queued'"):
            assert time.monotonic() < deadline, f"messages still in the queue: {queued}"
            time.sleep(0.02)

    @staticmethod
    def pause():
        """Waits until the nodes have forgotten the refusals that they remember, and reported what they count."""
        time.sleep(1.05)
