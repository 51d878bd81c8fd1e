"""Keys that exist for the vectors alone: made from their names, and their signatures are the same each time (RFC 6979)."""

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from harness.dpop import ProofKey
from harness.dpop_cases import ORDER
from harness.jose import b64url


def seed(name):
    """32 bytes of a name."""
    return hashlib.sha256(f"Postern vectors: {name}".encode()).digest()


class VectorKey(ProofKey):
    """A key of P-256, or of Ed25519."""

    def __init__(self, name, alg="ES256"):  # pylint: disable=super-init-not-called
        self.name, self.alg, self.kid = name, alg, None
        self._secret = int.from_bytes(seed(name), "big") % (ORDER - 1) + 1
        self.private = ec.derive_private_key(self._secret, ec.SECP256R1()) if alg == "ES256" \
            else ed25519.Ed25519PrivateKey.from_private_bytes(seed(name))

    def private_jwk(self):
        """The public JWK and `d`."""
        secret = self._secret.to_bytes(32, "big") if self.alg == "ES256" else seed(self.name)
        return {**self.public(), "d": b64url(secret)}

    def signature(self, signed, alg=None):
        """As `Key.signature`, the same bytes for the same text."""
        if self.alg != "ES256":
            return super().signature(signed, alg)
        digest = hashlib.sha256(signed).digest()
        number = int.from_bytes(digest, "big")
        for nonce in self._nonces(number % ORDER):
            r = ec.derive_private_key(nonce, ec.SECP256R1()).public_key().public_numbers().x % ORDER
            s = pow(nonce, -1, ORDER) * (number + r * self._secret) % ORDER
            if r and s:
                return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        raise AssertionError("endless")

    def _nonces(self, number):
        """RFC 6979 §3.2 with HMAC-SHA-256."""
        fixed = self._secret.to_bytes(32, "big") + number.to_bytes(32, "big")
        value, key = b"\1" * 32, bytes(32)
        for mark in (b"\0", b"\1"):
            key = hmac.digest(key, value + mark + fixed, "sha256")
            value = hmac.digest(key, value, "sha256")
        while True:
            value = hmac.digest(key, value, "sha256")
            if 0 < (nonce := int.from_bytes(value, "big")) < ORDER:
                yield nonce
            key = hmac.digest(key, value + b"\0", "sha256")
            value = hmac.digest(key, value, "sha256")
