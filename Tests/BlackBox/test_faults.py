"""What happens when PostgreSQL, the mail server or the process itself goes away."""

import base64
import os
import signal
import threading
import time

import pytest

from harness import wire
from harness.load import Load, is_unavailable
from harness.node import run_postern
from harness.ports import free_port
from harness.report import say
from harness.settings import FAULT_ROUNDS
from harness.volley import in_parallel, token_request

pytestmark = pytest.mark.slow
TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bb_serve';"


@pytest.fixture(scope="module")
def realm(fragile_world):
    """A realm in the world that gets hurt."""
    return fragile_world.realm()


@pytest.fixture(autouse=True)
def healed(fragile_world):
    """Every test begins and ends with a running database, mail server and process, whatever went wrong in the middle."""
    yield
    fragile_world.cluster.ensure_up()
    fragile_world.mailbox.mode = "accept"
    fragile_world.mailbox.up()
    if not fragile_world.node.alive():
        fragile_world.node.start()
    fragile_world.node.wait_ready()


@pytest.fixture
def load(realm):
    """Eight families and 120 fresh codes, with traffic on."""
    app, api = realm.app(), realm.app("api")
    families = in_parallel(app.sign_in, realm.users(8))
    codes = in_parallel(app.request_code, realm.users(120))
    running = Load(app, api, families, codes).start()
    yield running
    running.stop()


def kill_and_revive(cluster):
    """SIGKILL for all of PostgreSQL; up again a second later."""
    cluster.kill()
    yield
    cluster.start()


def fast_restart(cluster):
    """What an administrator does."""
    cluster.stop("fast")
    yield
    cluster.start()


def immediate_restart(cluster):
    """No shutdown checkpoint; crash recovery follows."""
    cluster.stop("immediate")
    yield
    cluster.start()


@pytest.mark.parametrize("number", range(FAULT_ROUNDS))
@pytest.mark.parametrize("fault", [kill_and_revive, fast_restart, immediate_restart])
def test_while_postgresql_is_away_only_503_and_nothing_is_lost(fragile_world, realm, load, fault, number):
    """Only 503 with Retry-After meanwhile, back within 2 s of PostgreSQL, every acknowledged token works, no code twice."""
    cluster = fragile_world.cluster
    load.first_success_after(time.monotonic())
    time.sleep(0.5)
    steps = fault(cluster)
    next(steps)
    time.sleep(0.3)
    asked = realm.app().ask(realm.new_email())
    assert is_unavailable(asked), f"otp/request while PostgreSQL is away: {asked}"
    assert fragile_world.node.ops("/healthz").status == 200
    assert fragile_world.node.ops("/readyz").status == 503
    time.sleep(0.7)
    next(steps, None)
    assert cluster.value("SELECT 1") == "1"
    returned = time.monotonic()
    recovery = load.first_success_after(returned)
    time.sleep(0.7)
    load.stop()
    assert load.unavailable > 0, "the fault was not noticed: this test shows nothing"
    assert recovery <= 2.0, f"recovery took {recovery:.2f} s"
    assert load.slowest <= 5.0, f"one answer took {load.slowest:.1f} s"
    load.audit()
    assert fragile_world.node.alive()
    say(f"faults: {fault.__name__} #{number}: {len(load.successes)} ok, {load.unavailable} x 503, back after {recovery:.2f} s")


def test_terminated_backends_are_invisible_or_503(fragile_world, load):
    """Ten times in three seconds every connection of the server is terminated."""
    load.first_success_after(time.monotonic())
    for _ in range(10):
        fragile_world.cluster.sql(TERMINATE)
        time.sleep(0.3)
    moment = time.monotonic()
    assert load.first_success_after(moment) <= 2.0
    load.stop()
    load.audit()
    say(f"faults: 10 terminations: {len(load.successes)} ok, {load.unavailable} x 503")


