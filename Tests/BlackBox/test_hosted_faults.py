"""The pages while the database or a process is away: a page that can be tried again, nothing twice, nothing lost."""

import time

import pytest

from harness import jose, wire
from harness.codeflow import Flow, hosted, refused
from harness.control import Control
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session
from test_hosted_pages import at
from test_totp import Protected

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def realm(fragile_world):
    """A realm with pages in the world that gets hurt."""
    return hosted(fragile_world.realm(), offer_passkey=False)


@pytest.fixture
def down(fragile_world):
    """Stops PostgreSQL; it is up again at the end in any case."""
    world = fragile_world

    class Down:
        """Between `with` and its end."""

        def __enter__(self):
            world.cluster.stop("immediate")

        def __exit__(self, *_):
            world.cluster.ensure_up()
            world.node.wait_ready()

    yield Down()
    world.cluster.ensure_up()
    world.node.wait_ready()


def assert_unavailable(answer):
    """503, a page, when to come back. In the first second of an outage it has the realm's look."""
    assert answer.status == 503, answer
    assert b'data-error="temporarily_unavailable"' in answer.body or b"data-step=" in answer.body, answer
    assert answer.header("strict-transport-security") == "max-age=31536000", answer
    assert int(answer.header("retry-after")) > 0 and answer.header("content-type").startswith("text/html")
    assert answer.header("location") is None and "no-store" in answer.header("cache-control")


def test_the_endpoint_without_a_database(realm, down):
    """Every page is one to reload; a silent request gets its error where its client waits; nobody is led anywhere else."""
    flow, nobody = Flow(realm), Flow(realm)
    flow.sign_in(realm.user())
    assert "code=" in flow.authorize(prompt="none").header("location"), "the node has read the configuration"
    with down:
        for answer in (flow.authorize(), flow.authorize(redirect_uri="https://evil.example/")):
            assert_unavailable(answer)
        time.sleep(1.2)  # no configuration counts as current any more
        assert refused(flow.authorize(prompt="none")) == refused(nobody.authorize(prompt="none")) == "temporarily_unavailable"
        posted = flow.authorize(prompt="none", response_mode="form_post")
        assert posted.status == 200 and b"temporarily_unavailable" in posted.body and b"form" in posted.body
        for changes in ({"redirect_uri": "https://evil.example/"}, {"client_id": "nobody"}, {"prompt": "none login"}):
            assert_unavailable(flow.authorize(**{"prompt": "none", **changes}))
        assert flow.push().status == 503
        page = nobody.authorize()
        assert page.status == 200 or assert_unavailable(page) is None
        for path in ("/sign-in", "/magic-login?userId=x&token=x", "/connect/logout", "/undo/x"):
            assert_unavailable(flow.app.get(path))
        assert flow.app.post("/sign-in/wait", {"tx": "x"}).header("content-type").startswith("application/json")
    assert "code=" in flow.authorize(prompt="none").header("location")


def test_a_form_that_met_no_database_succeeds_when_it_is_sent_again(realm, down):
    """Address, code and consent: each 503 first, and one effect in the end."""
    admin = realm.world.admin
    admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    realm.world.settle()
    session, email = Session(realm, "app-2"), realm.user()

    def through_the_outage(action, **values):
        page, url = session.browser.page, session.browser.url
        with down:
            session.browser.submit(action, **values)
            assert_unavailable(session.browser.answer)
            reloaded = wire.exchange(session.flow.app.node.port, "GET", url, {"Host": session.flow.host, **session.browser.cookie_header()})
            assert reloaded.status in (200, 503), reloaded
        session.browser.page, session.browser.url = page, url
        session.browser.submit(action, **values)

    through_the_outage("continue", address=email)
    assert session.browser.page.step == "code"
    code = session.code(email)
    through_the_outage("continue", code=code)
    assert session.browser.page.step == "consent", session.browser.answer
    through_the_outage("allow")
    code = session.browser.members["code"]
    with down:
        assert session.flow.exchange(code).status == 503
    assert session.flow.exchange(code).status == 200
    assert len(realm.world.mailbox.to(email)) == 1, "one mail"
    admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")
    realm.world.settle()


@pytest.mark.parametrize("step", ["link", "second-factor", "continue-as"])
def test_a_later_step_that_met_no_database_goes_on_when_it_is_sent_again(realm, down, step):
    """The form of the page that was shown: 503, then one effect."""
    if step == "second-factor":
        user, session = Protected(realm), Session(realm)
        session.send(user.email)
        session.browser.submit("continue", code=realm.world.mailbox.wait(user.email, 2, kind="code").code)
        user.later()
    else:
        session = at(realm, step)
    browser = session.browser
    page, url, mails = browser.page, browser.url, len(realm.world.mailbox.mails)
    assert page.step == step, browser.answer
    action, values = ("code", {}) if step == "link" else ("continue", {"totp_code": user.code()} if step == "second-factor" else {})
    with down:
        browser.submit(action, **values)
        assert_unavailable(browser.answer)
    browser.page, browser.url = page, url
    browser.submit(action, **({"totp_code": user.code()} if values else {}))
    if step == "link":
        assert browser.page.step == "code" and len(realm.world.mailbox.mails) <= mails + 1
    else:
        assert session.flow.exchange(browser.members["code"]).status == 200


