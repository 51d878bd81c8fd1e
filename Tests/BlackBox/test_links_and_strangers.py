"""Links beside strangers: what somebody who only knows an address, or shares a network, can do to its owner's links. Nothing."""

import itertools
import subprocess
import threading
import time

import pytest

from harness import settings, wire
from harness.links import LANDING, Form, Link, Links
from harness.postgres import clean_environment
from harness.report import say
from harness.volley import in_parallel, token_request, volley

REFUSED = {"error": "invalid_grant", "error_description": "Invalid or expired link."}


@pytest.fixture
def links(app):
    """What app, mailbox and browser do with links."""
    return Links(app)


@pytest.fixture
def behind_proxy(world):
    """A node that believes what the test says about addresses."""
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    yield node
    node.stop()


def at(node, links):
    """The same app at another node."""
    return Links(type(links.app)(node, links.app.mailbox, links.app.host, links.app.client_id))


def error(answer):
    """The error of a 400."""
    assert answer.status == 400, answer
    return answer.json()["error"]


# -- a link belongs to its request -----------------------------------------------------------------


def test_a_stranger_on_the_same_network_takes_nobodys_link_over(world):
    """Within the cooldown, from the same address: a link and a mail of its own; the owner's link keeps its number and its handle."""
    realm = world.realm(cooldown="1 minute")
    links = Links(realm.app())
    email = realm.user()
    owners = links.link(email)
    strangers = links.link(email)
    assert strangers.url != owners.url and strangers.handle != owners.handle
    assert links.choose(owners, owners.number).status == 200
    assert links.poll(owners.handle).status == 200
    assert error(links.poll(strangers.handle)) == "authorization_pending"


def test_no_strangers_request_ends_or_moves_a_link(world, behind_proxy):
    """From elsewhere, and from the same address, many times: the owner's link goes on."""
    realm = world.realm(cooldown="1 minute")
    owner = at(behind_proxy, Links(realm.app()))
    email = realm.user()
    link = owner.link(email)
    theirs = [owner.ask(email, {"X-Forwarded-For": f"198.51.100.{n // 2}"}).json() for n in range(24)]
    theirs += [owner.ask(email).json() for _ in range(6)]
    world.mailbox.wait(email, 31)
    assert owner.choose(link, link.number).status == 200
    assert owner.poll(link.handle).status == 200
    for other in theirs:
        assert error(owner.poll(other["AuthSession"])) == "authorization_pending"


def test_a_resend_within_the_cooldown_sends_nothing_and_later_a_link_for_the_same_handle(world):
    """Only for who presents the handle; the number stays, so an app that shows it need not change it."""
    realm = world.realm(cooldown="1 minute")
    links = Links(realm.app())
    email = realm.user()
    first = links.link(email)
    again = links.ask(email, AuthSession=first.handle).json()
    assert (again["MatchNumber"], again["ResendAfter"]) == (first.number, 60)
    world.mailbox.wait(links.link(realm.user()).email, 1)
    assert len(world.mailbox.to(email)) == 1
    world.time_travel(61)
    second = links.link(email, AuthSession=first.handle)
    assert second.number == first.number and second.url != first.url
    assert links.choose(first, first.number).status == 200, "the first mail may be opened as well"
    assert links.poll(second.handle).status == 200
    assert links.redeem(second).json() == REFUSED


def test_a_handle_of_another_address_is_no_resend(realm, links):
    """A stranger's handle sends nothing for the owner's address but a request of its own."""
    owner, stranger = realm.user(), realm.user()
    link, theirs = links.link(owner), links.link(stranger)
    moved = links.link(owner, AuthSession=theirs.handle)
    assert moved.handle not in (link.handle, theirs.handle)
    assert links.choose(link, link.number).status == 200 and links.poll(link.handle).status == 200


def test_an_app_may_tie_a_link_to_its_own_request(realm, links, email):
    """user_id and magic_token with the auth_session of another request: refused, and nothing is consumed."""
    own, forwarded = links.link(email), links.link(email)
    assert links.redeem(forwarded, auth_session=own.handle).json() == REFUSED
    assert links.redeem(own, auth_session="pas_nonsense").json() == REFUSED
    assert links.redeem(own, auth_session=links.link(realm.user()).handle).json() == REFUSED
    assert links.redeem(own, auth_session=own.handle).status == 200


