"""Phone numbers at their bounds: how people write them, what is never sent to, what messages cost, and what a number leaves behind."""

import json

import pytest

from harness import wire
from harness.codeflow import hosted
from harness.holder import signed_in
from harness.links import Links
from harness.phones import Phones, new_number
from harness.sign_in_pages import counted_case, newest, positive_control, Session  # pylint: disable=unused-import  # fixtures
from harness.volley import token_request, volley
from test_identifiers import PATH, add, add_email, begin
from test_totp import Protected

COUNTRIES = ["AT", "US", "DE", "AR", "IT", "BJ", "GB", "FR", "CH", "ES", "NL", "SE", "PL", "AU"]


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm whose pages take addresses and numbers of many countries."""
    made = hosted(world.realm(), offer_passkey=False, methods=["email-code", "magic-link", "phone-code"])
    made.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    return made


@pytest.fixture(scope="module", name="phones")
def _phones(realm):
    made = Phones(realm, regions=COUNTRIES, default_region="AT")
    realm.world.settle()
    yield made
    made.close()


@pytest.fixture(name="number")
def _number(realm, phones):
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number, first_name="Ada")
    assert phones
    return number


def typed(realm, text):
    """The page that follows a number as it is typed."""
    session = Session(realm)
    session.browser.submit("continue", address=text)
    return session


# -- what people type ------------------------------------------------------------------------------


@pytest.mark.parametrize("country, text, number", [
    ("DE", "0176 1234 5678", "+4917612345678"), ("US", "(415) 555-2671", "+14155552671"), ("AR", "011 15 2345-6789", "+5491123456789"),
    ("IT", "312 345 6789", "+393123456789"), ("BJ", "0197123456", "+2290197123456"), ("DE", "٠١٧٦١٢٣٤٥٦٧٨", "+4917612345678"),
    ("DE", "tel:+49-176-12345678", "+4917612345678"), ("AT", "0049 176 12345678", "+4917612345678"),
])
def test_a_number_is_read_as_its_country_writes_it(realm, phones, country, text, number):
    """The message goes to the number in its international form, and the page shows it."""
    realm.world.admin.call("put_user", realm.slug, phone=number)
    realm.world.admin.call("set_phone_policy", realm.slug, default_region=country)
    realm.world.settle()
    try:
        before = len(phones.to(number))
        session = typed(realm, text)
        assert session.browser.page.step == "code" and number.encode() in session.browser.answer.body, session.browser.answer
        assert "code" in session.browser.submit("continue", code=phones.wait(number, before + 1)["code"]).members
    finally:
        realm.world.admin.call("set_phone_policy", realm.slug, default_region="AT")
        realm.world.settle()


@pytest.mark.parametrize("text", [
    "112", "+49", "+999123456789", "+1 415 555 2671 x12", "+1234567890123456", "+١٢", "letters only", "1" * 10_240, "+4366412345678;+4366412345679",
    "+4366412345678,+4366412345679", "+4366412345678\n+4366412345679", "+43664\r\nTo: +4366412345679",
])
def test_what_is_no_number_is_said_and_gets_no_message(realm, phones, text):
    """On the page; a list of numbers is none, nor is one with a line break."""
    sent = len(phones.messages)
    page = typed(realm, text).browser.page
    assert (page.step, page.error) in (("address", "phone_invalid"), ("address", "address_invalid")), page.error
    assert page.error == "phone_invalid" or not text.startswith("+"), "what begins as a number is told as one"
    realm.app().sign_in(realm.user())
    assert len(phones.messages) == sent


def test_a_number_with_nul_is_a_broken_form(realm, phones):
    """400, a page, and no message."""
    sent = len(phones.messages)
    browser = typed(realm, "+43664\x00123456").browser
    assert (browser.answer.status, browser.page.error) == (400, "invalid_request")
    assert len(phones.messages) == sent


@pytest.mark.parametrize("phone", ["+4366412345678;+4366412345679", "+4366412345678,+4366412345679", "+4366412345678\n", " +4366412345678", "+4366412345678\0"])
def test_no_path_takes_two_recipients(realm, phones, phone):
    """Neither an app, nor a user's own identifiers, nor an administrator, nor a code redeemed by number."""
    app, who, sent = realm.app(), signed_in(realm), len(phones.messages)
    for path in ("native/otp/request", "magic-link/request"):
        answer = app.post_json(f"/api/account/{path}", {"Phone": phone})
        assert answer.status == 400, answer
    assert begin(who, Phone=phone).status == 400
    assert app.redeem("123456", email=phone).status == 400
    for statement in ("SELECT admin.put_user('{0}', phone => E'{1}')", "SELECT admin.put_identifier('{0}', '{2}', 'phone', E'{1}')"):
        with pytest.raises(Exception):
            realm.world.admin.run(statement.format(realm.slug, phone.replace("\n", "\\n").replace("\0", "\\u0000"), who.app.account(who.token)["Sub"]))
    assert len(phones.messages) == sent


