"""`scripts/bench sweeper`: what requests notice of the sweeper while it deletes as fast as it can, beside a control."""

import argparse
import json
import time

from harness.volley import in_parallel
from harness.world import World

from .load import Mixed

EXPIRED = """
INSERT INTO postern.message_outbox
SELECT copy.* FROM (SELECT * FROM postern.message_outbox AS o WHERE o.state = 'sent' LIMIT 1) AS m, generate_series(1, {rows}) AS n,
       LATERAL jsonb_populate_record(NULL::postern.message_outbox, to_jsonb(m) || jsonb_build_object(
           'id', gen_random_uuid(), 'created_at', now() - interval '30 days' - make_interval(secs => n))) AS copy;
"""
BATCH = 20_000


class Windows:
    """Durations of requests by the window in which they ended."""

    def __init__(self):
        self.name = None
        self.all = {}

    def add(self, _kind, _port, began, _request, outcome, _body):
        """One request."""
        if self.name and outcome == 200:
            self.all.setdefault(self.name, []).append(time.monotonic() - began)

    def measure(self, name, seconds):
        """Counts for so long."""
        self.name = name
        time.sleep(seconds)
        self.name = None

    def figures(self, name):
        """Requests, p50 and p99 in ms."""
        ordered = sorted(self.all[name])
        return {"requests": len(ordered)} | {
            f"p{share}": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)], 2) for share in (50, 99)}


def left(cluster):
    """Expired rows that are still there."""
    return int(cluster.value("SELECT count(*) FROM postern.message_outbox WHERE created_at < now() - interval '7 days'"))


def begun(cluster, longest=60):
    """Waits until the sweeper, which looks every five seconds, has moved on."""
    query = "SELECT block FROM postern.sweep_cursor WHERE table_name = 'message_outbox'"
    block, ends = cluster.value(query), time.monotonic() + longest
    while cluster.value(query) == block:
        assert time.monotonic() < ends, f"the sweeper did nothing for {longest} s"
        time.sleep(0.02)


def main():
    """Windows in turn: the sweeper stands still, the sweeper runs, it stands still again."""
    parser = argparse.ArgumentParser(prog="scripts/bench sweeper", description=(
        "Refreshes, userinfo, introspection and discovery while the sweeper is held back by its own lock, and while it deletes expired rows. "
        "`off` and `control` are both without it: their difference is what the figures cannot show."))
    parser.add_argument("--rows", type=int, default=3_000_000, help="expired rows at the start (default 3,000,000)")
    parser.add_argument("--turns", type=int, default=3, help="windows of each kind (default 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a window (default 1)")
    options = parser.parse_args()
    world = World("sweeper")
    try:
        world.open()
        realm = world.realm()
        families = in_parallel(realm.app().sign_in, realm.users(16))
        windows = Windows()
        held = world.cluster.hold("SELECT pg_advisory_lock(postern.lock_of_sweep());")
        for _ in range(-(-options.rows // BATCH)):
            world.cluster.sql(EXPIRED.format(rows=BATCH))
        world.cluster.sql("VACUUM ANALYZE postern.message_outbox")
        load = Mixed(realm, [world.node], families, history=windows).start()
        deleted = 0
        try:
            load.back_after(time.monotonic(), 60)
            for _ in range(options.turns):
                windows.measure("off", options.seconds)
                before = left(world.cluster)
                held.end()
                begun(world.cluster)
                windows.measure("on", options.seconds)
                held = world.cluster.hold("SELECT pg_advisory_lock(postern.lock_of_sweep());")
                deleted += before - (after := left(world.cluster))
                assert after, "no expired row is left before the window has ended: more --rows, or fewer --turns"
                windows.measure("control", options.seconds)
        finally:
            held.end()
            load.stop()
        load.audit()
        print(json.dumps({name: windows.figures(name) for name in ("off", "on", "control")} | {"rows deleted": deleted}, indent=2))
    finally:
        world.close()


if __name__ == "__main__":
    main()
