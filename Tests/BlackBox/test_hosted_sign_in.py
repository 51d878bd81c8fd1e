"""Codes, registration and second factors on the pages, case by case: beyond what test_pages.py holds."""

import pytest

from harness import wire
from harness.codeflow import hosted
from harness.control import Control
from harness.sign_in_pages import counted_case, newest, other_code, positive_control, Session  # pylint: disable=unused-import  # fixtures
from harness.volley import volley
from test_test_identity import CODE, put
from test_totp import Protected


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages where strangers have no account."""
    return hosted(world.realm(), offer_passkey=False)


@pytest.fixture(scope="module")
def open_realm(world):
    """A realm where an address registers by its code, with a name and terms to accept."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("set_registration_fields", made.slug, firstname="Required", lastname="Optional")
    world.admin.run(f"SELECT admin.set_branding('{made.slug}', terms_uri => 'https://terms.example/');")
    made.put_app("jit", ["app"], registration="JitOnOtp")
    made.put_app("explicit", ["app-2"], registration="ExplicitEndpoint")
    world.settle()
    return made


def users(realm, email):
    """How many accounts have an address."""
    return int(realm.world.cluster.value(
        "SELECT count(*) FROM postern.user_account u JOIN postern.realm r ON r.id = u.realm_id "
        f"WHERE r.slug = '{realm.slug}' AND u.address_key = '{email.lower()}'"))


def past(realm):
    """The worker has decided what was asked for before."""
    Control(realm).check()


# -- codes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["known", "unknown", "disabled", "unconfirmed"])
@pytest.mark.parametrize("client", ["no-refresh", "app", "app-2"])
def test_any_address_leads_to_the_same_pages(open_realm, client, kind):
    """Under each posture: the same step, the same bytes but for sealed value and address, and tries that fall alike."""
    realm = open_realm
    if client == "no-refresh":
        realm.world.admin.run(f"SELECT admin.grant_permission('{realm.slug}', '{realm.client(client)}', 'gt:authorization_code');")
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client(client), "https://app.a.example/cb")
        realm.world.settle()
    email = realm.new_email()
    reference = realm.user()
    if kind != "unknown":
        realm.put_user(email, email_verified=kind != "unconfirmed")
    if kind == "disabled":
        realm.world.admin.call("set_user_enabled", realm.slug, email, False)

    def seen(address):
        session, pages = Session(realm, client, scope="openid email"), []
        session.send(address)
        for _ in range(6):
            page, text = session.browser.page, session.browser.answer.body.decode()
            pages.append((session.browser.answer.status, page.step, page.error, len(page.fields["tx"]),
                          text.replace(page.fields["tx"], "tx").replace(address, "address")))
            # The sixth is sent although the page of a dead code has no button for it.
            session.browser.submit("continue", fields={**page.fields, "action": "continue", "code": "12345"})
        return pages

    assert seen(email) == seen(reference)


def test_a_code_is_good_for_the_request_that_asked_for_it(realm):
    """Not for another browser's request of another address, not for a native handle; and the other handle stays good."""
    mine, theirs = realm.user(), realm.user()
    one, two = Session(realm), Session(realm)
    one.send(mine)
    two.send(theirs)
    code = newest(realm, theirs)
    assert one.browser.submit("continue", code=code).page.error == "wrong_code"
    assert "code" in two.browser.submit("continue", code=code).members
    assert "code" in one.browser.submit("continue", code=newest(realm, mine)).members
    third = Session(realm)
    third.send(theirs)
    newest(realm, theirs, 2)
    native = realm.app().request_code(mine)
    assert third.browser.submit("continue", code=native.code).page.error == "wrong_code"
    assert realm.app().redeem(native.code, handle=native.handle).status == 200


def test_sending_again_within_the_pause_sends_nothing(world):
    """The code of the first mail stays good, however often; it costs neither messages nor permits."""
    realm = hosted(world.realm(cooldown="60 seconds"), offer_passkey=False)
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    realm.limit("native-otp", "target", 2, per="1 hour")
    for _ in range(7):
        session.browser.submit("resend")
        assert (session.browser.answer.status, session.browser.page.step, session.browser.page.error) == (200, "code", None)
    past(realm)
    assert len(world.mailbox.to(email)) == 1
    assert "code" in session.browser.submit("continue", code=code).members


def test_one_sign_in_sends_a_few_messages_at_most(realm):
    """Then the page says so, and the last code stays good."""
    session, email = Session(realm), realm.user()
    session.send(email)
    newest(realm, email)
    for count in range(2, 6):
        session.browser.submit("resend")
        assert (session.browser.page.step, session.browser.page.error) == ("code", None)
        newest(realm, email, count)
    fields = {**session.browser.page.fields, "action": "resend"}
    session.browser.submit("resend", fields=fields)
    assert session.browser.page.error == "send_limit"
    past(realm)
    assert len(realm.world.mailbox.to(email)) == 5
    assert "code" in session.browser.submit("continue", code=newest(realm, email, 5)).members


def test_another_address_leaves_the_former_code_behind(realm):
    """It signs nobody in any more: not here, not on the former page, and not in an app."""
    session, first, second = Session(realm), realm.user(), realm.user()
    session.send(first)
    code = newest(realm, first)
    former = session.browser.page
    session.browser.submit("other-address")
    address = session.browser.page
    session.browser.page = former
    assert session.browser.submit("continue", code=code).page.error == "wrong_code"
    assert realm.app().redeem(code, email=first).status == 400
    session.browser.page = address
    session.send(second)
    assert session.browser.submit("continue", code=code).page.error == "wrong_code"
    session.browser.submit("continue", code=newest(realm, second))
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == second


