"""An administrator's transaction left open over some users' rows is those users' trouble and no other's."""

import statistics
import threading
import time

import pytest

from harness.load import is_unavailable
from harness.realm import call
from harness.report import say
from harness.transaction import OpenTransaction
from harness.volley import in_parallel, volley

from test_together import refresh_request, warm

pytestmark = pytest.mark.slow
LOCKED, FREE, SECONDS = 8, 32, 8


class Clients(threading.Thread):
    """Apps that refresh again and again; notes how long each answer took and what it was."""

    def __init__(self, app, families, pause, stop):
        super().__init__(daemon=True)
        self.app, self.families, self.pause, self.stop = app, [dict(f) for f in families], pause, stop
        self.answers = []

    def run(self):
        threads = [threading.Thread(target=self._one, args=(family,), daemon=True) for family in self.families]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, family):
        while not self.stop.is_set():
            began = time.monotonic()
            answer = self.app.refresh(family["refresh_token"], timeout=30)
            self.answers.append((time.monotonic() - began, answer))
            if answer.status == 200:
                family.update(answer.json())
            time.sleep(self.pause)

    @property
    def times(self):
        """Seconds per answer."""
        return sorted(duration for duration, _ in self.answers)

    @property
    def statuses(self):
        """How often each status was answered."""
        found = [answer.status for _, answer in self.answers]
        return {status: found.count(status) for status in sorted(set(found))}


def while_held(realm, app, families, locked_families, *statements):
    """Lets all refresh while a transaction of the administrator is open; returns what the free and the locked ones saw."""
    stop = threading.Event()
    free, locked = Clients(app, families, 0.02, stop), Clients(app, locked_families, 1.0, stop)
    with OpenTransaction(realm.world, *statements):
        free.start()
        locked.start()
        time.sleep(SECONDS)
        stop.set()
        free.join(40)
        locked.join(40)
    return free, locked


def test_others_refresh_while_an_administrator_holds_some_users_rows(world):
    """sign_out_everywhere of eight users, uncommitted; their apps try once a second. Nobody else waits 100 ms longer."""
    realm = world.realm()
    app = realm.app()
    emails = realm.users(LOCKED + FREE)
    families = warm(app, in_parallel(app.sign_in, emails))
    free, locked = while_held(
        realm, app, families[LOCKED:], families[:LOCKED],
        *(call("sign_out_everywhere", realm.slug, email) for email in emails[:LOCKED]),
    )
    times = free.times
    median, p99 = statistics.median(times), times[int(len(times) * 0.99)]
    say(
        f"locked rows: {len(times)} refreshes of {FREE} others, statuses {free.statuses}, median {median * 1000:.0f} ms, "
        f"p99 {p99 * 1000:.0f} ms, max {times[-1] * 1000:.0f} ms; the {LOCKED} locked: {locked.statuses}, max {locked.times[-1] * 1000:.0f} ms"
    )
    assert free.statuses == {200: len(times)}
    assert set(locked.statuses) == {503} and all(is_unavailable(answer) for _, answer in locked.answers)
    assert p99 < 0.5 and times[-1] < 1.5
    # Rolled back: the locked ones go on as if nothing had been.
    assert {app.refresh(family["refresh_token"]).status for family in families[:LOCKED]} == {200}


def test_companions_of_a_locked_row_wait_100_milliseconds_at_most(world):
    """All at once, so that they share statements with it."""
    realm = world.realm()
    app = realm.app()
    families = warm(app, in_parallel(app.sign_in, realm.users(40)))
    subject = app.userinfo(families[7]["access_token"]).json()["sub"]
    lock = f"SELECT FROM postern.session WHERE user_id = '{subject}' FOR UPDATE;"
    began = time.monotonic()
    assert {a.status for a in volley(app.node.port, [refresh_request(app, f["refresh_token"]) for f in families[8:]])} == {200}
    usual = time.monotonic() - began
    with OpenTransaction(world, lock, role="postgres"):
        stop, slowest = threading.Event(), []

        def locked_one():
            slowest.append(app.refresh(families[7]["refresh_token"], timeout=30))

        thread = threading.Thread(target=locked_one)
        thread.start()
        families[8:] = in_parallel(lambda f: app.refreshed(f["refresh_token"]), families[8:])
        began = time.monotonic()
        answers = volley(app.node.port, [refresh_request(app, f["refresh_token"]) for f in families[8:]])
        took = time.monotonic() - began
        stop.set()
        thread.join(30)
    say(f"locked rows: {len(answers)} refreshes at once in {usual * 1000:.0f} ms, beside a locked one in {took * 1000:.0f} ms")
    assert {answer.status for answer in answers} == {200}
    assert took < usual + 0.6
    assert is_unavailable(slowest[0])


def test_other_users_sign_in_and_other_realms_notice_nothing(world):
    """The same transaction; codes of other users, introspection, and another tenant."""
    realm, other = world.realm(), world.realm()
    app, api, stranger = realm.app(), realm.app("api"), other.app()
    emails = realm.users(LOCKED)
    families = warm(app, in_parallel(app.sign_in, emails))
    elsewhere = stranger.sign_in(other.user())
    fresh = realm.users(6)
    stop = threading.Event()
    locked = Clients(app, families, 0.1, stop)
    with OpenTransaction(world, *(call("sign_out_everywhere", realm.slug, email) for email in emails)):
        locked.start()
        for email in fresh:
            began = time.monotonic()
            assert app.sign_in(email)["refresh_token"]
            assert api.active(families[0]["access_token"])
            elsewhere = stranger.refreshed(elsewhere["refresh_token"])
            assert time.monotonic() - began < 4
            time.sleep(0.5)
        stop.set()
        locked.join(40)
    assert set(locked.statuses) == {503}


def test_a_code_for_a_locked_account_holds_up_no_other_realms_codes(world):
    """A stranger asks for a code of an account that is being deleted; others get theirs at once."""
    realm, other = world.realm(), world.realm()
    email, friend = realm.user(), other.user()
    app, stranger = realm.app(), other.app()
    with OpenTransaction(world, call("delete_user", realm.slug, email)):
        assert app.ask(email).status == 200
        for _ in range(3):
            began = time.monotonic()
            stranger.request_code(friend)
            took = time.monotonic() - began
            assert took < 3, f"{took:.1f} s"
        assert not world.mailbox.to(email, "code")
    world.mailbox.wait(email, 1, kind="code")
