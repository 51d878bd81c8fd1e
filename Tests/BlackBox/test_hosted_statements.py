"""How often pages and codes ask the database: each request once, and a page without a session never."""

import secrets

import pytest

from harness.codeflow import Flow, hosted, response
from harness.sign_in_pages import newest, Session
from harness.world import World
from test_uniform import BACKGROUND

TIMES = 5


@pytest.fixture(scope="module")
def counted():
    """A realm on a database that counts statements."""
    made = World("statements", postgres="shared_preload_libraries = 'pg_stat_statements'\n")
    try:
        made.open().cluster.sql("CREATE EXTENSION pg_stat_statements")
        realm = hosted(made.realm(), offer_passkey=False)
        yield realm
    finally:
        made.close()


def statements(realm, action):
    """The calls of functions that an action repeated some times makes, by function."""
    realm.world.settle_messages()
    cluster = realm.world.cluster
    cluster.sql("SELECT pg_stat_statements_reset()")
    for _ in range(TIMES):
        action()
    rows = cluster.sql(
        "SELECT substring(query FROM 'postern\\.([a-z_]+)\\('), sum(calls) FROM pg_stat_statements "
        "WHERE query ~ 'postern\\.[a-z_]+\\(' AND toplevel GROUP BY 1 ORDER BY 1")
    return {name: int(calls) for name, calls in rows if not name.startswith((*BACKGROUND, "add_signing_key"))}


def of_a_form(realm, action):
    """The calls of a form besides the two that remember it, of which there is one each."""
    calls = statements(realm, action)
    assert (calls.pop("begin_form"), calls.pop("end_form")) == (TIMES, TIMES)
    return calls


def test_a_silent_sign_on_and_its_code_are_one_call_each(counted):
    """The browser's request, the client's request; a refused cookie costs one as well."""
    flow = Flow(counted)
    flow.sign_in(counted.user())
    codes = []
    assert sum(statements(counted, lambda: codes.append(response(flow.authorize())["code"])).values()) == TIMES
    assert sum(statements(counted, lambda: flow.exchange(codes.pop())).values()) == TIMES
    flow.cookie = "pss_" + secrets.token_urlsafe(32)
    assert sum(statements(counted, lambda: flow.authorize(prompt="none")).values()) == TIMES


def test_a_page_without_a_session_asks_nothing(counted):
    """Neither the authorization request nor its page nor a fault that is told by a page."""
    flow = Flow(counted)
    session = Session(counted)
    url = f"/sign-in?tx={session.browser.page.fields['tx']}"
    for action in (flow.authorize, lambda: flow.authorize(prompt="none"), lambda: flow.authorize(redirect_uri="https://evil.example/"),
                   lambda: flow.authorize(scope="nothing"), lambda: session.browser.open(url)):
        assert statements(counted, action) == {}, action


def test_a_push_and_each_form_are_one_call(counted):
    """An address, a wrong code, a right one, beside the two that remember a form; pushing and opening what was pushed."""
    flow, email = Flow(counted), counted.user()
    uris = []
    assert sum(statements(counted, lambda: uris.append(flow.push().json()["request_uri"])).values()) == TIMES
    sessions = [Session(counted) for _ in range(TIMES)]
    waiting = list(sessions)
    assert sum(of_a_form(counted, lambda: waiting.pop().send(email)).values()) <= TIMES
    for count, session in enumerate(sessions, 1):
        assert session.browser.page.step == "code" and newest(counted, email, count)
    waiting = list(sessions)
    asked = of_a_form(counted, lambda: waiting.pop().browser.submit("continue", code="12345"))
    assert sum(asked.values()) == TIMES, asked
