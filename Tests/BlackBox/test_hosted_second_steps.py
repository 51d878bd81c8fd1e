"""What one step of a sign-in on the pages knows, the next ones need: second factors after each first one, names and terms of a
registration, tries of a new code, and a registration that was closed on the way."""

import pytest

from harness import jose
from harness.codeflow import hosted
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.postgres import literal
from harness.sign_in_pages import Session, newest, other_code
from test_hosted_links import link_of
from test_totp import Protected

TERMS = "https://terms.example/"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages where a code is wrong twice at most."""
    made = hosted(world.realm(), offer_passkey=False, methods=["passkey", "email-code", "magic-link", "phone-code"])
    world.admin.call("set_code_policy", made.slug, otp_attempts=2, resend_cooldown="0")
    for name in ("app", "app-2"):
        world.admin.call("grant_permission", made.slug, made.client(name), variadic=["scp:verify:email", "scp:phone"])
    world.settle()
    return made


@pytest.fixture(scope="module")
def phones(realm):
    """Its numbers."""
    made = Phones(realm, default_region="AT")
    realm.world.settle()
    yield made
    made.close()


@pytest.fixture(scope="module")
def registering(world):
    """A realm where names and terms are asked for: by an App with a page of registration, and by one that registers by code."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("set_code_policy", made.slug, otp_attempts=2, resend_cooldown="0")
    world.admin.call("set_registration_fields", made.slug, firstname="Required", lastname="Off")
    world.admin.run(f"SELECT admin.set_branding('{made.slug}', terms_uri => '{TERMS}');")
    made.put_app("jit", ["app"], registration="JitOnOtp")
    made.put_app("explicit", ["app-2"], registration="ExplicitEndpoint")
    world.settle()
    return made


@pytest.fixture(scope="module")
def by_phone(world):
    """A realm whose pages send codes to phones alone, with a page of registration."""
    made = hosted(world.realm(), offer_passkey=False, methods=["phone-code"])
    made.put_app("explicit", ["app"], registration="ExplicitEndpoint")
    made.phones = Phones(made, default_region="AT")
    world.settle()
    yield made
    made.phones.close()


def claims(session):
    """Of the ID token."""
    return jose.parts(session.flow.exchange(session.browser.members["code"]).json()["id_token"])[1]


def events(realm, email):
    """What the audit log says of an account, apart from messages."""
    return realm.world.cluster.value(
        "SELECT string_agg(a.event, ',' ORDER BY a.id) FROM postern.audit_event AS a JOIN postern.user_account AS u ON u.id = a.user_id"
        f" WHERE u.email = {literal(email)} AND a.event !~ 'requested'")


def first_name(realm, email):
    """As the account has it."""
    return realm.world.cluster.value(f"SELECT first_name FROM postern.user_account WHERE email = {literal(email)}")


def second_factors(session, user):
    """A wrong code, a right one: the page says which, and goes on."""
    assert (session.browser.page.step, session.browser.page.error) == ("second-factor", None), session.browser.answer
    user.later()
    session.browser.submit("continue", totp_code=other_code(user.code()))
    assert (session.browser.page.step, session.browser.page.error) == ("second-factor", "wrong_second_factor")
    session.browser.submit("continue", totp_code=user.code())
    assert set(claims(session)["amr"]) >= {"otp", "mfa"}


@pytest.mark.parametrize("where", ["the browser that asked", "another browser"])
def test_a_second_factor_follows_a_link_that_was_opened_in(realm, where):
    """Wrong and right alike."""
    user, session = Protected(realm), Session(realm)
    path, number = link_of(realm, session, user.email)
    if where == "another browser":
        PageBrowser(session.flow.app.node, session.flow.host).open(path).submit("confirm", number=number)
        session.browser.submit("continue")
    else:
        session.browser.open(path)
        session.browser.submit("continue")
    second_factors(session, user)


