"""Sign-ins by pages and single sign-on while servers and PostgreSQL are killed: pages to reload, no code twice, no mail lost, nobody signed out."""

import collections
import itertools
import random
import threading
import time

import pytest

from harness import report, wire
from harness.codeflow import Flow, hosted, response
from harness.ledger import LEDGER
from harness.pages_client import PageBrowser
from harness.settings import CHAOS_SEED, FULL
from harness.sign_in_pages import signed_in

pytestmark = pytest.mark.slow
ROUNDS = 100 if FULL else 3
BROWSERS, PEOPLE = 4, 4
#: A mail that a killed sender had taken is sent again after this.
LEASE = 90


class Traffic:
    """Threads that go on until they are stopped, and what they saw."""

    def __init__(self, world, realm, nodes):
        self.world, self.realm, self.nodes = world, realm, nodes
        self.problems, self.stopped = [], threading.Event()
        self.seen = collections.Counter()
        #: Of each code of single sign-on: how often it opened a session, and the codes of which an answer was lost.
        self.opened, self.in_doubt = collections.Counter(), set()
        #: Addresses to which a page said that a code was sent, and those whose code never came.
        self.asked, self.missing = [], []
        # Made before, since that needs PostgreSQL.
        self._people = iter(realm.users(100 * ROUNDS))
        self.browsers = [signed_in(realm) for _ in range(BROWSERS)]
        work = [lambda b=browser: self._single_sign_on(b) for browser in self.browsers] + [self._pages] * PEOPLE
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in work]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self._threads:
            thread.join(LEASE + 90)
            assert not thread.is_alive()

    def _run(self, work):
        while not self.stopped.is_set():
            try:
                work()
            except Exception as problem:  # pylint: disable=broad-except  # a finding
                self.problems.append(repr(problem)[:600])
                return

    def _insist(self, kind, request, page=False):
        """Repeats a request until it is answered; a fault of ours says when to come back. Also whether an answer was lost or was a fault."""
        deadline, doubt = time.monotonic() + 60, False
        for turn in itertools.count(random.randrange(2)):
            try:
                answer = request(self.nodes[turn % len(self.nodes)])
                if answer.status != 503:
                    self.seen[kind] += 1
                    return answer, doubt
                assert int(answer.header("retry-after")) > 0 and answer.header("location") is None, answer
                assert answer.header("content-type").startswith("text/html" if page else "application/json"), answer
                self.seen["503"] += 1
            except (OSError, wire.WireError):
                self.seen["no answer"] += 1
            doubt = True
            assert time.monotonic() < deadline, f"{kind} is not answered"
            time.sleep(0.05)

    def _exchange(self, flow, code):
        def send(node):
            flow.app.node = node
            return flow.exchange(code)
        return self._insist("code", send)

    def _single_sign_on(self, browser):
        target = "/connect/authorize?" + wire.form_body(browser.request()).decode()
        answer, _ = self._insist("single sign-on", lambda node: wire.exchange(
            node.port, "GET", target, {"Host": browser.host, **browser.cookies()}), page=True)
        code = LEDGER.add("authorization_code", response(answer)["code"])
        flow = Flow(self.realm)
        flow.verifier = browser.verifier
        for _ in range(2):
            answer, doubt = self._exchange(flow, code)
            if doubt:
                self.in_doubt.add(code)
            assert answer.status in (200, 400), answer
            if answer.status == 200:
                LEDGER.tokens(answer.json())
                self.opened[code] += 1
        assert self.opened[code] == 1 or code in self.in_doubt and not self.opened[code], (code, self.opened[code])
        time.sleep(0.1)

    def _pages(self):
        """A person. Who sent a form twice may have two codes, of which one fits, or a code that was taken with the first."""
        email, flow = next(self._people), Flow(self.realm)
        browser, doubts = PageBrowser(self.nodes[0], flow.host), []

        def step(request, wanted):
            page, url = browser.page, browser.url

            def once(node):
                browser.node, browser.page, browser.url = node, page, url
                request()
                return browser.answer
            answer, doubt = self._insist("page", once, page=True)
            doubts.append(doubt)
            found = "client" if browser.left_for else browser.page.step
            assert found == wanted or any(doubts), (wanted, found, answer)
            return found == wanted

        if not step(lambda: browser.open("/connect/authorize?" + wire.form_body(flow.request()).decode()), "address"):
            return
        if not step(lambda: browser.submit("continue", address=email), "code"):
            return
        self.asked.append(email)
        code = self._code_for(email)
        if code and step(lambda: browser.submit("continue", code=code), "client"):
            answer, doubt = self._exchange(flow, browser.members["code"])
            assert answer.status == 200 or doubt and answer.status == 400, answer

    def _code_for(self, email):
        deadline = time.monotonic() + LEASE + 30
        while not (mails := self.world.mailbox.to(email, "code")):
            if time.monotonic() > deadline:
                self.missing.append(email)
                return None
            time.sleep(0.05)
        return LEDGER.add("code", mails[-1].code)


def test_pages_and_single_sign_on_while_servers_and_postgresql_are_killed(fragile_world):
    """In each round a server, PostgreSQL or both; at the end every browser is signed in as before."""
    world, dice = fragile_world, random.Random(CHAOS_SEED)
    realm = hosted(world.realm("killed"), offer_passkey=False)
    realm.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    nodes = [world.node, world.start_node()]
    world.settle()
    with Traffic(world, realm, nodes) as traffic:
        for number in range(ROUNDS):
            time.sleep(dice.uniform(0.3, 1.5))
            victims = [("server",), ("PostgreSQL",), ("server", "PostgreSQL")][number % 3]
            node = dice.choice(nodes)
            if "server" in victims:
                node.kill()
            if "PostgreSQL" in victims:
                world.cluster.kill()
            time.sleep(dice.uniform(0, 1))
            world.cluster.ensure_up()
            for one in nodes:
                one.start_until_ready()
            assert not traffic.problems, traffic.problems
    assert not traffic.problems and not traffic.missing, (traffic.problems, traffic.missing)
    report.say(f"pages: {ROUNDS} rounds of kills, {dict(traffic.seen)}, {len(traffic.asked)} sign-ins by mail, {len(traffic.in_doubt)} codes in doubt")
    assert traffic.seen["503"] + traffic.seen["no answer"] and min(traffic.seen[kind] for kind in ("page", "code", "single sign-on")) > ROUNDS
    assert not [code for code, count in traffic.opened.items() if count > 1]
    for browser in traffic.browsers:
        assert "code=" in browser.authorize(prompt="none").header("location")
    # A session for each code that opened one, and none beside but those whose answer was lost.
    rows = int(world.cluster.value("SELECT count(*) FROM postern.session WHERE browser_session IN ("
                                   + ",".join(f"'{browser.session}'" for browser in traffic.browsers) + ")"))
    assert sum(traffic.opened.values()) <= rows <= sum(traffic.opened.values()) + len(traffic.in_doubt)
    world.settle_messages()
    for email in traffic.asked:
        codes = collections.Counter(mail.code for mail in world.mailbox.to(email, "code"))
        assert codes and max(codes.values()) <= 2, (email, codes)
