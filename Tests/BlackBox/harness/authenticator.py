"""A software authenticator: registrations and assertions, right, or wrong in one named way.

A mutation keeps the signature valid over the bytes it made, unless it is about the signature: only the named check can refuse it.
"""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .jose import b64url, unb64url

ES256, EDDSA, RS256, RS1 = -7, -8, -257, -65535
UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class Raw(bytes):
    """Bytes that are CBOR already."""


def cbor(value):
    """Definite-length CBOR; a dict keeps its order."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, (bytes, bytearray)):
        return _head(2, len(value)) + bytes(value)
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    if isinstance(value, (list, tuple)):
        return _head(4, len(value)) + b"".join(map(cbor, value))
    return _head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())


def _head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for more, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([major << 5 | more]) + number.to_bytes(size, "big")
    raise ValueError(number)


def sha256(data):
    """SHA-256."""
    return hashlib.sha256(data).digest()


def _integer(number):
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


# -- keys ---------------------------------------------------------------------------------------


class Key:
    """A credential key pair of one of the algorithms offered."""

    def __init__(self, algorithm=ES256, bits=2048):
        self.algorithm = algorithm
        if algorithm == ES256:
            self.private = ec.generate_private_key(ec.SECP256R1())
        elif algorithm == EDDSA:
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = rsa.generate_private_key(65537, bits)

    def cose(self):
        """The COSE key as a dict, in canonical order."""
        public = self.private.public_key()
        if self.algorithm == ES256:
            n = public.public_numbers()
            return {1: 2, 3: ES256, -1: 1, -2: n.x.to_bytes(32, "big"), -3: n.y.to_bytes(32, "big")}
        if self.algorithm == EDDSA:
            return {1: 1, 3: EDDSA, -1: 6, -2: public.public_bytes(Encoding.Raw, PublicFormat.Raw)}
        n = public.public_numbers()
        return {1: 3, 3: self.algorithm, -1: _integer(n.n), -2: _integer(n.e)}

    def sign(self, message):
        """The signature as WebAuthn carries it."""
        if self.algorithm == ES256:
            return self.private.sign(message, ec.ECDSA(hashes.SHA256()))
        if self.algorithm == EDDSA:
            return self.private.sign(message)
        digest = hashes.SHA1() if self.algorithm == RS1 else hashes.SHA256()
        return self.private.sign(message, padding.PKCS1v15(), digest)


@dataclass
class Credential:
    """What an authenticator keeps of a passkey. `sign_count` is the last one sent; `counts` says whether it goes up by itself."""

    rp_id: str
    user_handle: bytes
    key: Key
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    sign_count: int = 0
    counts: bool = False
    backup_eligible: bool = False
    backup_state: bool = False
    aaguid: bytes = bytes(16)

    @property
    def id_text(self):
        """The credential id as the wire has it."""
        return b64url(self.id)


@dataclass
class Foreign:
    """What mutations borrow from others: credentials of another user, another realm, another RP-ID; an Android key hash that is listed."""

    other_user: Credential = None
    other_realm: Credential = None
    other_rp: Credential = None
    existing: Credential = None
    android_hash: bytes = bytes(32)


# -- a response in the making ---------------------------------------------------------------------


class Draft:
    """Everything that goes into a response before it is signed."""

    def __init__(self, kind, challenge, origin, credential, foreign):
        self.client = {"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False}
        self.client_text = None
        self.credential = credential
        self.foreign = foreign or Foreign()
        self.user_handle = credential.user_handle
        self.rp_id_hash = sha256(credential.rp_id.encode())
        self.flags = UP | UV | (BE if credential.backup_eligible else 0) | (BS if credential.backup_state else 0)
        self.count = credential.sign_count
        self.tail = b""
        self.whole = None
        # registration only
        self.fmt = "none"
        self.cose = credential.key.cose()
        self.after_key = b""
        self.credential_id = credential.id
        self.id_length = None
        self.attested = True
        self.statement = None
        self.object = lambda fmt, statement, data: cbor({"fmt": fmt, "attStmt": statement, "authData": data})

    @property
    def client_data(self):
        """clientDataJSON."""
        if self.client_text is not None:
            return self.client_text if isinstance(self.client_text, bytes) else self.client_text.encode()
        return json.dumps(self.client, separators=(",", ":")).encode()

    def extend(self, extensions):
        """Adds extension outputs."""
        self.flags |= ED
        self.tail += extensions

    def auth_data(self, registration=False):
        """authenticatorData."""
        data = self.rp_id_hash + bytes([self.flags]) + self.count.to_bytes(4, "big")
        if registration and self.attested:
            length = len(self.credential_id) if self.id_length is None else self.id_length
            data += self.credential.aaguid + length.to_bytes(2, "big") + self.credential_id + cbor(self.cose) + self.after_key
        return (data + self.tail) if self.whole is None else self.whole(data + self.tail)


BEFORE, SIGNING, AFTER = {}, {}, {}


def _into(table, *names):
    def register(function):
        for name in names or (function.__name__.strip("_"),):
            table[name] = function
        return function
    return register


def mutations():
    """All names, `ok` among them."""
    return {"ok", *BEFORE, *SIGNING, *AFTER}


def assertion(options, credential, mutation="ok", origin=None, foreign=None, **changes):
    """AuthenticationResponseJSON for request options. `changes` set attributes of the draft (flags, count, …)."""
    assert mutation in mutations(), mutation
    if credential.counts:
        credential.sign_count += 1
    draft = Draft("webauthn.get", options["challenge"], "https://" + options["rpId"] if origin is None else origin, credential, foreign)
    draft.rp_id_hash = sha256(options["rpId"].encode())
    BEFORE.get(mutation, lambda _: None)(draft)
    for name, value in changes.items():
        assert hasattr(draft, name), name
        setattr(draft, name, value)
    client, data = draft.client_data, draft.auth_data()
    signer = SIGNING.get(mutation, lambda d, auth, cd: (d.credential.key.sign(auth + sha256(cd)), auth, cd))
    signature, data, client = signer(draft, data, client)
    document = _document(draft.credential.id, {
        "clientDataJSON": b64url(client), "authenticatorData": b64url(data), "signature": b64url(signature),
        "userHandle": b64url(draft.user_handle),
    })
    AFTER.get(mutation, lambda *_: None)(document, draft)
    return document


def attestation(options, credential, mutation="ok", origin=None, foreign=None, **changes):
    """RegistrationResponseJSON for creation options."""
    assert mutation in mutations(), mutation
    draft = Draft("webauthn.create", options["challenge"], "https://" + options["rp"]["id"] if origin is None else origin, credential, foreign)
    draft.flags |= AT
    for name, value in changes.items():
        assert hasattr(draft, name), name
        setattr(draft, name, value)
    BEFORE.get(mutation, lambda _: None)(draft)
    client, data = draft.client_data, draft.auth_data(registration=True)
    statement = draft.statement
    if statement is None:
        statement = {}
        if draft.fmt == "packed":
            statement = {"alg": credential.key.algorithm, "sig": credential.key.sign(data + sha256(client))}
    elif callable(statement):
        statement = statement(draft, data, client)
    document = _document(draft.credential_id, {
        "clientDataJSON": b64url(client), "attestationObject": b64url(draft.object(draft.fmt, statement, data)),
        "transports": ["internal", "hybrid"],
    })
    AFTER.get(mutation, lambda *_: None)(document, draft)
    return document


def create(options, algorithm=ES256, mutation="ok", origin=None, foreign=None, changes=None, **settings):
    """A new credential for creation options: the document to send, and what the authenticator keeps."""
    credential = Credential(options["rp"]["id"], unb64url(options["user"]["id"]), Key(algorithm), **settings)
    return attestation(options, credential, mutation, origin, foreign, **(changes or {})), credential


def _document(credential_id, response):
    text = b64url(credential_id)
    return {
        "id": text, "rawId": text, "type": "public-key", "authenticatorAttachment": "platform", "clientExtensionResults": {},
        "response": response,
    }


# -- the document ---------------------------------------------------------------------------------

_MISSING = object()


def _set(name, path, value):
    def change(document, _draft):
        place = document
        for step in path[:-1]:
            place = place[step]
        if value is _MISSING:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    AFTER[name] = change


for _short, _member in (
    ("cdj", "clientDataJSON"), ("ad", "authenticatorData"), ("sig", "signature"), ("ao", "attestationObject"), ("uh", "userHandle"),
):
    for _suffix, _value in (("missing", _MISSING), ("number", 7), ("empty", ""), ("not_b64url", "*!*!"), ("null", None), ("array", [])):
        _set(f"{_short}_{_suffix}", ["response", _member], _value)
for _suffix, _value in (("missing", _MISSING), ("number", 7), ("empty", ""), ("not_b64url", "*!*!")):
    _set("id_" + _suffix, ["id"], _value)
    _set("rawid_" + _suffix, ["rawId"], _value)
for _suffix, _value in (("missing", _MISSING), ("number", 7), ("not_public_key", "password"), ("upper", "Public-Key"), ("empty", "")):
    _set("type_" + _suffix, ["type"], _value)
for _suffix, _value in (("missing", _MISSING), ("string", "x"), ("array", []), ("null", None), ("number", 7)):
    _set("response_" + _suffix, ["response"], _value)
_set("uh_65", ["response", "userHandle"], b64url(bytes(65)))
_set("ext_results_array", ["clientExtensionResults"], [])


@_into(AFTER)
def _id_ne_rawid(document, _draft):
    document["rawId"] = b64url(secrets.token_bytes(32))


@_into(AFTER)
def _id_other_user_rawid_own(document, draft):
    document["id"] = draft.foreign.other_user.id_text


@_into(AFTER)
def _rawid_other_user_id_own(document, draft):
    document["rawId"] = draft.foreign.other_user.id_text


@_into(AFTER)
def _uh_other_user(document, draft):
    document["response"]["userHandle"] = b64url(draft.foreign.other_user.user_handle)


@_into(AFTER)
def _uh_other_realm(document, draft):
    document["response"]["userHandle"] = b64url(draft.foreign.other_realm.user_handle)


@_into(AFTER)
def _uh_nobody(document, _draft):
    document["response"]["userHandle"] = b64url(secrets.token_bytes(32))


@_into(AFTER)
def _extra_members(document, _draft):
    document["authenticatorAttachment"] = "a-word-of-2030"
    document["clientExtensionResults"] = {"unheardOf": {"deep": [1, 2, {"three": None}]}, "appid": True}
    document["unheard_of"] = {"x": [1.5e3]}
    document["response"]["unheardOf"] = "y"


@_into(AFTER)
def _uv_discouraged(document, _draft):
    document["userVerification"] = document["response"]["userVerification"] = "discouraged"


# -- client data ------------------------------------------------------------------------------------


def _client(name, **members):
    BEFORE[name] = lambda draft: draft.client.update(members)


def _client_without(name, member):
    BEFORE[name] = lambda draft: draft.client.pop(member)


for _short, _member in (("cd_type", "type"), ("cd_challenge", "challenge"), ("cd_origin", "origin")):
    _client_without(_short + "_missing", _member)
    _client(_short + "_number", **{_member: 7})
    _client(_short + "_empty", **{_member: ""})
    _client(_short + "_null", **{_member: None})
_client("cd_type_payment", type="payment.get")
_client("cd_type_create", type="webauthn.create")
_client("cd_type_get", type="webauthn.get")
_client("cd_challenge_not_b64url", challenge="*!*!")
_client("cd_challenge_other", challenge=b64url(bytes(range(32))))
_client("cd_origin_other", origin="https://other.example")
_client("cross_origin_true", crossOrigin=True)
_client("cross_origin_string", crossOrigin="true")
_client("top_origin_present", topOrigin="https://top.example")
_client("tokenbinding_string", tokenBinding="present")
_client("tokenbinding_no_status", tokenBinding={})
_client("tokenbinding_bad_status", tokenBinding={"status": "sometimes"})
_client("tokenbinding_supported", tokenBinding={"status": "supported"})
_client("cd_extra_members", other={"keys": ["can", "be", "added"]}, extraData="clientDataJSON may be extended")


def _client_text(name, make):
    def change(draft):
        draft.client_text = make(draft.client_data, draft)
    BEFORE[name] = change


_client_text("cd_not_json", lambda text, _: b"challenge=" + text)
_client_text("cd_json_array", lambda text, _: b"[" + text + b"]")
_client_text("cd_dup_challenge", lambda text, d: text[:-1] + b',"challenge":' + json.dumps(d.client["challenge"]).encode() + b"}")
_client_text("cd_dup_type", lambda text, d: text[:-1] + b',"type":' + json.dumps(d.client["type"]).encode() + b"}")
_client_text("cd_bom", lambda text, _: b"\xef\xbb\xbf" + text)
_client_text("cd_blanks", lambda text, _: b" \r\n\t" + text.replace(b",", b" , ") + b"\n ")
_client_text("cd_escapes", lambda text, _: text.replace(b"webauthn", b"web\\u0061ut\\u0068n"))
_client_text("cd_utf16", lambda text, _: text.decode().encode("utf-16"))
_client_text("cd_truncated", lambda text, _: text[:-1])
_client_text("cd_trailing_text", lambda text, _: text + b"x")
_client_text("cd_challenge_padded", lambda text, d: text.replace(d.client["challenge"].encode(), d.client["challenge"].encode() + b"="))


def _origin(name, change):
    def apply(draft):
        draft.client["origin"] = change(draft.credential.rp_id, draft)
    BEFORE["origin_" + name] = apply


_origin("http", lambda rp, _: f"http://{rp}")
_origin("port", lambda rp, _: f"https://{rp}:8443")
_origin("default_port", lambda rp, _: f"https://{rp}:443")
_origin("path", lambda rp, _: f"https://{rp}/")
_origin("upper", lambda rp, _: f"https://{rp.upper()}")
_origin("trailing_dot", lambda rp, _: f"https://{rp}.")
_origin("userinfo", lambda rp, _: f"https://user@{rp}")
_origin("prefix_evil", lambda rp, _: f"https://evil-{rp}")
_origin("suffix_evil", lambda rp, _: f"https://{rp}.evil.example")
_origin("sub_not_listed", lambda rp, _: f"https://sub.{rp}")
_origin("punycode_twin", lambda rp, _: "https://xn--" + rp)
_origin("null", lambda *_: "null")
_origin("android_other_hash", lambda _, d: "android:apk-key-hash:" + b64url(sha256(d.foreign.android_hash)))
_origin("android_padded", lambda _, d: "android:apk-key-hash:" + base64.urlsafe_b64encode(d.foreign.android_hash).decode())
_origin("android_std_alphabet", lambda _, d: "android:apk-key-hash:" + base64.b64encode(d.foreign.android_hash).decode().rstrip("="))
_origin("android_upper", lambda _, d: "ANDROID:apk-key-hash:" + b64url(d.foreign.android_hash))
_origin("android", lambda _, d: "android:apk-key-hash:" + b64url(d.foreign.android_hash))


# -- authenticator data -------------------------------------------------------------------------------


def _flags(name, clear=0, put=0, flip=0):
    def change(draft):
        draft.flags = (draft.flags & ~clear | put) ^ flip
    BEFORE[name] = change


_flags("up_0", clear=UP)
_flags("uv_0", clear=UV)
_flags("up_uv_0", clear=UP | UV)
_flags("bs_without_be", clear=BE, put=BS)
_flags("be_changed", flip=BE)
_flags("ad_ed_flag_no_ext", put=ED)
_flags("ad_at_flag_no_data", put=AT)


def _whole(name, change):
    def apply(draft):
        draft.whole = change
    BEFORE[name] = apply


_whole("ad_trailing_bytes", lambda data: data + b"\0")
for _length in (1, 31, 32, 33, 36):
    _whole(f"ad_len_{_length}", lambda data, n=_length: data[:n])


def _extensions(name, make):
    BEFORE[name] = lambda draft: draft.extend(make)


_extensions("ext_ok", cbor({"credProtect": 2, "unheardOf": [b"x", True]}))
_extensions("ad_trailing_after_ext", cbor({"credProtect": 2}) + b"\0")
_extensions("ext_truncated", cbor({"credProtect": 2})[:-1])
_extensions("ext_not_map", cbor([1, 2]))
_extensions("ext_nested_1000", cbor({"x": Raw(b"\x81" * 1000 + b"\0")}))
_extensions("ext_dup_keys", b"\xa2" + cbor("x") + b"\1" + cbor("x") + b"\1")
_extensions("ext_indefinite", b"\xbf" + cbor("x") + b"\1\xff")
_extensions("ext_len_2_64", b"\xbb" + b"\xff" * 8)


@_into(BEFORE)
def _ad_at_credid_65535(draft):
    draft.flags |= AT
    draft.tail = bytes(16) + b"\xff\xff" + bytes(10)


@_into(BEFORE)
def _ad_at_flag_with_data(draft):
    draft.flags |= AT
    draft.tail = bytes(16) + len(draft.credential.id).to_bytes(2, "big") + draft.credential.id + cbor(draft.cose)


@_into(BEFORE, "rpidhash_other_client")
def _rpidhash_other_client(draft):
    draft.rp_id_hash = sha256(draft.foreign.other_rp.rp_id.encode())


@_into(BEFORE)
def _rpidhash_other(draft):
    draft.rp_id_hash = sha256(b"other.example")


@_into(BEFORE)
def _rpidhash_empty_string(draft):
    draft.rp_id_hash = sha256(b"")


@_into(BEFORE)
def _rpidhash_bitflip(draft):
    draft.rp_id_hash = draft.rp_id_hash[:-1] + bytes([draft.rp_id_hash[-1] ^ 1])


@_into(BEFORE)
def _uh_empty_signed(draft):
    draft.user_handle = b""


@_into(BEFORE)
def _cred_other_rp(draft):
    draft.credential = draft.foreign.other_rp


@_into(BEFORE)
def _cred_other_realm(draft):
    draft.credential, draft.user_handle = draft.foreign.other_realm, draft.foreign.other_realm.user_handle


@_into(BEFORE)
def _cred_unknown(draft):
    draft.credential = Credential(draft.credential.rp_id, draft.credential.user_handle, Key())


# -- the signature of an assertion ----------------------------------------------------------------------


def _resign(name, change):
    """`change` takes the signature bytes (of ES256, DER) and the draft."""
    SIGNING[name] = lambda draft, auth, cd: (change(draft.credential.key.sign(auth + sha256(cd)), draft), auth, cd)


def _flip(data, position=None, bit=None):
    position = secrets.randbelow(len(data)) if position is None else position
    bit = secrets.randbelow(8) if bit is None else bit
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1:]


def _der(r, s):
    """SEQUENCE of the two INTEGERs, whose contents are given as bytes."""
    body = b"".join(b"\x02" + bytes([len(part)]) + part for part in (r, s))
    return b"\x30" + bytes([len(body)]) + body


def _content(number):
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _rs(name, change):
    _resign(name, lambda signature, _: _der(*map(_content, change(*utils.decode_dss_signature(signature)))))


_resign("sig_bitflip", lambda signature, _: _flip(signature, len(signature) - 8))
_resign("sig_bitflip_anywhere", lambda signature, _: _flip(signature))
_resign("sig_trailing", lambda signature, _: signature + b"\0")
_resign("sig_p1363", lambda signature, _: b"".join(n.to_bytes(32, "big") for n in utils.decode_dss_signature(signature)))
_resign("sig_indefinite_len", lambda signature, _: b"\x30\x80" + signature[2:] + b"\0\0")
_resign("sig_other_key", lambda signature, _: Key().sign(b"x"))
_rs("sig_r_0", lambda r, s: (0, s))
_rs("sig_s_0", lambda r, s: (r, 0))
_rs("sig_r_n", lambda r, s: (P256_ORDER, s))
_rs("sig_s_n", lambda r, s: (r, P256_ORDER))
_rs("sig_s_plus_n", lambda r, s: (r, s + P256_ORDER))
_rs("sig_high_s", lambda r, s: (r, max(s, P256_ORDER - s)))


@_into(SIGNING)
def _sig_negative_r(draft, auth, cd):
    """r without the zero that says it is positive."""
    while True:
        r, s = utils.decode_dss_signature(draft.credential.key.sign(auth + sha256(cd)))
        if r >> 255:
            return _der(r.to_bytes(32, "big"), _content(s)), auth, cd


@_into(SIGNING)
def _sig_nonminimal_der(draft, auth, cd):
    r, s = utils.decode_dss_signature(draft.credential.key.sign(auth + sha256(cd)))
    return _der(b"\0" + _content(r), _content(s)), auth, cd


@_into(SIGNING)
def _sig_without_hash(draft, auth, cd):
    return draft.credential.key.sign(auth), auth, cd


@_into(SIGNING)
def _sig_hash_only(draft, auth, cd):
    return draft.credential.key.sign(sha256(cd)), auth, cd


@_into(SIGNING)
def _sig_raw_client_data(draft, auth, cd):
    return draft.credential.key.sign(auth + cd), auth, cd


@_into(SIGNING)
def _sig_swapped(draft, auth, cd):
    return draft.credential.key.sign(sha256(cd) + auth), auth, cd


@_into(SIGNING)
def _sig_cdj_reserialised(draft, auth, cd):
    """Signed over other bytes of the same JSON."""
    return draft.credential.key.sign(auth + sha256(json.dumps(json.loads(cd), indent=1).encode())), auth, cd


@_into(SIGNING)
def _cdj_bitflip(draft, auth, cd):
    """Flipped inside a member nobody reads: the JSON stays as good as it was."""
    cd = cd[:-1] + b',"spare":"aaaaaaaa"}'
    return draft.credential.key.sign(auth + sha256(cd)), auth, _flip(cd, len(cd) - 5, 0)


@_into(SIGNING)
def _ad_bitflip(draft, auth, cd):
    """Flipped in the counter, upwards."""
    return draft.credential.key.sign(auth + sha256(cd)), _flip(auth, 33, 6), cd


@_into(AFTER)
def _cdj_padded_std_b64(document, _draft):
    """The right bytes in base64 with padding; signed over a length that needs it (see BEFORE)."""
    raw = unb64url(document["response"]["clientDataJSON"])
    document["response"]["clientDataJSON"] = base64.b64encode(raw).decode()
    assert document["response"]["clientDataJSON"].endswith("=")


@_into(BEFORE, "cdj_padded_std_b64")
def _pad_client_data(draft):
    text = draft.client_data
    draft.client_text = text if len(text) % 3 else text + b" "


# -- attestation ---------------------------------------------------------------------------------------


def _object(name, make):
    def change(draft):
        draft.object = make
    BEFORE[name] = change


def _pairs(fmt, statement, data):
    return cbor("fmt") + cbor(fmt), cbor("attStmt") + cbor(statement), cbor("authData") + cbor(data)


_object("ao_no_fmt", lambda fmt, statement, data: cbor({"attStmt": statement, "authData": data}))
_object("ao_no_attstmt", lambda fmt, statement, data: cbor({"fmt": fmt, "authData": data}))
_object("ao_no_authdata", lambda fmt, statement, data: cbor({"fmt": fmt, "attStmt": statement}))
_object("ao_fmt_number", lambda fmt, statement, data: cbor({"fmt": 7, "attStmt": statement, "authData": data}))
_object("ao_attstmt_array", lambda fmt, statement, data: cbor({"fmt": fmt, "attStmt": [], "authData": data}))
_object("ao_authdata_text", lambda fmt, statement, data: cbor({"fmt": fmt, "attStmt": statement, "authData": "x"}))
_object("ao_not_map", lambda fmt, statement, data: cbor([fmt, statement, data]))
_object("ao_trailing_bytes", lambda *parts: cbor(dict(zip(("fmt", "attStmt", "authData"), parts))) + b"\0")
_object("cbor_dup_keys", lambda *parts: b"\xa4" + b"".join(_pairs(*parts)) + _pairs(*parts)[0])
_object("cbor_indefinite_map", lambda *parts: b"\xbf" + b"".join(_pairs(*parts)) + b"\xff")
_object("cbor_tag", lambda *parts: b"\xd8\x18" + cbor(dict(zip(("fmt", "attStmt", "authData"), parts))))
_object("cbor_unsorted", lambda *parts: b"\xa3" + b"".join(reversed(_pairs(*parts))))
_object("cbor_long_ints", lambda *parts: b"\xb8\x03" + b"".join(_pairs(*parts)))
# As deep as the body limit of 64 KiB lets through; more would only meet that limit.
_object("cbor_nested_100000", lambda fmt, statement, data: b"\x81" * 45_000 + b"\0")
_object("cbor_len_2_64", lambda fmt, statement, data: cbor({"fmt": fmt, "attStmt": statement, "authData": Raw(b"\x5b" + b"\xff" * 8)}))


def _change(name, **attributes):
    def apply(draft):
        for key, value in attributes.items():
            setattr(draft, key, value)
    BEFORE[name] = apply


_change("packed_attstmt_empty", fmt="packed", statement=lambda *_: {})
_change("packed_sig_missing", fmt="packed", statement=lambda *_: {"alg": ES256})
_change("packed_alg_missing", fmt="packed", statement=lambda d, auth, cd: {"sig": d.credential.key.sign(auth + sha256(cd))})
_change("packed_sig_empty", fmt="packed", statement=lambda *_: {"alg": ES256, "sig": b""})
_change("packed_sig_text", fmt="packed", statement=lambda *_: {"alg": ES256, "sig": "signature"})
_change("packed_alg_mismatch", fmt="packed", statement=lambda d, auth, cd: {"alg": RS256, "sig": d.credential.key.sign(auth + sha256(cd))})
_change("packed_sig_bad", fmt="packed", statement=lambda d, auth, cd: {"alg": ES256, "sig": d.credential.key.sign(auth)})
_change("packed_ok", fmt="packed")
_change("none_with_statement", statement=lambda *_: {"alg": ES256, "sig": b"x"})
_change("fmt_unknown", fmt="unheard-of")
_change("fmt_none_space", fmt="none ")
_change("fmt_none_upper", fmt="NONE")
_change("credid_0", credential_id=b"")
_change("credid_1023", credential_id=bytes(range(1, 256)) * 4 + b"123")
_change("credid_1024", credential_id=bytes(range(1, 256)) * 4 + b"1234")
_change("credid_65535", id_length=65_535)
_change("cose_trailing", after_key=b"\0")
_change("cose_empty_map", cose={})


@_into(BEFORE)
def _self_with_x5c(draft):
    """A self attestation that also claims a certificate."""
    draft.fmt = "packed"
    draft.statement = lambda d, auth, cd: {
        "alg": ES256, "sig": d.credential.key.sign(auth + sha256(cd)), "x5c": [_certificate(d.credential.aaguid)],
    }


def _certificate(aaguid):
    """A self-signed attestation certificate of a key that has nothing to do with anything."""
    import datetime  # pylint: disable=import-outside-toplevel
    from cryptography import x509  # pylint: disable=import-outside-toplevel
    from cryptography.x509.oid import NameOID  # pylint: disable=import-outside-toplevel

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([
        x509.NameAttribute(NameOID.COUNTRY_NAME, "AT"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Nobody"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "Authenticator Attestation"),
        x509.NameAttribute(NameOID.COMMON_NAME, "Nobody's authenticator"),
    ])
    now = datetime.datetime.utcnow()
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(False, None), True)
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.45724.1.1.4")
    builder = builder.add_extension(x509.UnrecognizedExtension(oid, b"\x04\x10" + aaguid), False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@_into(BEFORE)
def _at_0_with_data(draft):
    draft.flags &= ~AT


@_into(BEFORE)
def _at_0_no_data(draft):
    draft.flags &= ~AT
    draft.attested = False


@_into(BEFORE)
def _at_1_no_data(draft):
    draft.attested = False


@_into(BEFORE)
def _credid_existing_same_user(draft):
    draft.credential_id = draft.foreign.existing.id


def _cose(name, **labels):
    """Changes labels of the COSE key: m2 is -2; None removes."""
    def change(draft):
        key = dict(draft.cose)
        for label, value in labels.items():
            number = -int(label[1:]) if label[0] == "m" else int(label[1:])
            if value is None:
                key.pop(number)
            else:
                key[number] = value(key) if callable(value) else value
        draft.cose = key
    BEFORE[name] = change


_cose("cose_kty_alg_mismatch", p3=RS256)
_cose("cose_kty_okp", p1=1)
_cose("cose_unknown_crv", m1=99)
_cose("cose_crv_p384", m1=2)
_cose("cose_no_x", m2=None)
_cose("cose_no_y", m3=None)
_cose("cose_x_31", m2=lambda key: key[-2][1:])
_cose("cose_x_33", m2=lambda key: b"\0" + key[-2])
_cose("cose_y_bool", m3=True)
_cose("cose_point_off_curve", m3=lambda key: _flip(key[-3], 31, 0))
_cose("cose_infinity", m2=bytes(32), m3=bytes(32))
_cose("cose_alg_text", p3="ES256")
_cose("alg_es512", p3=-36)


@_into(BEFORE)
def _cose_private_d(draft):
    draft.cose = {**draft.cose, -4: draft.credential.key.private.private_numbers().private_value.to_bytes(32, "big")}


@_into(BEFORE)
def _cose_text_labels(draft):
    draft.cose = {str(label): value for label, value in draft.cose.items()}


@_into(BEFORE)
def _cose_dup_labels(draft):
    draft.cose = Raw(b"\xa6" + cbor(draft.cose)[1:] + cbor(3) + cbor(ES256))


def _with_key(name, make):
    def change(draft):
        draft.credential.key = make()
        draft.cose = draft.credential.key.cose()
    BEFORE[name] = change


_with_key("rsa_1024", lambda: Key(RS256, bits=1024))
_with_key("alg_rs1", lambda: Key(RS1))


def _rsa(name, **parts):
    def change(draft):
        draft.credential.key = Key(RS256)
        key = draft.credential.key.cose()
        draft.cose = {**key, **{-int(label[1:]): value(key) for label, value in parts.items()}}
    BEFORE[name] = change


_rsa("rsa_e_even", m2=lambda _: b"\x01\0\0")
_rsa("rsa_e_1", m2=lambda _: b"\x01")
_rsa("rsa_n_leading_zero", m1=lambda key: b"\0" + key[-1])


@_into(BEFORE)
def _ed25519_low_order(draft):
    draft.credential.key = Key(EDDSA)
    draft.cose = {**draft.credential.key.cose(), -2: bytes(32)}