def test_a_recovery_code_follows_a_link_that_was_opened_in_the_browser_that_asked(realm):
    """As an authenticator's code does; the link is used then, and says so."""
    user, session = Protected(realm), Session(realm)
    path, _ = link_of(realm, session, user.email)
    session.browser.open(path)
    session.browser.submit("continue")
    session.browser.submit("continue", recovery_code=user.recovery_codes[0])
    assert "mfa" in claims(session)["amr"]
    assert session.browser.open(path).page.error == "used"


def test_a_code_after_a_link_that_expired_at_the_second_factor_signs_in(realm):
    """The second factor then belongs to the code."""
    user, session = Protected(realm), Session(realm)
    path, _ = link_of(realm, session, user.email)
    session.browser.open(path)
    session.browser.submit("continue")
    assert session.browser.page.step == "second-factor"
    realm.world.cluster.sql(f"UPDATE postern.login_link SET expires_at = now() WHERE address_key = {literal(user.email)};")
    user.later()
    session.browser.submit("continue", totp_code=user.code())
    assert session.browser.page.step == "link", session.browser.answer
    mails = len(realm.world.mailbox.to(user.email, "code"))
    session.browser.submit("code")
    session.browser.submit("continue", code=newest(realm, user.email, mails + 1))
    second_factors(session, user)


def test_a_second_factor_follows_the_code_of_a_number(realm, phones):
    """A code by SMS."""
    user, session, number = Protected(realm), Session(realm, scope="openid phone"), new_number()
    realm.world.admin.run(
        f"SELECT admin.put_identifier('{realm.slug}', id, 'phone', '{number}', true) FROM admin.users WHERE email = '{user.email}';")
    session.send(number)
    session.browser.submit("continue", code=phones.wait(number)["code"])
    second_factors(session, user)


# -- tries of a new code ----------------------------------------------------------------------------


def used_up(session, code):
    """Types wrong codes until the page takes no more."""
    for _ in range(2):
        session.browser.submit("continue", code=other_code(code))
    assert session.browser.page.error == "no_tries", session.browser.page.error


def test_a_code_that_is_sent_again_after_the_last_try_signs_in(realm):
    """It has tries of its own."""
    session, email = Session(realm), realm.user()
    session.send(email)
    used_up(session, newest(realm, email))
    session.browser.submit("resend")
    assert (session.browser.page.step, session.browser.page.error) == ("code", None)
    session.browser.submit("continue", code=newest(realm, email, 2))
    assert "code" in session.browser.members


def test_a_code_that_is_sent_again_after_the_last_try_proves_an_address(realm):
    """Without an account."""
    session, email = Session(realm, scope="openid verify:email"), realm.new_email()
    session.send(email)
    used_up(session, newest(realm, email))
    session.browser.submit("resend")
    assert (session.browser.page.step, session.browser.page.error) == ("code", None)
    session.browser.submit("continue", code=newest(realm, email, 2))
    assert claims(session)["email"] == email


def test_a_code_that_is_sent_again_after_the_last_try_adds_a_number(realm, phones):
    """For a client that wants one."""
    session, number = Session(realm), new_number()
    session.sign_in(realm.user())
    asks = Session(realm, browser=session.browser, acr_values="urn:postern:acr:phone")
    asks.browser.submit("continue", address=number)
    used_up(asks, phones.wait(number)["code"])
    asks.browser.submit("resend")
    assert (asks.browser.page.step, asks.browser.page.error) == ("code", None)
    asks.browser.submit("continue", code=phones.wait(number, 2)["code"])
    assert claims(asks)["acr"] == "urn:postern:acr:phone"


def test_a_page_offers_no_message_that_the_next_step_refuses(realm):
    """After the last message neither a link nor another code is offered."""
    session, email = Session(realm), realm.user()
    session.send(email)
    newest(realm, email)
    for count in range(2, 6):
        session.browser.submit("resend")
        newest(realm, email, count)
    assert {"resend", "link"}.isdisjoint(session.browser.page.buttons), session.browser.page.buttons
    session = Session(realm)
    link_of(realm, session, realm.user())
    for _ in range(3):
        session.browser.submit("code" if session.browser.page.step == "link" else "link")
    assert {"resend", "link", "code"}.isdisjoint(session.browser.page.buttons), session.browser.page.buttons


