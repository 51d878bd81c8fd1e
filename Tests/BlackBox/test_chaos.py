"""A whole installation that is hurt under load, and what a handler or a pool that trusted its luck would not survive.

`POSTERN_CHAOS_ROUNDS` says how many rounds; the binary must be the one that is shipped, an optimised build. `scripts/chaos` is the long form."""

import asyncio
import json
import subprocess
import time

import pytest

from chaos.faults import Faults
from chaos.load import Mixed
from chaos.run import Run, Violated
from chaos.sign_ins import SignIn
from harness import fleet, settings
from harness.app import OTP
from harness.realm import call
from harness.report import say
from harness.volley import in_parallel
from harness.world import World

pytestmark = pytest.mark.slow
#: Seconds within which every kind of request succeeds again, once PostgreSQL and the network are back.
PROMPT = 2.0


class RunWithPlants(Run):
    """At the end it is shown losses that were planted: an audit that sees none of them shows nothing."""

    def last_audit(self):
        """The usual one, and the plants."""
        super().last_audit()
        app = self.realm.app()
        lives, ended = app.sign_in(self.realm.user()), app.sign_in(self.realm.user())
        assert app.revoke(ended["refresh_token"]).status == 200
        for plant in (SignIn("lives", lives, ended=True), SignIn("is lost", ended)):
            with pytest.raises(Violated, match=plant.kind):
                self.audit_one("planted", plant)
        assert not self.history.doubled
        for session in (b"one", b"one", b"two"):
            self.history.add("planted once", 0, time.monotonic(), b"\r\n\r\nthe same code", 200, session)
        assert len(self.history.doubled) == 1


def test_no_fault_ends_a_process_or_loses_an_answer():
    """Only 503 with Retry-After meanwhile, back within 2 s, nothing acknowledged lost, no proof good twice, no session ended."""
    report = RunWithPlants(settings.CHAOS_ROUNDS, settings.CHAOS_SEED, say=lambda line: None).run()
    assert not report["findings"], report
    assert report["rounds"] == settings.CHAOS_ROUNDS
    assert report["answers"].get("503", 0) > 0, "no fault was noticed: this test shows nothing"
    assert report["changes of the configuration"] > 5 * settings.CHAOS_ROUNDS
    assert report["audited"]["lives"] > 0 and report["audited"]["ended"] > 0, report
    say(f"chaos: {json.dumps(report)}")
    prompt = Faults.GROUPS["postgresql"] + Faults.GROUPS["network"]
    late = {what: seconds for what, seconds in report["back after at most"].items() if what in prompt and seconds > PROMPT}
    assert not late, f"back later than {PROMPT} s: {late}"


@pytest.fixture(scope="module")
def world():
    """A world to be hurt."""
    made = World("chaos")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def realm(world):
    """A realm whose users may ask for many codes."""
    return world.realm()


def test_eight_clients_refreshing_over_kept_connections_survive_restarts(world, realm):
    """The shortest way to a trap in a handler that trusted its thread."""
    node = world.start_node(POSTERN_LOG_LEVEL="info")
    families = in_parallel(realm.app().sign_in, realm.users(8))
    load = Mixed(realm, [node], families)
    work = [lambda run, f=family: load.refresh(run, 0, f, True) for family in load.families]
    load.fleet.start(*work)
    try:
        for number in range(4 if not settings.FULL else 20):
            world.cluster.stop(("fast", "immediate")[number % 2])
            time.sleep(0.2)
            world.cluster.start()
            time.sleep(0.8)
            assert node.alive(), f"restart {number}: serve ended with {node.process.returncode}"
    finally:
        world.cluster.ensure_up()
        load.stop()
    load.audit()
    node.stop()


def test_a_full_pool_while_the_configuration_reloads_is_survived(world, realm):
    """1,500 connections redeem codes, the pool is used up, and the configuration changes: refusals, and no process ends."""
    node = world.start_node(POSTERN_LOG_LEVEL="info", POSTERN_UNIFORM_DEADLINE_MS="100")
    users = realm.users(300)
    strange = []

    async def redeem(run, number):
        client = fleet.Client(node.port, source=f"127.0.1.{1 + number // 200}")
        form = {"grant_type": OTP, "client_id": realm.client("app"), "username": users[number % len(users)], "otp_code": "123456"}
        request = fleet.post(realm.host, "/connect/token", form)
        while not run.stopped:
            try:
                status, _, body = await client.ask(request, timeout=30)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as problem:
                strange.append(repr(problem))
                await asyncio.sleep(0.5)
                continue
            run.counts[("redeem", status)] = run.counts.get(("redeem", status), 0) + 1
            if status not in (400, 503):
                strange.append((status, body[:200]))
        client.close()

    run = fleet.Fleet().start(*(lambda f, n=number: redeem(f, n) for number in range(1500)))
    try:
        deadline = time.monotonic() + (6 if not settings.FULL else 30)
        number = 0
        while time.monotonic() < deadline:
            number += 1
            try:
                world.admin.run(call("put_client", realm.slug, realm.client("changing"), client_type="public", display_name=f"Name {number}"))
            except subprocess.TimeoutExpired:
                pass
            time.sleep(0.2)
            assert node.alive(), f"serve ended with {node.process.returncode}"
    finally:
        run.stop()
    assert node.alive(), f"serve ended with {node.process.returncode}"
    assert not strange, strange[:5]
    assert realm.app(node=node).get("/.well-known/openid-configuration").status == 200
    say(f"chaos: 1,500 connections at a full pool: {run.total(400)} x 400, {run.total(503)} x 503")
    node.stop()
