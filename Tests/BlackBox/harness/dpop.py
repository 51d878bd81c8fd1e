"""Proofs of possession (RFC 9449): the key, the proof, and an app that sends one with each request."""

import hashlib
import json
import re
import secrets
import threading
import time

from . import jose, wire
from .app import NativeApp
from .jose import b64url
from .ledger import LEDGER
from .signing import ALGORITHMS, Key

INVALID = {"error": "invalid_dpop_proof", "error_description": "The DPoP proof is invalid."}
NONCE_DUE = {"error": "use_dpop_nonce", "error_description": "Use the nonce given in DPoP-Nonce."}
INVALID_TOKEN = {"error": "invalid_token", "error_description": "The access token is invalid."}
REFUSED_REFRESH = {"error": "invalid_grant", "error_description": "The refresh token is invalid."}
REFUSED_CODE = {"error": "invalid_grant", "error_description": "Invalid or expired code."}
_ALGS = " ".join(ALGORITHMS)
#: As Auth0.swift 3.1.0 reads a challenge; Auth0.Android 3.18.0 looks for `DPoP error` in the last field.
_AUTH0_SWIFT = re.compile(r'DPoP (?:.*?)error="([^"]+)"')


class ProofKey(Key):
    """A key that proofs are made with."""

    def public(self):
        """The JWK without a member that RFC 7638 does not count."""
        return {name: value for name, value in self.jwk().items() if name != "kid"}

    @property
    def thumbprint(self):
        """RFC 7638: base64url of SHA-256 of the required members, in the order of their names."""
        return b64url(hashlib.sha256(json.dumps(self.public(), sort_keys=True, separators=(",", ":")).encode()).digest())

    def header(self, **changes):
        """The header of a right proof, but for the changes; None leaves a member out."""
        return kept({"typ": "dpop+jwt", "alg": self.alg, "jwk": self.public(), **changes})

    def payload(self, method, url, nonce=None, token=None, now=None, **changes):
        """The payload of a right proof, but for the changes; None leaves a member out."""
        return kept({
            "jti": secrets.token_urlsafe(16), "htm": method, "htu": url, "iat": int(time.time() if now is None else now),
            "ath": None if token is None else token_hash(token), "nonce": nonce, **changes,
        })

    def proof(self, method, url, nonce=None, token=None, now=None, header=None, payload=None, **signing):
        """A right proof, but for the changes of header and payload; `signing`: see `Key.sign`."""
        changes = payload or {}
        members = self.payload(method, url, changes.get("nonce", nonce), token, now, **{name: value for name, value in changes.items() if name != "nonce"})
        return self.sign(self.header(**(header or {})), members, **signing)


def kept(members):
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def token_hash(token):
    """The claim `ath`."""
    return b64url(hashlib.sha256(token.encode()).digest())


class DPoPApp(NativeApp):
    """A client that proves possession of its key with each request, and sends access tokens in the scheme DPoP.

    A request whose headers have `DPoP` goes out with that: text, a list of texts for more than one field, or None for no field at all. Told
    once to use a nonce, it repeats the request with that nonce, and goes on using it; `obeys = False` switches that off.
    """

    def __init__(self, app, key=None, clock=time.time, obeys=True, recorded=True, origin=None):  # pylint: disable=too-many-arguments
        super().__init__(app.node, app.mailbox, app.host, app.client_id, app.secret)
        self.origin = origin or f"https://{app.host}"
        self.key = key or ProofKey()
        self.clock, self.obeys, self.recorded = clock, obeys, recorded
        self.nonce = None
        self.requests = 0
        self.challenges = 0

    def at(self, node):
        """The same client, key and nonce at another node."""
        made = self.with_key(self.key)
        made.node, made.nonce = node, self.nonce
        return made

    def with_key(self, key):
        """The same client with another key."""
        return DPoPApp(self, key, self.clock, self.obeys, self.recorded, self.origin)

    @property
    def plain(self):
        """The same client without proofs."""
        return NativeApp(self.node, self.mailbox, self.host, self.client_id, self.secret)

    def url(self, path):
        """What a proof names: without query."""
        return self.origin + path.partition("?")[0]

    def proof(self, method="POST", path="/connect/token", token=None, **changes):
        """A proof for a request; `changes` as of `ProofKey.proof`."""
        how = {"nonce": self.nonce, "now": self.clock(), **changes}
        proof = self.key.proof(method, self.url(path), token=token, **how)
        return LEDGER.add("dpop_proof", proof) if self.recorded else proof

    def exchange(self, method, path, headers=None, body=None, timeout=10.0):
        """Any request to this client's host, with a proof."""
        fields = dict(headers or {})
        scheme, _, token = (fields.get("Authorization") or "").partition(" ")
        if scheme == "Bearer":
            fields["Authorization"] = f"DPoP {token}"
        bound = token if scheme in ("Bearer", "DPoP") else None
        made = "DPoP" not in fields
        answer = self._once(method, path, {"DPoP": self.proof(method, path, bound), **fields} if made else fields, body, timeout)
        if made and self.obeys and (given := nonce_of(answer)) is not None:
            self.nonce = given
            if is_challenge(answer):
                self.challenges += 1
                answer = self._once(method, path, {**fields, "DPoP": self.proof(method, path, bound)}, body, timeout)
        return answer

    def _once(self, method, path, fields, body, timeout):
        self.requests += 1
        pairs = [("Host", fields.pop("Host", self.host))]
        for name, value in fields.items():
            pairs += [(name, one) for one in (value if isinstance(value, list) else [value])]
        return wire.exchange(self.node.port, method, path, pairs, body, timeout)

    # -- whole steps ----------------------------------------------------------------------------

    def bound(self, email, **more):
        """Signs in by code; the token answer, which is bound to the key."""
        tokens = self.sign_in(email, **more)
        assert tokens["token_type"] == "DPoP", tokens
        return tokens


