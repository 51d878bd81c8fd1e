"""A long queue after an outage of the mail server leaves by age, without what has expired, and no faster than the server was promised."""

import time

import pytest

from harness.node import Node
from harness.volley import in_parallel
from harness.world import World

RATE, CONNECTIONS = 40, 4
STALE, FRESH = 40, 240


@pytest.fixture(scope="module")
def world():
    """One node with a low rate."""
    made = World("mail-rate", POSTERN_SMTP_RATE=str(RATE))
    try:
        yield made.open()
    finally:
        made.close()


def queue_of(realm):
    """The recipients whose mail waits, oldest first."""
    return [row[0] for row in realm.world.admin.run(
        f"SELECT recipient FROM admin.outbox WHERE realm = '{realm.slug}' AND state = 'queued' ORDER BY created_at;")]


def await_queue(realm, wanted):
    """Waits until a mail waits for each of them; returns them, oldest first."""
    deadline = time.monotonic() + 15
    while not set(wanted) <= set(queue := queue_of(realm)):
        assert time.monotonic() < deadline, len(queue)
        time.sleep(0.1)
    return [recipient for recipient in queue if recipient in set(wanted)]


def test_a_backlog_leaves_by_age_and_within_the_rate(world):
    """Forty codes that are too old and 240 that are not, queued while nobody listens."""
    realm = world.realm()
    app, stale, fresh = realm.app(), realm.users(STALE), realm.users(FRESH)
    world.mailbox.down()
    assert {answer.status for answer in in_parallel(app.ask, stale, threads=16)} == {200}
    await_queue(realm, stale)
    world.time_travel(605)
    assert {answer.status for answer in in_parallel(app.ask, fresh, threads=16)} == {200}
    expected = await_queue(realm, fresh)  # a stale one may have expired by now
    world.time_travel(31)  # the few that were tried are due again
    world.mailbox.up()

    leased = []
    deadline = time.monotonic() + 60
    while len(world.mailbox.mails) < FRESH:
        leased.append(int(world.admin.run("SELECT count(*) FROM admin.outbox WHERE state = 'queued' AND not_before > now();")[0][0]))
        assert time.monotonic() < deadline, f"{len(world.mailbox.mails)} of {FRESH} after a minute"
        time.sleep(0.05)
    time.sleep(0.5)
    mails = list(world.mailbox.mails)

    arrived = [mail.recipients[0] for mail in mails]
    assert sorted(arrived) == sorted(expected), "each fresh one once, no stale one"
    states = world.admin.run(
        f"SELECT DISTINCT state, last_error FROM admin.outbox WHERE realm = '{realm.slug}' AND recipient = ANY ('{{{','.join(stale)}}}');")
    assert [tuple(row) for row in states] == [("dead", "expired")]
    # What waits for the rate is on nobody's lease: another node could take it.
    assert max(leased) <= CONNECTIONS, leased
    times = [mail.at for mail in mails]
    seconds = [later - earlier for earlier, later in zip(times, times[RATE:])]
    assert min(seconds) >= 1, f"{RATE + 1} mails within {min(seconds):.3f} s"
    # As many at a time as there are connections: neighbours may overtake each other, strangers not.
    place = {email: index for index, email in enumerate(expected)}
    strayed = [abs(place[email] - index) for index, email in enumerate(arrived)]
    assert sum(strayed) / len(strayed) < CONNECTIONS and max(strayed) < RATE, strayed
    assert len(world.mailbox.mails) == FRESH


@pytest.mark.parametrize("value", ["0", "-1", "10001", "many", "1.5"])
def test_a_rate_is_a_whole_number(world, value):
    """One clear line, and no start."""
    node = Node(world.cluster.url("bb_serve"), world.key_file, world.mailbox.port, POSTERN_SMTP_RATE=value)
    with pytest.raises(AssertionError, match="serve ended with 1"):
        node.start()
    assert "POSTERN_SMTP_RATE" in node.log() and "1 to 10000" in node.log()
