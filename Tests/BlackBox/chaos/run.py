"""Rounds of faults under load, and the audit after each of them."""

import json
import random
import threading
import time
from collections import Counter

from harness.history import History
from harness.load import is_unavailable
from harness.postgres import SQLError
from harness.settings import OUTPUT
from harness.volley import in_parallel

from . import load as loads
from .faults import Faults
from .sign_ins import SignIns
from .world import ChaosWorld

#: Reasons of a refusal in a server's log that mean a defect (docs/operate.md).
DEFECTS = ('reason="violation"', "reason=violation", "reason=rejected", "reason=malformedResult", "Fatal error")


class Violated(AssertionError):
    """Something happened that must not."""


def insist(request, seconds=20.0):
    """Asks again while the answer is 503: the system has been healed."""
    deadline = time.monotonic() + seconds
    while True:
        answer = request()
        if not is_unavailable(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


class Run:
    """One world, one load, and as many rounds as were asked for."""

    USERS = 600

    def __init__(self, rounds, seed=1, seconds=None, only=(), say=print):
        self.rounds, self.seed, self.seconds, self.only, self._say = rounds, seed, seconds, list(only), say
        self._dice = random.Random(seed)
        self.slowest = {}
        self.counts = Counter()
        self.done = 0
        self.audited = Counter()
        self.began = time.monotonic()
        self.findings = []
        self.administrator = None

    def run(self):
        """Everything; returns the report. What must not be is in its `findings`."""
        self.history = History(OUTPUT / f"chaos-{self.seed}.jsonl")
        self.world = self.make_world()
        try:
            self.world.open()
            self._prepare()
            self._rounds()
            self.last_audit()
        except AssertionError as problem:
            self.findings.append(f"round {self.done}: {problem}"[:2000])
        finally:
            self.world.close()
            self.history.close()
        return self.report()

    def make_world(self):
        """Where it happens."""
        return ChaosWorld(self.seed)

    def make_faults(self, nodes):
        """What may happen."""
        return Faults(self.world, nodes, self.load, self._dice)

    def before(self, what):
        """When a round begins."""

    def after(self, what):
        """Once a round was survived."""

    def _prepare(self):
        realm, users, numbers, credentials = self.world.populate(self.USERS)
        self.realm, nodes = realm, self.world.entrances
        self.sign_ins = SignIns(realm, nodes, users, self.world.phones, credentials)
        self.sign_ins.add_numbers(numbers)
        families = in_parallel(realm.app().sign_in, realm.users(16))
        self.load = loads.Mixed(realm, nodes, families, self.sign_ins, self.history)
        self.faults = self.make_faults(nodes)

    def stop(self):
        """Begins no more rounds."""
        self.seconds = 0

    # -- rounds ------------------------------------------------------------------------------------

    def _deck(self):
        """Every fault equally often, in an order that the seed decides."""
        names = self.only or self.faults.usable()
        while True:
            yield from self._dice.sample(names, len(names))

    def _rounds(self):
        deck = self._deck()
        self.load.start()
        try:
            with loads.Reconfiguring(self.world.cluster, self.realm) as self.administrator:
                self.load.back_after(time.monotonic(), 60)
                while self.done < self.rounds and not self._late():
                    first = next(deck)
                    others = [n for n in self.faults.usable() if self.faults.group(n) != self.faults.group(first)]
                    second = self._dice.choice(others) if others and not self.only and self._dice.random() < 0.25 else None
                    self._round([name for name in (first, second) if name])
                    self.done += 1
        finally:
            self.faults.wait_until_up()
            self.load.stop()

    def _late(self):
        return self.seconds is not None and time.monotonic() - self.began > self.seconds

    def _round(self, names):
        what = " + ".join(names)
        self.history.note(what)
        self.before(what)
        before = {status: self.load.fleet.total(status) for status in (200, 503)}
        problems = []

        def hurt(name):
            try:
                getattr(self.faults, name)()
            except (AssertionError, OSError, SQLError) as problem:
                problems.append(f"{name}: {problem}")

        threads = [threading.Thread(target=hurt, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.faults.wait_until_up()
        moment = time.monotonic()
        self.history.note("healed")
        self.require(not problems, f"{what}: {problems}")
        self._alive(what)
        recovery = self.load.back_after(moment, 60)
        for name in names:
            self.counts[name] += 1
        self.slowest[what] = max(self.slowest.get(what, 0.0), recovery)
        self.require(not self.load.fleet.violations, f"{what}: {self.load.fleet.violations[:5]}")
        self.after(what)
        audited = self._audit(what)
        time.sleep(self._dice.uniform(0.1, 0.4))
        self._alive(what)
        answers = {status: self.load.fleet.total(status) - count for status, count in before.items()}
        self._say(
            f"round {self.done + 1}/{self.rounds} {what}: back after {recovery:.2f} s, {answers[200]} x 200, {answers[503]} x 503, "
            f"{audited} sign-ins audited, {self.sign_ins.users.arrived()} mails on the way")

    @staticmethod
    def require(condition, text):
        """Ends the run unless it holds."""
        if not condition:
            raise Violated(text)

    def _alive(self, what):
        ended = [(number, node.process.returncode) for number, node in enumerate(self.world.fleet_nodes) if not node.alive()]
        self.require(not ended, f"{what}: servers ended: {ended}")

    # -- audits ------------------------------------------------------------------------------------

    def _audit(self, what):
        """Every sign-in that was acknowledged works, and every one whose end was acknowledged does not."""
        made = [one for one in self.sign_ins.acknowledged() if one.tokens]
        in_parallel(lambda one: self.audit_one(what, one), made)
        self.require(not self.history.doubled, f"{what}: used twice: {self.history.doubled[:3]}")
        return len(made)

    def audit_one(self, what, one):
        app, api = self.load.app, self.load.api
        refreshed = insist(lambda: app.refresh(one.tokens["refresh_token"]))
        active = insist(lambda: api.introspect(one.tokens["access_token"])).json().get("active")
        if one.ended:
            self.require(refreshed.status == 400 and active is False, f"{what}: {one.kind}: signed out, and lives: {refreshed} {active}")
        else:
            self.require(refreshed.status == 200 and active is True, f"{what}: {one.kind}: an acknowledged sign-in was lost: {refreshed} {active}")
        self.audited["ended" if one.ended else "lives"] += 1

    def last_audit(self):
        """Once the load has ended."""
        self._audit("at the end")
        self.load.audit()
        self._mails_arrive()
        reuse = self.world.cluster.value("SELECT count(*) FROM postern.audit_event WHERE event = 'refresh_token_reuse';")
        self.require(reuse == "0", f"{reuse} families were ended for reuse, and nobody replayed a token")
        self._logs()
        found = self.world.cluster.amcheck()
        self.require(not found, f"pg_amcheck: {found[-1000:]}")

    def _mails_arrive(self):
        """Every mail that was promised comes; the pauses of retries pass by the injected clock."""
        users = self.sign_ins.users
        for _ in range(20):
            deadline = time.monotonic() + 2
            while users.arrived() and time.monotonic() < deadline:
                time.sleep(0.05)
            if not users.waiting:
                return
            self.world.time_travel(20)
        raise Violated(f"{len(users.waiting)} mails were promised and did not come")

    def _logs(self):
        for node in self.world.fleet_nodes:
            found = [line for line in node.log().splitlines() if any(defect in line for defect in DEFECTS)]
            self.require(not found, f"a server's log tells of a defect: {found[:3]}")

    # -- the report --------------------------------------------------------------------------------

    def report(self):
        """What happened, for JSON."""
        fleet = self.load.fleet if hasattr(self, "load") else None
        answers = Counter()
        for (_, status), count in (fleet.counts if fleet else {}).items():
            answers[str(status)] += count
        return {
            "seed": self.seed, "rounds": self.done, "seconds": round(time.monotonic() - self.began, 1), "faults": dict(self.counts),
            "back after at most": {what: round(seconds, 2) for what, seconds in sorted(self.slowest.items(), key=lambda item: -item[1])},
            "answers": dict(answers), "slowest answer": round(fleet.slowest, 2) if fleet else None,
            "sign-ins": dict(self.sign_ins.total) if fleet else {}, "audited": dict(self.audited),
            "requests": self.history.count, "history": str(self.history.path), "changes of the configuration": self.administrator.changes if self.administrator else 0,
            "findings": self.findings,
        }


def write(report, path):
    """The report as a file."""
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
