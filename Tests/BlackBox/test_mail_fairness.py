"""H4: one realm's flood of requests costs another realm's users nothing: neither the queue of undecided requests nor the mail queue is shared."""

import itertools
import statistics
import time

import pytest

from harness import settings, wire
from harness.realm import OTP
from harness.report import say
from harness.volley import in_parallel
from harness.world import World

#: What one App takes at once by default, and a tenth that shows the same.
FLOOD = 30_000 if settings.FULL else 2_000
SAMPLES = 20
PATH = "/api/account/native/otp/request"


@pytest.fixture(scope="module")
def world():
    """A mail server that needs 200 ms per mail, and a node that believes X-Forwarded-For: strangers have as many addresses as they like."""
    made = World("mail-fairness", POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        made.mailbox.slowness, made.mailbox.mode = 0.2, "slow"
        yield made.open()
    finally:
        made.close()


def delays(app, emails, pause):
    """Seconds from each request to its mail."""
    taken = []
    for email in emails:
        began = time.monotonic()
        asked = app.ask(email)
        assert asked.status == 200, asked
        app.mailbox.wait(email, timeout=90)
        taken.append(time.monotonic() - began)
        time.sleep(pause)
    return taken


def flood(world, host, count):
    """Requests for unknown addresses from many sources, each on a connection that is kept; how long it took."""
    number = itertools.count()

    def send(share):
        with wire.Connection(world.node.port) as connection:
            for _ in range(share):
                n = next(number)
                source = f"198.{18 + n % 2}.{n // 500 % 250}.{n // 2 % 250}"
                headers = {"Host": host, "Content-Type": "application/json", "X-Forwarded-For": source}
                answer = connection.exchange("POST", PATH, headers, b'{"Email":"stranger%d@mail.example"}' % n)
                assert answer.status == 200, answer

    began = time.monotonic()
    in_parallel(send, [count // 8] * 8)
    return time.monotonic() - began


def queued(world, slug):
    """How many mails of a realm wait."""
    return int(world.admin.run(f"SELECT count(*) FROM admin.outbox WHERE realm = '{slug}' AND state = 'queued';")[0][0])


def undecided(world):
    """How many requests wait."""
    return int(world.cluster.value("SELECT count(*) FROM postern.sign_in_request WHERE pending"))


def test_a_flood_at_one_app_does_not_delay_the_codes_of_another_realm(world):
    """Median and maximum while the flood is decided and sent, beside those without it."""
    attacked, other = world.realm("attacked"), world.realm("other")
    host = attacked.put_app("shop", ["app"], registration="JitOnOtp")
    attacked.put_client("app", f"gt:{OTP}")
    app, own = other.app(), attacked.app()
    normal = delays(app, other.users(SAMPLES), 0.05)
    emails, members = other.users(SAMPLES + 10), attacked.users(5)

    # While requests come in and are decided.
    results = {}

    def attack(_):
        results["flood"] = flood(world, host, FLOOD)

    def measure(_):
        time.sleep(0.5)
        results["during"] = delays(app, emails[:10], 0.05)

    in_parallel(lambda work: work(None), [attack, measure], threads=2)
    backlog = queued(world, attacked.slug) + undecided(world)
    assert backlog > SAMPLES * 4, "the flood is over before it is measured"
    # While its mails wait.
    during = results["during"] + delays(app, emails[10:], 0.2)
    of_its_own = delays(own, members, 0.2)
    left = queued(world, attacked.slug) + undecided(world)
    assert left > 0, "the flood was over before the measurement was"
    say(f"codes beside {FLOOD} strangers' requests ({FLOOD / results['flood']:.0f}/s, {backlog} waiting, {left} at the end): "
        f"normally median {statistics.median(normal):.2f} s, max {max(normal):.2f} s; meanwhile median {statistics.median(during):.2f} s, "
        f"max {max(during):.2f} s; members of the attacked realm: max {max(of_its_own):.2f} s")
    assert statistics.median(during) < statistics.median(normal) + 2
    assert max(during) < max(normal) + 2
    assert max(of_its_own) < 10, "who has an account goes before those who register"
    assert queued(world, attacked.slug) <= 8_000


def test_the_metrics_tell_which_realm_waits(world):
    """Of the flood that is still there."""
    deadline = time.monotonic() + 25
    while True:
        metrics = world.node.ops("/metrics").body.decode()
        figures = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith("postern_queue"))
        waiting = [name for name in figures if name.startswith('postern_queue_realm_entries{queue="mail",realm="attacked')]
        if waiting and float(figures[waiting[0]]) > 0:
            break
        assert time.monotonic() < deadline, metrics
        time.sleep(0.5)
    assert float(figures['postern_queue_entries{queue="mail"}']) >= float(figures[waiting[0]])
    assert float(figures['postern_queue_oldest_seconds{queue="mail"}']) > 0
    assert 'postern_queue_oldest_seconds{queue="requests"}' in figures
    assert len([name for name in figures if name.startswith("postern_queue_realm_oldest_seconds")]) <= 40
    assert "stranger" not in metrics
