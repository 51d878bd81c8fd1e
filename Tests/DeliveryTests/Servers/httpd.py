"""An HTTP server whose answers the path chooses. Reports every request as a JSON line on stdout.

httpd.py [CERTIFICATE KEY]. Paths: /STATUS answers with it; /a.b.c answers the first request with a, the second with b,
every later one with c. Words in place of a status: big (201 and 1 MiB), retry (429, Retry-After: 7), redirect (301 to
/200), close (no answer), hang, drip (headers, then 1 byte a second), trickle (1 byte of the status line a second),
garbage (no HTTP), allow, deny, text ("allow": "yes"), late (allow after 2 s), open (202, and the connection stays), shut (as
if, but it is closed).
"""
import asyncio
import json
import os
import ssl
import sys

os.closerange(3, 256)  # what other children of the test talk through
asked = {}


def report(event, **members):
    print(json.dumps({"event": event, **members}), flush=True)


def answer(status, body, *headers):
    head = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(head).encode() + body


async def serve(reader, writer):
    report("accepted")
    while await respond(reader, writer):
        pass


async def respond(reader, writer):
    """One request. Returns whether there may be another on the connection."""
    stays = False
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path = head[0].split(" ")[:2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        report("request", method=method, path=path, headers=headers, text=body.decode())
        words = path.split("?")[0].strip("/").split("/")[-1].split(".")
        number = asked[path] = asked.get(path, -1) + 1
        word = words[min(number, len(words) - 1)]
        if word == "hang":
            await reader.read()
        elif word == "drip":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(1)
        elif word == "trickle":
            for byte in b"HTTP/1.1 200 OK\r\n":
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(1)
        elif word == "garbage":
            writer.write(b"\x00\x01\x02 hello\r\n\r\n")
        elif word == "big":
            writer.write(answer(201, b'{"sid":"' + b"x" * (1 << 20) + b'"}'))
        elif word == "retry":
            writer.write(answer(429, b"{}", "Retry-After: 7"))
        elif word == "redirect":
            writer.write(answer(301, b"", "Location: /200"))
        elif word in ("allow", "late"):
            if word == "late":
                await asyncio.sleep(2)
            writer.write(answer(200, b'{"allow":true}'))
        elif word in ("open", "shut"):
            stays = word == "open"
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        elif word == "deny":
            writer.write(answer(200, b'{"allow":false}'))
        elif word == "text":
            writer.write(answer(200, b'{"allow":"yes"}'))
        elif word != "close":
            writer.write(answer(int(word), b'{"sid":"SM1234","id":7}' if word != "204" else b""))
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        report("broken")
    finally:
        if not stays:
            writer.close()
    return stays


async def main():
    context = None
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    report("ready", port=server.sockets[0].getsockname()[1])
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