def test_a_single_killed_backend_is_survived(fragile_world, load):
    """SIGKILL of one backend resets them all."""
    load.first_success_after(time.monotonic())
    pid = fragile_world.cluster.value("SELECT pid FROM pg_stat_activity WHERE usename = 'bb_serve' LIMIT 1;")
    os.kill(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while fragile_world.cluster.psql_is_down():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert load.first_success_after(time.monotonic()) <= 2.0
    time.sleep(0.3)
    load.stop()
    load.audit()


def test_sigterm_answers_what_is_in_flight_and_exits_0(fragile_world, realm):
    """32 requests on the way when SIGTERM comes: all are answered as usual, the exit code is 0, within the grace."""
    node = fragile_world.start_node(POSTERN_UNIFORM_DEADLINE_MS="500", POSTERN_SHUTDOWN_GRACE="10")
    app = realm.app(node=node)
    right = in_parallel(app.request_code, realm.users(16))
    wrong = realm.users(16)
    forms = [app.redeem_form(a.code, handle=a.handle) for a in right] + [app.redeem_form("123456", email=e) for e in wrong]
    connections = [wire.Connection(node.port, timeout=20) for _ in forms]
    for connection in connections:  # accepted and served once, so that none waits in the backlog
        assert connection.exchange("GET", "/.well-known/jwks", {"Host": realm.host}).status == 200
    for connection, form in zip(connections, forms):
        connection.send(token_request(app, form))
    time.sleep(0.1)
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    answers = [connection.receive() for connection in connections]
    assert [a.status for a in answers] == [200] * 16 + [400] * 16, answers
    assert node.process.wait(15) == 0
    assert time.monotonic() - began < 11
    with pytest.raises(OSError):
        wire.Connection(node.port)


def refusal_to_start(world, **environment):
    """Runs `serve` with one setting spoilt; it must end with 1. Returns what it wrote to stderr."""
    addresses = {name: f"127.0.0.1:{free_port()}" for name in ("POSTERN_LISTEN", "POSTERN_OPS_LISTEN")}
    done = run_postern("serve", environment={**world.node.environment, **addresses, **environment}, timeout=20)
    assert done.returncode == 1, done
    return done.stderr


def test_a_server_that_cannot_reach_its_database_at_start_says_so(fragile_world):
    """Exit code 1 and the reason on stderr."""
    said = refusal_to_start(fragile_world, POSTERN_DATABASE_URL="postgresql://nobody@/none?host=%2Fnonexistent")
    assert "database" in said.lower()


@pytest.mark.parametrize("content, mode", [
    (None, None), ("c2hvcnQ=", 0o600), (base64.b64encode(bytes(range(32))).decode(), 0o644),
], ids=["missing", "short", "readable by others"])
def test_a_server_without_a_proper_key_does_not_start(fragile_world, tmp_path, content, mode):
    """Exit code 1 and the setting's name on stderr."""
    path = tmp_path / "secret.key"
    if content is not None:
        path.write_text(content + "\n")
        path.chmod(mode)
    assert "POSTERN_SECRET_KEY_FILE" in refusal_to_start(fragile_world, POSTERN_SECRET_KEY_FILE=str(path))


def test_a_superuser_is_refused_as_the_servers_role(fragile_world):
    """Row security would not bind it."""
    assert "superuser" in refusal_to_start(fragile_world, POSTERN_DATABASE_URL=fragile_world.cluster.url("postgres")).lower()


def test_an_unmigrated_database_is_refused(fragile_world):
    """Never half-served: the message names the command that helps. `migrate --check` says the same with exit code 1."""
    fragile_world.cluster.sql("CREATE DATABASE empty", database="postgres")
    url = fragile_world.cluster.url("bb_serve").replace("/postern?", "/empty?")
    refusal = refusal_to_start(fragile_world, POSTERN_DATABASE_URL=url)
    assert refusal.rstrip().endswith("run `postern migrate`") and len(refusal) < 300, "one line, however much is missing"
    owner = fragile_world.cluster.url("postgres").replace("/postern?", "/empty?")
    environment = {"POSTERN_MIGRATE_DATABASE_URL": owner, "POSTERN_DATABASE_URL": owner}
    assert run_postern("migrate", "--check", environment=environment).returncode == 1
    assert run_postern("migrate", environment=environment).returncode == 0
    assert run_postern("migrate", "--check", environment=environment).returncode == 0
    assert run_postern("migrate", environment=environment).returncode == 0, "a second run changes nothing"


# -- mail ----------------------------------------------------------------------------------------


def arrive(world, emails, per_step=20, steps=12):
    """Waits for one mail per address, letting the back-off pass by the injected clock; returns the copies per address."""
    for _ in range(steps):
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if all(world.mailbox.to(e) for e in emails):
                time.sleep(0.3)
                return [len(world.mailbox.to(e)) for e in emails]
            time.sleep(0.05)
        world.time_travel(per_step)
    missing = [e for e in emails if not world.mailbox.to(e)]
    raise AssertionError(f"{len(missing)} of {len(emails)} mails were lost")


@pytest.mark.parametrize("trouble", ["down", "refuse"])
def test_mail_trouble_is_not_the_callers_and_loses_nothing(fragile_world, realm, trouble):
    """The answers stay the uniform 200 and quick; every mail arrives later, with at most one extra copy."""
    app, emails = realm.app(), realm.users(20)
    if trouble == "down":
        fragile_world.mailbox.down()
    else:
        fragile_world.mailbox.mode = "refuse"
    answers = in_parallel(app.ask, emails)
    assert {a.status for a in answers} == {200}
    assert max(a.seconds for a in answers) < 2
    time.sleep(1)
    assert not any(fragile_world.mailbox.to(e) for e in emails)
    fragile_world.mailbox.mode = "accept"
    fragile_world.mailbox.up()
    copies = arrive(fragile_world, emails)
    assert max(copies) <= 2, copies
    for email, answer in zip(emails, answers):
        code = fragile_world.mailbox.to(email)[-1].code
        assert {m.code for m in fragile_world.mailbox.to(email)} == {code}, "copies must carry the same code"
        assert app.redeem(code, handle=answer.json()["AuthSession"]).status == 200


def test_a_slow_mail_server_slows_nobody_else(fragile_world, realm):
    """Three seconds per mail: requests and redemptions keep their pace, the mails arrive once each."""
    app = realm.app()
    ready = app.request_code(realm.user())
    fragile_world.mailbox.mode = "slow"
    emails = realm.users(6)
    answers = [app.ask(e) for e in emails]
    assert max(a.seconds for a in answers) < 1
    answer = app.redeem(ready.code, handle=ready.handle)
    assert answer.status == 200 and answer.seconds < 1
    deadline = time.monotonic() + 40
    while not all(fragile_world.mailbox.to(e) for e in emails):
        assert time.monotonic() < deadline, "mails missing"
        time.sleep(0.1)
    assert [len(fragile_world.mailbox.to(e)) for e in emails] == [1] * 6


def test_a_killed_server_loses_no_mail(fragile_world, realm):
    """SIGKILL with mails queued: the next process sends them."""
    app, emails = realm.app(), realm.users(10)
    fragile_world.mailbox.down()
    assert {app.ask(e).status for e in emails} == {200}
    fragile_world.node.kill()
    fragile_world.mailbox.up()
    fragile_world.node.start()
    assert max(arrive(fragile_world, emails)) <= 2


def test_a_killed_server_keeps_every_promise(fragile_world, realm):
    """SIGKILL during refreshes: the tokens acknowledged before, and the retry of the one in flight, work afterwards."""
    app, api = realm.app(), realm.app("api")
    families = in_parallel(app.sign_in, realm.users(8))
    stop = threading.Event()

    def refresh_until_killed(family):
        while not stop.is_set():
            try:
                answer = app.refresh(family["refresh_token"])
            except (OSError, wire.WireError):
                return
            if answer.status == 200:
                family.update(answer.json())

    threads = [threading.Thread(target=refresh_until_killed, args=(family,)) for family in families]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    fragile_world.node.kill()
    stop.set()
    for thread in threads:
        thread.join(20)
    fragile_world.node.start()
    for family in families:
        assert api.active(family["access_token"])
        assert app.refresh(family["refresh_token"]).status == 200
