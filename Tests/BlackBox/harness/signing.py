"""Key pairs of clients, and what they sign."""

import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from .jose import b64url

ALGORITHMS = ("ES256", "EdDSA", "PS256", "RS256")


def encoded(part):
    """One part of a compact JWS: a document, text or bytes."""
    if isinstance(part, bytes):
        return b64url(part)
    return b64url((part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))).encode())


class Key:
    """A key pair of one algorithm."""

    def __init__(self, alg="ES256", kid=None, bits=2048, exponent=65537):
        self.alg, self.kid = alg, kid
        self.private = {
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()), "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }.get(alg, lambda: rsa.generate_private_key(exponent, bits))()

    def jwk(self, **more):
        """The public JWK."""
        public = self.private.public_key()
        if self.alg == "ES256":
            n = public.public_numbers()
            members = {"kty": "EC", "crv": "P-256", "x": b64url(n.x.to_bytes(32, "big")), "y": b64url(n.y.to_bytes(32, "big"))}
        elif self.alg == "EdDSA":
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            members = {"kty": "OKP", "crv": "Ed25519", "x": b64url(raw)}
        else:
            n = public.public_numbers()
            members = {"kty": "RSA", "n": number(n.n), "e": number(n.e)}
        return {**members, **({"kid": self.kid} if self.kid else {}), **more}

    def signature(self, signed, alg=None):
        """The signature of bytes, in the form of JWS; `alg`: another one of the same type of key."""
        alg = alg or self.alg
        if alg == "ES256":
            return b"".join(value.to_bytes(32, "big") for value in utils.decode_dss_signature(self.private.sign(signed, ec.ECDSA(hashes.SHA256()))))
        if alg == "EdDSA":
            return self.private.sign(signed)
        if alg == "PS256":
            return self.private.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        return self.private.sign(signed, padding.PKCS1v15(), hashes.SHA256())

    def sign(self, header, payload, alg=None, spoil=lambda raw: raw):
        """A compact JWS; header and payload are documents, text or bytes, and `spoil` may change the signature's bytes."""
        signed = f"{encoded(header)}.{encoded(payload)}"
        return f"{signed}.{b64url(spoil(self.signature(signed.encode(), alg)))}"


def number(value):
    """Base64urlUInt (RFC 7518 §2): the fewest bytes."""
    return b64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
