"""Rolling upgrades and back under load: servers of an older release and of this one behind HAProxy."""

import asyncio
import time
from collections import Counter
from pathlib import Path

from harness import fleet
from harness.codeflow import Flow, hosted
from harness.haproxy import HAProxy
from harness.history import History
from harness.holder import holder
from harness.node import run_postern
from harness.postgres import SQLError
from harness.settings import BINARY, OUTPUT
from harness.tls import unverified

from .load import Reconfiguring
from .run import Run
from .world import LoadedWorld


class Front:
    """The proxy, as clients see it."""

    def __init__(self, proxy):
        self.port, self.context = proxy.tls, unverified()


class UpgradeWorld(LoadedWorld):
    """The schema of an older release, one server of it that stays and audits, and two behind HAProxy that are replaced."""

    proxy = None

    def __init__(self, older):
        super().__init__("upgrade")
        self.binary = older

    def open(self):
        """Brings everything up."""
        super().open()
        self.fleet_nodes = [
            self.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_SHUTDOWN_DELAY="1", POSTERN_LOG_LEVEL="info") for _ in range(2)]
        self.proxy = HAProxy(*self.fleet_nodes)
        return self

    @property
    def entrances(self):
        """Both servers are asked by way of the proxy."""
        return [Front(self.proxy)] * 2

    def populate(self, users):
        """No phones: older releases have none."""
        realm = self.realm()
        return realm, realm.users(users), [], [holder(realm).credential for _ in self.fleet_nodes]

    def has_pages(self):
        """Whether the schema knows pages for browsers; before `migrate`, whether the older release does."""
        return self.cluster.value("SELECT to_regproc('admin.set_hosted') IS NOT NULL") == "t"

    def close(self):
        """Takes everything down."""
        if self.proxy:
            self.proxy.close()
        super().close()