# -- the number is typed ---------------------------------------------------------------------------


def test_nothing_on_the_page_can_be_clicked_to_let_a_stranger_in(email, links):
    """The page has no button that confirms without the number: every form of it, sent as it is, signs nobody in."""
    link = links.link(email)
    page = Form(links.open(link).body.decode())
    for form in page.forms[::-1]:
        assert links.app.post(LANDING, form["hidden"]).status in (200, 400)
    assert not {link.number} & {form["hidden"].get("number") for form in page.forms}
    assert error(links.poll(link.handle)) == "authorization_pending"


def test_one_wrong_number_kills_the_link(realm, links):
    """One try in ninety; the other eighty-eight find it dead."""
    for link in in_parallel(links.link, realm.users(5)):
        assert links.choose(link, links.wrong(link)).status == 400
        assert links.choose(link, link.number).status == 400
        assert error(links.poll(link.handle)) == "access_denied"
        assert links.redeem(link).json() == REFUSED


def test_not_me_keeps_strangers_from_sending_more_links_for_a_while(world, realm, links, email):
    """Fifteen minutes; a known device goes on, and so do codes and other links that were sent before."""
    token = links.app.sign_in(email, scope="openid")["id_token"]
    own, strangers = links.link(email), links.link(email)
    assert links.choose(strangers, "none").status == 200
    sent = len(world.mailbox.to(email))
    assert links.ask(email).status == 200
    known = links.link(email, IdTokenHint=token)
    assert len(world.mailbox.to(email)) == sent + 1, "of the two requests only the known device's sent a mail"
    assert links.redeem(known).status == 200
    assert links.redeem(own).json() == REFUSED, "a success ends the other links"
    assert links.app.sign_in(email)["access_token"]
    world.time_travel(901)
    assert links.redeem(links.link(email)).status == 200


# -- looking is limited ----------------------------------------------------------------------------