@pytest.mark.parametrize("number", [
    "+439001234567", "+43800123456", "+19005550123", "+18005550123", "+499001123456", "+498001234567", "+491801123456", "+39899123456", "+39800123456",
    "+449098790000", "+448001234567", "+33899123456", "+33801234567", "+41900123456", "+41800123456", "+34803123456", "+34900123456", "+31900123456",
    "+318001234", "+46900123456", "+4620123456", "+48701234567", "+48800123456", "+611900123456", "+611800123456",
])
def test_numbers_that_cost_are_refused_in_every_country(realm, phones, number):
    """Premium, shared cost, toll-free; natively and on the page."""
    sent = len(phones.messages)
    answer = Phones.ask(realm.app(), number)
    assert (answer.status, answer.json()) == (400, {"error": "Phone is invalid."})
    assert typed(realm, number).browser.page.error == "phone_invalid"
    assert len(phones.messages) == sent


def test_one_number_in_five_spellings_is_one_target_and_one_account(realm, phones, number):
    """The limit of its messages counts them all, natively and on pages."""
    realm.limit("phone-otp", "target", 5, per="1 hour", burst=5)
    try:
        rest = number[3:]
        subjects = set()
        for count, text in enumerate((number, "0" + rest, f"0043 {rest[:3]} {rest[3:]}", f"+43 ({rest[:3]}) {rest[3:]}", f"tel:+43-{rest}"), 1):
            session = typed(realm, text)
            assert session.browser.page.step == "code", (text, session.browser.answer)
            session.browser.submit("continue", code=phones.wait(number, count)["code"])
            tokens = session.flow.exchange(session.browser.members["code"]).json()
            subjects.add(session.flow.app.userinfo(tokens["access_token"]).json()["sub"])
        assert len(subjects) == 1
        answer = Phones.ask(realm.app(), number)
        assert answer.status == 429 and answer.json()["dimension"] == "target", answer
        assert typed(realm, f"0{rest}").browser.answer.status == 429
        assert Phones.ask(realm.app(), new_number()).status == 200
    finally:
        realm.limit("phone-otp", "target", 1_000_000, per="1 minute", burst=1_000_000)


# -- channels and costs ----------------------------------------------------------------------------


def test_a_channel_without_a_provider_is_no_button_and_no_way(realm, phones, number):
    """Posted all the same it is refused, and no message is counted."""
    session = typed(realm, number)
    phones.wait(number)
    page = session.browser.page
    assert "whatsapp" not in page.buttons and "voice" in page.buttons
    session.browser.submit("whatsapp", fields={**page.fields, "action": "whatsapp"})
    assert (session.browser.answer.status, session.browser.page.error) == (400, "invalid_request")
    session.browser.page = page
    session.browser.submit("resend")
    assert session.browser.page.step == "code" and len(phones.to(number)) <= 2


def test_another_handle_of_a_number_has_messages_of_its_own_within_the_limit_of_the_number(realm, phones, number):
    """A handle has three; the number has what its limit says."""
    realm.limit("phone-otp", "target", 4, per="1 hour", burst=4)
    try:
        app = realm.app()
        handle = Phones.ask(app, number).json()["AuthSession"]
        for sent, left in ((1, 1), (2, 0)):
            phones.wait(number, sent)  # a message that still waits goes with the next one
            answer = Phones.ask(app, number, AuthSession=handle)
            assert answer.json()["SendsLeft"] == left
            handle = answer.json()["AuthSession"]
        phones.wait(number, 3)
        assert Phones.ask(app, number, AuthSession=handle).json() == {"error": "send_limit"}
        other = Phones.ask(app, number)
        assert (other.status, other.json()["SendsLeft"]) == (200, 2)
        over = Phones.ask(app, number)
        assert over.status == 429 and over.json()["dimension"] == "target", over
        phones.wait(number, 4)
    finally:
        realm.limit("phone-otp", "target", 1_000_000, per="1 minute", burst=1_000_000)


