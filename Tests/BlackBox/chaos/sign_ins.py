"""Sign-ins of every kind while the system is hurt. Each proof is presented again, and what was acknowledged is kept for the audit."""

import asyncio
import collections
import json
import threading
import time
from dataclasses import dataclass

from harness import authenticator, fleet
from harness.app import FULL_SCOPE, OTP, PASSKEY
from harness.links import MAGIC


@dataclass
class SignIn:
    """One that was answered with 200, and whether its end was acknowledged, too."""

    kind: str
    tokens: dict
    ended: bool = False


class Users:
    """Addresses, each used by one worker at a time. One whose mail has not come is not used before it is here."""

    def __init__(self, mailbox, emails):
        self._mailbox = mailbox
        self._free = collections.deque(emails)
        self._lock = threading.Lock()
        self.waiting = {}
        #: Addresses for which a request was not answered: another mail than the expected one may come.
        self.doubtful = set()

    def take(self):
        """An address, or None."""
        with self._lock:
            return self._free.popleft() if self._free else None

    def give(self, email):
        """It may be used again, after all others."""
        with self._lock:
            self._free.append(email)

    def wait_for(self, email, kind, count):
        """A mail was promised and is not here yet."""
        with self._lock:
            self.waiting[email] = (kind, count)

    def arrived(self):
        """Frees addresses whose mail has come since; returns how many still wait."""
        with self._lock:
            for email, (kind, count) in list(self.waiting.items()):
                if len(self._mailbox.to(email, kind)) >= count:
                    del self.waiting[email]
                    self.doubtful.add(email)  # of several mails, the newest need not be the one for the next request
                    self._free.append(email)
            return len(self.waiting)


