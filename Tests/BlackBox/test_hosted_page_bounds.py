"""Steps of a sign-in at their bounds: forms from elsewhere at each step, planted forms, tries, waiting, passkeys, and what is left behind."""

import json

import pytest

from harness import authenticator, jose, wire
from harness.codeflow import REDIRECT, hosted
from harness.control import Control
from harness.holder import holder
from harness.pages_client import PageBrowser
from harness.settings import FULL
from harness.sign_in_pages import counted_case, newest, other_code, positive_control, Session  # pylint: disable=unused-import  # fixtures
from harness.volley import in_parallel
from test_hosted_links import link_of
from test_hosted_pages import at
from test_hosted_passkeys import options, sign
from test_hosted_scanners import added, state
from test_identifiers import undo_link
from test_totp import Protected

BROWSER = "__Host-postern-browser"
#: Sign-ins that are begun and left.
BEGUN = 100_000 if FULL else 1000
FOREIGN = [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": None, "Origin": "https://evil.example"}]


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    made = hosted(world.realm(), offer_passkey=False)
    made.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    return made


# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["code", "link", "second-factor", "continue-as"])
def test_a_form_of_another_site_counts_nothing_at_any_step(realm, step):
    """Neither a try nor a message nor the end of the sign-in; a form without either header is processed."""
    browser = at(realm, step).browser
    page, url, mails = browser.page, browser.url, len(realm.world.mailbox.mails)
    values = {"code": {"code": "12345"}, "second-factor": {"totp_code": "000000"}}.get(step, {})
    for headers in FOREIGN:
        for action in {"continue", "cancel", *({"resend"} & set(page.buttons))}:
            browser.page = page
            browser.submit(action, headers=headers, **values)
            assert (browser.answer.status, browser.page.error) == (400, "foreign_form"), (headers, action)
            assert browser.left_for is None and browser.answer.header("set-cookie") is None
    shown = browser.open(url)
    assert (shown.page.step, shown.page.error) == (step, None)
    if step == "code":
        browser.submit("continue", headers={"Sec-Fetch-Site": None}, code="12345")
        assert browser.page.error == "wrong_code" and b"Tries left: 4" in browser.answer.body
    browser.submit("cancel", headers={"Sec-Fetch-Site": "same-origin", "Origin": "null"})
    assert browser.members["error"] == "access_denied"
    Control(realm).check()
    assert len(realm.world.mailbox.mails) == mails + 1, "the control's own code and nothing else"


def test_a_planted_form_signs_in_at_the_client_that_it_names(realm, world):
    """An attacker's form and cookie in the victim's browser: the page says for whom; the code is for that request alone, and the victim's
    own session is not what it was planted with."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), display_name="Attacked Shop")
    world.settle()
    attacker, victim = Session(realm, "app-2", state="of the attacker"), realm.user()
    browser = PageBrowser(attacker.flow.app.node, attacker.flow.host)
    browser.cookies = {BROWSER: attacker.browser.cookies[BROWSER]}
    browser.open(f"/sign-in?tx={attacker.browser.page.fields['tx']}")
    assert b"Attacked Shop" in browser.answer.body
    browser.submit("continue", address=victim)
    assert browser.page.step == "code" and victim.encode() in browser.answer.body
    browser.submit("continue", code=newest(realm, victim))
    assert browser.left_for.startswith(REDIRECT + "?") and browser.members["state"] == "of the attacker"
    assert attacker.flow.exchange(browser.members["code"]).status == 200
    attacker.browser.open(f"/sign-in?tx={attacker.browser.page.fields['tx']}")
    assert attacker.browser.left_for is None and attacker.browser.page.step == "address", "the attacker's browser has no session"
    assert attacker.begin(prompt="none").members["error"] == "login_required"


@pytest.mark.parametrize("name", ["code", "action", "tx"])
def test_a_repeated_field_of_the_code_costs_no_try(realm, name):
    """Right beside wrong, in both orders."""
    session = at(realm, "code")
    browser, page, url = session.browser, session.browser.page, session.browser.url
    for one, two in (("12345", "54321"), ("54321", "12345")):
        pairs = [*{**page.fields, "code": one, "action": "continue"}.items()]
        pairs.append((name, two if name == "code" else dict(pairs)[name]))
        browser.page = page
        browser.submit("continue", fields=pairs)
        assert (browser.answer.status, browser.page.error) == (400, "invalid_request")
    assert browser.open(url).page.error is None and b"Tries left" not in browser.answer.body


@pytest.mark.parametrize("step", ["register", "profile", "consent"])
def test_cancel_leaves_before_an_account_or_a_consent_exists(world, step):
    """The client is told of the refusal alone."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("set_registration_fields", made.slug, firstname="Required")
    world.admin.call("put_client", made.slug, made.client("app-2"), consent="explicit")
    made.put_app("shop", ["app"], registration="ExplicitEndpoint" if step == "register" else "JitOnOtp")
    session, email = Session(made, "app-2" if step == "consent" else "app"), made.user() if step == "consent" else made.new_email()
    if step == "register":
        session.browser.submit("register")
    else:
        session.sign_in(email)
    assert session.browser.page.step == step, session.browser.answer
    members = session.browser.submit("deny" if step == "consent" else "cancel").members
    assert members["error"] == "access_denied" and "code" not in members
    assert step == "consent" or not world.admin.rows_of("users", email)


def test_a_logo_is_found_under_what_it_is(realm, world):
    """Another logo has another address; one that no brand has is 404, in another realm too."""
    def logo():
        (path,) = {asset for asset in Session(realm).browser.page.assets if asset and asset.startswith("/brand/")}
        return path

    paths = []
    for number in range(2):
        image = f"<svg xmlns='http://www.w3.org/2000/svg'><!--{number}--></svg>".encode()
        world.admin.run(f"SELECT admin.set_branding('{realm.slug}', logo => '\\x{image.hex()}');")
        world.settle()
        paths.append(logo())
        answer = wire.exchange(world.node.port, "GET", paths[-1], {"Host": realm.host})
        assert (answer.status, answer.body, answer.header("set-cookie")) == (200, image, None)
        assert "immutable" in answer.header("cache-control") and "max-age=31536000" in answer.header("cache-control")
    assert paths[0] != paths[1]
    for host, path in ((realm.host, "/brand/" + "0" * 64), (hosted(world.realm()).host, paths[1])):
        assert wire.exchange(world.node.port, "GET", path, {"Host": host}).status == 404


def test_a_code_over_a_limit_is_kept_for_later(world):
    """429 with the same page; the same code succeeds when there is room again."""
    made = hosted(world.realm(), offer_passkey=False)
    session, email = Session(made), made.user()
    session.send(email)
    code, page = newest(made, email), session.browser.page
    made.limit("token", "source", 1, per="1 hour", burst=1)
    session.browser.submit("continue", code=other_code(code))
    session.browser.submit("continue", code=code)
    assert session.browser.answer.status == 429 and int(session.browser.answer.header("retry-after")) > 0, session.browser.answer
    assert session.browser.answer.header("content-type").startswith("text/html")
    made.limit("token", "source", 1_000_000, per="1 minute", burst=1_000_000)
    session.browser.page = page
    assert "code" in session.browser.submit("continue", code=code).members


# -- codes, second factors, links ------------------------------------------------------------------


def test_a_code_that_another_client_asked_for_is_a_wrong_one(realm):
    """On a page of this client; it stays good for the page of its own."""
    email = realm.user()
    mine, other = Session(realm), Session(realm, "app-2")
    other.send(email)
    code = newest(realm, email)
    mine.send(realm.user())
    assert mine.browser.submit("continue", code=code).page.error == "wrong_code"
    assert "code" in other.browser.submit("continue", code=code).members


def test_a_right_second_factor_counts_after_wrong_ones(realm):
    """The first factor stays proven while the tries of the account last."""
    user = Protected(realm)
    session = Session(realm)
    session.send(user.email)
    session.browser.submit("continue", code=newest(realm, user.email, 2))
    for _ in range(4):
        assert session.browser.submit("continue", totp_code="000000").page.error == "wrong_second_factor"
    user.later()
    tokens = session.flow.exchange(session.browser.submit("continue", totp_code=user.code()).members["code"]).json()
    assert jose.parts(tokens["id_token"])[1]["acr"] == "urn:postern:acr:2"


def test_a_page_that_waits_learns_of_its_own_link_only(realm):
    """Another browser's state, none and a broken one look alike; who asks too often is told to wait."""
    session, stranger, email = Session(realm), Session(realm), realm.user()
    link_of(realm, session, email)
    link_of(realm, stranger, realm.user())

    def wait(tx, cookies, headers=None):
        return wire.exchange(session.flow.app.node.port, "POST", "/sign-in/wait", {
            "Host": session.flow.host, "Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin", **cookies, **(headers or {})}, wire.form_body({"tx": tx}))

    tx, own = session.browser.page.fields["tx"], session.browser.cookie_header()
    assert wait(tx, own).json() == {"state": "pending"}
    foreign = [wait(tx, {}), wait(tx, stranger.browser.cookie_header()), wait(stranger.browser.page.fields["tx"], own), wait("x", own), wait("", own),
               wait(tx, own, {"Sec-Fetch-Site": "cross-site"}), wait(at(realm, "address").browser.page.fields["tx"], own)]
    assert {(answer.status, answer.body) for answer in foreign} == {(200, b'{"state":"expired"}')}
    assert wait(tx, own).json() == {"state": "pending"}
    realm.limit("authorize", "source", 3, per="1 hour", burst=3)
    try:
        last = [wait(tx, own) for _ in range(6)][-1]
        assert last.status == 429 and int(last.header("retry-after")) > 0, last
    finally:
        realm.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)