@pytest.mark.parametrize("typed", ["{0} ", "{0[0]} {0[1]}{0[2]} {0[3]}-{0[4]}{0[5]}{0[6]}{0[7]}"])
def test_a_code_may_be_typed_with_blanks(realm, typed):
    """As people copy it."""
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    assert "code" in session.browser.submit("continue", code=typed.format(code.ljust(8)).strip(" -")).members


def test_the_fixed_code_of_a_test_identity_is_its_clients(realm):
    """On a page of its client the token says what it is; on another's it is a wrong code."""
    email = realm.new_email()
    put(realm, email)
    other = Session(realm, "app-2")
    other.send(email)
    past(realm)
    assert other.browser.submit("continue", code=CODE).page.error == "wrong_code"
    session = Session(realm)
    session.send(email)
    past(realm)
    tokens = session.flow.exchange(session.browser.submit("continue", code=CODE).members["code"]).json()
    assert realm.app("api").introspect(tokens["access_token"]).json()["test_identity"] is True
    assert not realm.world.mailbox.to(email)


# -- the second factor -----------------------------------------------------------------------------


def test_the_second_factor_comes_after_a_right_first_one_and_is_counted(realm):
    """A wrong code never shows that there is one; wrong second factors are counted by the account."""
    user = Protected(realm)
    session = Session(realm)
    session.send(user.email)
    code = newest(realm, user.email, 2)
    assert session.browser.submit("continue", code=other_code(code)).page.step == "code"
    assert session.browser.submit("continue", code=code).page.step == "second-factor"
    for _ in range(2):
        assert session.browser.submit("continue", totp_code="000000").page.error == "wrong_second_factor"
    both = {**session.browser.page.fields, "totp_code": "000000", "recovery_code": "x", "action": "continue"}
    assert session.browser.submit("continue", fields=both).page.error == "wrong_second_factor"
    assert session.browser.submit("continue").page.error == "field_missing"
    user.later()
    assert "code" in session.browser.submit("continue", totp_code=user.code()).members


# -- registration ----------------------------------------------------------------------------------


def test_a_new_user_exists_when_the_profile_is_complete(open_realm):
    """Not before; the code is spent by then, and a second beginning needs a new one."""
    realm, email = open_realm, open_realm.new_email()
    session = Session(realm)
    session.send(email)
    code = newest(realm, email)
    assert session.browser.submit("continue", code=code).page.step == "profile"
    assert users(realm, email) == 0
    again = Session(realm)
    again.send(email)
    newest(realm, email, 2)
    assert again.browser.submit("continue", code=code).page.error == "wrong_code"
    for fields in ({}, {"terms": "yes"}, {"first_name": "Ada"}, {"first_name": "x" * 101, "terms": "yes"}, {"first_name": "a\u0007b", "terms": "yes"},
                   {"first_name": "  ", "terms": "yes"}):
        session.browser.submit("continue", fields={"tx": session.browser.page.fields["tx"], "action": "continue", **fields})
        assert (session.browser.page.step, session.browser.page.error) == ("profile", "field_missing"), fields
        assert users(realm, email) == 0
    session.browser.submit("continue", fields={"tx": session.browser.page.fields["tx"], "action": "continue", "first_name": "Ada", "terms": "yes"})
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == email and users(realm, email) == 1
    assert realm.world.admin.rows_of("audit_log", "terms_accepted")


def test_two_tabs_that_register_one_address_make_one_user(open_realm):
    """Both hold a right code of their own; both send the last form at once. One makes the account, and the other does not open it."""
    realm = open_realm
    for _ in range(5):
        email, sessions = realm.new_email(), []
        for count in (1, 2):
            session = Session(realm)
            session.send(email)
            session.browser.submit("continue", code=newest(realm, email, count))
            assert session.browser.page.step == "profile"
            sessions.append(session)
        requests = [wire.request_bytes("POST", "/sign-in", {
            "Host": s.flow.host, "Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin", **s.browser.cookie_header(),
        }, wire.form_body({"tx": s.browser.page.fields["tx"], "action": "continue", "first_name": "Ada", "terms": "yes"})) for s in sessions]
        answers = volley(realm.world.node.port, requests)
        assert {getattr(answer, "status", 0) for answer in answers} <= {200, 303}, answers
        assert users(realm, email) == 1
        assert sum("code=" in (answer.header("location") or "") for answer in answers) == 1


def test_an_explicit_registration_tells_nobody_who_has_an_account(open_realm):
    """Unknown on the first page: no mail; on the page of registrations: a code; a known address: the same pages, and no account is made."""
    realm, unknown, known = open_realm, open_realm.new_email(), open_realm.user()
    session = Session(realm, "app-2")
    session.send(unknown)
    assert session.browser.page.step == "code"
    pages = []
    for email in (unknown, known):
        session = Session(realm, "app-2")
        session.browser.submit("register")
        assert session.browser.page.step == "register"
        form = {"tx": session.browser.page.fields["tx"], "action": "continue", "address": email, "first_name": "Ada"}
        session.browser.submit("continue", fields=form)
        assert session.browser.page.error == "field_missing"
        session.browser.submit("continue", fields={**form, "tx": session.browser.page.fields["tx"], "terms": "yes"})
        text = session.browser.answer.body.decode().replace(session.browser.page.fields["tx"], "tx").replace(email, "email")
        pages.append((session.browser.answer.status, session.browser.page.step, text))
        if email == unknown:
            session.browser.submit("continue", code=newest(realm, unknown))
            tokens = session.flow.exchange(session.browser.members["code"]).json()
            assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == unknown
    assert pages[0] == pages[1]
    past(realm)
    assert len(realm.world.mailbox.to(unknown, "code")) == 1 and users(realm, unknown) == users(realm, known) == 1