def test_looking_at_links_is_limited_by_source_and_then_costs_no_database(world):
    """GET of the page: policy magic-link, dimension source; over it a page with Retry-After and a way on, and the link lives on."""
    realm = world.realm()
    links = Links(realm.app())
    link = links.link(realm.user())
    realm.limit("magic-link", "source", permits=20)

    def transactions():
        time.sleep(1.5)  # what backends report arrives late
        return int(world.cluster.value(f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{world.cluster.database}'"))

    with wire.Connection(world.node.port) as connection:
        look = lambda target: connection.exchange("GET", target, {"Host": realm.host})  # noqa: E731
        answers = [look(link.target) for _ in range(30)]
        assert [a.status for a in answers][:19] == [200] * 19 and answers[-1].status == 429
        before = transactions()
        started = time.monotonic()
        answers = [look(link.target if n % 2 else f"{LANDING}?userId={n}&token=x") for n in range(3000)]
        elapsed = time.monotonic() - started
        asked = transactions() - before
    assert {a.status for a in answers} == {429}
    assert asked < 300 + 30 * elapsed, f"{asked} transactions for 3,000 refused looks"
    refused = answers[1]
    assert int(refused.header("retry-after")) > 0 and "no-store" in refused.header("cache-control")
    assert refused.header("content-type").startswith("text/html") and b"Try again" in refused.body
    form = Form(refused.body.decode()).forms[0]
    assert (form["method"], form["action"]) == ("get", LANDING)
    limited = links.choose(link, link.number)
    assert limited.status == 429 and Form(limited.body.decode()).forms[0]["hidden"]["number"] == link.number
    world.time_travel(3700)
    world.pause()  # a refusal is remembered for a moment
    link = links.link(realm.user())
    again = Form(links.open(link).body.decode())
    assert links.open(f"{LANDING}?userId={again.hidden['userId']}&token={again.hidden['token']}").body == links.open(link).body


# -- the security stamp ----------------------------------------------------------------------------

ENDS = {
    "signed out everywhere": lambda world, realm, email: world.admin.call("sign_out_everywhere", realm.slug, email),
    "disabled and enabled": lambda world, realm, email: (
        world.admin.call("set_user_enabled", realm.slug, email, False), world.admin.call("set_user_enabled", realm.slug, email, True)),
    "disabled by put_user": lambda world, realm, email: (
        world.admin.call("put_user", realm.slug, email, enabled=False), world.admin.call("put_user", realm.slug, email, enabled=True)),
    "another stamp": lambda world, realm, email: world.cluster.sql(
        f"UPDATE postern.user_account SET security_stamp = gen_random_uuid() WHERE address_key = '{email}'"),
}


@pytest.mark.parametrize("end", ENDS)
def test_links_and_confirmed_handles_die_with_the_security_stamp(world, realm, links, end):
    """Mailed, opened or confirmed before: nothing of it signs anybody in afterwards; a new request does."""
    one, two, three = realm.users(3)
    mailed, confirmed, code = links.link(one), links.link(two), links.app.request_code(three)
    assert links.choose(confirmed, confirmed.number).status == 200
    for email in (one, two, three):
        ENDS[end](world, realm, email)
    assert links.redeem(mailed).json() == REFUSED
    answer = links.choose(mailed, mailed.number)
    assert answer.status == 400 and b"This link no longer works" in answer.body
    assert links.poll(mailed.handle).status == 400
    assert links.poll(confirmed.handle).json() == REFUSED
    if end != "another stamp":  # a code is ended with the rest, and has no stamp of its own
        assert links.app.redeem(code.code, handle=code.handle).error == "invalid_grant"
    assert links.redeem(links.link(one)).status == 200


# -- known devices ---------------------------------------------------------------------------------


class Stranger:
    """Asks for links for one address without end, each time from another source."""

    def __init__(self, node, host, email):
        self.sent = 0
        self.mailed = 0
        self._node, self._host, self._email = node, host, email
        self._stop = threading.Event()
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._run) for _ in range(3)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self):
        body = f'{{"Email":"{self._email}"}}'.encode()
        with wire.Connection(self._node.port) as connection:
            while not self._stop.is_set():
                number = next(self._numbers)
                answer = connection.exchange("POST", "/api/account/magic-link/request", {
                    "Host": self._host, "Content-Type": "application/json",
                    "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}, body)
                assert answer.status in (200, 429), answer
                self.sent += 1
                self.mailed += answer.status == 200


@pytest.mark.slow
def test_a_known_device_signs_in_by_link_whatever_strangers_ask_for(world, behind_proxy):
    """The default limits; a stranger with unlimited sources; by token and by polling in turn, each time with the last ID token."""
    realm = world.realm(limits=False, cooldown="1 minute")
    links = at(behind_proxy, Links(realm.app()))
    email = realm.user()
    token = links.app.sign_in(email)["id_token"]
    attempts = 50 if settings.FULL else 25
    with Stranger(behind_proxy, realm.host, email) as stranger:
        while stranger.sent < 50:
            time.sleep(0.02)
        unknown = links.ask(email)
        assert unknown.status == 429 and unknown.json()["dimension"] == "target-total"
        for number in range(attempts):
            known = len(own_mails(links, email))
            asked = links.ask(email, ClientId=links.app.client_id, IdTokenHint=token)
            assert asked.status == 200, asked
            link = mail_of(links, asked, email, known)
            if number % 2:
                assert links.choose(link, link.number).status == 200, number
                answer = links.poll(link.handle)
            else:
                answer = links.redeem(link)
            assert answer.status == 200, (number, answer)
            token = answer.json()["id_token"]
        while stranger.sent < 2000:
            time.sleep(0.05)
    say(f"links beside a stranger: {attempts} of {attempts} sign-ins; {stranger.sent} requests of the stranger, {stranger.mailed} accepted")
    assert stranger.mailed <= 25


def own_mails(links, email):
    """The mails of requests that named the client: the owner's, beside those of strangers that arrive late."""
    return [mail for mail in links.app.mailbox.to(email) if f"Asked for by {links.app.client_id}," in mail.text]


def mail_of(links, asked, email, known):
    """The link of the owner's request: the newest of the owner's mails, once there are more than `known`."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        mails = own_mails(links, email)
        if len(mails) > known:
            document = asked.json()
            return Link(email, document["AuthSession"], document["MatchNumber"], mails[-1].link)
        time.sleep(0.02)
    raise AssertionError("no mail came for the known device")


def test_a_hint_that_does_not_fit_changes_nothing_and_is_not_told(world, realm, links):
    """Another account's, another realm's, garbage: the same answer as without; and the address's limit holds for all of them."""
    email, other = realm.user(), realm.user()
    foreign = Links(world.realm().app())
    hints = [
        links.app.sign_in(other)["id_token"], foreign.app.sign_in(foreign_user(foreign, world))["id_token"], "x", "", "a.b.c", "e" * 5000,
    ]
    plain = links.ask(email)
    for hint in hints:
        answer = links.ask(email, IdTokenHint=hint)
        assert answer.status == 200 and answer.json().keys() == plain.json().keys()
        assert {k for k, _ in answer.headers} == {k for k, _ in plain.headers}
    world.mailbox.wait(email, 7)
    realm.limit("magic-link", "target-total", permits=2)
    victim = realm.user()
    for _ in range(6):
        token = links.app.sign_in(other)["id_token"]
        assert links.ask(victim, IdTokenHint=token).status == 200, "counted as that device's, so never a 429 that tells"
    world.mailbox.wait(links.link(other, IdTokenHint=links.app.sign_in(other)["id_token"]).email, 1)
    assert len(world.mailbox.to(victim)) == 2, "the mails are counted by the address"


def foreign_user(foreign, world):
    """A user of the realm of an app."""
    slug = foreign.app.host.partition(".")[0]
    email = f"foreign.{slug}@mail.example"
    world.admin.call("put_user", slug, email, email_verified=True)
    return email


# -- locks -----------------------------------------------------------------------------------------


class Transaction:
    """A psql session with an open transaction."""

    def __init__(self, cluster, statement):
        self._psql = subprocess.Popen(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", str(cluster.root), "-U", "postgres", "-d", cluster.database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment(), text=True)
        self._psql.stdin.write(f"BEGIN;\n{statement};\nSELECT 'ready';\n")
        self._psql.stdin.flush()
        while "ready" not in (line := self._psql.stdout.readline()):
            assert line, "psql ended"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._psql.stdin.write("ROLLBACK;\n")
        self._psql.stdin.close()
        self._psql.wait()


@pytest.mark.parametrize("what", ["sign out everywhere", "delete"])
def test_an_administrators_open_transaction_costs_nobody_else_anything(world, realm, links, what):
    """48 redemptions, answers and polls of one account that is locked: 503 with nothing consumed, while another realm is served at once."""
    email, waiting = realm.users(2)
    link, confirmed = links.link(email), links.link(waiting)
    assert links.choose(confirmed, confirmed.number).status == 200
    other = world.realm()
    bystander, friend = Links(other.app()), other.user()
    function = {"sign out everywhere": "sign_out_everywhere", "delete": "delete_user"}[what]
    statement = ";".join(f"SELECT admin.{function}('{realm.slug}', '{who}')" for who in (email, waiting))
    with Transaction(world.cluster, statement):
        answers = []
        fire = threading.Thread(target=lambda: answers.extend(volley(
            links.app.node.port, [token_request(links.app, links.redeem_form(link)), token_request(links.app, links.poll_form(confirmed.handle))] * 24)))
        fire.start()
        times = []
        while fire.is_alive():
            started = time.monotonic()
            assert bystander.ask(friend).status == 200
            times.append(time.monotonic() - started)
        fire.join()
        say(f"links of a locked account ({what}): 48 answers, another realm's slowest of {len(times)} took {max(times) * 1000:.0f} ms")
        assert max(times) < 1.0
        assert {a.status for a in answers} == {503}, [str(a) for a in answers]
        assert all(a.header("retry-after") for a in answers)
        page = links.choose(link, link.number)
        assert page.status == 503 and b"Try again" in page.body
    assert links.redeem(link).status == 200
    assert links.poll(confirmed.handle).status == 200
