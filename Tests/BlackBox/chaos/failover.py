"""Failovers and switchovers under load: PostgreSQL is a primary and a synchronous standby, and Patroni looks after them."""

import time

from harness.dpop import DPoPApp
from harness.node import Node
from harness.patroni import PatroniCluster

from .run import Run
from .world import LoadedWorld


class FailoverWorld(LoadedWorld):
    """Servers whose database URL names both members."""

    def __init__(self, nodes=2):
        super().__init__("failover")
        self.cluster.remove()
        self.cluster = PatroniCluster("failover")
        self.admin.cluster = self.cluster
        self._count = nodes

    def open(self):
        """Brings everything up."""
        super().open()
        for _ in range(self._count):
            node = Node(self.cluster.url("bb_serve"), self.key_file, self.mailbox.port, POSTERN_LOG_LEVEL="info")
            self.nodes.append(node)
            self.fleet_nodes.append(node.start())
        return self


class Failovers:
    """Ways to lose a primary."""

    #: What a run does unless it is told. A frozen agent takes as long as it is frozen.
    USUAL = ["switchover", "kill_the_primary", "kill_postgresql_of_the_primary"]
    SEEN = """
        SELECT (SELECT count(*) FROM postern.session), (SELECT coalesce(sum(generation), 0) FROM postern.session),
               (SELECT count(*) FROM postern.audit_event), (SELECT count(*) FROM postern.message_outbox)"""

    def __init__(self, cluster):
        self._cluster = cluster
        self.former = None

    @classmethod
    def names(cls):
        """All of them."""
        return [*cls.USUAL, "frozen_agent"]

    @staticmethod
    def group(_):
        """One at a time."""
        return "failover"

    def usable(self):
        """Those of a usual run."""
        return self.USUAL

    def wait_until_up(self):
        """Waits until a primary takes writes."""
        deadline = time.monotonic() + 90
        while self._cluster.psql_is_down():
            assert time.monotonic() < deadline, f"no primary: {self._cluster.states()}"
            time.sleep(0.02)

    def _leave(self, how):
        self.former = self._cluster.primary()
        how(self.former)
        return self._cluster.wait_primary_other_than(self.former)

    def switchover(self):
        """What an administrator does before work on a machine."""
        def switch(member):
            other = next(one for one in self._cluster.members if one is not member)
            said = member.ask("/switchover", {"leader": member.name, "candidate": other.name})
            assert said and "Successfully" in said.get("text", ""), said
        self._leave(switch)

    def kill_the_primary(self):
        """SIGKILL for PostgreSQL and its Patroni, as if the machine lost its power."""
        self._leave(lambda member: member.kill())

    def kill_postgresql_of_the_primary(self):
        """SIGKILL for PostgreSQL; Patroni gives the lock away."""
        self._leave(lambda member: member.kill_postgresql())

    def frozen_agent(self):
        """Patroni of the primary stands still: two members believe that they are the primary, and the old one must not be written."""
        new = self._leave(lambda member: member.freeze())
        old = self.former
        before = self._cluster.at(old, self.SEEN, self._cluster.database)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert self._cluster.at(old, "SELECT pg_is_in_recovery()") == [["f"]], "the old primary stepped down: this shows nothing"
            time.sleep(0.2)
        after = self._cluster.at(old, self.SEEN, self._cluster.database)
        old.thaw()
        assert before == after, f"the old primary was written after {new.name} took over: {before}, {after}"

    def heal(self):
        """The former primary comes back as the standby; no server of ours is connected to it."""
        self._cluster.ensure_up()
        self._cluster.wait_healthy()
        assert self._cluster.at(self.former, "SELECT pg_is_in_recovery()") == [["t"]], "the former primary is no standby"
        left = self._cluster.at(self.former, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'bb_serve'")
        assert left == [["0"]], f"{left} sessions of servers at the standby"


class FailoverRun(Run):
    """Rounds of failovers."""

    USERS = 300

    def __init__(self, *arguments, longest=10.0, **named):
        """`longest`: seconds without a refresh that are no finding."""
        super().__init__(*arguments, **named)
        self.away, self._longest = {}, longest

    def make_world(self):
        """Two members and an etcd."""
        return FailoverWorld()

    def make_faults(self, nodes):
        """Failovers."""
        return Failovers(self.world.cluster)

    def _prepare(self):
        super()._prepare()
        self._bound = DPoPApp(self.realm.app())
        self._tokens = self._bound.bound(self.realm.user())

    def before(self, what):
        """From here on the time without a success counts."""
        self.load.fleet.forget_gaps()

    def after(self, what):
        """Notes how long no refresh succeeded, that a session with a bound key goes on, and has two members again."""
        longest = max(gap for name, gap in self.load.fleet.gaps.items() if name.startswith("refresh"))
        self.away.setdefault(what, []).append(round(longest, 2))
        self.faults.heal()
        self._tokens = self._bound.refreshed(self._tokens["refresh_token"])
        if what != "frozen_agent" and longest > self._longest:
            self.findings.append(f"round {self.done}: {what}: no refresh for {longest:.1f} s")

    def report(self):
        """With the times."""
        return {**super().report(), "seconds without a refresh": self.away}
