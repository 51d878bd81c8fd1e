"""Each form of the pages while the database is away, and while a limit is used up: a page that says when to come back, and then the same form works."""

import re
import time
import urllib.parse

import pytest

from harness import wire
from harness.codeflow import Flow, hosted
from harness.keyfile import Fleet, line_id, new_line
from harness.pages_client import PageBrowser
from harness.phones import new_number
from harness.possession import furnished, opened, possession
from harness.realm import UNLIMITED
from harness.sign_in_pages import Session, newest, signed_in
from test_hosted_page_bounds import holder, undo_link
from test_totp import Protected

pytestmark = pytest.mark.slow
HERE = {"Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin"}
LIMITED = [*UNLIMITED, ("authorize", "source"), ("phone-otp", "source")]


def limit_sources(realm, permits):
    """So many an hour for this source, under each policy that a form counts for."""
    for policy, dimension in LIMITED:
        if dimension == "source":
            realm.limit(policy, dimension, permits, per="1 hour", burst=permits)
    # What a process holds of a former limit ends.
    time.sleep(2.1 if permits == 1 else 0)


class Form:
    """One form of a browser: `keeps` is the text that its page shows again, `works` looks at what a success leads to."""

    def __init__(self, browser, action, works, keeps=None, **values):
        self.browser, self.action, self.works, self.keeps = browser, action, works, keeps
        self.fields = {**browser.page.fields, **values, "action": action}
        self.page, self.url = browser.page, browser.url
        self.page.action = self.page.action or self.url

    def send(self):
        """The answer of one POST; a redirect is followed."""
        self.browser.page, self.browser.url = self.page, self.url
        self.browser.submit(self.action, fields=self.fields)
        return self.browser.answer


def stands(step, error=None):
    """The browser is at a step."""
    def look(browser):
        assert browser.page is not None and (browser.page.step, browser.page.error) == (step, error), browser.answer
    return look


def returns(member="code"):
    """The client gets this."""
    def look(browser):
        assert member in browser.members, browser.answer
    return look


def with_forms(world, slug):
    """A realm with each kind of form."""
    made = possession(hosted(world.realm(slug), offer_passkey=False, methods=["email-code", "magic-link", "phone-code"]))
    furnished(made)
    admin = world.admin
    admin.run(f"SELECT admin.set_branding('{made.slug}', terms_uri => 'https://terms.example/');")
    admin.call("put_client", made.slug, made.client("app-2"), consent="systematic")
    for name in ("app", "app-2"):
        admin.call("grant_permission", made.slug, made.client(name), variadic=["scp:verify:email", "scp:phone"])
    limit_sources(made, 1_000_000)
    made.put_app("jit", ["jwt"], registration="JitOnOtp")
    made.put_app("explicit", ["no-refresh"], registration="ExplicitEndpoint")
    admin.run(f"SELECT admin.grant_permission('{made.slug}', '{made.client('no-refresh')}', 'gt:authorization_code');")
    admin.call("put_redirect_uri", made.slug, made.client("no-refresh"), "https://app.a.example/cb")
    world.settle()
    return made


@pytest.fixture(scope="module", name="realm")
def _realm(fragile_world):
    made = with_forms(fragile_world, "forms")
    yield made
    made.phones.close()


def address(realm, **changes):
    """The first page."""
    email = realm.user()
    return Form(Session(realm, **changes).browser, "continue", stands("code"), keeps=email, address=email)


def number(realm):
    """The first page, and a phone."""
    phone = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=phone)
    return Form(Session(realm).browser, "continue", stands("code"), keeps=phone, address=phone)


def at_code(realm, name="app", **changes):
    """A browser that has a code to type, and the code."""
    session, email = Session(realm, name, **changes), realm.user()
    session.send(email)
    return session, email, newest(realm, email)


def code(realm):
    session, _, right = at_code(realm)
    return Form(session.browser, "continue", returns(), code=right)


