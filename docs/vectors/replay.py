#!/usr/bin/env python3
"""Serves one flow of exchanges.json on loopback and compares every request with its step.

    replay.py --list               the names of the flows
    replay.py FLOW [--port N]      exits 0 after the last step, 1 with the difference, or when nothing comes for 30 s

Python 3.9 or newer, without any package. The first line of the output says where it listens.
"""

import argparse
import base64
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse


class Difference(Exception):
    """A request is not what its step says."""


class Absent:
    """What is not there."""

    def __repr__(self):
        return "nothing"


ABSENT = Absent()


def check(condition, where, value, expected):
    """Or says what differs."""
    if not condition:
        raise Difference(f"{where}: {value!r} instead of {expected!r}")


def compare(expected, value, where, bound):
    """A value with what is expected in its place."""
    if isinstance(expected, dict) and "$" in expected:
        special(expected, value, where, bound)
    elif isinstance(expected, dict):
        check(isinstance(value, dict), where, value, expected)
        for name in {**expected, **value}:
            compare(expected.get(name, {"$": "absent"}), value.get(name, ABSENT), f"{where}.{name}", bound)
    elif isinstance(expected, list):
        check(isinstance(value, list) and len(value) == len(expected), where, value, expected)
        for number, (one, other) in enumerate(zip(expected, value)):
            compare(one, other, f"{where}[{number}]", bound)
    else:
        check(type(value) is type(expected) and value == expected, where, value, expected)


def special(expected, value, where, bound):
    """What may stand in place of a value."""
    kind = expected["$"]
    if kind == "any":
        return
    if kind == "absent":
        check(value is ABSENT, where, value, "nothing")
    elif kind == "number":
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        check(is_number and expected["min"] <= value <= expected["max"], where, value, expected)
    elif kind == "use":
        check(value == bound[expected["name"]], where, value, bound[expected["name"]])
    else:
        check(isinstance(value, str), where, value, expected)
        if kind == "match":
            check(re.fullmatch(expected["pattern"], value), where, value, expected["pattern"])
        elif kind == "bind":
            bound[expected["name"]] = value


def base64url(data):
    """Without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def filled(value, bound):
    """An answer's value: what was bound, texts put together, and JWTs, whose signature is none."""
    if isinstance(value, list):
        return [filled(part, bound) for part in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("$")
    if kind == "use":
        return bound[value["name"]]
    if kind == "join":
        return "".join(filled(part, bound) for part in value["of"])
    if kind == "jwt":
        parts = ({"alg": "ES256", "kid": "vector-kid"}, filled(value["claims"], bound))
        return ".".join([*(base64url(json.dumps(part).encode()) for part in parts), base64url(b"a vector's signature")])
    return {name: filled(part, bound) for name, part in value.items()}


def proof_of(headers):
    """The payload of the proof of possession, or nothing."""
    fields = headers.get_all("DPoP") or []
    if not fields:
        return ABSENT
    try:
        part = fields[0].split(".")[1]
        return {"fields": len(fields), **json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))}
    except (IndexError, ValueError):
        return {"fields": len(fields)}


class Flow:
    """The steps of a flow, one after another."""

    def __init__(self, flow, origin):
        self.steps, self.origin, self.at, self.bound = flow["steps"], origin, 0, {"origin": origin}
        self.failure, self.over, self.last = None, threading.Event(), time.monotonic()

    def request(self, method, target, headers, body):
        """The answer of the next step, if the request is the step's."""
        self.last = time.monotonic()
        number = self.at + 1
        try:
            if self.at == len(self.steps):
                raise Difference(f"a request too many: {method} {target}")
            step = self.steps[self.at]
            self.at += 1
            self.compare(step["request"], method, target, headers, body)
        except Difference as difference:
            self.failure = self.failure or f"step {number}: {difference}"
            return {"status": 400, "json": {"error": "replay", "error_description": self.failure}}
        return filled(step["answer"], self.bound)

    def answered(self):
        """An answer has left: the program may end after the last one, and not before."""
        if self.failure or self.at == len(self.steps):
            self.over.set()

    def compare(self, expected, method, target, headers, body):
        """One request."""
        path, _, query = target.partition("?")
        check((method, path) == (expected["method"], expected["path"]), "request", f"{method} {path}", f"{expected['method']} {expected['path']}")
        compare(expected.get("query", {}), fields(query), "query", self.bound)
        for name, value in expected.get("headers", {}).items():
            compare(value, headers.get(name, ABSENT), name, self.bound)
        kind = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if "form" in expected:
            check(kind == "application/x-www-form-urlencoded", "Content-Type", kind, "a form")
            compare(expected["form"], fields(body.decode()), "form", self.bound)
        elif "json" in expected:
            check(kind == "application/json", "Content-Type", kind, "JSON")
            try:
                document = json.loads(body or b"null")
            except ValueError:
                document = ABSENT
            compare(expected["json"], document, "json", self.bound)
        proof = proof_of(headers)
        if "proof" not in expected:
            check(proof is ABSENT, "DPoP", proof, "nothing")
            return
        scheme, _, token = (headers.get("Authorization") or "").partition(" ")
        ath = base64url(hashlib.sha256(token.encode()).digest()) if scheme == "DPoP" else {"$": "absent"}
        right = {"fields": 1, "htm": method, "htu": self.origin + path, "ath": ath, "jti": {"$": "string"}, "nonce": {"$": "absent"}}
        compare({**right, "iat": {"$": "any"}, **expected["proof"]}, proof, "DPoP", self.bound)


def fields(text):
    """A form or query; what is repeated is a list."""
    found = {}
    for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def handler(flow):
    """What serves it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"

        def answer(self):
            """Any method."""
            try:
                self.send()
            finally:
                flow.answered()

        def send(self):
            """The answer of a step."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = flow.request(self.command, self.path, self.headers, body)
            data = json.dumps(answer["json"]).encode() if "json" in answer else answer.get("text", "").encode()
            self.send_response(answer["status"])
            headers = {**({"Content-Type": "application/json; charset=utf-8"} if "json" in answer else {}), **answer.get("headers", {})}
            for name, value in headers.items():
                for one in value if isinstance(value, list) else [value]:
                    self.send_header(name, one)
            if answer["status"] != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data if answer["status"] != 204 else b"")

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

        def log_message(self, *_):
            """Quiet."""

    return Handler


def main():
    """The program; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flow", nargs="?")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--wait", type=float, default=30, help="seconds without a request that end it")
    parser.add_argument("--linger", type=float, default=0.3, help="seconds after the last step in which a request is one too many")
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path(__file__).parent / "exchanges.json")
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    flows = {case["name"]: case for case in json.loads(text)["cases"]}
    if options.list or options.flow not in flows:
        print("\n".join(flows))
        return 0 if options.list else 64
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), None)
    origin = f"http://localhost:{server.server_port}"
    recorded = json.loads(text)["origin"]
    flow = Flow(json.loads(json.dumps(flows[options.flow]).replace(recorded, origin)), origin)
    server.RequestHandlerClass = handler(flow)
    print(f"listening on {origin}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while not flow.over.wait(0.05) and time.monotonic() - flow.last < options.wait:
        pass
    if not flow.over.is_set():
        flow.failure = f"step {flow.at + 1} of {len(flow.steps)}: no request for {options.wait:.0f} s"
    elif flow.failure is None:
        time.sleep(options.linger)
    if flow.failure:
        print(flow.failure, file=sys.stderr)
    server.shutdown()
    return 1 if flow.failure else 0


if __name__ == "__main__":
    sys.exit(main())
