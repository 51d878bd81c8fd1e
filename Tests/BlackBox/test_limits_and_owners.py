"""What strangers' requests cost the owner of an account: each limit of the registry is used up by strangers, and then the owner, on a known
device, signs in by every way that the limit stands before.

A new limit has to say here how strangers use it up and which ways the owner has; one that cannot be used up by strangers, why.
"""

import functools
import itertools

import pytest

from harness import wire
from harness.approvals import Device as Signer
from harness.approvals import ask, poll, switch_on
from harness.codeflow import Flow, hosted
from harness.holder import holder
from harness.links import Links
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.possession import coded, furnished, possession
from harness.settings import REPOSITORY
from harness.sign_in_pages import Session
from harness.trusted import Device, enrolled, with_devices
from test_approvals import wait_resolved
from test_known_devices import anywhere, sign_in_among_strangers, wrong
from test_phone_strangers import settled

REQUEST, LINK = "/api/account/native/otp/request", "/api/account/magic-link/request"
#: A source that strangers use up.
THERE = {"X-Forwarded-For": "198.51.100.7"}
#: More requests than any walk needs.
MANY = 60


class Walk:
    """A realm of one limit's own: pages, an App with open registration, and the owner of an account with an ID token of a sign-in."""

    def __init__(self, world, node, policy, dimension):
        self.world, self.node, self.policy, self.dimension = world, node, policy, dimension
        self.realm = realm = hosted(world.realm("walk"), offer_passkey=False, methods=["email-code", "magic-link", "phone-code"])
        realm.through = node
        self.host = realm.put_app("shop", registration="JitOnOtp", clients=["app"])
        self.app = realm.app_on(self.host, node=node)
        self.phones = self.number = None
        self.email = realm.user()
        self.hint = self.app.sign_in(self.email)["id_token"]

    def limit(self, permits, per="1 hour", burst=None):
        """Of the walk."""
        self.realm.limit(self.policy, self.dimension, permits, per=per, burst=burst)

    def used_up(self, send, count=MANY):
        """Strangers send until they are refused by the limit of the walk."""
        for number in range(count):
            answer = send(number)
            if answer.status == 429:
                if answer.header("content-type").startswith("application/json"):
                    assert (answer.json()["policy"], answer.json()["dimension"]) == (self.policy, self.dimension), answer
                self.settle()
                return
        raise AssertionError(f"{count} requests of strangers, and the limit is not used up: {answer}")

    def settle(self):
        """Everything that strangers asked for is decided and sent."""
        settled(self.realm)

    def with_phone(self):
        """The owner has a proven number and an ID token of a sign-in by it."""
        self.phones, self.number = Phones(self.realm), new_number()
        for dimension in ("client", "app", "spend"):
            self.realm.limit("phone-otp", dimension, 1_000_000, per="1 minute")
        self.world.admin.call("put_user", self.realm.slug, phone=self.number)
        self.hint = self.phones.sign_in(self.app, self.number)["id_token"]

    def ended(self):
        """Nothing is left running."""
        if self.phones:
            self.phones.close()


# -- the owner's ways -------------------------------------------------------------------------------------


def code(walk):
    """An app asks for a code by mail, with the ID token that it has."""
    answer = sign_in_among_strangers(walk.app, walk.email, walk.hint)
    assert answer.status == 200, answer


def link(walk):
    """An app asks for a link by mail."""
    asked = Links(walk.app).link(walk.email, IdTokenHint=walk.hint)
    answer = walk.app.token(Links(walk.app).redeem_form(asked))
    assert answer.status == 200, answer


def page(walk, address=None):
    """A page asks for an address; the client sent the ID token. The page after the address."""
    flow = Flow(walk.realm, host=walk.host)
    browser = PageBrowser(walk.node, walk.host)
    browser.open("/connect/authorize?" + wire.form_body(flow.request(id_token_hint=walk.hint, prompt="login")).decode())
    if "address" in browser.page.fields and browser.page.step == "address":
        browser.submit("continue", address=address or walk.email)
    return browser


def page_code(walk):
    """A code by mail on a page."""
    before = len(walk.world.mailbox.to(walk.email, "code"))
    browser = page(walk)
    assert browser.page.step == "code", browser.answer
    browser.submit("continue", code=walk.world.mailbox.wait(walk.email, before + 1, kind="code").code)
    assert "code" in browser.members


def page_link(walk):
    """A link by mail, opened in the browser that asked."""
    browser = page(walk)
    before = len(walk.world.mailbox.to(walk.email, "link"))
    browser.submit("link")
    url = walk.world.mailbox.wait(walk.email, before + 1, kind="link").link
    browser.open(url.split(walk.host, 1)[1])
    browser.submit("continue")
    assert "code" in browser.members