def proof(realm):
    """Of an address without an account."""
    session, _, right = at_code(realm, scope="openid verify:email")
    return Form(session.browser, "continue", returns(), code=right)


def resend(realm):
    return Form(at_code(realm)[0].browser, "resend", stands("code"))


def link(realm):
    return Form(at_code(realm)[0].browser, "link", stands("link"))


def opened_link(realm):
    """A link in the browser that asked for it."""
    session, email, _ = at_code(realm)
    session.browser.submit("link")
    session.browser.open(realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1])
    return Form(session.browser, "continue", returns())


def confirmed_link(realm):
    """A link in another browser, which asks for the number."""
    session, email, _ = at_code(realm)
    session.browser.submit("link")
    match = re.search(rb"<strong>(\d\d)</strong>", session.browser.answer.body).group(1).decode()
    other = PageBrowser(session.flow.app.node, session.flow.host)
    other.open(realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1])

    def works(browser):
        stands("done")(browser)
        assert browser.answer.status == 200 and "code" in session.browser.submit("continue").members
    return Form(other, "confirm", works, number=match)


def second_factor(realm):
    user, session = Protected(realm), Session(realm)
    session.send(user.email)
    session.browser.submit("continue", code=newest(realm, user.email, 2))
    user.later()
    return Form(session.browser, "continue", returns(), totp_code=user.code())


def profile(realm):
    session, email = Session(realm, "jwt"), realm.new_email()
    session.sign_in(email)
    return Form(session.browser, "continue", returns(), terms="yes")


def registration(realm):
    session, email = Session(realm, "no-refresh", scope="openid email"), realm.new_email()
    session.browser.submit("register")
    return Form(session.browser, "continue", stands("code"), keeps=email, address=email, terms="yes")


def consent(realm):
    session = Session(realm, "app-2")
    session.sign_in(realm.user())
    return Form(session.browser, "allow", returns())


def continue_as(realm):
    session = Session(realm)
    session.sign_in(realm.user())
    session.begin(prompt="select_account")
    return Form(session.browser, "continue", returns())


def sign_out(realm):
    """Asks first: the request named no user."""
    flow = signed_in(realm)
    browser = PageBrowser(flow.app.node, flow.host)
    browser.cookies["__Host-postern-session"] = flow.cookie
    browser.open("/connect/logout")

    def works(browser):
        stands("signed-out")(browser)
        assert "login_required" in flow.authorize(prompt="none").header("location")
    return Form(browser, "continue", works)


def undo(realm):
    """What a notice offers."""
    who = holder(realm)
    browser = PageBrowser(who.app.node, realm.host)
    browser.open(undo_link(realm.world.mailbox.wait(who.email, kind="notice")))

    def works(browser):
        assert browser.answer.status == 200, browser.answer
        assert realm.world.cluster.value(f"SELECT count(*) FROM postern.passkey WHERE id = '{who.passkey}'") == "0"
    return Form(browser, "undo", works)


def phone_link(realm):
    """The page of a link to a number that is proven for a backend."""
    phone = new_number()
    _, app = opened(realm, phone, "desktop", finalTargetUrl="https://app.example/done")
    match = app.call("send", channel="link")["matchNumber"]
    browser = PageBrowser(realm.app().node, realm.host)
    browser.open(urllib.parse.urlsplit(realm.phones.wait(phone)["link"]).path)

    def works(browser):
        assert "asc=true" in browser.left_for, browser.answer
    return Form(browser, "confirm", works, number=match)


#: What has no statement of its own is not here.
FORMS = {
    "address": address, "number": number, "code": code, "proof of an address": proof, "resend": resend, "link": link, "opened link": opened_link,
    "confirmed link": confirmed_link, "second factor": second_factor, "profile": profile, "registration": registration, "consent": consent,
    "continue-as": continue_as, "sign-out": sign_out, "undo": undo, "phone link": phone_link,
}


