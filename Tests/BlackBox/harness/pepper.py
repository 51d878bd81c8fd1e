"""A code of our choosing: chance gives 000123 once in a million mails, so its keyed hash is put in the place of the one mailed."""

import base64
import hashlib
import hmac
import uuid


def set_code(world, realm, email, code):
    """Turns the live codes of an address into `code`, the way the server would have stored it (decision 2)."""
    key = base64.b64decode(world.key_file.read_text(encoding="ascii").split()[0])
    secret = hmac.digest(b"\0" * 32, key, "sha256")  # HKDF (RFC 5869): extract without salt, then one block
    pepper = hmac.digest(secret, b"postern code pepper\x01", "sha256")
    identity = uuid.UUID(world.admin.run(f"SELECT id FROM admin.realms WHERE slug = '{realm.slug}';")[0][0])
    parts = [identity.bytes, email.lower().encode(), b"otp", code.encode()]
    keyed = hmac.digest(pepper, b"".join(len(p).to_bytes(8, "big") + p for p in parts), hashlib.sha256)
    changed = world.cluster.sql(
        f"UPDATE postern.login_code SET mac = sha256(salt || '\\x{keyed.hex()}'::bytea) "
        f"WHERE realm_id = '{identity}' AND email_key = '{email.lower()}' RETURNING 1;"
    )
    assert changed, f"{email} has no live code"
    return code