def phone_code(walk):
    """An app asks for a code by SMS."""
    before = len(walk.phones.to(walk.number))
    asked = walk.phones.ask(walk.app, walk.number, IdTokenHint=walk.hint, ClientId=walk.app.client_id)
    assert asked.status == 200, asked
    answer = walk.app.redeem(walk.phones.wait(walk.number, before + 1)["code"], handle=asked.json()["AuthSession"])
    assert answer.status == 200, answer


def phone_page(walk):
    """A code by SMS on a page."""
    before = len(walk.phones.to(walk.number))
    browser = page(walk, walk.number)
    assert browser.page.step == "code", browser.answer
    browser.submit("continue", code=walk.phones.wait(walk.number, before + 1)["code"])
    assert "code" in browser.members




def approval(walk):
    """A client with the owner's ID token asks the owner's device."""
    asked = ask(walk.app, headers=anywhere(), id_token_hint=walk.hint)
    assert asked.status == 200, asked
    wait_resolved(walk.realm)
    item = walk.device.item(walk.app.client_id)
    assert walk.device.answer(item, number=asked.json()["match_number"]).status == 200
    assert poll(walk.app, asked.json()).status == 200


def approval_of_a_client(walk):
    """A confidential client that the owner is signed in to asks by the address."""
    asked = ask(walk.signed_in, walk.email, anywhere())
    assert asked.status == 200, asked
    wait_resolved(walk.realm)
    assert walk.device.item(walk.signed_in.client_id)["ClientId"] == walk.signed_in.client_id


def passkey(walk):
    """An app signs in by a passkey."""
    assert walk.app.passkey_sign_in(walk.holder.credential)["access_token"]


def device(walk):
    """A trusted device signs in by itself."""
    answer = walk.device.sign_in()
    assert answer.status == 200, answer


def number(walk):
    """A backend starts a proof of a number, and its app completes it."""
    _, phone, _, right = coded(walk.realm)
    assert phone.call("check", otp=right) == {"state": "passed"}


def pushed(walk):
    """The confidential client pushes a request, which its browser opens."""
    flow = Flow(walk.realm, "api", node=walk.node)
    answer = flow.push()
    assert answer.status == 201, answer
    browser = PageBrowser(walk.node, walk.realm.host)
    browser.open("/connect/authorize?" + wire.form_body({"client_id": flow.app.client_id, "request_uri": answer.json()["request_uri"]}).decode())
    assert browser.page.step == "address", browser.answer


# -- how strangers use a limit up ---------------------------------------------------------------------------


def asked_for(walk, path=REQUEST, permits=5):
    """By asking for the owner's address from everywhere; `target`: the address at one source."""
    walk.limit(permits)
    source = THERE if walk.dimension == "target" else None
    walk.used_up(lambda _: walk.app.post_json(path, {"Email": walk.email}, source or anywhere()))


def asked_for_anybody(walk, path=REQUEST):
    """By asking for addresses that nobody has, at the owner's client and App."""
    walk.limit(25)
    source = THERE if walk.dimension == "source" else None
    walk.used_up(lambda _: walk.app.post_json(path, {"Email": walk.realm.new_email(), "ClientId": walk.app.client_id}, source or anywhere()))


def registered(walk):
    """Mails to addresses that nobody has, for one source; over the limit the answer is the same, so the mails are counted."""
    walk.limit(3)
    before = len(walk.world.mailbox.mails)
    for _ in range(6):
        assert walk.app.post_json(REQUEST, {"Email": walk.realm.new_email()}, THERE).status == 200
    walk.settle()
    assert len(walk.world.mailbox.mails) == before + 3
    walk.app = here(walk.app)


def here(app):
    """The app, behind the address that strangers used up."""
    exchange = app.exchange
    app.exchange = lambda method, path, headers=None, body=None, timeout=10.0: exchange(method, path, {**THERE, **(headers or {})}, body, timeout)
    return app


def phoned(walk):
    """By asking for the owner's number."""
    walk.with_phone()
    walk.limit(5)
    source = THERE if walk.dimension == "target" else None
    walk.used_up(lambda _: walk.app.post_json(REQUEST, {"Phone": walk.number}, source or anywhere()))


def phoned_anybody(walk):
    """By registering numbers of the owner's block, country, client and App until messages are refused. A fifth is kept."""
    walk.with_phone()
    walk.limit(15)
    start = itertools.count(1)

    def send(_):
        walk.settle()
        ending = (int(walk.number[-4:]) + next(start)) % 10_000
        return walk.app.post_json(REQUEST, {"Phone": walk.number[:-4] + f"{ending:04d}", "ClientId": walk.app.client_id}, THERE)

    walk.used_up(send)


