"""RSA keys that no library makes: of any size, exponent and spelling. Their signatures hold by arithmetic."""

import hashlib
import secrets

from .dpop import ProofKey
from .jose import b64url
from .signing import number

_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")


class RawRSA(ProofKey):
    """RS256 by a modulus that is a power of one prime: useless as a key, and right for every verifier that does not look."""

    def __init__(self, bits, exponent=65537):  # pylint: disable=super-init-not-called
        self.alg, self.kid, self.exponent = "RS256", None, exponent
        self.modulus, self._private = _modulus(bits, exponent)

    def jwk(self, **more):
        """The public JWK."""
        return {"kty": "RSA", "n": number(self.modulus), "e": number(self.exponent) if self.exponent else b64url(b"\0"), **more}

    def signature(self, signed, alg=None):
        """PKCS #1 v1.5 (RFC 8017 §8.2.1); for an exponent without an inverse it is the message itself."""
        size = (self.modulus.bit_length() + 7) // 8
        tail = _SHA256 + hashlib.sha256(signed).digest()
        message = b"\0\1" + b"\xff" * (size - 3 - len(tail)) + b"\0" + tail
        return pow(int.from_bytes(message, "big"), self._private, self.modulus).to_bytes(size, "big")


def _modulus(bits, exponent):
    """A modulus of exactly so many bits, and the private exponent: 1 where the public one has no inverse."""
    power = 8 if bits > 2048 else 4
    size = -(-bits // power)
    while True:
        prime = secrets.randbits(size) | 1 | (3 << (size - 2) if bits % power == 0 else 1 << (size - 1))
        if (prime ** power).bit_length() != bits or not _is_prime(prime):
            continue
        try:
            return prime ** power, pow(exponent, -1, prime ** (power - 1) * (prime - 1))
        except ValueError:
            if exponent % 2 == 0:
                return prime ** power, 1


def _is_prime(candidate):
    """Miller and Rabin."""
    if any(candidate % small == 0 for small in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd, twos = candidate - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(20):
        value = pow(2 + secrets.randbelow(candidate - 3), odd, candidate)
        if value in (1, candidate - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % candidate
            if value == candidate - 1:
                break
        else:
            return False
    return True
