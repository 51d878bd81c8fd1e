"""Proofs, each right but for one thing: a name, a function that makes the values of the `DPoP` fields, and whether they are accepted."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Callable, Optional

from cryptography.hazmat.primitives.asymmetric import ec, utils

from .dpop import ProofKey, token_hash
from .jose import b64url, unb64url
from .raw_rsa import RawRSA

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass
class Case:
    """`verdict`: `accepted`, `invalid`, `nonce due`, or `refused` (either of both). `make` takes a `Maker` and returns one value or a list.

    `key` makes the key of the case; without it the key of the place counts. `where`: the places it is for, None for all.
    """

    name: str
    make: Callable
    verdict: str = "invalid"
    key: Optional[Callable] = None
    where: Optional[tuple] = None


CASES = []
TOKEN_ENDPOINT = ("code", "refresh")


def case(name, make, verdict="invalid", **more):
    """One more."""
    CASES.append(Case(name, make, verdict, **more))


def _flipped(text, part):
    """One bit of the bytes of one part."""
    parts = text.split(".")
    raw = bytearray(unb64url(parts[part]))
    raw[len(raw) // 2] ^= 1
    parts[part] = b64url(bytes(raw))
    return ".".join(parts)


def _over(key, header, payload):
    """A signature over two parts that are encoded already."""
    return f"{header}.{payload}.{b64url(key.signature(f'{header}.{payload}'.encode()))}"


def _text(document):
    return json.dumps(document, separators=(",", ":"))


# -- the field, and its form ---------------------------------------------------------------------------

for _alg in ("ES256", "EdDSA", "PS256", "RS256"):
    case(f"right {_alg}", lambda p: p(), "accepted", key=lambda alg=_alg: ProofKey(alg))
case("two fields, both right", lambda p: [p(), p()])
case("the same field twice", lambda p: [p()] * 2)
case("a right field and an empty one", lambda p: [p(), ""])
case("two proofs in one field", lambda p: f"{p()}, {p()}")
case("a comma behind", lambda p: p() + ",")
case("a comma before", lambda p: "," + p())
case("empty", lambda p: "")
case("one space", lambda p: " ")
case("null", lambda p: "null")
case("the word Bearer before", lambda p: "Bearer " + p())
case("quoted", lambda p: f'"{p()}"')
case("one part", lambda p: p().split(".")[0])
case("two parts", lambda p: p().rpartition(".")[0])
case("four parts", lambda p: p() + ".AAAA")
case("five parts", lambda p: p() + ".AAAA.AAAA")
case("two dots", lambda p: "..")
case("an empty signature and a dot", lambda p: p().rpartition(".")[0] + ".")
case("an empty header", lambda p: _over(p.key, "", b64url(_text(p.payload()).encode())))
case("an empty payload", lambda p: _over(p.key, b64url(_text(p.header()).encode()), ""))


def _respelled(part, respell):
    """A proof whose one part is spelled otherwise, and signed as it is spelled. Its text is chosen so that it can be."""
    def make(p):
        for padding in range(200):
            texts = [_text(p.header(x="~" * padding)), _text(p.payload(x="?>~" * padding + "~" * (padding % 3)))]
            coded = [b64url(text.encode()) for text in texts]
            if part == 2:
                spelled = _over(p.key, *coded)
                signature = spelled.rpartition(".")[2]
                if (other := respell(signature)) != signature:
                    return f"{'.'.join(coded)}.{other}"
            elif (other := respell(coded[part])) != coded[part]:
                coded[part] = other
                return _over(p.key, *coded)
        raise AssertionError("no text to respell")
    return make


def _noncanonical(text):
    """Other bits behind the last byte."""
    spare = {2: 4, 3: 2}.get(len(text) % 4, 0)
    return text[:-1] + _ALPHABET[_ALPHABET.index(text[-1]) ^ 1] if spare else text


for _number, _part in enumerate(("header", "payload", "signature")):
    case(f"padded {_part}", _respelled(_number, lambda text: text + "=" * (-len(text) % 4)))
    case(f"base64 instead of base64url in the {_part}", _respelled(_number, lambda text: text.replace("-", "+").replace("_", "/")))
    case(f"a space inside the {_part}", _respelled(_number, lambda text: f"{text[:10]} {text[10:]}"))
    case(f"trailing bits of the {_part}", _respelled(_number, _noncanonical))
    case(f"one bit of the {_part}", lambda p, n=_number: _flipped(p(), n))

for _name, _header in {
    "no JSON": "junk", "an array": "[]", "a string": '"dpop+jwt"', "a number": "7", "an empty object": "{}", "null": "null",
    "nested a thousand times": '{"a":' * 300 + "1" + "}" * 300, "brackets a thousand deep": "[" * 1000 + "]" * 1000, "bytes that are no UTF-8": b"{\xff}",
}.items():
    case(f"header: {_name}", lambda p, header=_header: p.signed(header, p.payload()))
    case(f"payload: {_name}", lambda p, payload=_header: p.signed(p.header(), payload))
case("something behind the header's object", lambda p: p.signed(_text(p.header()) + "{}", p.payload()))
case("alg twice, equal", lambda p: p.signed(_text(p.header())[:-1] + ',"alg":"ES256"}', p.payload()))
case("alg twice, different", lambda p: p.signed('{"alg":"none",' + _text(p.header())[1:], p.payload()))
case("jti twice", lambda p: p.signed(p.header(), '{"jti":"first",' + _text(p.payload())[1:]))
case("htu twice", lambda p: p.signed(p.header(), '{"htu":"https://evil.example/",' + _text(p.payload())[1:]))
case("jti twice, once escaped", lambda p: p.signed(p.header(), '{"\\u006ati":"first",' + _text(p.payload())[1:]))
case("x twice in the key", lambda p: p.signed(_text(p.header()).replace('"kty"', '"x":"AAAA","kty"'), p.payload()))


def _of_length(length):
    """A proof of exactly this length: text is added to both parts until it fits."""
    def make(p):
        for more in range(3):
            header = p.header(x="h" * more)
            rest = length - len(p.signed(header, ""))
            for size in range(rest * 3 // 4 - len(_text(p.payload(x=""))) - 3, rest):
                proof = p.signed(header, p.payload(x="p" * size, jti="j" * 22))
                if len(proof) == length:
                    return proof
                if len(proof) > length:
                    break
        raise AssertionError("no such length")
    return make


case("4096 bytes", _of_length(4096), "accepted")
case("4097 bytes", _of_length(4097))
case("11 KiB", _of_length(11_000))

# -- the header ----------------------------------------------------------------------------------------

for _typ in (None, "jwt", "JWT", "at+jwt", "dpop", "dpop+jwt;x", "application/dpop+jwt", "", 7, ["dpop+jwt"]):
    case(f"typ {_typ!r}", lambda p, typ=_typ: p(header={"typ": typ}))
case("typ in upper case", lambda p: p(header={"typ": "DPoP+JWT"}), "accepted")
for _alg in ("none", "None", "HS384", "ES384", "ES512", "ES256K", "RSA1_5", "RSA-OAEP", "es256", "", 7, ["ES256"], None):
    case(f"alg {_alg!r}", lambda p, alg=_alg: p(header={"alg": alg}))
case("alg none without a signature", lambda p: p(header={"alg": "none"}, spoil=lambda raw: b""))


def _hmac(p):
    """HS256 with the public bytes of the key as its secret."""
    public = p.key.public()
    secret = unb64url(public["x"]) + unb64url(public["y"])
    signed = p(header={"alg": "HS256"}).rpartition(".")[0]
    return f"{signed}.{b64url(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _ed25519():
    return ProofKey("EdDSA")


def _rsa():
    return ProofKey("RS256")


case("HS256 with the public key", _hmac)
case("ES256 with an RSA key", lambda p: p(_rsa(), header={"alg": "ES256"}))
case("RS256 with a key of P-256", lambda p: p(header={"alg": "RS256"}))
case("EdDSA with a key of P-256", lambda p: p(header={"alg": "EdDSA"}))
case("ES256 with a key of Ed25519", lambda p: p(_ed25519(), header={"alg": "ES256"}))
case("a PS256 signature under RS256", lambda p: p(_rsa(), header={"alg": "RS256"}, alg="PS256"))
case("an RS256 signature under PS256", lambda p: p(_rsa(), header={"alg": "PS256"}, alg="RS256"))
case("crit with b64", lambda p: p(header={"crit": ["b64"], "b64": False}))
case("crit, empty", lambda p: p(header={"crit": []}))
case("crit with an unknown name", lambda p: p(header={"crit": ["x"], "x": 1}))
case("b64 without crit", lambda p: p(header={"b64": True}))

# -- the key ---------------------------------------------------------------------------------------------

for _name, _jwk in {
    "absent": None, "a string": "key", "an array": [], "empty": {}, "with kty only": {"kty": "EC"}, "symmetric": {"kty": "oct", "k": "AAAA"},
    "a number": 7,
}.items():
    case(f"key {_name}", lambda p, jwk=_jwk: p(header={"jwk": jwk}))
for _member in ("d", "k", "priv", "p", "q", "dp", "dq", "qi", "oth"):
    case(f"key with {_member}", lambda p, member=_member: p(header={"jwk": {**p.key.public(), member: "AAAA"}}))
    case(f"RSA key with {_member}", lambda p, member=_member: p(key := _rsa(), header={"jwk": {**key.public(), member: "AAAA"}}))
case("the private key itself", lambda p: p(header={"jwk": {
    **p.key.public(), "d": b64url(p.key.private.private_numbers().private_value.to_bytes(32, "big"))}}))


def _leading_zero():
    """A key whose x begins with a zero byte."""
    while True:
        key = ProofKey()
        if unb64url(key.public()["x"])[0] == 0:
            return key


def _with_x(p, change, key=None):
    key = key or p.key
    return p(key, header={"jwk": {**key.public(), "x": b64url(change(unb64url(key.public()["x"])))}})


def _without(p, name):
    return p(header={"jwk": {member: value for member, value in p.key.public().items() if member != name}})


def _with_y(p, change):
    return p(header={"jwk": {**p.key.public(), "y": b64url(change(unb64url(p.key.public()["y"])))}})


case("x without its leading zero", lambda p: _with_x(p, lambda x: x[1:], _leading_zero()))
case("x of 33 bytes", lambda p: _with_x(p, lambda x: b"\0" + x))
case("x of no bytes", lambda p: _with_x(p, lambda x: b""))
case("x as a number", lambda p: p(header={"jwk": {**p.key.public(), "x": 7}}))
case("x padded", lambda p: p(header={"jwk": {**p.key.public(), "x": p.key.public()["x"] + "="}}))
for _member in ("x", "y", "crv", "kty"):
    case(f"{_member} missing", lambda p, member=_member: _without(p, member))
case("a point beside the curve", lambda p: _with_y(p, lambda y: y[:-1] + bytes([y[-1] ^ 1])))
case("the point (0, 0)", lambda p: p(header={"jwk": {"kty": "EC", "crv": "P-256", "x": b64url(bytes(32)), "y": b64url(bytes(32))}}))
case("a point over the prime", lambda p: _with_x(p, lambda x: b"\xff" * 32))
case("P-384", lambda p: p(header={"jwk": _p384()}))
case("crv p-256", lambda p: p(header={"jwk": {**p.key.public(), "crv": "p-256"}}))
case("crv P-384 on a key of P-256", lambda p: p(header={"jwk": {**p.key.public(), "crv": "P-384"}}))


def _p384():
    n = ec.generate_private_key(ec.SECP384R1()).public_key().public_numbers()
    return {"kty": "EC", "crv": "P-384", "x": b64url(n.x.to_bytes(48, "big")), "y": b64url(n.y.to_bytes(48, "big"))}


for _bits, _exponent in ((1024, 65537), (2040, 65537), (2047, 65537), (8192, 65537), (4104, 65537), (2048, 1), (2048, 2), (2048, 0)):
    case(f"RSA of {_bits} bits, exponent {_exponent}", lambda p, bits=_bits, e=_exponent: p(RawRSA(bits, e)))
case("RSA, a leading zero byte", lambda p: p(key := _rsa(), header={"jwk": {**key.public(), "n": b64url(b"\0" + unb64url(key.public()["n"]))}}))
case("RSA, exponent with a leading zero byte", lambda p: p(key := _rsa(), header={"jwk": {**key.public(), "e": "AAEAAQ"}}))
case("RSA, exponent 3", lambda p: p(), "accepted", key=lambda: ProofKey("RS256", exponent=3))
case("RSA of 4096 bits", lambda p: p(), "accepted", key=lambda: ProofKey("PS256", bits=4096))


def _small_order(p, x, scalar=bytes(32)):
    """A signature that holds for every message where the key is the neutral element."""
    neutral = b"\1" + bytes(31)
    return p(_ed25519(), header={"jwk": {"kty": "OKP", "crv": "Ed25519", "x": b64url(x)}}, spoil=lambda raw: neutral + scalar)


for _name, _point in {
    "the neutral element": b"\1" + bytes(31), "of order two": b"\xec" + b"\xff" * 30 + b"\x7f", "of order four": bytes(32),
    "of order eight": bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    "the neutral element, not canonical": b"\xee" + b"\xff" * 30 + b"\x7f",
}.items():
    case(f"Ed25519, {_name}", lambda p, point=_point: _small_order(p, point))
case("Ed25519, x of 31 bytes", lambda p: _with_x(p, lambda x: x[:31], _ed25519()))
case("Ed25519 with a y", lambda p: p(), "accepted", key=lambda: _Decorated("EdDSA", y="AAAA"))
case("crv Ed448", lambda p: p(key := _ed25519(), header={"jwk": {**key.public(), "crv": "Ed448"}}))


class _Decorated(ProofKey):
    """A key whose JWK has members that count for nothing."""

    def __init__(self, alg="ES256", **members):
        super().__init__(alg)
        self._members = members

    def header(self, **changes):
        """With the members."""
        return super().header(**{"jwk": {**self.public(), **self._members}, **changes})


case("jwk.alg other than alg", lambda p: p(header={"jwk": {**p.key.public(), "alg": "ES384"}}))
case("jwk.use enc", lambda p: p(header={"jwk": {**p.key.public(), "use": "enc"}}))
case("jwk.alg and jwk.use that agree", lambda p: p(), "accepted", key=lambda: _Decorated(alg="ES256", use="sig"))
case("jwk.key_ops without verify", lambda p: p(), "accepted", key=lambda: _Decorated(key_ops=["sign"]))
case("fifty unknown members of the key", lambda p: p(), "accepted", key=lambda: _Decorated(**{f"m{n}": "v" for n in range(50)}))

# -- the signature ---------------------------------------------------------------------------------------

case("a signature by another key", lambda p: ProofKey().sign(p.header(), p.payload()))
case("another key put in after signing", lambda p: ".".join([
    b64url(_text(ProofKey().header()).encode()), *p().split(".")[1:]]))
for _name, _spoil in {
    "empty": lambda raw: b"", "r zero": lambda raw: bytes(32) + raw[32:], "s zero": lambda raw: raw[:32] + bytes(32), "both zero": lambda raw: bytes(64),
    "r the order": lambda raw: ORDER.to_bytes(32, "big") + raw[32:], "s the order": lambda raw: raw[:32] + ORDER.to_bytes(32, "big"),
    "r the highest": lambda raw: b"\xff" * 32 + raw[32:], "63 bytes": lambda raw: raw[:-1], "65 bytes": lambda raw: raw + b"\0",
    "r and s with a zero byte each": lambda raw: b"\0" + raw[:32] + b"\0" + raw[32:], "r and s exchanged": lambda raw: raw[32:] + raw[:32],
    "in DER": lambda raw: utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")),
}.items():
    case(f"signature: {_name}", lambda p, spoil=_spoil: p(spoil=spoil))

# -- the payload -----------------------------------------------------------------------------------------

for _jti in (None, "", 7, ["x"], "x" * 257, "ä" * 129):
    case(f"jti {str(_jti)[:8]!r}, {len(str(_jti))} long", lambda p, jti=_jti: p(payload={"jti": jti}))
case("jti null", lambda p: p.signed(p.header(), _text(p.payload(jti="@")).replace('"@"', "null")))
case("jti of 256 bytes", lambda p: p(payload={"jti": (p.payload()["jti"] * 20)[:256]}), "accepted")
for _htm in ("get", "post", "PUT", "OPTIONS", "POST ", " POST", "GET\\t", "", None, 7, ["POST"]):
    case(f"htm {_htm!r}", lambda p, htm=_htm: p(payload={"htm": htm}))
case("the other method", lambda p: p(payload={"htm": "GET" if p.method == "POST" else "POST"}))
for _name, _htu in {
    "another path": lambda url: url + "x", "a slash behind": lambda url: url + "/", "the path in upper case": lambda url: url[:-4] + url[-4:].upper(),
    "another host": lambda url: url.replace("https://", "https://x."), "http": lambda url: url.replace("https:", "http:"),
    "another port": lambda url: url.replace(".example", ".example:8443"), "port 80": lambda url: url.replace(".example", ".example:80"),
    "user information": lambda url: url.replace("https://", "https://user@"), "the origin alone": lambda url: url.split("/connect")[0],
    "a path alone": lambda url: "/connect" + url.split("/connect")[1], "without a scheme": lambda url: url.replace("https:", ""),
    "empty": lambda url: "", "javascript": lambda url: "javascript:alert(1)", "a number": lambda url: 7, "an array": lambda url: [url], "absent": lambda url: None,
    "2 KiB": lambda url: url + "x" * 2048, "2.5 KiB of dots": lambda url: url + "/.." * 850, "a space before": lambda url: " " + url,
    "a backslash": lambda url: url.replace("/connect", "\\connect"), "a host with a NUL": lambda url: url.replace(".example", ".example\0.evil"),
    "an encoded slash": lambda url: url.replace("/connect/", "/connect%2F"), "a broken escape": lambda url: url + "%2",
    "a dot behind the host": lambda url: url.replace(".example", ".example."),
}.items():
    case(f"htu: {_name}", lambda p, htu=_htu: p(payload={"htu": htu(p.url)}))
for _name, _htu in {
    "query and fragment": lambda url: url + "?a=b#c", "an empty query": lambda url: url + "?",
    "upper case of scheme and host, default port": lambda url: "HTTPS://" + url[8:].split("/")[0].upper() + ":443/" + url[8:].split("/", 1)[1],
    "an unreserved letter encoded": lambda url: url.replace("/connect", "/%63onnect"), "dot segments": lambda url: url.replace("/connect", "/./x/../connect"),
}.items():
    case(f"htu: {_name}", lambda p, htu=_htu: p(payload={"htu": htu(p.url)}), "accepted")

for _seconds, _verdict in ((-57, "accepted"), (57, "accepted"), (-63, "nonce due"), (63, "nonce due"), (-600, "nonce due"), (600, "nonce due"), (-10**9, "nonce due")):
    case(f"iat {_seconds:+} s", lambda p, s=_seconds: p(payload={"iat": int(p.now) + s}), _verdict)
case("iat with a fraction", lambda p: p(payload={"iat": p.now}), "accepted")
for _name, _iat in {"a string": '"1700000000"', "null": "null", "an array": "[1700000000]", "true": "true"}.items():
    case(f"iat {_name}", lambda p, iat=_iat: p.signed(p.header(), _text(p.payload(iat="@")).replace('"@"', iat)))
for _iat in ("1e400", "-1", "9223372036854775808", "-1e400", "1e300"):
    case(f"iat {_iat}", lambda p, iat=_iat: p.signed(p.header(), _text(p.payload(iat="@")).replace('"@"', iat)), "refused")
case("iat absent", lambda p: p(payload={"iat": None}))
case("exp a minute and more ago", lambda p: p(payload={"exp": int(p.now) - 65}))
case("nbf more than a minute ahead", lambda p: p(payload={"nbf": int(p.now) + 65}))
case("exp a string", lambda p: p(payload={"exp": "soon"}))
case("exp and nbf within a minute", lambda p: p(payload={"exp": int(p.now) - 50, "nbf": int(p.now) + 50}), "accepted")

_HASHES = {
    "absent": lambda token: None, "wrong": lambda token: token_hash(token + "x"), "of the scheme and the token": lambda token: token_hash("DPoP " + token),
    "of Bearer and the token": lambda token: token_hash("Bearer " + token), "padded": lambda token: token_hash(token) + "=", "empty": lambda token: "",
    "SHA-512": lambda token: b64url(hashlib.sha512(token.encode()).digest()), "hexadecimal": lambda token: hashlib.sha256(token.encode()).hexdigest(),
    "the token itself": lambda token: token,
}
for _name, _ath in _HASHES.items():
    case(f"ath: {_name}", lambda p, ath=_ath: p(payload={"ath": ath(p.token)}), where=("userinfo",))
case("ath a number", lambda p: p(payload={"ath": 7}))
case("a wrong ath where no token is", lambda p: p(payload={"ath": token_hash("x")}), "accepted", where=TOKEN_ENDPOINT)
case("fifty unknown claims", lambda p: p(payload={f"c{n}": n for n in range(50)}), "accepted")
case("sixty-five members", lambda p: p(payload={f"c{n}": n for n in range(65 - len(p.payload()))}))
case("nine levels", lambda p: p.signed(p.header(), _text(p.payload())[:-1] + ',"x":' + "[" * 8 + "]" * 8 + "}"))
for _name, _jti in {"a NUL": '"\\u0000"', "a lone surrogate": '"\\ud800"', "a raw control character": '"\t"'}.items():
    case(f"jti with {_name}", lambda p, jti=_jti: p.signed(p.header(), _text(p.payload(jti="@")).replace('"@"', jti)))
    case(f"htu with {_name}", lambda p, jti=_jti: p.signed(p.header(), _text(p.payload(htu="@")).replace('"@"', f'"{p.url}{jti[1:]}')))
case("jti with an overlong NUL", lambda p: p.signed(p.header(), _text(p.payload(jti="@")).encode().replace(b"@", b"\xc0\x80")))
case("htu with an overlong slash", lambda p: p.signed(p.header(), _text(p.payload(htu="@")).encode().replace(b"@", p.url.encode() + b"\xc0\xaf")))