class UpgradeRun(Run):
    """Each round has a database of the older release: `migrate` of this one under load, then each server is replaced, back, and again."""

    USERS = 200

    def __init__(self, older, *arguments, **named):
        super().__init__(*arguments, **named)
        self.older = Path(older).resolve()
        self.phases, self.restarts, self.notes = {}, Counter(), {}
        self._answers, self._slowest, self._has_pages, self._refused = Counter(), 0.0, False, 0

    def run(self):
        """Everything; returns the report."""
        self.history = History(OUTPUT / f"upgrades-{self.seed}.jsonl")
        try:
            while self.done < self.rounds and not self._late():
                self._one()
                self.done += 1
        except (AssertionError, SQLError) as problem:
            self.findings.append(f"round {self.done}: {problem}"[:2000])
        finally:
            self.history.close()
        return self.report()

    def _one(self):
        began = time.monotonic()
        self.world = UpgradeWorld(self.older)
        try:
            self.world.open()
            self._prepare()
            self._upgrade()
            self.last_audit()
            self._count_answers()
        finally:
            self.world.close()
        self._say(f"round {self.done + 1}/{self.rounds}: {time.monotonic() - began:.0f} s, {self.load.fleet.total(200)} x 200, "
                  f"{self.load.fleet.total(503)} x 503, " + ", ".join(f"{name} {seconds[-1]:.1f} s" for name, seconds in self.phases.items()))

    def make_faults(self, _nodes):
        """There are none."""
        return None

    # -- the steps ---------------------------------------------------------------------------------

    def _upgrade(self):
        self._has_pages, self._refused = self.world.has_pages(), 0
        pages = [lambda run, f=front: self._sign_in_page(run, f) for front in self.world.entrances] if self._has_pages else []
        if pages:
            hosted(self.realm)
        self.load.start(*pages)
        try:
            with Reconfiguring(self.world.cluster, self.realm) as self.administrator:
                self._served("the older release")
                began = time.monotonic()
                done = run_postern("migrate", environment={"POSTERN_MIGRATE_DATABASE_URL": self.world.cluster.url("postgres")})
                self._phase("migrate", began)
                self.require(done.returncode == 0, f"migrate: {done.stdout[-500:]}{done.stderr}")
                self.notes["migrated"] = done.stdout.strip().splitlines()[-1]
                self._served("the older release on the new schema")
                self._note_old()
                self._replace_all(BINARY, "upgrade")
                if self._starts_again():
                    self._replace_all(self.older, "rollback")
                    self._replace_all(BINARY, "upgrade")
        finally:
            self.load.stop()

    def _served(self, what):
        """Every kind of request succeeds that is made from now on."""
        self.history.note(what)
        moment, signed_in = time.monotonic(), self.sign_ins.total["code"]
        self.load.back_after(moment, 60)
        names = ["introspection 0", "page 0", *(["sign-in page"] if self._has_pages else [])]
        deadline = moment + 60
        while self.sign_ins.total["code"] == signed_in or not all(self.load.fleet.successes(name, moment) for name in names):
            self.require(time.monotonic() < deadline, f"{what}: not all of {names} and sign-ins succeed; {self.load.fleet.violations[:5]}")
            time.sleep(0.02)
        self._unharmed(what)

    def _unharmed(self, what):
        """Notes what failed until now, and goes on: the steps behind it may fail, too."""
        load = self.load.fleet
        if load.violations:
            self.findings.append(f"round {self.done}: {what}: {len(load.violations)} violations: {load.violations[:3]}"[:2000])
            load.violations.clear()
        if load.total(503) > self._refused:
            self.findings.append(f"round {self.done}: {what}: {load.total(503) - self._refused} x 503")
            self._refused = load.total(503)
        self._alive(what)

    def _note_old(self):
        """What the processes of the older release say of themselves, on the new schema."""
        ready = {node.ops("/readyz").body.decode().strip() for node in self.world.nodes}
        self.notes["older release on the new schema, /readyz"] = ", ".join(sorted(ready))

    def _starts_again(self):
        done = run_postern("migrate", "--check", binary=self.older, environment={
            "POSTERN_DATABASE_URL": self.world.cluster.url("bb_serve"), "POSTERN_MIGRATE_DATABASE_URL": self.world.cluster.url("bb_serve")})
        self.notes["older release on the new schema, migrate --check"] = (done.stdout + done.stderr).strip().splitlines()[-1]
        return done.returncode == 0

    def _replace_all(self, binary, name):
        began = time.monotonic()
        for number, node in enumerate(self.world.fleet_nodes):
            ended = node.terminate()
            self.require(ended == 0, f"{name}: a server ended with {ended}")
            node.binary = binary
            node.start()
            self._asked_by_the_proxy(node, name)
            self._served(f"{name}, server {number + 1}")
            self.restarts[name] += 1
        self._phase(name, began)

    def _asked_by_the_proxy(self, node, name):
        """The next server is stopped only once the proxy knows that this one is back."""
        deadline = time.monotonic() + 60
        while not node.metric('postern_http_requests_total{route="/connect/token",status="200"}'):
            self.require(time.monotonic() < deadline, f"{name}: the proxy does not ask a server that is ready")
            time.sleep(0.05)

    def _phase(self, name, began):
        self.phases.setdefault(name, []).append(round(time.monotonic() - began, 2))

    # -- load --------------------------------------------------------------------------------------

    async def _sign_in_page(self, run, front):
        """A browser that a client sends, without a session."""
        client = fleet.Client.of(front)
        flow = Flow(self.realm)
        while not run.stopped:
            query = fleet.wire.form_body(flow.request()).decode()
            shown = await run.ask("sign-in page", client, fleet.get(self.realm.host, f"/connect/authorize?{query}"))
            if shown is not None and shown[0] == 200 and b"data-step" not in shown[2]:
                run.violate(f"sign-in page: {shown[2][:300]!r}")
            await asyncio.sleep(0.05)
        client.close()

    def _count_answers(self):
        for (_, status), count in self.load.fleet.counts.items():
            self._answers[str(status)] += count
        self._slowest = max(self._slowest, self.load.fleet.slowest)

    def report(self):
        """What happened, for JSON."""
        return {
            "older": self.older.name, "rounds": self.done, "seconds": round(time.monotonic() - self.began, 1),
            "servers replaced": dict(self.restarts), "longest phases in seconds": {name: max(all_) for name, all_ in self.phases.items()},
            "answers": dict(self._answers), "slowest answer": round(self._slowest, 2), "audited": dict(self.audited),
            "requests": self.history.count, "history": str(self.history.path), **self.notes, "findings": self.findings,
        }