def asked_the_owner(walk):
    """By requests for approval with the owner's address, at the public clients."""
    approvals(walk)
    walk.limit(5)
    source = THERE if walk.dimension == "target" else None
    for name in ("app", "jwt"):
        walk.used_up(lambda _, name=name: ask(walk.realm.app(name, walk.node), walk.email, source or anywhere()))
    wait_resolved(walk.realm)


def asked_anybody_at_the_client(walk):
    """By requests for approval of anybody."""
    approvals(walk)
    walk.limit(25)
    source = THERE if walk.dimension == "source" else None
    walk.used_up(lambda _: ask(walk.app, walk.realm.new_email(), source or anywhere()))
    wait_resolved(walk.realm)


def approvals(walk):
    """The owner has a device, and is signed in to a confidential client."""
    switch_on(walk.realm, "app", "jwt", "api", public_clients=True)
    walk.world.admin.call("put_scope", walk.realm.slug, "openid")
    walk.app = walk.realm.app(node=walk.node)
    walk.device = Signer(walk.app, walk.realm, walk.email)
    walk.signed_in = walk.realm.app("api", walk.node)
    walk.signed_in.sign_in(walk.email)


def began(walk):
    """By beginning sign-ins by passkey."""
    walk.app = walk.realm.app(node=walk.node)
    walk.holder = holder(walk.realm)
    walk.limit(3)
    walk.used_up(lambda _: walk.app.begin(THERE))


def guessed(walk):
    """By wrong codes for the owner's address."""
    walk.limit(3)
    asked = walk.app.request_code(walk.email)
    for step in range(6):
        walk.app.token(walk.app.redeem_form(wrong(asked.code, step + 1), email=walk.email), anywhere())
    assert walk.app.redeem(asked.code, email=walk.email).error == "invalid_grant", "the limit is used up"


def guessed_at_everybody(walk):
    """By wrong codes for accounts of the realm, until it brakes."""
    walk.limit(1, burst=4)
    for email in walk.realm.users(2):
        asked = walk.app.request_code(email)
        for step in range(4):
            walk.app.token(walk.app.redeem_form(wrong(asked.code, step + 1), handle=asked.handle), anywhere())
    walk.world.pause()
    asked = walk.app.request_code(walk.realm.user())
    assert walk.app.redeem(asked.code, email=asked.email).error == "invalid_grant", "the realm brakes"


def redeemed(walk):
    """By token requests."""
    walk.limit(3)
    walk.used_up(lambda _: walk.app.token({"grant_type": "refresh_token", "client_id": walk.app.client_id, "refresh_token": "prt_x"}, THERE))


def refused(walk):
    """By calls with tokens that are none; the owner is behind the same address."""
    walk.limit(3)
    walk.used_up(lambda _: walk.app.get("/connect/account", {"Authorization": "Bearer pat_none", **THERE}))
    walk.app = here(walk.app)


def opened(walk):
    """By opening pages."""
    walk.limit(30)
    target = "/connect/authorize?" + wire.form_body(Flow(walk.realm, host=walk.host).request()).decode()
    walk.used_up(lambda _: wire.exchange(walk.node.port, "GET", target, {"Host": walk.host, **THERE}))


def pushes(walk):
    """By pushing requests in the name of a public client."""
    walk.limit(3)
    flow = Flow(walk.realm, node=walk.node)
    walk.used_up(lambda _: flow.push(flow.request(), THERE))


def offered(walk):
    """By offering keys."""
    trusted(walk)
    walk.limit(3)
    body = b'{"ClientId": "%s"}' % walk.app.client_id.encode()
    path = "/connect/devices/offer"

    def send(_):
        other = Device(walk.app)
        return walk.app.exchange("POST", path, {"DPoP": other.proof("POST", path), "Content-Type": "application/json", **THERE}, body)

    walk.used_up(send)


def trusted(walk):
    """The owner has a trusted device."""
    with_devices(walk.realm, probation="0 seconds")
    walk.app = walk.realm.app(node=walk.node)
    walk.device = enrolled(walk.realm, walk.app.sign_in(walk.email)["access_token"])


# -- limits that strangers cannot use up: tried all the same -------------------------------------------------