class SignIns:
    """By code and link in a mail, by code in an SMS, by passkey; some sign out at once."""

    def __init__(self, realm, nodes, users, phones=None, credentials=()):
        self.app, self.nodes = realm.app(), nodes
        self.mailbox = self.app.mailbox
        self.users = Users(self.mailbox, users)
        self.phones, self.numbers = phones, collections.deque()
        #: Numbers to which a message may come that was not waited for.
        self._doubtful = set()
        self._credentials = list(credentials)
        self._lock = threading.Lock()
        self._acknowledged = []
        self.total = collections.Counter()

    def add_numbers(self, numbers):
        """Phones of confirmed users."""
        self.numbers.extend(numbers)

    def work(self):
        """What a fleet is to run."""
        work = []
        for number, node in enumerate(self.nodes):
            work += [lambda f, n=node, i=number: self._codes(f, n, f"code {i}")] * 2
            work.append(lambda f, n=node, i=number: self._links(f, n, f"link {i}"))
            if self.numbers:
                work.append(lambda f, n=node, i=number: self._messages(f, n, f"sms {i}"))
            if number < len(self._credentials):
                work.append(lambda f, n=node, i=number: self._passkeys(f, n, f"passkey {i}", self._credentials[i]))
        return work

    def acknowledged(self):
        """What was signed in since this was asked last."""
        with self._lock:
            kept, self._acknowledged = self._acknowledged, []
        return kept

    # -- by mail -----------------------------------------------------------------------------------

    async def _asked(self, run, client, name, path, email, kind):
        """Asks for a mail and waits for it; the answer's document and the mail, or None."""
        before = len(self.mailbox.to(email, kind))
        asked = await run.ask(name + " request", client, fleet.post_json(self.app.host, path, {"Email": email}))
        if not asked or asked[0] != 200:
            self.users.doubtful.add(email)
            self.users.give(email)
            return None
        deadline = time.monotonic() + 3
        while len(self.mailbox.to(email, kind)) <= before and time.monotonic() < deadline and not run.stopped:
            await asyncio.sleep(0.03)
        mails = self.mailbox.to(email, kind)
        if len(mails) <= before:
            self.users.wait_for(email, kind, before + 1)
            return None
        return json.loads(asked[2]), mails[-1]

    async def _codes(self, run, node, name):
        client = fleet.Client.of(node)
        while not run.stopped:
            email = self.users.take()
            if email is None:
                await asyncio.sleep(0.1)
                continue
            got = await self._asked(run, client, name, "/api/account/native/otp/request", email, "code")
            if got:
                form = {
                    "grant_type": OTP, "client_id": self.app.client_id, "auth_session": got[0]["AuthSession"],
                    "otp_code": got[1].code, "scope": FULL_SCOPE,
                }
                await self._redeem(run, client, name, form, email in self.users.doubtful)
                self.users.give(email)
        client.close()

    async def _links(self, run, node, name):
        client = fleet.Client.of(node)
        while not run.stopped:
            email = self.users.take()
            if email is None:
                await asyncio.sleep(0.1)
                continue
            got = await self._asked(run, client, name, "/api/account/magic-link/request", email, "link")
            if got:
                query = dict(fleet.wire.urllib.parse.parse_qsl(fleet.wire.urllib.parse.urlsplit(got[1].link).query))
                form = {
                    "grant_type": MAGIC, "client_id": self.app.client_id, "user_id": query["userId"],
                    "magic_token": query["token"], "scope": FULL_SCOPE,
                }
                await self._redeem(run, client, name, form, email in self.users.doubtful)
                self.users.give(email)
        client.close()

    # -- by phone and by passkey -------------------------------------------------------------------

    async def _messages(self, run, node, name):
        client = fleet.Client.of(node)
        while not run.stopped:
            if not self.numbers:
                await asyncio.sleep(0.1)
                continue
            number = self.numbers.popleft()  # one asks at a time: a late message of another request looks like this one's
            try:
                await self._message(run, client, name, number)
            finally:
                self.numbers.append(number)
        client.close()

    async def _message(self, run, client, name, number):
        before = len(self.phones.to(number))
        asked = await run.ask(
            name + " request", client, fleet.post_json(self.app.host, "/api/account/native/otp/request", {"Phone": number}))
        if not asked or asked[0] != 200:
            self._doubtful.add(number)
            return
        deadline = time.monotonic() + 2
        while len(self.phones.to(number)) <= before and time.monotonic() < deadline and not run.stopped:
            await asyncio.sleep(0.03)
        messages = self.phones.to(number)
        if len(messages) <= before:
            self._doubtful.add(number)
            return
        form = {
            "grant_type": OTP, "client_id": self.app.client_id, "auth_session": json.loads(asked[2])["AuthSession"],
            "otp_code": messages[-1]["code"], "scope": "openid offline_access",
        }
        await self._redeem(run, client, name, form, number in self._doubtful)
        await asyncio.sleep(0.3)

    async def _passkeys(self, run, node, name, credential):
        client = fleet.Client.of(node)
        while not run.stopped:
            begun = await run.ask(
                name + " begin", client, fleet.post(self.app.host, "/connect/passkey/begin", {"client_id": self.app.client_id}))
            if not begun or begun[0] != 200:
                continue
            ceremony = json.loads(begun[2])
            document = authenticator.assertion(ceremony["options"], credential)
            form = {
                "grant_type": PASSKEY, "client_id": self.app.client_id, "ceremony_id": ceremony["ceremonyId"],
                "assertion": json.dumps(document), "scope": FULL_SCOPE,
            }
            await self._redeem(run, client, name, form, False)
            await asyncio.sleep(0.2)
        client.close()

    # -- the proof ---------------------------------------------------------------------------------

    async def _redeem(self, run, client, name, form, doubtful):
        """Presents a proof until there is an answer, and then once more: it is refused, or gets the same session (history.add)."""
        request = fleet.post(self.app.host, "/connect/token", form)
        while True:
            answer = await run.ask(f"{name} once", client, request, expected=(200, 400))
            if answer is not None:
                break
            if run.stopped:
                return
            doubtful = True  # no answer: the proof may have been used
        if answer[0] != 200:
            if not doubtful:
                run.violate(f"{name}: a fresh proof was refused: {answer[2]!r}")
            return
        made = SignIn(name, json.loads(answer[2]))
        self.total[name.split()[0]] += 1
        if self.total.total() % 4 == 0:
            await self._sign_out(run, client, name, made)
        with self._lock:
            self._acknowledged.append(made)
        for _ in range(200):
            again = await run.ask(f"{name} again once", client, request, expected=(200, 400))
            if again is not None or run.stopped:
                return

    async def _sign_out(self, run, client, name, made):
        form = {"token": made.tokens["refresh_token"], "client_id": self.app.client_id}
        for _ in range(200):
            answer = await run.ask(f"{name} sign-out", client, fleet.post(self.app.host, "/connect/revoke", form))
            if answer is not None or run.stopped:
                made.ended = answer is not None and answer[0] == 200
                if not made.ended:
                    made.tokens = None  # in doubt: nothing can be said of it
                return
        made.tokens = None