def test_sign_out_without_a_database_ends_nothing_and_says_so(realm, down):
    """And works afterwards."""
    session = Session(realm)
    session.sign_in(realm.user())
    session.browser.open("/connect/logout")
    page = session.browser.page
    with down:
        session.browser.submit("continue")
        assert_unavailable(session.browser.answer)
        assert "__Host-postern-session" in session.browser.cookies
    session.browser.page = page
    session.browser.submit("continue")
    assert session.browser.page.step == "signed-out"


def test_a_sign_out_that_the_database_does_not_answer_is_told_by_a_page(realm, fragile_world):
    """The configuration is still current, so the endpoint itself fails."""
    session = Session(realm)
    session.sign_in(realm.user())
    session.browser.open("/connect/logout")
    page = session.browser.page
    held = fragile_world.cluster.hold("BEGIN; LOCK TABLE postern.browser_session IN ACCESS EXCLUSIVE MODE")
    try:
        session.browser.submit("continue")
    finally:
        held.end()
    assert_unavailable(session.browser.answer)
    session.browser.page = page
    session.browser.submit("continue")
    assert session.browser.page.step == "signed-out"


def test_a_sign_in_outlives_its_process(realm, fragile_world):
    """Killed after the mail and after the response: another process goes on, and the session is still there."""
    world = fragile_world
    second = world.start_node()
    try:
        session, email = Session(realm), realm.user()
        session.send(email)
        code = session.code(email)
        world.node.kill()
        session.browser.node = second
        session.browser.submit("continue", code=code)
        flow = Flow(realm, node=second)
        flow.verifier = session.flow.verifier
        issued = session.browser.members["code"]
        assert flow.exchange(issued).status == 200
        flow.cookie = session.browser.cookies["__Host-postern-session"]
        assert "code=" in flow.authorize(prompt="none").header("location")
    finally:
        world.node.start()
        second.stop()
    Control(realm).check()


def lasts(world, realm, lifetime):
    """Sets the time of a sign-in, which no administrator may set so short."""
    world.cluster.sql("ALTER TABLE postern.realm DROP CONSTRAINT IF EXISTS realm_sign_in_lifetime; "
                      f"UPDATE postern.realm SET sign_in_lifetime = '{lifetime}' WHERE slug = '{realm.slug}';")
    # Any change of the realm makes the nodes read it again.
    world.admin.call("put_realm", realm.slug, display_name=f"Lasts {lifetime}")
    world.settle()


def test_a_page_whose_time_is_over_begins_again_with_the_same_request(realm, fragile_world):
    """The shortest time that an administrator may set is five minutes; here the owner of the database sets seconds."""
    world = fragile_world
    lasts(world, realm, "1 second")
    session, email = Session(realm, state="of this request"), realm.user()
    deadline = time.monotonic() + 10
    while session.browser.page.step != "expired":
        assert time.monotonic() < deadline, session.browser.page.step
        time.sleep(0.1)
        session.browser.open(f"/sign-in?tx={session.browser.page.fields['tx']}")
    lasts(world, realm, "30 minutes")
    late = PageBrowser(session.browser.node, session.browser.host)
    late.cookies, late.page = session.browser.cookies, session.browser.page
    late.submit("continue", fields={"tx": late.page.fields["tx"], "action": "continue", "address": email})
    assert late.page.step == "expired" and not world.mailbox.to(email)
    session.browser.submit("restart")
    assert session.browser.page.step == "address"
    session.sign_in(email)
    assert session.browser.members["state"] == "of this request"
    assert session.flow.exchange(session.browser.members["code"]).status == 200


@pytest.mark.parametrize("ago, status, error", [(86_200, 200, None), (86_420, 400, "invalid_request")])
def test_a_page_begins_again_for_a_day_and_not_longer(realm, fragile_world, ago, status, error):
    """The new beginning has the nonce of the old one; after that the app has to begin."""
    lasts(fragile_world, realm, f"-{ago} seconds")
    session, email = Session(realm, nonce="of this request"), realm.user()
    tx = session.browser.page.fields["tx"]
    lasts(fragile_world, realm, "30 minutes")
    browser = session.browser.open(f"/sign-in?tx={tx}")
    assert (browser.answer.status, browser.page.step, browser.page.error) == (status, "expired" if status == 200 else "error", error)
    fields = {"Sec-Fetch-Site": "same-origin", **browser.cookie_header()}
    posted = session.flow.app.post("/sign-in", {"tx": tx, "action": "continue", "address": email}, fields)
    assert (posted.status, posted.header("location") is None) == ((303, False) if status == 200 else (400, True)), posted
    assert not fragile_world.mailbox.to(email)
    if status == 200:
        browser.open(f"/sign-in?tx={tx}").submit("restart")
        session.sign_in(email)
        assert jose.parts(session.flow.exchange(browser.members["code"]).json()["id_token"])[1]["nonce"] == "of this request"
    else:
        Control(realm).check()
