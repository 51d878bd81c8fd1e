"""The load of chaos: refreshes and reads over connections that are kept and new ones, at several nodes, and an administrator."""

import asyncio
import itertools
import json
import subprocess
import threading
import time
import uuid

from harness import fleet
from harness.postgres import clean_environment
from harness.realm import Admin, call


class Reconfiguring:
    """An administrator who changes the configuration ten times a second, in one psql that is started again when the server was away."""

    def __init__(self, cluster, realm):
        self._cluster, self._realm = cluster, realm
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.changes = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join(10)

    def _run(self):
        psql = None
        for number in itertools.count():
            if self._stopped.wait(0.1):
                break
            statement = call("put_client", self._realm.slug, self._realm.client("changing"), client_type="public", display_name=f"Name {number}")
            try:
                if psql is None or psql.poll() is not None:
                    psql = self._psql()
                psql.stdin.write(statement + "\n")
                psql.stdin.flush()
                self.changes += 1
            except OSError:
                psql = None
        if psql is not None:
            psql.kill()
            psql.wait()

    def _psql(self):
        return subprocess.Popen(
            self._cluster.psql(Admin.role, self._cluster.database),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=clean_environment(),
        )


class Mixed:
    """Refreshes, userinfo, introspection, discovery and what `sign_ins` does, at several nodes."""

    PAUSE = 0.01

    def __init__(self, realm, nodes, families, sign_ins=None, history=None):
        self.realm, self.nodes, self.sign_ins = realm, nodes, sign_ins
        self.app, self.api = realm.app(), realm.app("api")
        self.families = [dict(family) for family in families]
        self.fleet = fleet.Fleet(history)

    def start(self, *more):
        """Begins, with more coroutines of a fleet."""
        work = [
            lambda f, i=number, a=family: self.refresh(f, i % len(self.nodes), a, i % 4 != 3)
            for number, family in enumerate(self.families)
        ]
        for number, node in enumerate(self.nodes):
            work += [
                lambda f, n=node, i=number: self._read(f, n, f"userinfo {i}", True, self._userinfo),
                lambda f, n=node, i=number: self._read(f, n, f"userinfo new {i}", False, self._userinfo),
                lambda f, n=node, i=number: self._read(f, n, f"discovery {i}", True, self._discovery),
                lambda f, n=node, i=number: self._read(f, n, f"discovery new {i}", False, self._discovery),
                lambda f, n=node, i=number: self._read(f, n, f"introspection {i}", True, self._introspection),
                lambda f, n=node, i=number: self._read(f, n, f"page {i}", True, self._page),
            ]
        self.fleet.start(*work, *more, *(self.sign_ins.work() if self.sign_ins else ()))
        return self

    def stop(self):
        """Ends."""
        self.fleet.stop()

    def back_after(self, moment, timeout=15.0):
        """Waits until each node refreshed and answered discovery for a request made after a moment; returns how long that took."""
        names = [f"{kind} {number}" for number in range(len(self.nodes)) for kind in ("refresh", "discovery", "userinfo")]
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = [self.fleet.successes(name, moment) for name in names]
            if all(found):
                return max(found) - moment
            time.sleep(0.005)
        missing = [name for name, one in zip(names, found) if not one]
        raise AssertionError(f"no success of {missing} within {timeout} s; {self.fleet.violations[:5]}")

    async def refresh(self, run, number, family, keep):
        """Refreshes one family at one node until the end."""
        client = fleet.Client.of(self.nodes[number], keep)
        while not run.stopped:
            form = {"grant_type": "refresh_token", "client_id": self.app.client_id, "refresh_token": family["refresh_token"]}
            answer = await run.ask(f"refresh {number}", client, fleet.post(self.app.host, "/connect/token", form))
            if answer and answer[0] == 200:
                family.update(json.loads(answer[2]))
            elif answer:
                return  # noted: a healthy family was refused
            await asyncio.sleep(self.PAUSE)
        client.close()

    async def _read(self, run, node, name, keep, request):
        client = fleet.Client.of(node, keep)
        while not run.stopped:
            data, check = request()
            # The page of an invented link says so.
            answer = await run.ask(name, client, data, expected=(400,) if name.startswith("page") else (200,))
            if answer and not check(answer[2]):
                run.violate(f"{name}: {answer[2][:300]!r}")
            await asyncio.sleep(2 * self.PAUSE)
        client.close()

    def _userinfo(self):
        token = self.families[0]["access_token"]
        return fleet.get(self.app.host, "/connect/userinfo", Authorization=f"Bearer {token}"), lambda body: b'"sub"' in body

    def _discovery(self):
        return fleet.get(self.app.host, "/.well-known/openid-configuration"), lambda body: self.realm.issuer.encode() in body

    def _introspection(self):
        form = {"token": self.families[1]["access_token"]}
        request = fleet.post(self.app.host, "/connect/introspect", form, Authorization=self.api.basic)
        return request, lambda body: b'"active":true' in body

    def _page(self):
        link = f"/magic-login?userId={uuid.uuid4()}&token={'a' * 43}"
        return fleet.get(self.app.host, link), lambda body: b'data-error="unknown"' in body

    def audit(self):
        """Every acknowledged token works."""
        assert not self.fleet.violations, f"{len(self.fleet.violations)} violations, first: {self.fleet.violations[:5]}"
        for family in self.families:
            assert self.api.active(family["access_token"]), "an acknowledged access token was lost"
            answer = self.app.refresh(family["refresh_token"])
            assert answer.status == 200, f"an acknowledged refresh token was lost: {answer}"
            family.update(answer.json())
