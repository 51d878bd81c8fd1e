"""Codes and numbers as people type and paste them: one rule, on every face that takes one."""

import types
import urllib.parse

import pytest

from harness import totp, wire
from harness.app import bearer
from harness.codeflow import hosted
from harness.holder import signed_in
from harness.links import Links
from harness.phones import new_number
from harness.possession import furnished, possession
from harness.sign_in_pages import Session
from harness.world import World


def script(zero):
    """Writes digits in the script whose zero this is; other characters stay."""
    return lambda text: "".join(chr(ord(zero) + int(c)) if c.isdigit() else c for c in text)


def spread(mark):
    """Puts a mark between the characters."""
    return lambda text: mark.join(text)


#: Ways in which one and the same code is typed.
WAYS = {
    "as sent": lambda text: text,
    "in groups": lambda text: f" {text[:3]} {text[3:]}\t",
    "hyphens": spread("-"),
    "dashes": spread("\u2011\u2013"),
    "narrow blanks": spread("\u202f\u00a0\u2009"),
    "marks of direction": lambda text: f"\u200e\u202d{text}\u202c\u200f",
    "isolated": lambda text: f"\u2066{text}\u2069\r\n",
    "byte order mark, blanks of no width": lambda text: f"\ufeff{text[0]}\u200b\u2060{text[1:]}\u00ad",
    "full width": script("\uff10"),
    "Arabic-Indic": lambda text: "\u200f" + script("\u0660")(text),
    "Persian": script("\u06f0"),
    "Devanagari": script("\u0966"),
    "mathematical": script("\U0001d7ce"),
}
#: What is no digit stays what it is, so that the code is another one; and nothing else than blanks and hyphens is left out.
STRANGE = {
    "superscript": lambda text: text.replace(text[-1], "\u00b2"),
    "circled": lambda text: "".join(chr(0x245F + int(c)) if c in "123456789" else c for c in text).replace("0", "\u24ea"),
    "points": spread("."),
    "one more": lambda text: text + text[-1],
}


@pytest.fixture(scope="module", name="world")
def _world():
    world = World("typed").open()
    yield world
    world.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = furnished(possession(hosted(world.realm(), offer_passkey=False)))
    admin = world.admin
    for name in ("app", "app-2"):
        admin.call("grant_permission", realm.slug, realm.client(name), variadic=["scp:verify:email", "scp:verify:phone"])
    realm.limit("native-otp", "registrations", 1_000_000, per="1 minute", burst=1_000_000)
    yield realm
    realm.phones.close()


# -- the faces: each makes what is to be typed, and says how a typed text is presented; True: it was right -----------


def face(text, present):
    """What a person is to type, and what presents it."""
    return types.SimpleNamespace(text=text, present=present)


def page(realm):
    """The code of a mail, on the page."""
    session, email = Session(realm), realm.user()
    session.send(email)
    code = session.code(email)
    return face(code, lambda typed: session.browser.submit("continue", code=typed).left_for is not None)


def proof_page(realm):
    """The code that proves an address without an account."""
    session, email = Session(realm, scope="openid verify:email"), realm.new_email()
    session.send(email)
    code = session.code(email)
    return face(code, lambda typed: session.browser.submit("continue", code=typed).left_for is not None)


def by_handle(realm):
    """otp_code with a handle."""
    app = realm.app()
    asked = app.request_code(realm.user())
    return face(asked.code, lambda typed: app.redeem(typed, handle=asked.handle).status == 200)


def by_address(realm):
    """otp_code with username."""
    app, email = realm.app(), realm.user()
    asked = app.request_code(email)
    return face(asked.code, lambda typed: app.redeem(typed, email=email).status == 200)


def by_phone(realm):
    """otp_code with a handle of a number: any kind of code has one rule."""
    app, number = realm.app(), new_number()
    realm.put_user(realm.new_email(), phone=number)
    handle = realm.phones.ask(app, number).json()["AuthSession"]
    code = realm.phones.wait(number)["code"]
    return face(code, lambda typed: app.redeem(typed, handle=handle).status == 200)


