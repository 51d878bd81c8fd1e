"""Two processes under mixed load, while the configuration changes ten times a second and PostgreSQL and its network come and go.

`POSTERN_CHAOS_ROUNDS` says how many rounds; the binary must be the one that is shipped, an optimised build."""

import asyncio
import random
import subprocess
import time

import pytest

from harness import fleet, settings
from harness.app import OTP
from harness.chaos import Faults, Mixed, Reconfiguring
from harness.cutter import Cutter
from harness.node import Node
from harness.realm import call
from harness.report import say
from harness.volley import in_parallel
from harness.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world():
    """PostgreSQL on loopback TCP, at an address of its own."""
    address = f"127.{random.randint(10, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
    made = World("chaos", postgres=f"listen_addresses = '{address}'\n")
    made.address = address
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def realm(world):
    """A realm whose users may ask for many codes."""
    return world.realm()


@pytest.fixture
def nodes(world):
    """Two processes, each with a network of its own to PostgreSQL."""
    cutters = [Cutter(world.address, 5432).start() for _ in range(2)]
    made = []
    for cutter in cutters:
        node = Node(cutter.url("bb_serve"), world.key_file, world.mailbox.port, POSTERN_LOG_LEVEL="info")
        world.nodes.append(node)
        made.append(node.start())
    made[0].cutters = cutters
    yield made
    world.cluster.ensure_up()
    for cutter in cutters:
        cutter.mend()
    for node in made:
        node.stop()
    for cutter in cutters:
        cutter.stop()


def ended(nodes):
    """The processes that ended, with their exit codes."""
    return [(number, node.process.returncode) for number, node in enumerate(nodes) if not node.alive()]


def test_no_fault_ends_a_process_or_loses_an_answer(world, realm, nodes):
    """Only 503 with Retry-After meanwhile, back within 2 s, nothing acknowledged lost, no code redeemed twice."""
    families = in_parallel(realm.app().sign_in, realm.users(16))
    load = Mixed(realm, nodes, families, realm.users(240)).start()
    trouble = Faults(world.cluster, nodes[0].cutters)
    faults = trouble.all
    slowest = {fault.__name__: 0.0 for fault in faults}
    late = []
    began = time.monotonic()
    try:
        with Reconfiguring(world.cluster, realm) as administrator:
            load.back_after(time.monotonic())
            for number in range(settings.CHAOS_ROUNDS):
                fault = faults[number % len(faults)]
                fault()
                trouble.wait_until_up()
                moment = time.monotonic()
                assert not ended(nodes), f"round {number} ({fault.__name__}): ended with {ended(nodes)}"
                recovery = load.back_after(moment)
                slowest[fault.__name__] = max(slowest[fault.__name__], recovery)
                if recovery > 2.0:
                    late.append((number, fault.__name__, round(recovery, 2)))
                assert not load.fleet.violations, f"round {number} ({fault.__name__}): {load.fleet.violations[:5]}"
                time.sleep(random.uniform(0.1, 0.5))
                assert not ended(nodes), f"round {number} ({fault.__name__}): ended with {ended(nodes)}"
    finally:
        load.stop()
    load.audit()
    assert not ended(nodes)
    assert load.fleet.total(503) > 0, "no fault was noticed: this test shows nothing"
    assert administrator.changes > 5 * settings.CHAOS_ROUNDS
    say(
        f"chaos: {settings.CHAOS_ROUNDS} rounds in {time.monotonic() - began:.0f} s, {administrator.changes} changes of the configuration, "
        f"{load.fleet.total(200)} x 200, {load.fleet.total(503)} x 503, slowest answer {load.fleet.slowest:.2f} s, back after at most "
        + ", ".join(f"{seconds:.2f} s ({name})" for name, seconds in slowest.items())
    )
    assert not late, f"back later than 2 s: {late}"


def test_eight_clients_refreshing_over_kept_connections_survive_restarts(world, realm):
    """The shortest way to a trap in a handler that trusted its thread."""
    node = world.start_node(POSTERN_LOG_LEVEL="info")
    families = in_parallel(realm.app().sign_in, realm.users(8))
    load = Mixed(realm, [node], families, [])
    work = [lambda run, f=family: load._refresh(run, node, f, True) for family in load.families]  # pylint: disable=protected-access
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
