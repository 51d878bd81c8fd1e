"""Looking for secrets in what is left behind: a dump, the logs."""

import base64
import hashlib
import hmac
import itertools
import re

_WORD = re.compile(r"[^\t\n\r ,{}()\"'=]+")
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:\\\\x|\\x)?([0-9a-fA-F]{16,})(?![0-9a-fA-F])")


def spellings(secret):
    """A secret raw, in hex, base64 and base64url, and the bytes that its own text spells, likewise."""
    raws = {secret.encode()}
    after_prefixes = {secret[mark.end():] for mark in list(re.finditer(r"[._~-]", secret))[:3]}
    for piece in {secret, *secret.split("."), *after_prefixes}:
        if len(piece) >= 16:
            for decode in (lambda t: base64.urlsafe_b64decode(t + "=" * (-len(t) % 4)), bytes.fromhex):
                try:
                    raws.add(decode(piece))
                except ValueError:
                    pass
    found = {secret}
    for raw in raws:
        if len(raw) >= 12:
            found |= {raw.hex(), raw.hex().upper()}
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                # without the last characters: they depend on padding and on what follows
                found.add(encode(raw).decode().rstrip("=")[:-2])
    return found


_ANCHOR = 12
_RUN = re.compile(r"[0-9A-Za-z+/_=.~-]{%d,}" % _ANCHOR)


def leaks(secrets, haystack):
    """The (kind, spelling) pairs that occur in a text.

    One pass over the text, however many secrets: twelve characters from the middle of each spelling are looked for first.
    """
    anchors = {}
    for kind, secret in secrets:
        for spelling in spellings(secret):
            middle = len(spelling) // 2 - _ANCHOR // 2
            anchors.setdefault(spelling[middle:middle + _ANCHOR], []).append((kind, spelling))
    candidates = set()
    for run in set(_RUN.findall(haystack)):
        for start in range(len(run) - _ANCHOR + 1):
            if run[start:start + _ANCHOR] in anchors:
                candidates.update(anchors[run[start:start + _ANCHOR]])
    return sorted((kind, spelling[:60]) for kind, spelling in candidates if spelling in haystack)


def standalone(code, text):
    """The lines in which six digits stand alone: not part of a number, an identifier or a fraction of a second."""
    pattern = re.compile(rf"(?<![0-9A-Za-z.:+/_=-]){code}(?![0-9A-Za-z.:+/_=-])")
    return [line for line in text.splitlines() if code in line and pattern.search(line)]


def values_of(dump):
    """Every value a reader of the dump could take for a salt, a key or a digest, as bytes."""
    values = set()
    for word in set(_WORD.findall(dump)):
        if 4 <= len(word) <= 200:
            values.add(word.encode())
            if re.fullmatch(r"[A-Za-z0-9_+/-]{16,}={0,2}", word):
                try:
                    values.add(base64.urlsafe_b64decode(word.replace("+", "-").replace("/", "_").rstrip("=") + "=" * (-len(word.rstrip("=")) % 4)))
                except ValueError:
                    pass
    for digits in _HEX.findall(dump):
        if len(digits) % 2 == 0 and len(digits) <= 256:
            values.add(bytes.fromhex(digits))
    for match in re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", dump):
        values.add(bytes.fromhex(match.replace("-", "")))
    return values


def digests_in(values):
    """The values that can be digests, and their usual truncations, for quick look-up."""
    return {value for value in values if 16 <= len(value) <= 64}


def plain_hashes_found(values):
    """All million codes, hashed without any salt, looked up in the dump."""
    known = digests_in(values)
    hits = []
    for number in range(1_000_000):
        code = b"%06d" % number
        for algorithm in (hashlib.sha256, hashlib.sha1, hashlib.md5):
            if algorithm(code).digest() in known:
                hits.append(code)
    return hits


def constructions_found(code, address, labels, near, everything):
    """Whether any usual construction over a known code, with salts and keys from the dump, gives a value of the dump.

    Trying the true code is trying all million: a construction that an attacker could use to recognise it would match here.
    """
    known = digests_in(everything)
    code, address = code.encode(), address.encode()
    fields = [b"", address, address.lower(), *[label.encode() for label in labels]]
    hits = []

    def check(name, digest):
        if digest in known or digest[:16] in known or digest[:32] in known:
            hits.append(name)

    for salt in {b"", *near}:
        for field, glue in itertools.product(fields, (b"", b":", b"|", b"\0", b".")):
            for message in {glue.join(filter(None, order)) for order in itertools.permutations([salt, field, code])}:
                check("sha256", hashlib.sha256(message).digest())
                check("sha512", hashlib.sha512(message).digest())
        check("pbkdf2", hashlib.pbkdf2_hmac("sha256", code, salt, 1000))
    for key in everything:
        if len(key) < 8:
            continue
        for message in (code, address + code, code + address):
            check("hmac", hmac.digest(key, message, "sha256"))
            check("hmac, code as key", hmac.digest(code, key, "sha256"))
    for key, salt in itertools.product(near, repeat=2):
        check("hmac over salt", hmac.digest(key, salt + code, "sha256"))
        check("hmac over salt", hmac.digest(key, code + salt, "sha256"))
        check("hmac over salt", hmac.digest(key, salt + address + code, "sha256"))
    return hits
