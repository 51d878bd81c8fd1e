"""Work for a request begins when its answer has left: on a busy machine it would delay the answer, by more where there is an account."""

import threading
import time

import pytest

from harness.approvals import ask, switch_on
from harness.world import World

#: Long enough to look several times while an answer is held.
DEADLINE_MS = 1000


@pytest.fixture(scope="module")
def realm():
    """A realm on a server of its own whose uniform answers leave late."""
    made = World("after", POSTERN_UNIFORM_DEADLINE_MS=str(DEADLINE_MS))
    try:
        realm = made.open().realm("after")
        switch_on(realm, "api")
        yield realm
    finally:
        made.close()


def looks_until_answered(realm, request, query):
    """What `query` said each time that the answer of `request` was not there yet, and what came of the request."""
    answers, seen = [], []
    caller = threading.Thread(target=lambda: answers.append(request()))
    caller.start()
    while not answers:
        rows = realm.world.cluster.sql(query)
        if rows and not answers:
            seen.append(rows[0][0])
        time.sleep(0.02)
    caller.join()
    return seen, answers[0]


def wait_for(condition, timeout=20):
    """Until it holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize("path, member", [("/api/account/native/otp/request", "Email"), ("/api/account/magic-link/request", "Email")])
def test_a_request_for_a_code_or_link_is_decided_after_its_answer(realm, path, member):
    """The row stays undecided for as long as the answer is held, and is decided then without waiting for the next look of a worker."""
    app, email = realm.app(), realm.user()
    query = f"SELECT pending FROM postern.sign_in_request WHERE address_key = '{email}' ORDER BY created_at DESC LIMIT 1"
    seen, answer = looks_until_answered(realm, lambda: app.post_json(path, {member: email}), query)
    assert answer.status == 200, answer
    assert len(seen) > 3 and set(seen) == {"t"}, f"{path} was decided while its answer was held: {seen}"
    wait_for(lambda: realm.world.cluster.sql(query)[0][0] == "f")


def test_a_request_for_approval_is_resolved_after_its_answer(realm):
    """The same for `bc-authorize`, whose worker looks whom the hint means."""
    api, email = realm.app("api"), realm.user()
    query = f"SELECT resolved_at IS NULL FROM postern.device_request WHERE kind = 'approval' AND hint = '{email}'"
    seen, answer = looks_until_answered(realm, lambda: ask(api, email), query)
    assert answer.status == 200, answer
    assert len(seen) > 3 and set(seen) == {"t"}, f"resolved while the answer was held: {seen}"
    wait_for(lambda: realm.world.cluster.sql(query)[0][0] == "f")
