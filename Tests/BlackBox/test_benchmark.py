"""The benchmark's own statements are the server's, or its ratios mean nothing."""

import sys

import pytest

from harness.settings import REPOSITORY

sys.path.append(str(REPOSITORY / "Benchmarks" / "http"))

import drift  # noqa: E402  # pylint: disable=wrong-import-position

SCRIPTS = sorted(path for path in (REPOSITORY / "sql" / "bench").glob("*.sql") if path.stem != "seed")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_pgbench_script_sends_what_the_server_sends(script):
    """The same columns of the same functions, with as many arguments."""
    drift.check(script)
