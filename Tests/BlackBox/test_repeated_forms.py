"""Forms that are sent twice, by a double click or because their answer was lost: done once, and both requests lead on alike."""

import copy
import threading
import urllib.parse

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.clock import time_travel
from harness.codeflow import GRANT, REDIRECT, hosted
from harness.sign_in_pages import Session, newest, other_code


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


@pytest.fixture(scope="module")
def second(world):
    """Another process."""
    node = world.start_node()
    yield node
    node.stop()


def form_of(session, action, **values):
    """The bytes of the page's form, as this browser sends it."""
    browser = session.browser
    return wire.request_bytes(
        "POST", browser.page.action,
        {"Host": browser.host, **browser.cookie_header(), "Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin"},
        wire.form_body({**browser.page.fields, **values, "action": action}))


def send(node, request):
    """Sends bytes as they are."""
    connection = wire.Connection(node.port, timeout=30)
    try:
        connection.send(request)
        return connection.receive()
    finally:
        connection.close()


def twice(nodes, request):
    """The same form through two nodes at once."""
    answers = [None, None]
    barrier = threading.Barrier(2)

    def fire(index):
        barrier.wait(30)
        answers[index] = send(nodes[index], request)

    threads = [threading.Thread(target=fire, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def cookies(answer):
    """Names and values that an answer sets."""
    return sorted(value.partition(";")[0] for name, value in answer.headers if name.lower() == "set-cookie")


def led_on(answer):
    """Where an answer leads."""
    assert answer.status == 303, answer
    return answer.header("location")


def page_of(session, answer):
    """The page that an answer leads to, in a browser that got it."""
    browser = copy.copy(session.browser)
    browser.cookies = dict(session.browser.cookies)
    for line in [value for name, value in answer.headers if name.lower() == "set-cookie"]:
        browser._keep(line)  # pylint: disable=protected-access
    return browser.open(led_on(answer))


def code_of(answer):
    """The code that the client gets."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(led_on(answer)).query))["code"]


def at_code(realm, **changes):
    """A browser on the page that asks for a code; with its address and the right code."""
    session, email = Session(realm, **changes), realm.user()
    session.send(email)
    return session, email, newest(realm, email)


def redeem(session, code):
    """The client redeems."""
    return session.flow.app.token({
        "grant_type": GRANT, "client_id": session.flow.app.client_id, "code": code, "redirect_uri": REDIRECT,
        "code_verifier": session.flow.verifier})


def sessions(realm, email):
    """Browser sessions of an account."""
    return int(realm.world.cluster.value(
        "SELECT count(*) FROM postern.browser_session b JOIN postern.user_account u ON u.realm_id = b.realm_id AND u.id = b.user_id "
        f"WHERE u.email = '{email}'"))


def codes(realm, email):
    """Authorization codes of an account."""
    return int(realm.world.cluster.value(
        "SELECT count(*) FROM postern.authorization_code c JOIN postern.user_account u ON u.realm_id = c.realm_id AND u.id = c.user_id "
        f"WHERE u.email = '{email}'"))


def attempts(realm, email):
    """Tries of the handles of an address."""
    return int(realm.world.cluster.value(f"SELECT sum(attempts) FROM postern.sign_in_request WHERE email = '{email}'"))


def test_an_address_sent_twice_through_two_nodes_gets_one_message(realm, second):
    """And both pages take its code."""
    session, email = Session(realm), realm.user()
    answers = twice([realm.world.node, second], form_of(session, "continue", address=email))
    code = newest(realm, email)
    assert len(realm.world.mailbox.to(email, "code")) == 1
    for answer in answers:
        assert page_of(session, answer).page.step == "code"
    assert led_on(answers[0]) == led_on(answers[1])
    session.browser.open(led_on(answers[0]))
    session.browser.submit("continue", code=code)
    assert "code" in session.browser.members


def test_a_sign_in_begun_anew_within_the_cooldown_waits_for_the_message_that_is_on_its_way(world):
    """The person goes back to the app and begins again: one message, whose code is right on the page that is shown."""
    realm = hosted(world.realm(cooldown="60 seconds"), offer_passkey=False)
    session, email = Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    session.begin()
    session.send(email)
    assert session.browser.page.step == "code"
    session.browser.submit("continue", code=code)
    assert "code" in session.browser.members
    assert len(realm.world.mailbox.to(email, "code")) == 1
    session.begin(prompt="login")
    session.send(email)
    session.browser.submit("continue", code=newest(realm, email, 2))
    assert "code" in session.browser.members, "a code that was used is not waited for"


def test_another_browser_within_the_cooldown_gets_a_message_of_its_own(world):
    """And its code is not that of the first."""
    realm = hosted(world.realm(cooldown="60 seconds"), offer_passkey=False)
    session, other, email = Session(realm), Session(realm), realm.user()
    session.send(email)
    code = newest(realm, email)
    other.send(email)
    newest(realm, email, 2)
    other.browser.submit("continue", code=code)
    assert other.browser.page.error == "wrong_code"
    session.browser.submit("continue", code=code)
    assert "code" in session.browser.members


def test_an_address_sent_again_from_the_page_that_is_shown_again_gets_one_message(realm):
    """As after the button for back: the page has another text of `tx` for the same step."""
    session, email = Session(realm), realm.user()
    shown = session.browser.page.fields["tx"]
    session.send(email)
    code = newest(realm, email)
    session.browser.open("/sign-in?" + wire.form_body({"tx": shown}).decode())
    assert session.browser.page.step == "address" and session.browser.page.fields["tx"] != shown
    session.send(email)
    assert len(realm.world.mailbox.to(email, "code")) == 1
    session.browser.submit("continue", code=code)
    assert "code" in session.browser.members


def test_a_code_sent_twice_through_two_nodes_signs_in_once(realm, second):
    """One session, one code for the client, the same cookies."""
    session, email, code = at_code(realm)
    first, again = twice([realm.world.node, second], form_of(session, "continue", code=code))
    assert led_on(first) == led_on(again) and code_of(first)
    assert cookies(first) == cookies(again) and cookies(first)
    assert (sessions(realm, email), codes(realm, email)) == (1, 1)
    assert redeem(session, code_of(again)).status == 200


def test_a_code_whose_answer_was_lost_leads_on_as_before(realm, second):
    """At another node, within a minute; once the client has its tokens, the page asks whether to go on."""
    session, email, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    first = send(realm.world.node, form)
    again = send(second, form)
    assert led_on(first) == led_on(again) and cookies(first) == cookies(again)
    assert sessions(realm, email) == 1 and attempts(realm, email) <= 1
    tokens = redeem(session, code_of(first))
    assert tokens.status == 200
    later = send(second, form)
    assert page_of(session, later).page.step == "continue-as", later
    assert session.flow.app.userinfo(tokens.json()["access_token"]).status == 200


def test_another_browser_gets_nothing_of_a_form(realm):
    """It is refused as ever."""
    session, _, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    send(realm.world.node, form)
    stranger = Session(realm)
    own = session.browser.cookie_header()["Cookie"].encode()
    answer = send(realm.world.node, form.replace(own, stranger.browser.cookie_header()["Cookie"].encode()))
    assert answer.status == 400 and b'data-error="foreign_form"' in answer.body


def test_after_a_minute_a_form_is_a_new_one(realm, world):
    """The code was used up."""
    session, _, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    assert code_of(send(world.node, form))
    time_travel(world.cluster, 61)
    assert page_of(session, send(world.node, form)).page.error == "wrong_code"


def test_a_form_leads_nowhere_when_its_session_has_ended(realm, world):
    """An administrator signs the user out everywhere."""
    session, email, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    assert code_of(send(world.node, form))
    world.admin.call("sign_out_everywhere", realm.slug, email)
    answer = send(world.node, form)
    assert answer.status == 303 and "code=" not in led_on(answer) and not any("session" in cookie for cookie in cookies(answer))


def test_a_wrong_code_counts_once_while_it_is_under_way_and_again_afterwards(realm, second):
    """And the right code works after it."""
    session, email, code = at_code(realm)
    form = form_of(session, "continue", code=other_code(code))
    answers = twice([realm.world.node, second], form)
    counted = attempts(realm, email)
    for answer in answers:
        assert page_of(session, answer).page.error == "wrong_code"
    send(realm.world.node, form)
    assert attempts(realm, email) == counted + 1
    right = send(second, form_of(session, "continue", code=code))
    assert code_of(right)


def test_continue_as_sent_six_times_gives_one_code(realm, second):
    """One by one, through two nodes."""
    session, email, code = at_code(realm)
    session.browser.submit("continue", code=code)
    session.begin(prompt="select_account")
    assert session.browser.page.step == "continue-as"
    before = codes(realm, email)
    form = form_of(session, "continue")
    given = {code_of(send(node, form)) for node in [realm.world.node, second] * 3}
    assert len(given) == 1 and codes(realm, email) == before + 1


def test_allow_at_two_nodes_gives_one_code(realm, second):
    """And one consent."""
    session, email, code = at_code(realm)
    session.browser.submit("continue", code=code)
    session.begin(prompt="consent")
    assert session.browser.page.step == "consent"
    before = codes(realm, email)
    first, again = twice([realm.world.node, second], form_of(session, "allow"))
    assert led_on(first) == led_on(again) and codes(realm, email) == before + 1


def test_cancel_sent_twice_leads_back_to_the_client_twice(realm, second):
    """Also of a request that it used up."""
    session = Session(realm)
    first, again = twice([realm.world.node, second], form_of(session, "cancel"))
    assert led_on(first) == led_on(again) and "error=access_denied" in led_on(first)


def test_a_second_factor_sent_twice_is_spent_once(realm, second):
    """A recovery code: only one of its account is used up."""
    email = realm.user()
    app = realm.app()
    recovery = app.enrol_totp(app.sign_in(email)["access_token"])[1][0]
    session = Session(realm)
    before = len(realm.world.mailbox.to(email, "code"))
    session.send(email)
    session.browser.submit("continue", code=newest(realm, email, before + 1))
    assert session.browser.page.step == "second-factor", session.browser.answer
    first, again = twice([realm.world.node, second], form_of(session, "continue", recovery_code=recovery))
    assert led_on(first) == led_on(again) and code_of(first)
    assert sessions(realm, email) == 1


def test_a_passkey_is_enrolled_once_by_the_same_request(realm):
    """200 with the same id; another attestation of that ceremony is refused as ever."""
    app = realm.app()
    token = app.sign_in(realm.user())["access_token"]
    ceremony = app.enrolment(token)
    document, _ = authenticator.create(ceremony["options"], authenticator.ES256, "ok", None)
    first, again = app.complete(token, ceremony, document), app.complete(token, ceremony, document)
    assert first.status == again.status == 200 and first.json() == again.json()
    assert len(app.passkeys(token)) == 1


def test_an_identifier_is_added_once_by_the_same_request(realm):
    """200 with the same item; another session gets nothing of it."""
    app, email = realm.app(), realm.new_email()
    user = realm.user()
    token = app.sign_in(user)["access_token"]
    begun = app.post_json("/connect/identifiers/begin", {"Email": email}, bearer(token)).json()
    document = {"AuthSession": begun["AuthSession"], "Code": newest(realm, email)}
    first = app.post_json("/connect/identifiers", document, bearer(token))
    again = app.post_json("/connect/identifiers", document, bearer(token))
    assert first.status == again.status == 200 and first.json() == again.json()
    other = app.sign_in(realm.user())["access_token"]
    assert app.post_json("/connect/identifiers", document, bearer(other)).status == 400


def test_repetitions_are_counted(realm, world):
    """In a metric."""
    session, _, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    before = world.node.metric("postern_repeated_sign_ins_total")
    for _ in range(3):
        send(world.node, form)
    assert world.node.metric("postern_repeated_sign_ins_total") == before + 2


def test_nothing_of_an_answer_is_in_the_clear_in_the_database(realm, world):
    """Neither cookie nor code, nor the text of the form."""
    session, email, code = at_code(realm)
    form = form_of(session, "continue", code=code)
    answer = send(world.node, form)
    rows = world.cluster.value("SELECT coalesce(string_agg(encode(sealed, 'escape'), ''), '') FROM postern.sent_form")
    for secret in [code_of(answer), email, *(cookie.partition("=")[2] for cookie in cookies(answer))]:
        assert secret not in rows