def test_the_mail_of_a_page_names_the_realm_and_warns(realm, world):
    """So that a code which a stranger asked for is known for what it is."""
    session, email = Session(realm), realm.user()
    session.send(email)
    text = world.mailbox.wait(email, kind="code").text
    assert f"Realm {realm.slug}" in text and "Not you?" in text and f"@{realm.host} #" in text, text


def test_an_undo_link_lives_for_seven_days(realm, world):
    """Then it takes nothing away."""
    for age, status in ((7 * 86_400 - 60, 200), (7 * 86_400 + 1, 400)):
        who = holder(realm)
        path = undo_link(world.mailbox.wait(who.email, kind="notice"))
        world.time_travel(age)
        assert who.app.get(path).status == status
        assert who.app.post(path, {"action": "undo"}).status == status
        left = world.cluster.value(f"SELECT count(*) FROM postern.passkey WHERE id = '{who.passkey}'")
        assert left == ("0" if status == 200 else "1")


# -- passkeys --------------------------------------------------------------------------------------


def test_an_assertion_for_another_site_fails_like_a_wrong_one(realm):
    """Made for another RP-ID, or with the origin of one; in the text of a wrong one."""
    who, session, texts = holder(realm), Session(realm), []
    for how in ("site", "signature"):
        if how == "site":
            document = authenticator.assertion({**options(session), "rpId": "evil.example"}, who.credential, origin=f"https://{realm.host}")
        else:
            document = authenticator.assertion(options(session), who.credential, "sig_bitflip")
        session.browser.submit("passkey", fields={**session.browser.page.fields, "assertion": json.dumps(document), "action": "passkey"})
        assert (session.browser.page.step, session.browser.page.error) == ("address", "passkey_failed")
        texts.append(session.browser.page.alerts)
    assert texts[0] == texts[1] and "code" in sign(session, who.credential).members