@pytest.mark.parametrize("dimension", ["prefix", "country"])
def test_a_redeemed_code_gives_its_permit_back_once(realm, phones, dimension):
    """Redeemed forty-eight times at once it frees one place; a code by mail frees none."""
    numbers = [f"+4367{len(dimension)}1234{number:03}" for number in range(8)]
    for number in numbers:
        realm.world.admin.call("put_user", realm.slug, phone=number)
    realm.limit("phone-otp", dimension, 3, per="1 hour", burst=3)
    try:
        app = realm.app()
        handles = [Phones.ask(app, number).json()["AuthSession"] for number in numbers[:3]]
        for number in numbers[:3]:
            phones.wait(number)
        refused = Phones.ask(app, numbers[3])
        assert refused.status == 429 and refused.json()["dimension"] == dimension, refused
        app.sign_in(realm.user())
        realm.world.pause()
        assert Phones.ask(app, numbers[3]).status == 429, "a code by mail"
        raw = token_request(app, app.redeem_form(phones.wait(numbers[0])["code"], handle=handles[0], scope="openid"))
        answers = volley(app.node.port, [raw] * 48)
        assert [answer.status for answer in answers].count(200) == 48, "all get the one session"
        realm.world.pause()
        assert Phones.ask(app, numbers[3]).status == 200
        phones.wait(numbers[3])
        assert [Phones.ask(app, number).status for number in numbers[4:6]] == [429, 429]
    finally:
        realm.limit("phone-otp", dimension, 1_000_000, per="1 minute", burst=1_000_000)


def test_the_budget_of_a_day_is_what_messages_cost(world):
    """429 `spend` when it is used up; a dear prefix takes more of it, redeemed codes give none back, and it fills again by the hour."""
    realm = world.realm()
    phones = Phones(realm, daily_budget=12)
    try:
        world.admin.call("put_phone_prefix", realm.slug, "+43699", "allow", cost=7)
        app, dear = realm.app(), "+436991234567"
        for number in (dear, *(numbers := [new_number() for _ in range(6)])):
            world.admin.call("put_user", realm.slug, phone=number)
        world.settle()
        phones.sign_in(app, dear)
        for number in numbers[:4]:
            phones.sign_in(app, number)
        assert Phones.ask(app, numbers[4]).status == 200, "a source has two requests more, which look like all others"
        over = Phones.ask(app, numbers[5])
        assert over.status == 429 and (over.json()["policy"], over.json()["dimension"]) == ("phone-otp", "spend"), over
        assert int(over.header("retry-after")) > 60
        world.time_travel(3 * 3600)
        world.pause()
        assert Phones.ask(app, numbers[5]).status == 200
        phones.wait(numbers[5])
        assert Phones.ask(app, dear).json()["dimension"] == "spend"
    finally:
        phones.close()


# -- what a number leaves behind -------------------------------------------------------------------


def test_a_number_of_long_ago_signs_in_natively_with_an_authenticator_app(realm, phones):
    """The code alone does not; with a right second factor it does."""
    user, number = Protected(realm), new_number()
    sub = user.app.account(user.token)["Sub"]
    realm.world.admin.call("put_identifier", realm.slug, sub, "phone", number)
    realm.world.cluster.sql(f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '{number}'")
    user.later()
    for count, (factor, status) in enumerate((({}, 400), ({"totp_code": user.code()}, 200)), 1):
        handle = Phones.ask(user.app, number).json()["AuthSession"]
        code = phones.wait(number, count)["code"]
        answer = user.app.redeem(code, handle=handle, **factor)
        assert answer.status == status, answer


def test_a_link_dies_with_its_address(realm):
    """It was out when the address was removed."""
    who, email = signed_in(realm), realm.new_email()
    item = add_email(who, realm, email)
    link = Links(who.app).link(email)
    assert who.app.delete(f"{PATH}/{item['Id']}", {"Authorization": f"Bearer {who.token}"}).status == 204
    assert Links(who.app).choose(link, link.number).status >= 400


def test_of_two_users_with_one_number_one_wins_among_many_requests(realm, phones):
    """Forty-eight at once, half of each."""
    users, number = [signed_in(realm), signed_in(realm)], new_number()
    requests = []
    for count, who in enumerate(users, 1):
        handle = begin(who, Phone=number).json()["AuthSession"]
        body = json.dumps({"AuthSession": handle, "Code": phones.wait(number, count)["code"]}).encode()
        requests += [wire.request_bytes("POST", PATH, {
            "Host": realm.host, "Content-Type": "application/json", "Authorization": f"Bearer {who.token}"}, body)] * 24
    answers = volley(realm.world.node.port, requests)
    # The winner's other requests are the same request, and hear of the one item. On a busy machine some wait too long for
    # a connection: 503, and they may ask again.
    assert {answer.status for answer in answers} <= {200, 400, 409, 503}, answers
    assert len({answer.json()["Id"] for answer in answers if answer.status == 200}) == 1, answers
    assert not all(any(answer.status == 200 for answer in half) for half in (answers[:24], answers[24:])), answers
    assert realm.world.cluster.value(f"SELECT count(*) FROM postern.user_identifier WHERE value = '{number}'") == "1"
    assert add(users[0], "pas_x", "1").status == 400
