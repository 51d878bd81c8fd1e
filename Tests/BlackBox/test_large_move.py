"""A realm of a size that counts moves to another cluster under load: POSTERN_MOVE_USERS people, POSTERN_MOVE_RATE requests a second."""

import json
import re
import time

import pytest

from harness import settings
from harness.clusters import TwoClusters
from harness.populated import populate
from harness.report import say
from harness.steady import Steady, prepare
from harness.volley import in_parallel

pytestmark = pytest.mark.full

#: What a write may wait, in milliseconds, as the command measures it and as a request does.
PAUSE = 1000


def test_a_large_realm_moves_under_load():
    """No request fails, no family ends, and writes wait for a second at most."""
    users, rate = settings.MOVE_USERS, settings.MOVE_RATE
    figures = {"users": users, "sessions": users * 3 // 10, "used proofs": users // 10, "rate": rate}
    world = TwoClusters("large-move", "shared_buffers = 512MB\nmax_wal_size = 8GB\n")
    try:
        world.open()
        realm = prepare(world.realm())
        address = populate(
            world.north, realm, realm.client("app"), users, figures["sessions"], figures["used proofs"])
        nodes = [world.node, world.second_node]
        # People without a session of those that were written: whoever signs in is found among all of them.
        free = iter(range(figures["sessions"] + 1, users + 1))
        families = in_parallel(realm.app().sign_in, [address(next(free)) for _ in range(Steady.families_for(rate))])
        load = Steady(realm, nodes, families, (address(number) for number in free), rate).start()
        try:
            time.sleep(10)  # of load before, for comparison
            figures["slowest before, s"] = round(load.slowest_between(load.began, time.monotonic()), 2)
            began, started = load.answers(), time.monotonic()
            lines = world.timed_move(realm)
            ended = time.monotonic()
            figures["rate while it moved"] = round((load.answers() - began) / (ended - started))
            changed = next(at for at, line in lines if "is served by south; writes waited" in line)
            figures["slowest at the change, s"] = round(load.slowest_between(changed - 1, changed), 2)
            figures["slowest while it moved, s"] = round(load.slowest_between(started, changed - 1), 2)
            time.sleep(10)  # and after
            figures["slowest after, s"] = round(load.slowest_between(ended, time.monotonic()), 2)
        finally:
            load.stop()
        told = "\n".join(line for _, line in lines)
        figures["seconds"] = {line: round(at - started, 1) for at, line in lines}
        figures["pause, ms"] = int(re.search(r"writes waited (\d+) ms", told).group(1))
        figures["answers"], figures["503"] = load.answers(), load.unavailable
        figures["503, s after the start"] = sorted({(name, round(at - started)) for name, at in load.refusals})
        figures["sign-ins"] = len(load.signed_in)
        load.audit()
        cleared = time.monotonic()
        done = world.postern("clear", realm.slug, "--at", "north", timeout=3600)
        assert done.returncode == 0, done.stderr
        figures["cleared in, s"] = round(time.monotonic() - cleared, 1)
    finally:
        world.close()
        say(f"large move: {json.dumps(figures, indent=1)}")
    assert "rows are equal" in told
    assert figures["503"] == 0, "a request was refused"
    assert figures["pause, ms"] <= PAUSE, "writes waited too long"
    assert figures["sign-ins"] > 0