def test_a_passkey_counts_on_hosts_below_its_site(realm, world):
    """The page of an App below the RP-ID offers and takes it, with that page's own origin alone."""
    host = realm.put_app("below", ["app"])
    try:
        who = holder(realm)
        session = Session(realm)
        session.browser.host = host
        session.begin()
        assert options(session)["rpId"] == realm.host and b"data-passkey" in session.browser.answer.body
        for origin in (f"https://x.{host}", f"https://{host}.evil.example"):
            assert sign(session, who.credential, origin=origin).page.error == "passkey_failed"
        assert "code" in sign(session, who.credential, origin=f"https://{host}").members
    finally:
        world.admin.call("delete_app", realm.slug, "below")
        world.settle()


def test_a_passkey_is_enough_for_a_second_level(realm):
    """For an account without an authenticator app: a code is not, its passkey is."""
    who = holder(realm)
    session = Session(realm)
    session.sign_in(who.email)
    session.begin(acr_values="urn:postern:acr:2")
    assert session.browser.page.step == "address"
    sign(session, who.credential)
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert jose.parts(tokens["id_token"])[1]["acr"] == "urn:postern:acr:2"


# -- many ------------------------------------------------------------------------------------------


def test_sign_ins_that_are_begun_and_left_leave_nothing(realm, world):
    """First pages and forms that go nowhere change no row but those of limits, and the process stays as it is."""
    Control(realm).check()
    world.settle_messages()
    before = state(world)
    pages = [Session(realm, login_hint=f"nobody{number}@mail.example") for number in range(100)]
    assert {page.browser.page.step for page in pages} == {"address"}
    for page in pages[:50]:
        assert page.browser.open(page.browser.url).page.step == "address"
        page.browser.submit("continue", address="no address")
    target = "/connect/authorize?" + wire.form_body(pages[0].flow.request()).decode()

    def begin(count):
        with wire.Connection(world.node.port, timeout=30) as connection:
            for _ in range(count):
                answer = connection.exchange("GET", target, {"Host": realm.host})
                if answer.status == 303:
                    answer = connection.exchange("GET", answer.header("location").removeprefix(realm.issuer), {"Host": realm.host})
                assert answer.status == 200 and b'data-step="address"' in answer.body, answer
    in_parallel(begin, [50] * (BEGUN // 500), threads=4)
    resident = world.node.resident()
    in_parallel(begin, [50] * (BEGUN // 50 - BEGUN // 500), threads=4)
    assert not added(world, before)
    assert world.node.resident() - resident < 16 << 20, (resident, world.node.resident())