def use_up(realm):
    """Takes the one permit that each policy has for this source."""
    app, email = realm.app(), realm.user()
    app.post_json("/api/account/native/otp/request", {"Email": email})
    app.post_json("/api/account/magic-link/request", {"Email": email})
    app.post_json("/api/account/native/otp/request", {"Phone": new_number()})
    app.redeem("000000", email=email)
    flow = Flow(realm)
    flow.cookie = "pss_" + "x" * 43
    for _ in range(2):
        flow.authorize(prompt="none")


def test_a_form_over_a_limit_works_when_there_is_room_again(realm):
    """429 with the page that was sent and what was typed; a code costs no try, and no link or proof is used."""
    forms = {name: make(realm) for name, make in FORMS.items()}
    limit_sources(realm, 1)
    use_up(realm)
    wrong = []
    for name, form in forms.items():
        answer = form.send()
        if answer.status != 429 or not answer.header("content-type").startswith("text/html") or int(answer.header("retry-after") or 0) < 1 \
                or answer.header("location") is not None or form.keeps and form.browser.page.fields.get("address") != form.keeps:
            wrong.append((name, str(answer)[:300]))
    limit_sources(realm, 1_000_000)
    assert not wrong, wrong
    for form in forms.values():
        form.send()
        form.works(form.browser)


def test_a_form_that_met_no_database_works_once_when_it_is_sent_again(realm, fragile_world):
    """All of them in one outage; nothing is done, and nothing is lost."""
    world, forms = fragile_world, {name: make(realm) for name, make in FORMS.items()}
    world.settle_messages()
    world.cluster.stop("immediate")
    try:
        time.sleep(1.2)
        wrong = []
        for name, form in forms.items():
            answer = form.send()
            if answer.status != 503 or not answer.header("content-type").startswith("text/html") or int(answer.header("retry-after") or 0) < 1 \
                    or answer.header("location") is not None or b"no-store" not in answer.header("cache-control").encode():
                wrong.append((name, str(answer)[:300]))
        for path in ("/sign-in/wait", "/connect/par"):
            answer = wire.exchange(world.node.port, "POST", path, {"Host": realm.host, **HERE}, b"client_id=x&tx=x")
            assert answer.status in (200, 503) and answer.header("content-type").startswith("application/json"), answer
    finally:
        world.cluster.ensure_up()
        world.node.wait_ready()
    assert not wrong, wrong
    mails = len(world.mailbox.mails)
    for name, form in forms.items():
        form.send()
        form.works(form.browser)
        assert form.browser.answer.status in (200, 303), (name, form.browser.answer)
    world.settle_messages()
    # An address, a proof again, a link and a registration are one mail each; the end of a passkey is told.
    assert len(world.mailbox.mails) <= mails + 5, [mail.kind for mail in world.mailbox.mails[mails:]]


def test_a_form_is_good_at_every_node_after_each_round_of_a_new_key(request):
    """A line is added, comes first, and the former one goes: what a page was before a round is what it is after it, at the other node."""
    fleet, old, new = Fleet(request.node.name[7:30]), new_line(), new_line()
    try:
        fleet.open([old])
        realm = with_forms(fleet, "lines")
        for number, lines in enumerate(([old, new], [new, old], [new])):
            if number == 2:
                resealed = fleet.command("keys", "reseal")
                assert resealed.returncode == 0, resealed
                fleet.cluster.sql("UPDATE postern.session SET revoked_at = now()")
                fleet.wait_until(lambda: not [kind for line, kind in fleet.key_lines() if line == line_id(old)], "nothing stands on the former line")
            forms = {name: make(realm) for name, make in FORMS.items()}
            fleet.settle_messages()
            fleet.roll(lines)
            for name, form in forms.items():
                form.browser.node = fleet.nodes[1]
                form.send()
                form.works(form.browser)
                assert form.browser.answer.status in (200, 303), (number, name, form.browser.answer)
        realm.phones.close()
    finally:
        fleet.close()