def not_without_the_key(walk):
    """The key of the limit is that of the device: what is not signed by it is not counted."""
    trusted(walk)
    walk.limit(3)
    for _ in range(8):
        head, body, signature = walk.device.proof("GET", "/connect/approvals").split(".")
        forged = f"{head}.{body}.{'A' * len(signature)}"
        assert walk.app.exchange("GET", "/connect/approvals", {"DPoP": forged, **anywhere()}).status == 401


def not_without_the_secret(walk):
    """A confidential client authenticates before it is counted, and a public one is not counted."""
    walk.limit(2)
    for _ in range(6):
        flow = Flow(walk.realm, "api", node=walk.node)
        assert flow.push(flow.request(client_secret="wrong"), anywhere()).status == 401
        flow = Flow(walk.realm, node=walk.node)
        assert flow.push(flow.request(), anywhere()).status == 201


def not_without_the_token(walk):
    """The backend and its app have tokens; what has none is not counted."""
    furnished(possession(walk.realm))
    walk.phones = walk.realm.phones
    walk.limit(4)
    for path in ("/v3/unify", "/v3/start", "/connect/possession/open", "/connect/possession/check"):
        for _ in range(4):
            assert walk.app.post_json(path, {}, {"Authorization": "DPoP x", **anywhere()}).status == 401


MAILS = (code, page_code)
LINKS = (link, page_link)
SMS = (phone_code, phone_page)
#: Each limit: how strangers use it up, and the owner's ways afterwards.
WALKS = {
    ("native-otp", "target"): (asked_for, MAILS), ("native-otp", "target-total"): (asked_for, MAILS),
    ("native-otp", "source"): (asked_for_anybody, MAILS), ("native-otp", "client"): (asked_for_anybody, MAILS),
    ("native-otp", "app"): (asked_for_anybody, MAILS), ("native-otp", "registrations"): (registered, MAILS),
    **{("magic-link", dimension): (functools.partial(how, path=LINK), LINKS) for dimension, how in (
        ("target", asked_for), ("target-total", asked_for), ("source", asked_for_anybody), ("client", asked_for_anybody), ("app", asked_for_anybody))},
    ("phone-otp", "target"): (phoned, SMS), ("phone-otp", "target-total"): (phoned, SMS),
    **{("phone-otp", dimension): (phoned_anybody, SMS) for dimension in ("source", "client", "app", "prefix", "country", "spend")},
    ("approval", "target"): (asked_the_owner, (approval, approval_of_a_client)),
    ("approval", "target-total"): (asked_the_owner, (approval, approval_of_a_client)),
    ("approval", "source"): (asked_anybody_at_the_client, (approval, approval_of_a_client)),
    ("approval", "client"): (asked_anybody_at_the_client, (approval,)),
    ("passkey-begin", "source"): (began, (passkey,)),
    ("token", "source"): (redeemed, (code, link)), ("token", "failures"): (guessed, MAILS), ("token", "wrong-codes"): (guessed_at_everybody, MAILS),
    ("refused", "source"): (refused, (code, link)),
    ("authorize", "source"): (opened, (page_code, page_link)),
    ("par", "source"): (pushes, (pushed,)), ("par", "client"): (not_without_the_secret, (pushed,)),
    ("trusted-device", "source"): (offered, (device,)), ("trusted-device", "target"): (not_without_the_key, (device,)),
    ("possession", "client"): (not_without_the_token, (number,)), ("possession", "target"): (not_without_the_token, (number,)),
}
#: Limits that a realm does not have until an administrator sets them; docs/wire.md says that strangers can use them up.
OFF = {("passkey-begin", "client"), ("passkey-begin", "app"), ("token", "client"), ("token", "app")}


def test_every_limit_is_walked(world):
    """A new policy or dimension fails until it says how strangers use it up; what is not walked is off."""
    there = {(policy, dimension): permits for policy, dimension, permits in world.cluster.sql(
        "SELECT policy, dimension, coalesce(permits::text, 'off') FROM postern.rate_limit_policy")}
    assert set(there) == set(WALKS) | OFF, (set(there) ^ (set(WALKS) | OFF))
    assert {limit for limit, permits in there.items() if permits == "off"} == OFF
    page_of_limits = (REPOSITORY / "docs" / "wire.md").read_text(encoding="utf-8")
    assert "strangers can use those up for everybody" in " ".join(page_of_limits.split())


@pytest.mark.parametrize("policy, dimension", WALKS)
def test_the_owner_signs_in_when_strangers_have_used_a_limit_up(world, proxied_node, policy, dimension):
    """By every way that the limit stands before."""
    use_up, ways = WALKS[policy, dimension]
    walk = Walk(world, proxied_node, policy, dimension)
    try:
        use_up(walk)
        for way in ways:
            way(walk)
    finally:
        walk.ended()
