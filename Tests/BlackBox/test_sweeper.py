"""What an operator sees of the removal of expired rows."""

import time

import pytest

from harness.world import World


@pytest.fixture(scope="module")
def hindered():
    """A world of this file's own: nobody else shall miss the sweeper."""
    made = World("sweeper")
    try:
        yield made.open()
    finally:
        made.close()


def test_a_removal_that_keeps_failing_is_logged_once_with_its_cause(hindered):
    """The alert comes after five minutes, and the log then has the reason."""
    node = hindered.node
    hindered.cluster.sql("REVOKE EXECUTE ON FUNCTION postern.sweep(integer) FROM postern_app")
    deadline = time.monotonic() + 40
    tries = "expired rows are not removed"
    while node.log().count(tries) < 4:
        assert time.monotonic() < deadline, node.log()[-2000:]
        time.sleep(0.2)
    lines = [line for line in node.log().splitlines() if tries in line and " warning " in line]
    assert len(lines) == 1 and "42501" in lines[0], node.log()[-2000:]
    former = node.metric("postern_sweep_last_success_timestamp_seconds")
    hindered.cluster.sql("GRANT EXECUTE ON FUNCTION postern.sweep(integer) TO postern_app")
    while node.metric("postern_sweep_last_success_timestamp_seconds") <= former:
        assert time.monotonic() < deadline + 20, "it does not go on"
        time.sleep(0.2)