# -- registration -----------------------------------------------------------------------------------


def begun(registering, email, **changes):
    """A registration on its own page, up to its code."""
    session = Session(registering, "app-2", scope="openid email", **changes)
    session.browser.submit("register")
    session.browser.submit("continue", address=email, first_name="Ada", terms="yes")
    assert session.browser.page.step == "code", session.browser.answer
    return session


def test_terms_are_audited_at_whichever_step_they_were_accepted(registering):
    """Before the code and after it; a sign-in of an account that is there accepts none."""
    early, late = registering.new_email(), registering.new_email()
    session = begun(registering, early)
    session.browser.submit("continue", code=newest(registering, early))
    assert "code" in session.browser.members
    session = Session(registering)
    session.sign_in(late)
    session.browser.submit("continue", first_name="Ada", terms="yes")
    assert "code" in session.browser.members
    for email in (early, late):
        assert sorted(events(registering, email).split(",")) == ["sign_in", "terms_accepted", "user_registered"], email
    Session(registering).sign_in(late)
    assert events(registering, late).split(",").count("terms_accepted") == 1


def test_names_outlive_a_code_without_tries(registering):
    """The next code registers the person whose names were typed."""
    email = registering.new_email()
    session = begun(registering, email)
    used_up(session, newest(registering, email))
    session.browser.submit("resend")
    session.browser.submit("continue", code=newest(registering, email, 2))
    assert "code" in session.browser.members
    assert first_name(registering, email) == "Ada" and "terms_accepted" in events(registering, email)


@pytest.mark.parametrize("step", ["profile", "code", "code of its own page", "register", "prompt=create", "address"])
def test_a_registration_that_was_closed_on_the_way_says_so(registering, step):
    """At each step, and makes no account; who has one still signs in there."""
    email = registering.new_email()
    app = "jit" if step in ("profile", "code") else "explicit"
    posture = {"explicit": "ExplicitEndpoint", "jit": "JitOnOtp"}[app]
    values = {}
    action = "continue"
    if step == "address":
        session = Session(registering, "app-2", scope="openid email")
        action = "register"
    elif step in ("register", "prompt=create"):
        session = Session(registering, "app-2", scope="openid email", prompt="create" if step == "prompt=create" else None)
        if step == "register":
            session.browser.submit("register")
        values = {"address": email, "first_name": "Ada", "terms": "yes"}
    elif step == "code of its own page":
        session = begun(registering, email)
        values = {"code": newest(registering, email)}
    else:
        session = Session(registering)
        session.send(email)
        values = {"code": newest(registering, email)}
        if step == "profile":
            session.browser.submit("continue", **values)
            assert session.browser.page.step == "profile"
            values = {"first_name": "Ada", "terms": "yes"}
    registering.put_app(app, registration="Off")
    try:
        session.browser.submit(action, **values)
        if step == "prompt=create":
            assert session.browser.members["error"] == "invalid_request", "the request itself is not possible any more"
            return
        assert (session.browser.page.step, session.browser.page.error) == ("address", "registration_closed"), session.browser.answer
        assert session.browser.page.alerts[0].startswith("Registration is closed"), session.browser.page.alerts
        assert not first_name(registering, email) and not events(registering, email)
        known = registering.user()
        session.send(known)
        session.browser.submit("continue", code=newest(registering, known))
        assert "code" in session.browser.members
    finally:
        registering.put_app(app, registration=posture)


def test_pages_that_send_to_phones_alone_register_numbers(by_phone):
    """The page of registration takes a number and no address."""
    session, number = Session(by_phone, scope="openid phone"), new_number()
    assert "register" in session.browser.page.buttons
    session.browser.submit("register")
    assert b'type="tel"' in session.browser.answer.body
    session.browser.submit("continue", address="ada@mail.example")
    assert (session.browser.page.step, session.browser.page.error) == ("register", "phone_invalid")
    session.browser.submit("continue", address=number)
    session.browser.submit("continue", code=by_phone.phones.wait(number)["code"])
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert session.flow.app.userinfo(tokens["access_token"]).json()["phone_number"] == number
