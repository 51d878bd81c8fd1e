"""Requests at a rate that does not fall when the answers become slow: refreshes, introspection, pages and sign-ins by code."""

import asyncio
import json
import time

from . import fleet, wire
from .app import FULL_SCOPE, OTP
from .codeflow import Flow, hosted

#: Parts of the rate. A sign-in is two requests.
MIX = {"refresh": 0.60, "introspection": 0.25, "page": 0.10, "sign-in": 0.05}


def prepare(realm):
    """Switches the pages of a realm on, without a limit."""
    hosted(realm)
    realm.world.admin.call(
        "set_rate_limit", realm.slug, "authorize", "source", permits=1_000_000, per="1 minute", burst=1_000_000)
    realm.world.settle()
    return realm


class Steady:
    """An open loop: what is due while an answer is late is sent as soon as a worker is free, so that no stall hides requests."""

    #: The longest one worker may need for a request without the rate falling behind.
    BEAT = 1.0

    def __init__(self, realm, nodes, families, newcomers, rate):
        """`families`: one for each refresh in a second. `newcomers`: addresses, each signs in once; None: no sign-ins."""
        self.app, self.api, self.nodes = realm.app(), realm.app("api"), nodes
        self.families = [dict(family) for family in families]
        self.signed_in = []
        self.latencies = []
        #: What was answered with 503, and when.
        self.refusals = []
        self._newcomers = iter(newcomers) if newcomers is not None else None
        self._rate = rate
        self._page = f"/connect/authorize?{wire.form_body(Flow(realm).request()).decode()}"
        self.fleet = fleet.Fleet()
        self.began = None

    @staticmethod
    def families_for(rate):
        """How many families a rate needs."""
        return int(rate * MIX["refresh"] * Steady.BEAT)

    def start(self):
        """Begins."""
        work = [lambda f, i=number, a=family: self._refresh(f, i, a) for number, family in enumerate(self.families)]
        for name, of, cost in (
            ("introspection", self._introspect, 1), ("page", self._ask_page, 1), ("sign-in", self._sign_in, 2),
        ):
            if name == "sign-in" and self._newcomers is None:
                continue
            count = max(1, round(self._rate * MIX[name] / cost * self.BEAT))
            work += [lambda f, i=number, g=of: g(f, i) for number in range(count)]
        self.began = time.monotonic()
        self.fleet.start(*work)
        return self

    def stop(self):
        """Ends."""
        self.fleet.stop(60)

    def back(self, timeout=60.0):
        """Waits until every kind of request succeeds that is sent from now on."""
        moment = time.monotonic()
        names = ["refresh", "introspection", "page"]
        while not all(self.fleet.successes(name, moment) for name in names):
            assert time.monotonic() < moment + timeout, f"no success within {timeout} s; {self.fleet.violations[:5]}"
            time.sleep(0.05)

    @property
    def unavailable(self):
        """Requests that were answered with 503."""
        return self.fleet.total(503)

    def answers(self):
        """How many requests were answered."""
        return sum(self.fleet.counts.values())

    def rate(self):
        """Answers a second."""
        return self.answers() / (time.monotonic() - self.began)

    def slowest_between(self, began, ended):
        """The longest time that a request took which was under way between two moments."""
        return max((end - begin for begin, end in list(self.latencies) if end >= began and begin <= ended), default=0.0)

    async def _beats(self, run, number):
        """Yields once a beat; a beat that was missed is made up for."""
        due = time.monotonic() + self.BEAT * (number % 997) / 997
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if run.stopped:
                return
            yield
            due += self.BEAT

    def _client(self, number):
        return fleet.Client(self.nodes[number % len(self.nodes)].port)

    async def _ask(self, run, name, client, request):
        """Until there is an answer that is not 503; None when the load ends before."""
        while True:
            began = time.monotonic()
            answer = await run.ask(name, client, request)
            self.latencies.append((began, time.monotonic()))
            if answer is None:
                self.refusals.append((name, time.monotonic()))
            if answer is not None or run.stopped:
                return answer

    async def _refresh(self, run, number, family):
        client = self._client(number)
        async for _ in self._beats(run, number * 83):
            form = {"grant_type": "refresh_token", "client_id": self.app.client_id, "refresh_token": family["refresh_token"]}
            answer = await self._ask(run, "refresh", client, fleet.post(self.app.host, "/connect/token", form))
            if answer is None or answer[0] != 200:
                return  # noted: a healthy family was refused, or the load ends
            family.update(json.loads(answer[2]))
        client.close()

    async def _introspect(self, run, number):
        client = self._client(number)
        async for _ in self._beats(run, number * 89):
            family = self.families[number % len(self.families)]
            form = {"token": family["access_token"]}
            request = fleet.post(self.app.host, "/connect/introspect", form, Authorization=self.api.basic)
            answer = await self._ask(run, "introspection", client, request)
            if answer and answer[0] == 200 and b'"active":true' not in answer[2]:
                run.violate(f"introspection of a live token: {answer[2][:200]!r}")
        client.close()

    async def _ask_page(self, run, number):
        client = self._client(number)
        async for _ in self._beats(run, number * 97):
            answer = await self._ask(run, "page", client, fleet.get(self.app.host, self._page))
            if answer and answer[0] == 200 and b"<form" not in answer[2]:
                run.violate(f"a page without a form: {answer[2][:200]!r}")
        client.close()

    async def _sign_in(self, run, number):
        client = self._client(number)
        async for _ in self._beats(run, number * 101):
            email = next(self._newcomers, None)
            if email is None:
                run.violate("no address is left to sign in")
                return
            asked = await self._ask(
                run, "code", client, fleet.post_json(self.app.host, "/api/account/native/otp/request", {"Email": email}))
            if asked is None or asked[0] != 200:
                continue
            try:
                mail = await asyncio.to_thread(self.app.mailbox.wait, email, 1, 30.0, "code")
            except AssertionError as problem:
                run.violate(str(problem))
                continue
            form = {
                "grant_type": OTP, "client_id": self.app.client_id, "auth_session": json.loads(asked[2])["AuthSession"],
                "otp_code": mail.code, "scope": FULL_SCOPE,
            }
            answer = await self._ask(run, "sign-in", client, fleet.post(self.app.host, "/connect/token", form))
            if answer is not None and answer[0] == 200:
                self.signed_in.append((email, json.loads(answer[2])))
        client.close()

    def audit(self):
        """Every family that was acknowledged lives, and each sign-in sent one mail."""
        assert not self.fleet.violations, f"{len(self.fleet.violations)} violations, first: {self.fleet.violations[:5]}"
        for family in [*self.families, *(tokens for _, tokens in self.signed_in)]:
            answer = self.app.refresh(family["refresh_token"])
            assert answer.status == 200, f"an acknowledged refresh token was lost: {answer}"
        several = [email for email, _ in self.signed_in if len(self.app.mailbox.to(email, "code")) != 1]
        assert not several, f"not one mail each: {several[:5]}"
