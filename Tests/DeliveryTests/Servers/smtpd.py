"""A well-behaved SMTP server (aiosmtpd) that reports what it gets as JSON lines on stdout.

Options: --starttls offers it, --require-starttls insists, --tls speaks TLS from the first byte,
--auth USER:PASSWORD requires AUTH, --smtputf8 knows that extension, --rcpt CODE answers the first --times
RCPT commands with CODE.
"""
import argparse
import asyncio
import base64
import json
import os
import ssl
import sys

os.closerange(3, 256)  # what other children of the test talk through

from aiosmtpd.smtp import SMTP, AuthResult

parser = argparse.ArgumentParser()
parser.add_argument("--cert")
parser.add_argument("--key")
parser.add_argument("--starttls", action="store_true")
parser.add_argument("--require-starttls", action="store_true")
parser.add_argument("--tls", action="store_true")
parser.add_argument("--auth")
parser.add_argument("--smtputf8", action="store_true")
parser.add_argument("--rcpt")
parser.add_argument("--times", type=int, default=10**9)
options = parser.parse_args()


def report(event, **members):
    print(json.dumps({"event": event, **members}), flush=True)


class Handler:
    refused = 0
    connections = 0

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if options.rcpt and Handler.refused < options.times:
            Handler.refused += 1
            return f"{options.rcpt} not now, {address}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        report(
            "mail",
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            content=base64.b64encode(envelope.original_content).decode(),
            tls=session.ssl is not None or options.tls,
            connection=server.number,
        )
        return "250 taken"


class Server(SMTP):
    def connection_made(self, transport):
        if self.transport is None:
            Handler.connections += 1
            self.number = Handler.connections
        super().connection_made(transport)


def authenticate(server, session, envelope, mechanism, data):
    given = f"{data.login.decode()}:{data.password.decode()}"
    report("auth", mechanism=mechanism, ok=given == options.auth)
    return AuthResult(success=given == options.auth, handled=False)


async def main():
    context = None
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)

    def build():
        return Server(
            Handler(),
            hostname="mx.test",
            enable_SMTPUTF8=options.smtputf8,
            tls_context=context if options.starttls else None,
            require_starttls=options.require_starttls,
            authenticator=authenticate if options.auth else None,
            auth_required=bool(options.auth),
            auth_require_tls=options.starttls,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(build, "127.0.0.1", 0, ssl=context if options.tls else None)
    report("ready", port=server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)  # until the test goes away


import warnings, logging

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
asyncio.run(main())
