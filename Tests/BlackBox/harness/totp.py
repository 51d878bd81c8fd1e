"""An authenticator app: RFC 6238 by the book, apart from the server's own code."""

import base64
import hashlib
import hmac
import struct
import time

STEP = 30


def seed(secret):
    """The bytes of a Base32 secret."""
    return base64.b32decode(secret + "=" * (-len(secret) % 8))


def code(secret, offset=0, now=None):
    """The code of the time step `offset` steps from now."""
    counter = int((time.time() if now is None else now) // STEP) + offset
    digest = hmac.new(seed(secret), struct.pack(">Q", counter), hashlib.sha1).digest()
    start = digest[19] & 15
    return f"{(struct.unpack('>I', digest[start:start + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def wrong(secret, number=0):
    """A code that is of none of the steps around now."""
    near = {code(secret, offset) for offset in range(-3, 4)}
    return [text for text in (f"{n:06}" for n in range(number, number + 10)) if text not in near][0]


def settle(seconds=8):
    """Waits for a time step with this much of it left, so that a test does not cross into the next one unawares."""
    left = STEP - time.time() % STEP
    if left < seconds:
        time.sleep(left + 0.05)
