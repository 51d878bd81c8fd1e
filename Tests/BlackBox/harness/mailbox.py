"""A real SMTP server that keeps what it gets, and can be down, slow or unwilling."""

import asyncio
import email
import email.policy
import html
import re
import threading
import time
from dataclasses import dataclass, field

from aiosmtpd.controller import Controller

from .ports import free_port

_LINK = re.compile(r"https?://\S+/magic-login\?\S+")
#: The line of domain-bound codes, which only mails with a code have.
_AUTOFILL = re.compile(r"^@\S+ #\S+$", re.MULTILINE)
_CODE = re.compile(r"(?<![0-9])[0-9]{6,8}(?![0-9])")


@dataclass
class Mail:
    """One delivered mail."""

    recipients: list
    raw: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def message(self):
        """The parsed message."""
        return email.message_from_bytes(self.raw, policy=email.policy.default)

    @property
    def text(self):
        """The text/plain part."""
        return self.message.get_body(("plain",)).get_content()

    @property
    def html(self):
        """The text/html part."""
        return self.message.get_body(("html",)).get_content()

    @property
    def kind(self):
        """`link`, `code` or `notice`."""
        return "link" if _LINK.search(self.text) else "code" if _AUTOFILL.search(self.text) else "notice"

    @property
    def code(self):
        """The six to eight digits of the mail."""
        found = _CODE.search(self.text)
        assert found, f"no code in the mail: {self.text!r}"
        return found.group()

    @property
    def link(self):
        """The link of the mail; the HTML part must have the same one."""
        found = _LINK.search(self.text)
        assert found, f"no link in the mail: {self.text!r}"
        assert f'href="{html.escape(found.group())}"' in self.html, self.html
        return found.group()


class Mailbox:
    """The SMTP server. `mode` is accept, refuse (451 for everybody), slow (seconds per mail), refuse sender (550 at MAIL FROM) or die after
    data (takes the mail and closes without an answer). `refuses` says which mailboxes do not exist (550); `named` is every
    recipient ever named, welcome or not."""

    def __init__(self):
        self.port = free_port()
        self.mode = "accept"
        self.slowness = 3.0
        self.refused = 0
        self.named = []
        self.refuses = lambda address: False
        self.mails = []
        self._by_address = {}
        self._arrived = threading.Condition()
        self._controller = None
        self.up()

    def up(self):
        """Starts listening, on the same port as before."""
        if self._controller is None:
            self._controller = Controller(self, hostname="127.0.0.1", port=self.port, ready_timeout=10)
            self._controller.start()

    def down(self):
        """Stops listening: connections are refused."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    async def handle_MAIL(self, _server, _session, envelope, address, _options):  # pylint: disable=invalid-name
        """SMTP MAIL FROM."""
        if self.mode == "refuse sender":
            return "550 5.7.1 you may not send"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # pylint: disable=invalid-name
        """SMTP RCPT TO."""
        self.named.append(address)
        if self.mode == "refuse":
            self.refused += 1
            return "451 4.3.0 try again later"
        if self.refuses(address):
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, _session, envelope):  # pylint: disable=invalid-name
        """SMTP DATA."""
        if self.mode == "slow":
            await asyncio.sleep(self.slowness)
        with self._arrived:
            mail = Mail(list(envelope.rcpt_tos), envelope.content)
            self.mails.append(mail)
            for address in set(mail.recipients):
                self._by_address.setdefault(address, []).append(mail)
            self._arrived.notify_all()
        if self.mode == "die after data":
            server.transport.close()
        return "250 OK"

    def to(self, address, kind=None):
        """The mails for one address, oldest first; those of one kind."""
        with self._arrived:
            return [mail for mail in self._by_address.get(address, ()) if kind in (None, mail.kind)]

    def wait(self, address, count=1, timeout=10.0, kind=None):
        """Waits until `count` mails (of a kind) for an address are here and returns the newest."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            while True:
                mine = [mail for mail in self._by_address.get(address, ()) if kind in (None, mail.kind)]
                if len(mine) >= count:
                    return mine[-1]
                left = deadline - time.monotonic()
                assert left > 0, f"{len(mine)} of {count} mails for {address} after {timeout} s"
                self._arrived.wait(left)