# -- what is answered -------------------------------------------------------------------------------

_SEEN, _LOCK = set(), threading.Lock()


def fields_of(answer, name):
    """The values of all fields of a name."""
    return [value for field, value in answer.headers if field.lower() == name.lower()]


def is_challenge(answer):
    """Whether an answer asks for a nonce."""
    if answer.status not in (400, 401) or not (answer.header("content-type") or "").startswith("application/json"):
        return False
    return answer.json().get("error") == "use_dpop_nonce"


def nonce_of(answer):
    """The nonce that an answer gives, or None: at most one field, at most 64 characters, never a value twice."""
    given = fields_of(answer, "DPoP-Nonce")
    assert len(given) <= 1, answer
    if not given:
        return None
    assert re.fullmatch(r"[A-Za-z0-9_-]{16,64}", given[0]), answer
    with _LOCK:
        assert given[0] not in _SEEN, f"nonce given twice: {given[0]}"
        _SEEN.add(given[0])
    return LEDGER.add("dpop_nonce", given[0])


def assert_error(answer, status, document, scheme=None):
    """An OAuth error; with a scheme also as a challenge in one field."""
    assert (answer.status, answer.json()) == (status, document), answer
    assert answer.header("content-type").startswith("application/json"), answer
    assert "no-store" in answer.header("cache-control") and answer.header("set-cookie") is None, answer
    challenges = fields_of(answer, "WWW-Authenticate")
    if scheme is None:
        assert not challenges, answer
    else:
        expected = f'DPoP error="{document["error"]}", error_description="{document["error_description"]}", algs="{_ALGS}"'
        assert challenges == [expected], answer
        assert expected.isascii() and _AUTH0_SWIFT.match(challenges[-1]).group(1) == document["error"]


def assert_no_nonce(answer):
    """Where none is due there is none."""
    assert fields_of(answer, "DPoP-Nonce") == [], answer


def assert_invalid(answer, protected=False):
    """The one answer to everything that is wrong with a proof but its time."""
    assert_error(answer, 401 if protected else 400, INVALID, "DPoP" if protected else None)
    assert_no_nonce(answer)


def assert_nonce_due(answer, protected=False):
    """The answer that gives a nonce; returns it."""
    assert_error(answer, 401 if protected else 400, NONCE_DUE, "DPoP" if protected else None)
    nonce = nonce_of(answer)
    assert nonce is not None, answer
    return nonce


def assert_token_refused(answer):
    """The answer to a token that does not open a protected endpoint to this request."""
    assert_error(answer, 401, INVALID_TOKEN, "DPoP")
    assert_no_nonce(answer)


def assert_bound(answer, key):
    """A token answer bound to a key, as its kind of token allows to see; returns the document."""
    assert answer.status == 200, answer
    document = answer.json()
    assert document["token_type"] == "DPoP", document
    if document["access_token"].count(".") == 2:
        claims = jose.parts(document["access_token"])[1]
        assert claims["cnf"] == {"jkt": key.thumbprint}, claims
    return document
