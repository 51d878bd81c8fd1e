"""The forms of the later steps of a sign-in, sent twice: registration, names, passkey, link; and what a repetition must not bring back."""

import json
import threading

import pytest

from harness import authenticator, wire
from harness.codeflow import REDIRECT, hosted
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session, newest, other_code
from test_hosted_passkeys import options
from test_repeated_forms import attempts, code_of, codes, cookies, form_of, led_on, page_of, redeem, second, send, sessions, twice  # pylint: disable=unused-import

HERE = {"Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm with pages, terms and an App of each posture."""
    made = hosted(world.realm(), offer_passkey=False, methods=["email-code", "magic-link", "passkey"])
    world.admin.run(f"SELECT admin.set_branding('{made.slug}', terms_uri => 'https://terms.example/');")
    made.put_app("jit", ["jwt"], registration="JitOnOtp")
    made.put_app("explicit", ["no-refresh"], registration="ExplicitEndpoint")
    world.admin.run(f"SELECT admin.grant_permission('{made.slug}', '{made.client('no-refresh')}', 'gt:authorization_code');")
    world.admin.call("put_redirect_uri", made.slug, made.client("no-refresh"), REDIRECT)
    world.settle()
    return made


def rows(realm):
    """Forms that are remembered, and their bytes."""
    return [int(part) for part in realm.world.cluster.value(
        "SELECT count(*) || ' ' || coalesce(sum(octet_length(f.sealed)), 0) FROM postern.sent_form f "
        f"JOIN postern.realm r ON r.id = f.realm_id WHERE r.slug = '{realm.slug}'").split()]


def accounts(realm, email):
    """Accounts of an address."""
    return int(realm.world.cluster.value(f"SELECT count(*) FROM postern.user_account WHERE email = '{email}'"))


def pushed(realm, **changes):
    """A browser on the first page of a pushed request."""
    session = Session(realm)
    answer = session.flow.push(**changes)
    assert answer.status == 201, answer
    session.browser.open("/connect/authorize?" + wire.form_body({
        "client_id": session.flow.app.client_id, "request_uri": answer.json()["request_uri"]}).decode())
    return session


def test_a_registration_sent_twice_through_two_nodes_gets_one_message(realm, second):
    """And both pages take its code."""
    session, email = Session(realm, "no-refresh", scope="openid email"), realm.new_email()
    session.browser.submit("register")
    assert session.browser.page.step == "register"
    first, again = twice([realm.world.node, second], form_of(session, "continue", address=email, terms="yes"))
    code = newest(realm, email)
    assert led_on(first) == led_on(again) and page_of(session, again).page.step == "code"
    assert len(realm.world.mailbox.to(email, "code")) == 1
    session.browser.open(led_on(again))
    session.browser.submit("continue", code=code)
    assert "code" in session.browser.members and accounts(realm, email) == 1


def test_names_sent_twice_through_two_nodes_make_one_account(realm, second):
    """One session, one code for the client, the same cookies; also when the first answer was lost."""
    session, email = Session(realm, "jwt"), realm.new_email()
    session.sign_in(email)
    assert session.browser.page.step == "profile", session.browser.answer
    form = form_of(session, "continue", terms="yes")
    first, again = twice([realm.world.node, second], form)
    later = send(second, form)
    assert led_on(first) == led_on(again) == led_on(later) and code_of(first)
    assert cookies(first) == cookies(again) == cookies(later) and cookies(first)
    assert (accounts(realm, email), sessions(realm, email), codes(realm, email)) == (1, 1, 1)
    assert redeem(session, code_of(later)).status == 200
    assert page_of(session, send(realm.world.node, form)).page.step == "continue-as"


def test_a_passkey_of_the_pages_sent_twice_is_enrolled_once(realm, second):
    """And the client gets one code."""
    realm.world.admin.call("set_hosted", realm.slug, offer_passkey=True)
    realm.world.settle()
    try:
        session, email = Session(realm), realm.user()
        session.sign_in(email)
        assert session.browser.page.step == "offer-passkey", session.browser.answer
        document, _ = authenticator.create(options(session))
        form = form_of(session, "create", attestation=json.dumps(document))
        first, again = twice([realm.world.node, second], form)
        assert led_on(first) == led_on(again) and code_of(first)
        assert int(realm.world.cluster.value(
            f"SELECT count(*) FROM postern.passkey p JOIN postern.user_account u ON u.id = p.user_id WHERE u.email = '{email}'")) == 1
        assert codes(realm, email) == 1 and code_of(send(second, form)) == code_of(first)

        session, email = Session(realm), realm.user()
        session.sign_in(email)
        first, again = twice([realm.world.node, second], form_of(session, "skip"))
        assert led_on(first) == led_on(again) and code_of(first) and codes(realm, email) == 1
    finally:
        realm.world.admin.call("set_hosted", realm.slug, offer_passkey=False)
        realm.world.settle()


def test_a_link_opened_where_it_was_asked_for_goes_on_once(realm, second):
    """Its button pressed twice signs in once, and leads on alike."""
    session, email = Session(realm), realm.user()
    session.send(email)
    session.browser.submit("link")
    path = realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1]
    session.browser.open(path)
    assert session.browser.page.step == "continue-link"
    form = form_of(session, "continue")
    first, again = twice([realm.world.node, second], form)
    assert led_on(first) == led_on(again) and code_of(first) and cookies(first) == cookies(again)
    assert (sessions(realm, email), codes(realm, email)) == (1, 1)
    assert code_of(send(second, form)) == code_of(first)
    stranger = Session(realm)
    own, others = (browser.cookie_header()["Cookie"].encode() for browser in (session.browser, stranger.browser))
    answer = send(realm.world.node, form.replace(own, others))
    assert answer.status == 400 and not any("session" in cookie for cookie in cookies(answer))


