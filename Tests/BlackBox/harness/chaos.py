"""The faults of the chaos test, the load that runs through them, and the audit afterwards."""

import asyncio
import itertools
import os
import signal
import subprocess
import threading
import time

from . import fleet
from .app import FULL_SCOPE, OTP
from .postgres import POSTGRES_BIN, clean_environment
from .realm import Admin, call

TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bb_serve';"


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
            [str(POSTGRES_BIN / "psql"), "-X", "-q", "-h", str(self._cluster.root), "-U", Admin.role, "-d", self._cluster.database],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=clean_environment(),
        )


class Faults:
    """Ways to take PostgreSQL, or the network before it, away and bring it back."""

    def __init__(self, cluster, cutters):
        self._cluster, self._cutters = cluster, cutters
        self.all = [
            self.restart, self.immediate_restart, self.kill, self.terminate_backends, self.kill_a_backend,
            self.cut_the_network, self.stall_the_network,
        ]

    def wait_until_up(self):
        """Waits until PostgreSQL takes sessions."""
        deadline = time.monotonic() + 20
        while self._cluster.psql_is_down():
            assert time.monotonic() < deadline, "PostgreSQL does not come back"
            time.sleep(0.01)

    def restart(self):
        """What an administrator does."""
        self._cluster.stop("fast")
        time.sleep(0.4)
        self._cluster.start()

    def immediate_restart(self):
        """No shutdown checkpoint; crash recovery follows."""
        self._cluster.stop("immediate")
        time.sleep(0.2)
        self._cluster.start()

    def kill(self):
        """SIGKILL for all of PostgreSQL."""
        self._cluster.kill()
        time.sleep(0.4)
        self._cluster.start()

    def terminate_backends(self):
        """Three times every connection of the servers is terminated."""
        for _ in range(3):
            self._cluster.sql(TERMINATE)
            time.sleep(0.15)

    def kill_a_backend(self):
        """SIGKILL for one backend; PostgreSQL resets them all."""
        pid = self._cluster.value("SELECT pid FROM pg_stat_activity WHERE usename = 'bb_serve' LIMIT 1;")
        if pid:
            os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.2)  # for the postmaster to notice

    def cut_the_network(self):
        """Every connection is reset and none can be made."""
        for cutter in self._cutters:
            cutter.cut()
        time.sleep(0.5)
        for cutter in self._cutters:
            cutter.mend()

    def stall_the_network(self):
        """No byte moves for a while, then all at once."""
        for cutter in self._cutters:
            cutter.stall()
        time.sleep(1.0)
        for cutter in self._cutters:
            cutter.mend()


class Mixed:
    """Refreshes, codes, userinfo, introspection, discovery and requests for codes, over connections that are kept and new ones, at several nodes."""

    PAUSE = 0.01

    def __init__(self, realm, nodes, families, users):
        self.realm, self.nodes = realm, nodes
        self.app, self.api = realm.app(), realm.app("api")
        self.families = [dict(family) for family in families]
        self._users = itertools.cycle(users)
        self.redeemed = {}
        self.fleet = fleet.Fleet()

    def start(self):
        """Begins."""
        work = []
        for number, family in enumerate(self.families):
            node = self.nodes[number % len(self.nodes)]
            work.append(lambda f, n=node, a=family, k=number % 4 != 3: self._refresh(f, n, a, k))
        for number, node in enumerate(self.nodes):
            work += [
                lambda f, n=node, i=number: self._read(f, n, f"userinfo {i}", True, self._userinfo),
                lambda f, n=node, i=number: self._read(f, n, f"userinfo new {i}", False, self._userinfo),
                lambda f, n=node, i=number: self._read(f, n, f"discovery {i}", True, self._discovery),
                lambda f, n=node, i=number: self._read(f, n, f"discovery new {i}", False, self._discovery),
                lambda f, n=node, i=number: self._read(f, n, f"introspection {i}", True, self._introspection),
                lambda f, n=node, i=number: self._codes(f, n, f"code {i}"),
                lambda f, n=node, i=number: self._codes(f, n, f"code {i}"),
            ]
        self.fleet.start(*work)
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

    async def _refresh(self, run, node, family, keep):
        name = f"refresh {self.nodes.index(node)}"
        client = fleet.Client(node.port, keep=keep)
        while not run.stopped:
            form = {"grant_type": "refresh_token", "client_id": self.app.client_id, "refresh_token": family["refresh_token"]}
            answer = await run.ask(name, client, fleet.post(self.app.host, "/connect/token", form))
            if answer and answer[0] == 200:
                family.update(wire_json(answer[2]))
            elif answer:
                return  # noted: a healthy family was refused
            await asyncio.sleep(self.PAUSE)
        client.close()

    async def _read(self, run, node, name, keep, request):
        client = fleet.Client(node.port, keep=keep)
        while not run.stopped:
            data, check = request()
            answer = await run.ask(name, client, data)
            if answer and answer[0] == 200 and not check(answer[2]):
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

    async def _codes(self, run, node, name):
        """Asks for a code, waits for the mail, redeems, and redeems again: the second time must fail."""
        client = fleet.Client(node.port)
        mailbox = self.app.mailbox
        while not run.stopped:
            email = next(self._users)
            before = len(mailbox.to(email))
            asked = await run.ask(name + " request", client, fleet.post_json(self.app.host, "/api/account/native/otp/request", {"Email": email}))
            if not asked or asked[0] != 200:
                continue
            deadline = time.monotonic() + 3
            while len(mailbox.to(email)) <= before and time.monotonic() < deadline and not run.stopped:
                await asyncio.sleep(0.03)
            mails = mailbox.to(email)
            if len(mails) <= before:
                continue  # the queue holds it: another test waits for such mails
            form = {
                "grant_type": OTP, "client_id": self.app.client_id, "auth_session": wire_json(asked[2])["AuthSession"],
                "otp_code": mails[-1].code, "scope": FULL_SCOPE,
            }
            await self._redeem(run, client, name, fleet.post(self.app.host, "/connect/token", form))
        client.close()

    async def _redeem(self, run, client, name, request):
        doubtful = False
        while True:
            answer = await run.ask(name, client, request, expected=(200, 400))
            if answer is None and run.stopped:
                return
            if answer is not None:
                break
            doubtful = True  # 503: the code may have been consumed
        if answer[0] == 400:
            if not doubtful:
                run.violate(f"{name}: a fresh code was refused: {answer[2]!r}")
            return
        for _ in range(200):
            again = await run.ask(name + " again", client, request, expected=(400,))
            if again is not None or run.stopped:
                return

    def audit(self):
        """Every acknowledged token works."""
        assert not self.fleet.violations, f"{len(self.fleet.violations)} violations, first: {self.fleet.violations[:5]}"
        for family in self.families:
            assert self.api.active(family["access_token"]), "an acknowledged access token was lost"
            answer = self.app.refresh(family["refresh_token"])
            assert answer.status == 200, f"an acknowledged refresh token was lost: {answer}"
            family.update(answer.json())


def wire_json(body):
    """A JSON body."""
    return fleet.json.loads(body)
