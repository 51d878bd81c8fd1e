"""What passes between a client and a server, as steps of a flow: what is new in every run has a name in its place."""

import base64
import http.client
import http.server
import json
import re
import threading
import urllib.parse

#: A time in place of all others.
EPOCH = 1_767_225_600
#: Fields of a client's request and of an answer that a step has.
FIELDS = ("DPoP-Nonce", "WWW-Authenticate", "Retry-After", "Location")
_RANDOM = re.compile(r"(?=.*[0-9A-Z])[A-Za-z0-9_.~+/=-]{20,}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
#: Short values that are new in every run.
_SHORT = {"MatchNumber": "42", "match_number": "42", "matchNumber": "42", "CheckCode": "4711"}
#: Others, which have names.
_ALWAYS = {"recoveryCodes", "secret"}
#: What is left of a time, which may have begun to run.
_SECONDS = {"ExpiresIn", "expires_in", "expiresIn", "resendAfter", "retryAfterSeconds"}
#: What an authenticator reads as base64url.
_BYTES = {"challenge", "id in user"}


class Recorder:
    """A proxy before a node, on a port of its own. `exchanges` has what passed, in order of the answers."""

    def __init__(self, port):
        recorder, self.exchanges = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"

            def pass_on(self):
                """Any method."""
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                onward = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
                onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    onward.putheader(name, value)
                onward.endheaders(body or None)
                answer = onward.getresponse()
                data = answer.read()
                recorder.exchanges.append((self.command, self.path, self.headers, body, answer.status, answer.headers, data))
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                onward.close()

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = pass_on

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """Takes no more."""
        self._server.shutdown()
        self._server.server_close()


def payload(token):
    """Of a compact JWS; None if it is none."""
    try:
        part = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return None


class Names:
    """Names for what is new in every run, in the order in which it comes."""

    def __init__(self, given):
        """`given`: texts with their names, such as those of the person."""
        self._names, self._counts = dict(given), {}

    def name(self, kind, text):
        """The name of a text of the server."""
        if text not in self._names:
            kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower().replace("_", "-").replace(" in ", "-of-")
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            made = f"vector-{kind}-{number}"
            self._names[text] = base64.urlsafe_b64encode(made.encode()).rstrip(b"=").decode() if kind in ("challenge", "id-of-user") else made
        return self._names[text]

    def stands(self, text, name):
        """Has this stand for a text."""
        self._names[text] = name

    def known(self, text):
        """A text with the names in it."""
        if text in self._names:
            return self._names[text]
        for value in sorted(self._names, key=len, reverse=True):
            if len(value) > 7 and isinstance(self._names[value], str):
                text = text.replace(value, self._names[value])
        # The label of an authenticator app has the address of a person of this run.
        return re.sub(r"(?<=Vectors:)[a-z0-9.]+(?=%40mail\.example)", "alice", text)

    # -- answers: what they have is given out --------------------------------------------------

    def answer(self, value, member="", within=""):
        """A value of an answer."""
        if isinstance(value, dict):
            return {name: self.answer(part, name, member) for name, part in value.items()}
        if isinstance(value, list):
            return [self.answer(part, member, within) for part in value]
        if member in _ALWAYS:
            return self.name(member, value)
        if not isinstance(value, str):
            return -(-value // 30) * 30 if member in _SECONDS else value
        if member == "id_token":
            return {"$": "jwt", "claims": self.claims(payload(value))}
        if member in _SHORT:
            self._names[value] = _SHORT[member]
            return _SHORT[member]
        kind = f"{member} in {within}" if f"{member} in {within}" in _BYTES else member
        if _TIME.fullmatch(value):
            return "2026-01-01T00:00:00Z"
        if _UUID.fullmatch(value) or (_RANDOM.fullmatch(value) and value not in self._names and self.known(value) == value):
            return self.name(kind, value)
        return self.known(value)

    def claims(self, claims):
        """Of an ID token."""
        times = {"iat": EPOCH, "auth_time": EPOCH, "exp": EPOCH + claims["exp"] - claims["iat"]}
        return {name: times.get(name, self.answer(value, name)) for name, value in claims.items() if name not in ("at_hash", "jti")}

    # -- requests: what they have was given out, or is the client's own -------------------------

    def request(self, value, member=""):
        """A value of a request."""
        if isinstance(value, dict):
            return {"$": "any"} if member == "attestation" else {name: self.request(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.request(part, member) for part in value]
        if not isinstance(value, str):
            return value
        known = self.known(value)
        is_new = known == value and (payload(value) is not None or _RANDOM.fullmatch(value))
        return {"$": "string"} if is_new or member in ("assertion", "code_verifier") else known


def fields(text):
    """A form or query."""
    return dict(urllib.parse.parse_qsl(text, keep_blank_values=True))


def browsed(names, target, back):
    """The step of a browser: it brings what the app made for this sign-in, and is sent back with a code."""
    path, _, query = target.partition("?")
    asked, answered = fields(query), fields(urllib.parse.urlsplit(back).query)
    own = {name: {"$": "bind", "name": name} for name in ("state", "nonce")}
    own.update({name: {"$": "string"} for name in ("code_challenge", "dpop_jkt") if name in asked})
    for name in ("state", "nonce"):
        names.stands(asked[name], {"$": "use", "name": name})
    names.stands(answered["code"], "vector-code-1")
    location = [back.partition("?")[0] + "?code=vector-code-1&state=", {"$": "use", "name": "state"}, "&iss=", {"$": "use", "name": "origin"}]
    return {
        "request": {"method": "GET", "path": path, "query": {name: own.get(name, names.known(value)) for name, value in asked.items()}},
        "answer": {"status": 303, "headers": {"Location": {"$": "join", "of": location}}},
    }


def steps(exchanges, given, page=None):
    """The steps of a flow. `page`: what a browser asked for, and where it was sent in the end."""
    names, made = Names(given), []
    for exchange in exchanges:
        if page and exchange[1] == "/connect/token":
            made.append(browsed(names, *page))
            page = None
        made.append(step(names, *exchange))
    return made


def step(names, method, target, headers, body, status, answered, data):
    """One request and its answer."""
    path, _, query = target.partition("?")
    request = {"method": method, "path": names.known(path)}
    if query:
        request["query"] = names.request(fields(query))
    if authorization := headers.get("Authorization"):
        request["headers"] = {"Authorization": names.known(authorization)}
    if proof := headers.get("DPoP"):
        nonce = payload(proof).get("nonce")
        request["proof"] = {"nonce": names.known(nonce)} if nonce else {}
    kind = (headers.get("Content-Type") or "").partition(";")[0]
    if kind == "application/json":
        request["json"] = names.request(json.loads(body))
    elif body:
        request["form"] = names.request(fields(body.decode()))
    answer = {"status": status}
    given_out = {name: answered[name] for name in FIELDS if answered[name]}
    if nonce := given_out.get("DPoP-Nonce"):
        given_out["DPoP-Nonce"] = names.name("nonce", nonce)
    if given_out:
        answer["headers"] = {name: names.known(value) for name, value in given_out.items()}
    if data:
        answer["json"] = names.answer(json.loads(data))
    return {"request": request, "answer": answer}
