"""Several processes behind HAProxy and nginx as deploy/ ships them: rolling restarts, and signing keys that change under load."""

import itertools
import subprocess
import threading
import time

import pytest

from harness import jose, report, wire
from harness.haproxy import HAPROXY, HAProxy
from harness.nginx import NGINX, ShippedNginx
from harness.node import run_postern
from harness.settings import FULL
from harness.tls import over_tls

pytestmark = pytest.mark.slow
RESTARTS, ROTATIONS = (50, 20) if FULL else (6, 2)
PROXIES = [
    pytest.param(HAProxy, id="HAProxy", marks=pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")),
    pytest.param(ShippedNginx, id="nginx", marks=pytest.mark.skipif(NGINX is None, reason="nginx is not installed")),
]


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes that trust the proxy."""
    made = [world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_SHUTDOWN_DELAY="1") for _ in range(2)]
    yield made
    for node in made:
        node.stop()


@pytest.fixture(params=PROXIES)
def proxy(request, nodes):
    """Before both."""
    made = request.param(*nodes)
    yield made
    made.close()


class Refreshes:
    """Threads that refresh a family each, once for each token: no retry of the client hides anything."""

    def __init__(self, realm, port, families=4):
        self.realm, self.port = realm, port
        self.app = realm.app()
        self.answers = []
        self._stopped = threading.Event()
        tokens = [self.app.sign_in(realm.user())["refresh_token"] for _ in range(families)]
        self._threads = [threading.Thread(target=self._run, args=(token,)) for token in tokens]
        for thread in self._threads:
            thread.start()

    def _run(self, token):
        form = {"grant_type": "refresh_token", **self.app.credentials()}
        while not self._stopped.is_set():
            answer = over_tls(
                self.port, "POST", "/connect/token", [("Host", self.realm.host), ("Content-Type", wire.FORM)],
                wire.form_body({**form, "refresh_token": token}))
            self.answers.append(answer[:12])
            if not answer.startswith(b"HTTP/1.1 200"):
                break
            token = wire.json.loads(answer.partition(b"\r\n\r\n")[2])["refresh_token"]

    def wait_for(self, more):
        """Until there are so many answers more, or the load has failed."""
        enough = len(self.answers) + more
        while len(self.answers) < enough and any(thread.is_alive() for thread in self._threads):
            self._stopped.wait(0.02)

    def stop(self):
        """Ends; returns how often which status line came."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        return {answer: self.answers.count(answer) for answer in set(self.answers)}


def test_processes_restart_one_after_the_other_and_no_request_fails(realm, nodes, proxy):
    """Refreshes go on meanwhile."""
    load = Refreshes(realm, proxy.tls)
    try:
        for number in range(RESTARTS):
            node = nodes[number % 2]
            node.terminate()
            node.start()
            load.wait_for(20)
    finally:
        seen = load.stop()
    assert set(seen) == {b"HTTP/1.1 200"}, seen
    report.say(f"rolling restarts: {RESTARTS} behind {type(proxy).__name__}, {sum(seen.values())} refreshes, none failed")


def test_a_client_of_the_proxy_may_speak_http_2(realm, proxy):
    """The proxy translates."""
    done = subprocess.run(
        ["curl", "-sk", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", "--connect-to", f"{realm.host}:443:127.0.0.1:{proxy.tls}",
         f"https://{realm.host}/.well-known/openid-configuration"], capture_output=True, text=True, check=True)
    assert done.stdout == "2 200"


class Verifier:
    """A resource server: it keeps the published keys for as long as the answer allows, 300 s, and verifies every access token with them."""

    KEPT = 300

    def __init__(self, app):
        self._app, self._keys, self._read = app, None, None
        self.travelled = 0.0
        self.count = 0

    def verify(self, token):
        """Raises when the token does not verify."""
        now = time.monotonic() + self.travelled
        if self._read is None or now - self._read > self.KEPT:
            self._keys, self._read = self._app.get("/.well-known/jwks").json(), now
        jose.verify(token, self._keys)
        self.count += 1


def test_signing_keys_change_under_load_and_every_token_verifies(world, nodes):
    """Published, used after the overlap, and gone after their last token, while two processes issue JWTs all the time."""
    realm = world.realm("turning")
    apps = [realm.app("jwt", node) for node in nodes]
    tokens = [apps[number % 2].sign_in(realm.user())["refresh_token"] for number in range(4)]
    verifiers = [Verifier(apps[number % 2]) for number in range(4)]
    stopped, problems, kids = threading.Event(), [], set()

    def refresh(number):
        app, token = apps[number % 2], tokens[number]
        while not stopped.is_set():
            answer = app.refresh(token)
            if answer.status == 503:  # a row that the injected clock is moving
                continue
            try:
                assert answer.status == 200, answer
                token = answer.json()["refresh_token"]
                verifiers[number].verify(answer.json()["access_token"])
                kids.add(jose.parts(answer.json()["access_token"])[0]["kid"])
            except Exception as problem:  # pylint: disable=broad-except  # a finding, reported below
                problems.append(repr(problem))
                return

    threads = [threading.Thread(target=refresh, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    algorithms = itertools.cycle(["EdDSA", "ES256", "RS256"])
    try:
        for _ in range(ROTATIONS):
            done = run_postern("keys", "rotate", "--realm", realm.slug, "--alg", next(algorithms), environment={
                "POSTERN_DATABASE_URL": world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(world.key_file)})
            assert done.returncode == 0, done
            world.settle()
            for _ in range(3):  # the overlap is 600 s
                for verifier in verifiers:
                    verifier.travelled += 205
                before = [verifier.count for verifier in verifiers]
                world.time_travel(205)
                world.admin.call("put_realm", realm.slug, display_name=f"Realm {time.time_ns()}")
                world.settle()
                while any(v.count < n + 2 for v, n in zip(verifiers, before)) and not problems:
                    stopped.wait(0.01)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[:3]
    assert len(kids) == ROTATIONS + 1, kids
    report.say(f"key rotations: {ROTATIONS} under load, {sum(v.count for v in verifiers)} tokens verified, none failed")