def test_a_confirmed_link_goes_on_once_in_the_page_that_waits(realm, second):
    """The step `link`: its button pressed twice."""
    session, email = Session(realm), realm.user()
    session.send(email)
    session.browser.submit("link")
    waiting = session.browser.answer.body.decode()
    number = waiting.split("<strong>", 1)[1].split("</strong>", 1)[0]
    form = form_of(session, "continue")
    other = PageBrowser(session.flow.app.node, session.flow.host)
    other.open(realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1])
    other.submit("confirm", number=number)
    first, again = twice([realm.world.node, second], form)
    assert led_on(first) == led_on(again) and code_of(first)
    assert (sessions(realm, email), codes(realm, email)) == (1, 1)


def test_whoever_is_asked_to_go_on_after_a_repetition_gets_a_new_code(realm, second):
    """The page that says who is signed in leads on at once, not after a minute; again and again."""
    session, email = Session(realm), realm.user()
    session.sign_in(email)
    session.begin(prompt="select_account")
    assert session.browser.page.step == "continue-as"
    form = form_of(session, "continue")
    given = [code_of(send(realm.world.node, form))]
    assert redeem(session, given[0]).status == 200
    answer = send(second, form)
    for _ in range(3):
        session.browser.open(led_on(answer))
        assert session.browser.page.step == "continue-as", session.browser.answer
        form = form_of(session, "continue")
        given.append(code_of(send(second, form)))
        assert redeem(session, given[-1]).status == 200
        answer = send(realm.world.node, form)
    assert len(set(given)) == 4


@pytest.mark.parametrize("kind", ["pushed", "long"])
def test_a_request_that_was_answered_asks_whether_to_go_on(realm, second, kind):
    """A pushed request has one answer. Its page says who is signed in, however often its button is pressed."""
    session = pushed(realm) if kind == "pushed" else Session(realm, state="s" * 1500)
    email = realm.user()
    session.send(email)
    form = form_of(session, "continue", code=newest(realm, email))
    tokens = redeem(session, code_of(send(realm.world.node, form)))
    assert tokens.status == 200
    answer = send(second, form)
    for _ in range(2):
        page = page_of(session, answer)
        assert page.page.step == "continue-as", page.answer
        session.browser = page
        answer = send(second, form_of(session, "continue"))
        if kind == "long":
            break
    assert codes(realm, email) == 1 and session.flow.app.userinfo(tokens.json()["access_token"]).status == 200


def test_a_second_tab_that_signs_in_for_an_answered_request_is_signed_in(realm):
    """It is asked whether to go on, and gets the cookie of its session."""
    session, email = pushed(realm), realm.user()
    other = PageBrowser(session.flow.app.node, session.flow.host)
    other.cookies, other.page, other.url = dict(session.browser.cookies), session.browser.page, session.browser.url
    session.send(email)
    other.submit("continue", address=email)
    session.browser.submit("continue", code=newest(realm, email))
    assert "code" in session.browser.members
    assert other.page.step == "code"
    again = realm.user()
    other.submit("other-address")
    other.submit("continue", address=again)
    other.submit("continue", code=newest(realm, again))
    assert other.page is not None and other.page.step == "continue-as", other.answer
    assert "__Host-postern-session" in other.cookies and sessions(realm, again) == 1


