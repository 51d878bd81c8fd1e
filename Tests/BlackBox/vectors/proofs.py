"""proofs.json: proofs to make, and proofs with what the server says to each, and at which step of its checks."""

from harness.dpop import token_hash
from harness.dpop_cases import CASES, ORDER
from harness.jose import b64url

from .keys import VectorKey
from .urls import ORIGIN

#: 2027-01-15T08:00:00Z. Every judged proof is presented at this time.
NOW = 1_800_000_000
TOKEN, NONCE = "vector-access-token-1", "vector-nonce-1"
TOKEN_ENDPOINT, USERINFO = ("POST", f"{ORIGIN}/connect/token"), ("GET", f"{ORIGIN}/connect/userinfo")
KEYS = {key.name: key for key in (VectorKey("vector-key-1"), VectorKey("vector-key-2"), VectorKey("vector-key-3", "EdDSA"))}
KEY = KEYS["vector-key-1"]

#: The step at which the server refuses the proofs of `harness/dpop_cases.py`, by their names; 0: it accepts them.
STEPS = {
    1: ("two fields, both right", "the same field twice", "a right field and an empty one", "two proofs in one field", "a comma behind"),
    2: ("empty", "null", "one part", "two parts", "four parts", "padded header", "padded payload", "padded signature",
        "base64 instead of base64url in the payload", "trailing bits of the header", "header: no JSON", "payload: an array",
        "something behind the header's object", "alg twice, equal", "jti twice", "htu twice", "jti twice, once escaped", "4097 bytes"),
    3: ("typ None", "typ 'jwt'", "typ 'application/dpop+jwt'", "crit with b64", "crit, empty", "b64 without crit"),
    4: ("alg 'none'", "alg 'ES384'", "alg 'es256'", "alg None", "alg none without a signature", "HS256 with the public key"),
    5: ("EdDSA with a key of P-256", "key absent", "key symmetric", "key with d", "the private key itself", "x of 33 bytes", "x as a number",
        "x padded", "y missing", "crv missing", "a point beside the curve", "the point (0, 0)", "crv p-256", "jwk.alg other than alg",
        "jwk.use enc"),
    6: ("jti 'None', 4 long", "jti '', 0 long", "jti '7', 1 long", "jti 'xxxxxxxx', 257 long", "jti null", "htm None", "htm 7", "htu: a number",
        "htu: absent", "iat a string", "iat null", "iat absent", "exp a string"),
    7: ("signature: empty", "signature: both zero", "signature: r and s exchanged", "signature: in DER", "signature: 65 bytes"),
    8: ("htm 'post'", "htm 'PUT'", "htm ''", "the other method"),
    9: ("htu: another path", "htu: a slash behind", "htu: another host", "htu: http", "htu: another port", "htu: the origin alone",
        "htu: a path alone", "htu: empty"),
    12: ("iat -600 s", "iat +600 s"),
    0: ("typ in upper case", "4096 bytes", "jti of 256 bytes", "htu: query and fragment", "htu: an empty query",
        "htu: upper case of scheme and host, default port", "htu: an unreserved letter encoded", "htu: dot segments", "iat with a fraction",
        "a wrong ath where no token is", "fifty unknown claims"),
}
#: Proofs to be made: name, method, URL, access token, nonce, time.
MADE = [
    ("a token request", *TOKEN_ENDPOINT, None, None, NOW), ("a token request with a nonce", *TOKEN_ENDPOINT, None, NONCE, NOW),
    ("an hour later", *TOKEN_ENDPOINT, None, None, NOW + 3600), ("userinfo with its token", *USERINFO, TOKEN, None, NOW),
    ("userinfo with token and nonce", *USERINFO, TOKEN, NONCE, NOW),
    ("DELETE with a query", "DELETE", f"{ORIGIN}/connect/sessions?current=true", TOKEN, None, NOW),
    ("PATCH with a path of an id", "PATCH", f"{ORIGIN}/connect/passkey/6f9619ff-8b86-d011-b42d-00c04fc964ff", TOKEN, None, NOW),
    ("an API with a port", "GET", "https://api.example:8443/orders", TOKEN, None, NOW),
    ("an API with query and fragment", "GET", "https://api.example/orders?from=2027-01-01&to=%C3%A4#top", TOKEN, None, NOW),
    ("an API with an escape in its path", "PUT", "https://api.example/files/a%20b", TOKEN, None, NOW),
    ("a host of loopback", "GET", "http://localhost:8080/connect/userinfo", TOKEN, None, NOW),
    ("a token with every character that tokens may have", "GET", "https://api.example/", "aZ09-._~+/==", None, NOW),
    ("a device that is ten minutes late", *TOKEN_ENDPOINT, None, None, NOW - 600),
]


