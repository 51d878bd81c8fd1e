"""negative-cases.json: which cases run now, and how their texts become requests."""

import json
import re
import unicodedata
from dataclasses import dataclass

from . import wire
from .settings import SHARED

#: What the server can do today. A case that needs more is deferred; adding a word here switches its cases on,
#: together with the fixtures of that name in case_fixtures.py.
FEATURES = {"core", "magic", "passkey", "totp", "register", "registration_fields", "fixture:otp_is_000123"}

#: Case ids of these rows belong to features that come later.
PREFIX_FEATURE = {"MG": "magic", "PK": "passkey", "EN": "passkey", "LD": "passkey"}

#: What a text anywhere in a case says about the feature it needs.
TEXT_FEATURE = [
    (re.compile(r"magic"), "magic"),
    (re.compile(r"/connect/passkey|urn:cocoar:passkey|\{\{(ceremony|assertion|passkey|credential|attestation)"), "passkey"),
    (re.compile(r"\{\{(email_totp|totp|otp_totp)"), "totp"),
    (re.compile(r"/native/register"), "register"),
    (re.compile(r"\{\{host_fields"), "registration_fields"),
]
NEED_FEATURE = {"virtual_authenticator": "passkey"}

PLACEHOLDER = re.compile(r"\{\{([A-Za-z0-9_:]+)((?:\|[a-z_]+)*)\}\}")
DOCUMENT = re.compile(r"\{\{attestation:[a-z0-9_]+\}\}")
FILTERS = {
    "upper": str.upper,
    "swapcase": str.swapcase,
    "flip_char": lambda v: v[: len(v) // 2] + ("A" if v[len(v) // 2] != "A" else "B") + v[len(v) // 2 + 1:],
    "drop_last": lambda v: v[:-1],
    "spaced": lambda v: v[: len(v) // 2] + " " + v[len(v) // 2:],
    "homoglyph": lambda v: v.replace("a", "\u0430", 1),
    "dotless_i": lambda v: v.replace("i", "\u0131", 1),
    # our addresses are ASCII: an accent, decomposed, makes the variant that must not match
    "nfd": lambda v: unicodedata.normalize("NFD", v if not v.isascii() else v.replace("i", "\u00ed", 1)),
    "first_char": lambda v: v[:1],
}


@dataclass
class Case:
    """One case as the file has it."""

    data: dict

    def __getattr__(self, name):
        return self.data.get(name)

    @property
    def after(self):
        """The state assertions, as a list."""
        after = self.expect.get("after") or []
        return [a.strip() for a in after.split(",")] if isinstance(after, str) else after

    def names(self):
        """Every placeholder the case uses or its assertions need."""
        text = json.dumps({k: v for k, v in self.data.items() if k not in ("title", "group")})
        found = {name for name, _ in PLACEHOLDER.findall(text)}
        for after in self.after:
            if after.endswith(("_usable", "_dead")):
                found.add(after.rpartition("_")[0])
            if after.startswith("mail_"):
                found.add("email")
        return found

    def feature(self):
        """The first feature this case needs and the server lacks, or None."""
        needed = [PREFIX_FEATURE.get(self.id[:2], "core")]
        text = json.dumps({k: v for k, v in self.data.items() if k not in ("title", "group", "expect")})
        needed += [feature for pattern, feature in TEXT_FEATURE if pattern.search(text)]
        needed += [NEED_FEATURE[n] for n in self.needs or [] if n in NEED_FEATURE]
        needed += [n for n in self.needs or [] if n.startswith("fixture:")]
        return next((n for n in needed if n not in FEATURES), None)


def load():
    """The document, or None when the shared folder is not there."""
    path = SHARED / "negative-cases.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def fill(value, resolve):
    """Replaces placeholders once, in strings at any depth; what they stand for is not looked at again."""
    if isinstance(value, str):
        def one(match):
            text = resolve(match.group(1))
            for name in match.group(2).split("|")[1:]:
                text = FILTERS[name](text)
            return text
        if DOCUMENT.fullmatch(value):  # stands for the JSON itself, not for a string of it
            return json.loads(PLACEHOLDER.sub(one, value))
        return PLACEHOLDER.sub(one, value)
    if isinstance(value, list):
        return [fill(item, resolve) for item in value]
    if isinstance(value, dict):
        return {fill(k, resolve): fill(v, resolve) for k, v in value.items()}
    return value


def body_of(body, resolve):
    """The bytes of a case's body."""
    if body is None:
        return None
    (kind, content), = body.items()
    if kind == "form":
        return wire.form_body(fill(content, resolve))
    if kind == "form_pairs":
        return wire.form_body([tuple(pair) for pair in fill(content, resolve)])
    if kind == "json":
        return json.dumps(fill(content, resolve)).encode()
    if kind == "raw":
        return fill(content, resolve).encode("utf-8", "surrogatepass")
    if kind == "gen" and content["kind"] == "repeat":
        text = fill(content["prefix"], resolve) + content["text"] * content["count"] + fill(content["suffix"], resolve)
        return text.encode()
    raise ValueError(f"unknown body {kind}")


def sent_values(case, headers, target, resolve):
    """The values of eight characters or more that this request sent: none may come back."""
    values = [v for k, v in headers.items() if v and k.lower() not in ("host", "content-type", "accept")]
    values += [pair.partition("=")[2] for pair in target.partition("?")[2].split("&")]
    (kind, content), = (case.body or {"raw": ""}).items()
    if kind in ("form", "json"):
        values += strings_in({k: v for k, v in content.items() if k != "scope"} if isinstance(content, dict) else content)
    elif kind == "form_pairs":
        values += [v for k, v in content if k != "scope"]
    values = strings_in([fill(v, resolve) for v in values])
    return [v for v in values if len(v) >= 8 and v not in PROTOCOL_WORDS]


#: Words of the protocol that an error description may well use.
PROTOCOL_WORDS = {"refresh_token", "authorization_code", "client_credentials", "application/json"}


def strings_in(value):
    """All strings of a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for item in value.values() for s in strings_in(item)]
    if isinstance(value, list):
        return [s for item in value for s in strings_in(item)]
    return []