@pytest.mark.parametrize("end", ["sign-out", "disable", "secure", "delete", "sign-out everywhere"])
def test_a_repetition_reopens_nothing_that_has_ended(realm, second, end):
    """Neither a code nor a cookie, at another node."""
    session, email = Session(realm), realm.user()
    session.send(email)
    form = form_of(session, "continue", code=newest(realm, email))
    first = send(realm.world.node, form)
    assert code_of(first)
    admin = realm.world.admin
    if end == "sign-out":
        browser = page_of(session, first) if not led_on(first).startswith("https://app") else session.browser
        for line in [value for name, value in first.headers if name.lower() == "set-cookie"]:
            browser._keep(line)  # pylint: disable=protected-access
        browser.open("/connect/logout")
        browser.submit("continue")
        assert browser.page.step == "signed-out", browser.answer
    elif end == "disable":
        admin.call("set_user_enabled", realm.slug, email, False)
    elif end == "secure":
        admin.run(f"SELECT admin.secure_user('{realm.slug}', '{email}', now());")
    elif end == "delete":
        admin.call("delete_user", realm.slug, email)
    else:
        admin.call("sign_out_everywhere", realm.slug, email)
    for node in (realm.world.node, second):
        answer = send(node, form)
        assert "code=" not in (answer.header("location") or ""), answer
        assert not any("session" in cookie for cookie in cookies(answer)), answer
    assert redeem(session, code_of(first)).status == 400


def test_the_order_of_fields_says_nothing(realm):
    """And a field that is there twice makes no form."""
    session, email = Session(realm), realm.user()
    session.send(email)
    browser, code = session.browser, newest(realm, email)
    fields = {**browser.page.fields, "code": code, "action": "continue"}

    def post(pairs):
        return wire.exchange(
            realm.world.node.port, "POST", browser.page.action, {"Host": browser.host, **browser.cookie_header(), **HERE},
            b"&".join(wire.form_body(dict([pair])) for pair in pairs))
    assert post([*fields.items(), ("code", code)]).status == 400
    first = post(fields.items())
    assert code_of(first) == code_of(post(reversed(list(fields.items()))))
    assert code_of(post([*fields.items(), ("unknown", "x")][:-1])) == code_of(first)


def test_another_realm_knows_nothing_of_a_form(realm, other_realm):
    """Its host refuses the page of the first."""
    session, email = Session(realm), realm.user()
    session.send(email)
    form = form_of(session, "continue", code=newest(realm, email))
    assert code_of(send(realm.world.node, form))
    answer = send(realm.world.node, form.replace(realm.host.encode(), other_realm.host.encode()))
    assert answer.status == 400 and b'data-error="invalid_request"' in answer.body and rows(other_realm)[0] == 0


@pytest.fixture(scope="module", name="other_realm")
def _other_realm(world):
    return hosted(world.realm(), offer_passkey=False)


def test_another_request_of_a_browser_is_another_sign_in(realm):
    """The same code in the page of another request is no repetition."""
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    first = send(realm.world.node, form_of(session, "continue", code=code))
    fields = dict(session.browser.page.fields)
    session.begin(state="another", prompt="login")
    assert session.browser.page.fields["tx"] != fields["tx"]
    session.send(email)
    answer = send(realm.world.node, form_of(session, "continue", code=code))
    assert answer.status == 303 and code_of(first) not in led_on(answer) and sessions(realm, email) == 1


def test_two_wrong_codes_at_once_count_twice(realm, second):
    """They are two forms."""
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    wrong = [other_code(code), other_code(other_code(code))]
    forms = [form_of(session, "continue", code=typed) for typed in wrong]
    answers = [None, None]
    threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, send((realm.world.node, second)[i], forms[i]))) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert attempts(realm, email) == 2
    for answer in answers:
        assert page_of(session, answer).page.error == "wrong_code"


def test_a_thousand_forms_of_a_stranger_leave_a_row_for_each_request_that_was_counted(realm, world):
    """Forms of one page take one row; made-up links and pages none; what is kept is small."""
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    before = rows(realm)[0]
    for number in range(300):
        send(world.node, form_of(session, "continue", code=f"{(int(code) + 1 + number) % 1_000_000:06d}"))
    assert rows(realm)[0] <= before + 1
    host = session.flow.host
    for number in range(100):
        path = wire.form_body({"user_id": "00000000-0000-4000-8000-000000000000", "magic_token": f"{number:043d}"})
        for target, body in (("/magic-login", path + b"&action=continue"), ("/magic-login", path + b"&action=deny"),
                             (f"/undo/{number:043d}", b"action=undo"), (f"/p/{number:043d}", b"action=continue")):
            wire.exchange(world.node.port, "POST", target, {"Host": host, **HERE}, body)
    assert rows(realm)[0] <= before + 1
    padded = form_of(session, "continue", code=code, padding="x" * 60_000)
    answer = send(world.node, padded)
    assert answer.status in (303, 400)
    assert rows(realm)[1] <= rows(realm)[0] * 16_384
    assert send(world.node, form_of(session, "continue", code=code, padding="x" * 70_000)).status == 413
