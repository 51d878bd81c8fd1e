"""What requests, pages and codes bring is in no log and no metric: whole sign-ins, refused ones, and requests that are wrong in every way."""

import secrets

import pytest

from harness import atrest, wire
from harness.codeflow import REDIRECT, Flow, hosted
from harness.ledger import LEDGER
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session, newest, other_code
from test_totp import Protected


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm("unlogged"), offer_passkey=False)


class Request:
    """Values of one authorization request that nothing else has. A database may hold them as long as the code lives."""

    MADE = set()

    def __init__(self):
        self.changes = {name: secrets.token_urlsafe(24) for name in ("state", "nonce")}
        self.MADE.update(self.changes.items())


def test_no_log_and_no_metric_holds_what_a_request_brought(realm, world):
    """Also not where it was refused, where the client is unknown, and where the page was left."""
    for method in ("code", "link", "second factor", "cancel", "wrong code"):
        session = Session(realm, **Request().changes)
        user = Protected(realm) if method == "second factor" else None
        email = user.email if user else realm.user()
        session.send(email)
        right = newest(realm, email, 2 if user else 1)
        if method == "link":
            session.browser.submit("link")
            session.browser.open(realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1]).submit("continue")
        elif method == "cancel":
            session.browser.submit("cancel")
        else:
            session.browser.submit("continue", code=other_code(right) if method == "wrong code" else right)
        if user:
            user.later()
            session.browser.submit("continue", totp_code=user.code())
        if "code" in (session.browser.members if session.browser.left_for else {}):
            code = LEDGER.add("authorization_code", session.browser.members["code"])
            assert session.flow.exchange(code, code_verifier="x" * 43).status == 400
            tokens = session.flow.exchange(code)
            assert tokens.status == 200
            LEDGER.tokens(tokens.json())
            assert session.flow.exchange(code).status == 400, "and its session is over"
    flow, browser = Flow(realm), PageBrowser(realm.app().node, realm.host)
    for wrong in ({"client_id": "nobody"}, {"redirect_uri": REDIRECT + "x"}, {"scope": "nothing"}, {"prompt": "none"}, {"response_type": "token"},
                  {"code_challenge": None}, {"resource": "x"}, {"claims": "{"}, {"max_age": "-1"}, {"request": "x.y.z"}, {"response_mode": "form_post"}):
        changes = {**Request().changes, "login_hint": realm.user(), **wrong}
        browser.open("/connect/authorize?" + wire.form_body(flow.request(**changes)).decode())
        assert flow.push(**changes).status in (200, 201, 400, 401), wrong
        browser.open("/connect/logout?" + wire.form_body({"state": changes["state"], "id_token_hint": "x"}).decode())
        answer = wire.exchange(flow.app.node.port, "GET", "/sign-in?tx=" + changes["state"], {"Host": realm.host, "Cookie": f"__Host-postern-session={changes['nonce']}"})
        assert answer.status == 400, answer
    for name, text in (("a log", "".join(node.log() for node in world.nodes)), ("the metrics", world.node.ops("/metrics").body.decode()),
                       ("PostgreSQL's log", world.cluster.log.read_text(errors="replace"))):
        found = atrest.leaks(LEDGER.long_secrets() | Request.MADE, text)
        assert not found, (name, found[:3])