def enrolment(realm):
    """The code that completes the enrolment of TOTP."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    return face(totp.code(begun["secret"]), lambda typed: who.app.totp_enroll(who.token, begun, typed).status == 200)


def protected(realm):
    """Somebody with a second factor, whose first factor was right: by an app, and on a page."""
    who = signed_in(realm)
    who.secret, who.recovery = who.app.enrol_totp(who.token)
    realm.world.cluster.sql(
        "UPDATE postern.totp_factor f SET last_step_at = last_step_at - interval '2 minutes' FROM postern.user_account u "
        f"WHERE u.id = f.user_id AND u.email = '{who.email}'")
    return who


def totp_code(realm):
    """totp_code."""
    who = protected(realm)
    code = who.app.request_code(who.email).code
    return face(totp.code(who.secret), lambda typed: who.app.redeem(code, email=who.email, totp_code=typed).status == 200)


def recovery_code(realm):
    """recovery_code: letters, too."""
    who = protected(realm)
    code = who.app.request_code(who.email).code
    return face(who.recovery[0], lambda typed: who.app.redeem(code, email=who.email, recovery_code=typed).status == 200)


def second_factor_page(realm, field, secret):
    """A second factor on the page."""
    who = protected(realm)
    session = Session(realm)
    before = len(realm.world.mailbox.to(who.email, "code"))
    session.send(who.email)
    code = realm.world.mailbox.wait(who.email, before + 1, kind="code").code
    assert session.browser.submit("continue", code=code).page.step == "second-factor"
    return face(secret(who), lambda typed: session.browser.submit("continue", **{field: typed}).left_for is not None)


def totp_page(realm):
    """The TOTP field of the page."""
    return second_factor_page(realm, "totp_code", lambda who: totp.code(who.secret))


def recovery_page(realm):
    """The recovery code on the page."""
    return second_factor_page(realm, "recovery_code", lambda who: who.recovery[0])


def identifier(realm):
    """The code that adds an address."""
    who, email = signed_in(realm), realm.new_email()
    begun = who.app.post_json("/connect/identifiers/begin", {"Email": email}, bearer(who.token)).json()
    code = realm.world.mailbox.wait(email, kind="code").code
    return face(code, lambda typed: who.app.post_json(
        "/connect/identifiers", {"AuthSession": begun["AuthSession"], "Code": typed}, bearer(who.token)).status == 200)


def link_number(realm):
    """The two digits of a link."""
    links = Links(realm.app())
    link = links.link(realm.user())
    return face(link.number, lambda typed: links.choose(link, typed).status == 200)


def transaction(realm, kind, channel):
    """A proof of a number that waits for what its message tells; the app, and the message."""
    number = new_number()
    started = realm.srv.unify(number, kind, finalTargetUrl="https://app.example/done")
    phone = realm.srv.phone(started)
    phone.call("open")
    sent = phone.call("send", channel=channel)
    return phone, sent, realm.phones.wait(number)


def possession_number(realm):
    """The two digits of a link that proves a number."""
    _, sent, message = transaction(realm, "desktop", "link")
    path = urllib.parse.urlsplit(message["link"]).path

    def present(typed):
        answer = realm.app().exchange(
            "POST", path, {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}, wire.form_body({"number": typed}))
        return answer.status == 303 and "asc=true" in answer.header("location")

    return face(sent["matchNumber"], present)


def possession_check(realm):
    """The code of a proof of a number."""
    phone, _, message = transaction(realm, "mobile", "otp")
    return face(message["code"], lambda typed: phone.ask("check", otp=typed).status == 200)


FACES = [
    page, proof_page, by_handle, by_address, by_phone, enrolment, totp_code, recovery_code, totp_page, recovery_page, identifier, link_number,
    possession_number, possession_check,
]
faces = pytest.mark.parametrize("made", FACES, ids=lambda made: made.__name__)


@faces
def test_how_a_code_is_typed_does_not_count(realm, made):
    """Each way is right with a code of its own."""
    refused = []
    for name, way in WAYS.items():
        totp.settle()
        there = made(realm)
        if not there.present(way(there.text)):
            refused.append(name)
    assert not refused, refused


@faces
def test_what_is_no_digit_is_another_code(realm, made):
    """Each of these is refused; the code as it was sent is right."""
    taken = []
    for name, way in STRANGE.items():
        totp.settle()
        there = made(realm)
        if way(there.text) != there.text and there.present(way(there.text)):
            taken.append(name)
    totp.settle()
    control = made(realm)
    assert not taken and control.present(control.text), taken
