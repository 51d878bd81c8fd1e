"""Nobody may tell known from unknown (ET): the answers of each pair of classes are the same bytes, come no earlier than the deadline and
cost the same statements. Whether their times differ is `scripts/timing`'s to say; here are its statistics, on samples we know."""

import random
import time

import pytest

from harness import wire
from harness.settings import UNIFORM_DEADLINE_MS
from harness.world import World
from timing import driver, experiment, figures
from timing.accounts import Accounts
from timing.pairs import PAIRS

#: What the server asks on its own, whoever calls.
BACKGROUND = (
    "take_undecided", "resolve_approvals", "take_messages", "take_due_logout_tokens", "message_", "end_waits", "queue_figures", "decide_", "outbox_", "sweep", "config_stamp", "realm_config", "directory", "server_probe", "schema_range",
    "take_realm_permits", "pending_", "carry_out", "add_link", "key_", "signing_key_requests", "rotate_signing_key", "add_data_key", "current_data_key", "realm_versions", "report_wrong_codes",
    "collect_events", "take_events", "webhook_", "event_",
)
COUNT = 12


@pytest.fixture(scope="module")
def accounts():
    """A realm without limits, on a database that counts statements."""
    made = World("uniform", postgres="shared_preload_libraries = 'pg_stat_statements'\n")
    try:
        made.open().cluster.sql("CREATE EXTENSION pg_stat_statements")
        yield Accounts(made)
    finally:
        made.close()


def statements(accounts, requests):
    """How often each function of schema postern was called for some requests, one after the other."""
    cluster = accounts.world.cluster
    cluster.sql("SELECT pg_stat_statements_reset()")
    driver.run(accounts.world.node.port, list(zip(requests[::2], requests[1::2])), connections=1, pause=0)
    rows = cluster.sql(
        "SELECT substring(query FROM 'postern\\.([a-z_]+)\\('), sum(calls) FROM pg_stat_statements "
        "WHERE query ~ 'postern\\.[a-z_]+\\(' GROUP BY 1 ORDER BY 1"
    )
    return {name: int(calls) for name, calls in rows if not name.startswith(BACKGROUND)}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_two_classes_are_one_to_the_caller(accounts, pair):
    """Status, header fields and their order, body but for handles and dates, length; and nothing leaves before the deadline."""
    times = driver.run(accounts.world.node.port, pair.make(accounts, COUNT), connections=6)
    assert experiment.static_difference(times) == ""
    if pair.held:
        quickest = times.quickest / 1e6
        assert quickest > UNIFORM_DEADLINE_MS - 0.1, f"an answer left after {quickest:.2f} ms"
    if pair.same_statements:
        requests = pair.make(accounts, COUNT)
        asked = [statements(accounts, [pair_[index] for pair_ in requests]) for index in (0, 1)]
        assert asked[0] == asked[1], asked
        assert not pair.held or sum(asked[0].values()) >= COUNT, "the database was not asked at all"


def test_the_deadline_counts_from_the_end_of_a_request(accounts):
    """Who sends the last byte just before a deadline that ran from the first would see a millisecond of work as a whole deadline."""
    email = accounts.addresses(1)[0]
    for raw in (accounts.code_request(email), accounts.redemption(email)):
        with wire.Connection(accounts.world.node.port) as connection:
            connection.send(raw[:-1])
            time.sleep(0.8 * UNIFORM_DEADLINE_MS / 1000)
            started = time.monotonic()
            connection.send(raw[-1:])
            answer = connection.receive()
            waited = (time.monotonic() - started) * 1000
        assert answer.status in (200, 400), answer
        assert waited > UNIFORM_DEADLINE_MS - 0.1, f"left {waited:.1f} ms after the request was complete"


# -- the statistics ----------------------------------------------------------------------------------


def sample(seed, count=2000, shift=0.0):
    """Service times in milliseconds: a deadline, a lognormal jitter, now and then a hiccup."""
    coin = random.Random(seed)
    return [25 + coin.lognormvariate(-1.5, 0.7) + (coin.random() < 0.01) * coin.random() * 20 + shift for _ in range(count)]


def test_a_planted_difference_is_found_and_none_where_none_is():
    """Twenty A/A comparisons: the interval holds 0.5 in at least sixteen and is never clearly beyond the band; 0.1 ms always is."""
    covered = 0
    for seed in range(20):
        x = sample(seed)
        nothing, planted = figures.area(x, sample(100 + seed)), figures.area(x, sample(200 + seed, shift=0.1))
        covered += nothing.low <= 0.5 <= nothing.high
        assert not nothing.beyond(0.04), nothing
        assert planted.low > 0.54, planted
        assert figures.wilcoxon(x, sample(200 + seed, shift=0.1)) < 0.001
    assert covered >= 16


def test_the_figures_of_samples_one_can_do_by_hand():
    """AUC, Wilcoxon and quantiles of small samples; ties count half."""
    assert figures.area([1, 2], [3, 4]).value == 1.0
    assert figures.area([3, 4], [1, 2]).value == 0.0
    assert figures.area([1, 2, 3], [1, 2, 3]).value == pytest.approx(0.5)
    assert figures.area([1, 1], [1, 2]).value == pytest.approx(0.75)
    assert figures.quantile([1, 2, 3, 4, 5], 0.5) == 3 and figures.quantile([1, 2], 0.25) == 1.25
    assert figures.decile_differences(list(range(101)), list(range(5, 106))) == [5.0] * 9
    # scipy.stats.wilcoxon of the differences 1…12 with -1 and -2: W = 3, p by the normal approximation 0.0047
    assert figures.wilcoxon([0] * 12, [-1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) == pytest.approx(0.0047, abs=0.0005)


def test_an_attacker_who_asks_often_sees_what_single_requests_hide():
    """1 ms under 50 ms of jitter: one request tells nearly nothing, the minimum of a hundred nearly everything (Ibexa's mistake)."""
    coin = random.Random(7)
    x = [coin.random() * 50 + coin.lognormvariate(1, 0.2) for _ in range(10_000)]
    y = [coin.random() * 50 + coin.lognormvariate(1, 0.2) + 1 for _ in range(10_000)]
    assert figures.area(x, y).within(0.04)
    assert figures.attacker(x, y, "min") == (pytest.approx(0.9, abs=0.08), 100)


def test_an_answer_that_differs_in_one_byte_is_seen():
    """The static comparison does not overlook what it is for."""
    same, other = b"HTTP/1.1 400 Bad Request\r\nDate: %s\r\nA: 1\r\n\r\nx", b"HTTP/1.1 400 Bad Request\r\nDate: now\r\nB: 1\r\n\r\nx"
    times = driver.Times(answers=([same % b"then", same % b"soon"], [same % b"late", same % b"four"]))
    assert experiment.static_difference(times) == ""
    times.answers[1].append(other)
    assert "differ" in experiment.static_difference(times)
