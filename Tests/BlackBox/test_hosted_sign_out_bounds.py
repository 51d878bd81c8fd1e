"""Sign-out at its bounds: what asks, what it leads to, hints of all kinds, and endpoints that answer in their own way."""

import contextlib
import itertools
import socket
import threading
import time

import pytest

from harness import jose, wire
from harness.codeflow import Flow, hosted
from harness.sign_in_pages import counted_case, other_realm, positive_control, Session  # pylint: disable=unused-import  # fixtures
from test_key_rotation import rotated
from test_logout import GOODBYE, Receiver, logout, queued, with_receiver


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and two clients to come back to."""
    made = hosted(world.realm(), offer_passkey=False)
    for name, uri in (("app", GOODBYE), ("app-2", GOODBYE + "/second")):
        world.admin.call("put_logout_uri", made.slug, made.client(name), uri, "post-logout")
    world.settle()
    return made


@pytest.fixture
def browser(realm):
    """A browser that signed in on the pages, with the tokens of its client."""
    session = Session(realm)
    session.sign_in(realm.user())
    session.browser.issued = session.flow.exchange(session.browser.members["code"]).json()
    session.browser.session = session
    return session.browser


def is_signed_in(browser):
    """Whether the browser's session lives."""
    return "code" in browser.session.begin(prompt="none").members


@pytest.mark.parametrize("what", ["nothing", "state", "uri", "uri and client", "unregistered", "altered", "of another client", "script", "empty hint"])
def test_a_page_that_asked_stays(browser, what):
    """It signs out after its question, and leads nowhere then either but to a URI of the client that is named."""
    hint = browser.issued["id_token"]
    query = {
        "nothing": {}, "state": {"state": "x"}, "uri": {"post_logout_redirect_uri": GOODBYE, "state": "x"},
        "uri and client": {"post_logout_redirect_uri": GOODBYE, "client_id": browser.session.flow.app.client_id},
        "unregistered": {"id_token_hint": hint, "post_logout_redirect_uri": "https://evil.example/"},
        "altered": {"id_token_hint": hint, "post_logout_redirect_uri": GOODBYE + "?foo=bar"},
        "of another client": {"id_token_hint": hint, "post_logout_redirect_uri": GOODBYE + "/second"},
        "script": {"id_token_hint": hint, "post_logout_redirect_uri": "javascript:alert(1)"},
        "empty hint": {"id_token_hint": "", "post_logout_redirect_uri": GOODBYE},
    }[what]
    browser.open("/connect/logout?" + wire.form_body(query).decode())
    assert (browser.answer.status, browser.page.step) == (200, "sign-out") and browser.answer.header("location") is None
    page = browser.page
    assert is_signed_in(browser), "the question alone ends nothing"
    browser.page = page
    browser.submit("continue")
    if what == "uri and client":
        assert browser.left_for == GOODBYE
    else:
        assert browser.left_for is None and browser.page.step == "signed-out"
    assert b"javascript:" not in browser.answer.body and b"evil.example" not in browser.answer.body
    assert browser.session.begin(prompt="none").members["error"] == "login_required"


def test_a_hint_of_another_realm_asks(browser, other):
    """It is signed, and by no key of this one."""
    foreign = Flow(other)
    foreign.sign_in(other.user())
    hint = foreign.tokens()["id_token"]
    browser.open("/connect/logout?" + wire.form_body({"id_token_hint": hint, "post_logout_redirect_uri": GOODBYE}).decode())
    assert browser.page.step == "sign-out" and browser.left_for is None
    assert is_signed_in(browser) and "code=" in foreign.authorize(prompt="none").header("location")


def test_a_hint_of_64_kilobytes_leads_nowhere(browser):
    """By GET and by POST, with a URI that is registered."""
    form = {"id_token_hint": "eyJhbGciOiJFUzI1NiJ9." + "A" * 65_000 + ".AAAA", "post_logout_redirect_uri": GOODBYE, "state": "x"}
    query = wire.form_body(form).decode()
    cookies = {"Host": browser.host, **browser.cookie_header()}
    assert wire.exchange(browser.node.port, "GET", f"/connect/logout?{query}", cookies).status in (414, 431)
    answer = wire.exchange(browser.node.port, "POST", "/connect/logout", {**cookies, "Content-Type": wire.FORM}, query.encode())
    assert answer.status < 500 and not (answer.header("location") or "").startswith(GOODBYE), answer
    assert is_signed_in(browser)


def test_a_hint_counts_as_long_as_its_key_is_known(world):
    """Another key may sign by then; when its own was withdrawn the page asks."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("put_logout_uri", made.slug, made.client("app"), GOODBYE, "post-logout")
    world.settle()
    flow = Flow(made)

    def hint():
        flow.cookie = None
        flow.sign_in(made.user())
        return flow.tokens()["id_token"]

    first, second = hint(), hint()
    rotated(world, made, "--now")
    answer = logout(flow, id_token_hint=second, post_logout_redirect_uri=GOODBYE)
    assert (answer.status, answer.header("location")) == (303, GOODBYE)
    world.admin.call("retire_signing_key", made.slug, jose.parts(first)[0]["kid"])
    world.settle()
    answer = logout(flow, cookies=False, id_token_hint=first, post_logout_redirect_uri=GOODBYE)
    assert answer.status == 200 and answer.header("location") is None and b'data-step="sign-out"' in answer.body


@pytest.fixture
def resetting():
    """An endpoint behind a port that cuts its first connection after the request, and passes the others on."""
    receiver = Receiver()
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    port = int(receiver.uri.split(":")[2].split("/")[0])
    receiver.uri = f"http://127.0.0.1:{listener.getsockname()[1]}/logged-out"

    def pass_on(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    def serve():
        with contextlib.suppress(OSError):
            for number in itertools.count():
                taken, _ = listener.accept()
                with taken:
                    if not number:
                        taken.recv(65536)
                        continue
                    with socket.create_connection(("127.0.0.1", port)) as inner:
                        threading.Thread(target=pass_on, args=(taken, inner), daemon=True).start()
                        pass_on(inner, taken)

    threading.Thread(target=serve, daemon=True).start()
    yield receiver
    listener.close()
    receiver.close()


def told(world, flow):
    """The row of the only token that was sent, once it is."""
    deadline = time.monotonic() + 20
    while not (rows := [row for row in queued(flow) if '"sent_at":null' not in row]):
        assert time.monotonic() < deadline, queued(flow)
        world.pause()
    assert len(rows) == 1
    return rows[0]


def test_a_connection_that_is_cut_is_tried_again(world, resetting):
    """With the token that was not taken."""
    flow = with_receiver(world, resetting)
    logout(flow, id_token_hint=flow.issued["id_token"])
    assert jose.parts(resetting.token(30))[1]["sub"] == jose.parts(flow.issued["id_token"])[1]["sub"]
    assert '"attempts":2' in told(world, flow)


@pytest.mark.parametrize("statuses, attempts", [((204,), 1), ((200,), 1), ((400, 204), 2), ((404, 503, 200), 3)])
def test_each_ended_session_is_told_once(world, statuses, attempts):
    """200 and 204 end it; every other answer is tried again, 400 too."""
    receiver = Receiver(*statuses)
    try:
        flow = with_receiver(world, receiver)
        answer = logout(flow, id_token_hint=flow.issued["id_token"])
        assert queued(flow), answer
        tokens = [receiver.token(30) for _ in range(attempts)]
        assert f'"attempts":{attempts}' in told(world, flow) and receiver.got.empty()
        assert len({jose.parts(token)[1]["jti"] for token in tokens}) == 1
    finally:
        receiver.close()