class Maker:
    """Makes proofs as `harness/dpop_places.py` does, but the same bytes each time: `jti` is made from the name of the case."""

    def __init__(self, name, method=TOKEN_ENDPOINT[0], url=TOKEN_ENDPOINT[1], token=None, key=KEY):
        self.name, self.method, self.url, self.token, self.key, self.now = name, method, url, token, key, NOW

    def __call__(self, key=None, header=None, payload=None, **signing):
        key = key or self.key
        return key.sign(key.header(**(header or {})), self.payload(**(payload or {})), **signing)

    def header(self, **changes):
        """The header of a right proof."""
        return self.key.header(**changes)

    def payload(self, **changes):
        """The payload of a right proof."""
        jti = "vector-jti-" + b64url(self.name.encode())
        return self.key.payload(self.method, self.url, **{"token": self.token, "now": self.now, "jti": jti, **changes})

    def signed(self, header, payload, **how):
        """A proof of a header and a payload as they are."""
        return self.key.sign(header, payload, **how)


class Judged:
    """A case with what makes its proof: again, with another token, for a server that never gave out the vectors' one."""

    def __init__(self, name, make, step, request=TOKEN_ENDPOINT, token=None, key=KEY, after=None):  # pylint: disable=too-many-arguments
        self.name, self.make, self.step, self.request, self.token, self.key, self.after = name, make, step, request, token, key, after

    @property
    def answer(self):
        """What the server says."""
        return {0: "accept", 11: "use_dpop_nonce", 12: "use_dpop_nonce"}.get(self.step, "invalid_dpop_proof")

    def fields(self, token=None):
        """The values of the fields `DPoP`; for another access token than the vectors' one."""
        made = self.make(Maker(self.after or self.name, *self.request, token or self.token, self.key))
        return made if isinstance(made, list) else [made]

    def document(self):
        """The case."""
        method, url = self.request
        return {"name": self.name, "do": "judge", "key": self.key.name, "method": method, "url": url, "token": self.token, "time": NOW,
                "fields": self.fields(), **({"after": self.after} if self.after else {}), "answer": self.answer, "step": self.step or None}


def judged():
    """All judged cases, in order."""
    found = {case.name: case for case in CASES}
    cases = [Judged("right", lambda p: p(), 0)]
    cases += [Judged(name, found[name].make, step) for step, names in STEPS.items() for name in names]
    with_token = {"request": USERINFO, "token": TOKEN}
    return cases + [
        Judged("right, at userinfo", lambda p: p(), 0, **with_token),
        Judged("another right key", lambda p: p(), 0, key=KEYS["vector-key-2"]),
        Judged("right, of Ed25519", lambda p: p(), 0, key=KEYS["vector-key-3"]),
        Judged("signed by another key", lambda p: KEYS["vector-key-2"].sign(p.header(), p.payload()), 7),
        Judged("another key put in after signing", lambda p: ".".join([p(KEYS["vector-key-2"]).split(".")[0], *p().split(".")[1:]]), 7),
        Judged("ath absent", lambda p: p(payload={"ath": None}), 10, **with_token),
        Judged("ath of another token", lambda p: p(payload={"ath": token_hash("vector-access-token-2")}), 10, **with_token),
        Judged("ath padded", lambda p: p(payload={"ath": token_hash(p.token) + "="}), 10, **with_token),
        Judged("ath of scheme and token", lambda p: p(payload={"ath": token_hash("DPoP " + p.token)}), 10, **with_token),
        Judged("a nonce that the server did not give out", lambda p: p(payload={"nonce": NONCE}), 11),
        Judged("exp 90 s ago", lambda p: p(payload={"exp": NOW - 90}), 6), Judged("nbf 90 s ahead", lambda p: p(payload={"nbf": NOW + 90}), 6),
        Judged("exp and nbf within half a minute", lambda p: p(payload={"exp": NOW - 30, "nbf": NOW + 30}), 0),
        Judged("90 s late", lambda p: p(payload={"iat": NOW - 90}), 12), Judged("90 s early", lambda p: p(payload={"iat": NOW + 90}), 12),
        Judged("40 s late", lambda p: p(payload={"iat": NOW - 40}), 0), Judged("40 s early", lambda p: p(payload={"iat": NOW + 40}), 0),
        Judged("the bytes of a used proof", lambda p: p(), 13, after="right"),
        Judged("the other form of a used proof's signature", _other_form, 13, after="right"),
        Judged("another proof with a used jti", lambda p: p(payload={"iat": NOW + 1}), 13, after="right"),
    ]


def _other_form(p):
    """(r, n − s) is a signature of the same text."""
    return p(spoil=lambda raw: raw[:32] + (ORDER - int.from_bytes(raw[32:], "big")).to_bytes(32, "big"))


def _make(name, method, url, token, nonce, time):  # pylint: disable=too-many-arguments
    maker = Maker(name, method, url.partition("#")[0].partition("?")[0], token)
    payload = maker.payload(**({"nonce": nonce} if nonce else {}), iat=time)
    return {"name": name, "do": "make", "key": KEY.name, "method": method, "url": url, "token": token, "nonce": nonce, "time": time,
            "expect": {"htu": payload["htu"], "ath": payload.get("ath"), "header": maker.header(), "payload": payload,
                       "proof": maker.signed(maker.header(), payload)}}


def document():
    """The file."""
    keys = {name: {"alg": key.alg, "private": key.private_jwk(), "public": key.public(), "thumbprint": key.thumbprint} for name, key in KEYS.items()}
    return {"keys": keys, "cases": [*(_make(*made) for made in MADE), *(case.document() for case in judged())]}
