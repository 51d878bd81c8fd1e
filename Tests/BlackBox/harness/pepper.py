"""The keyed hashes of codes. A test puts the hash of a code that it chose in the place of the one mailed, because chance gives 000123 once in a
million mails. And a test that has the key file finds a code by trying all of them, as a thief of that file could."""

import base64
import hashlib
import hmac
import uuid


class Pepper:
    """The codes of a realm as the server stores them (decision 2), by the first line of the key file or by another key."""

    def __init__(self, world, realm, key=None):
        self.world = world
        key = base64.b64decode(world.key_file.read_text(encoding="ascii").split()[0]) if key is None else key
        secret = hmac.digest(b"\0" * 32, key, "sha256")  # HKDF (RFC 5869): extract without salt, then one block
        self.key = hmac.digest(secret, b"postern code pepper\x01", "sha256")
        self.realm = uuid.UUID(world.admin.run(f"SELECT id FROM admin.realms WHERE slug = '{realm.slug}';")[0][0])

    def keyed(self, *parts):
        """HMAC over the realm and some parts, each with its length."""
        return hmac.digest(self.key, b"".join(len(p).to_bytes(8, "big") + p for p in (self.realm.bytes, *parts)), hashlib.sha256)

    def of_address(self, email, code):
        """A code that was mailed."""
        return self.keyed(email.lower().encode(), b"otp", code.encode())

    def of_number(self, transaction, phone, code):
        """A code that is to prove a number to a backend."""
        return self.keyed(uuid.UUID(transaction).bytes, phone.encode(), b"possession", code.encode())


def set_code(world, realm, email, code):
    """Turns the live codes of an address into `code`, the way the server would have stored it."""
    pepper = Pepper(world, realm)
    changed = world.cluster.sql(
        f"UPDATE postern.login_code SET mac = sha256(salt || '\\x{pepper.of_address(email, code).hex()}'::bytea) "
        f"WHERE realm_id = '{pepper.realm}' AND address_key = '{email.lower()}' RETURNING 1;"
    )
    assert changed, f"{email} has no live code"
    return code
