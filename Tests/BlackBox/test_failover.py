"""The primary is lost under load, or hands over: Patroni, etcd and a synchronous standby, with the configuration that deploy/ ships."""

import json

import pytest

from chaos.failover import FailoverRun
from harness import report, settings
from harness.patroni import AVAILABLE, MISSING

pytestmark = pytest.mark.slow


def test_a_lost_primary_costs_seconds_and_nothing_that_was_acknowledged():
    """No refresh for 10 s at most; every acknowledged sign-in and sign-out holds; the former primary is a standby that no server uses."""
    if not AVAILABLE:
        report.say(f"failover: not tested, {MISSING}")
        pytest.skip(MISSING)
    kinds = ["kill_the_primary"] if settings.FAILOVERS == 1 else ["kill_the_primary", "switchover"]
    done = FailoverRun(settings.FAILOVERS, only=kinds, say=lambda line: None).run()
    report.say(f"failover: {json.dumps(done)}")
    assert not done["findings"], done
    assert done["rounds"] == settings.FAILOVERS and done["answers"].get("503", 0) > 0
    assert done["audited"]["lives"] > 0
