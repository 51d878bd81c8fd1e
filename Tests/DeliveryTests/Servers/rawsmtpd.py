"""An SMTP server that misbehaves on purpose. Reports every line it reads as a JSON line on stdout.

Modes: hang-greeting, trickle, refuse-greeting, hang-after-data, drop-after-data, drop-in-data, no-starttls,
starttls-fails, hang-at-quit, close-after-mail, stall-after-mail (four seconds later closes a connection that was used, and never greets the next, of which it says how long it lasted), bye-after-mail, reject-data (554 after the message), mail-5xx, refuse-example (as that, of senders at refused.example alone). Any other name: it behaves.
"""
import asyncio
import json
import os
import sys
import time

os.closerange(3, 256)  # what other children of the test talk through
mode = sys.argv[1]
connections = 0


def report(event, **members):
    print(json.dumps({"event": event, **members}), flush=True)


async def serve(reader, writer):
    global connections
    connections += 1
    number = connections
    mails = 0
    report("connection", connection=number)

    async def say(text):
        writer.write(text.encode() + b"\r\n")
        await writer.drain()

    async def line():
        data = await reader.readline()
        if not data:
            raise ConnectionError
        text = data.decode("latin-1").rstrip("\r\n")
        report("line", text=text, connection=number)
        return text

    try:
        if mode == "hang-greeting":
            await reader.read()
            return
        if mode == "trickle":
            while True:
                writer.write(b"2")
                await writer.drain()
                await asyncio.sleep(0.3)
        if mode == "stall-after-mail" and connections > 1:
            began = time.monotonic()
            await reader.read()
            report("gone", connection=number, seconds=time.monotonic() - began)
            return
        if mode == "refuse-greeting":
            await say("554 go away")
            return
        await say("220 mx.test ESMTP")
        while True:
            text = await line()
            verb = text.split(" ")[0].upper()
            if verb == "EHLO":
                if mode == "starttls-fails":
                    await say("250-mx.test\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN")
                else:
                    await say("250-mx.test\r\n250-SIZE 1000000\r\n250 AUTH PLAIN LOGIN")
            elif verb == "STARTTLS":
                await say("454 not available")
            elif verb == "AUTH":
                await say("235 come in")
            elif verb == "MAIL" and (mode == "mail-5xx" or mode == "refuse-example" and "@refused.example>" in text):
                await say("550 you may not send")
            elif verb == "MAIL" and mails and mode == "bye-after-mail":
                await say("421 too many mails on this connection")
                return
            elif verb == "MAIL" and mails and mode == "stall-after-mail":
                await asyncio.sleep(4)
                return
            elif verb in ("MAIL", "RCPT", "RSET", "NOOP"):
                await say("250 ok")
            elif verb == "DATA":
                await say("354 go on")
                if mode == "drop-in-data":
                    return
                while await line() != ".":
                    pass
                report("message", connection=number)
                if mode == "drop-after-data":
                    return
                if mode == "hang-after-data":
                    await reader.read()
                    return
                if mode == "reject-data":
                    await say("554 no spam")
                    continue
                await say("250 taken")
                mails += 1
                if mode == "close-after-mail":
                    return
            elif verb == "QUIT":
                if mode == "hang-at-quit":
                    await reader.read()
                    return
                await say("221 bye")
                return
            else:
                await say("500 what?")
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        report("closed", connection=number)
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    report("ready", port=server.sockets[0].getsockname()[1])
    # A test that waits for what does not come fails instead of waiting for ever.
    asyncio.get_running_loop().call_later(240, os._exit, 1)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the test goes away


asyncio.run(main())
