"""ceremonies.json: options, what a software authenticator makes of them, and whether the server takes it."""

from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric import rsa, utils

from harness import authenticator
from harness.authenticator import EDDSA, ES256, RS256, Credential
from harness.jose import b64url
from harness.signing import number

from .keys import VectorKey, seed
from .urls import HOST, ORIGIN

ACCOUNT = {"name": "ada@vectors.example", "displayName": "Ada"}
#: The primes of the RSA key are the first ones behind texts that are made from its name: this far behind.
_PRIMES = (134, 6)


class PasskeyKey(authenticator.Key):
    """The key of a passkey: made from its name, and its signatures are the same each time."""

    def __init__(self, name, algorithm=ES256):  # pylint: disable=super-init-not-called
        self.algorithm = algorithm
        self._key = None if algorithm == RS256 else VectorKey(name, "ES256" if algorithm == ES256 else "EdDSA")
        self.private = _rsa(name) if self._key is None else self._key.private

    def sign(self, message):
        """As WebAuthn carries it: of ES256 in DER."""
        if self.algorithm != ES256:
            return super().sign(message)
        raw = self._key.signature(message)
        return utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))

    def private_jwk(self):
        """The JWK with its secret members."""
        if self._key is not None:
            return self._key.private_jwk()
        secret = self.private.private_numbers()
        members = {"n": secret.public_numbers.n, "e": secret.public_numbers.e, "d": secret.d, "p": secret.p, "q": secret.q}
        return {"kty": "RSA", **{name: number(value) for name, value in members.items()}}


def _rsa(name):
    """A key of 2,048 bits."""
    texts = [b"".join(seed(f"{name} {which} {part}") for part in range(4)) for which in "pq"]
    p, q = ((int.from_bytes(text, "big") | 3 << 1022 | 1) + 2 * behind for text, behind in zip(texts, _PRIMES))
    d = pow(65537, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(65537, p * q)
    return rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public).private_key()


def _passkey(name, algorithm=ES256, **settings):
    return Credential(HOST, b"vector-user-handle-1", PasskeyKey(name, algorithm), id=name.encode(), **settings)


#: What the authenticator and the server keep, by name.
PASSKEYS = {name: _passkey(name, *algorithm, **settings) for name, algorithm, settings in (
    ("vector-passkey-1", (), {}), ("vector-passkey-2", (EDDSA,), {}), ("vector-passkey-3", (RS256,), {}),
    ("vector-passkey-4", (), {"backup_eligible": True, "backup_state": True}), ("vector-passkey-5", (), {"sign_count": 41}),
)}
#: One that the server does not know.
UNKNOWN = _passkey("vector-passkey-6")


class Ceremony:
    """A case with what makes its credential: again, for the options and the account of a server."""

    def __init__(self, do, name, step=None, spoil="ok", passkey="vector-passkey-1", become=None, excludes=(), **changes):  # pylint: disable=too-many-arguments
        """`step`: where it is refused. `spoil`: a mutation of the authenticator. `become`: what signs in place of the passkey."""
        self.do, self.name, self.step, self.spoil, self.passkey = do, name, step, spoil, passkey
        self.become, self.excludes, self.changes = become or (lambda credential: credential), excludes, changes

    def options(self):
        """What the server gives."""
        challenge = b64url(seed(f"challenge of {self.do}, {self.name}"))
        if self.do == "get":
            return {"challenge": challenge, "timeout": 300_000, "rpId": HOST, "allowCredentials": [], "userVerification": "required"}
        return {
            "rp": {"id": HOST, "name": "Vectors"}, "user": {"id": b64url(PASSKEYS[self.passkey].user_handle), **ACCOUNT},
            "challenge": challenge, "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in (ES256, EDDSA, RS256)],
            "timeout": 300_000, "excludeCredentials": [{"type": "public-key", "id": PASSKEYS[name].id_text} for name in self.excludes],
            "authenticatorSelection": {"residentKey": "required", "requireResidentKey": True, "userVerification": "required"},
            "attestation": "none", "extensions": {"credProps": True},
        }

    def credential(self, options, passkey):
        """What the authenticator makes of options with a passkey."""
        make = authenticator.assertion if self.do == "get" else authenticator.attestation
        return make(options, self.become(passkey), self.spoil, **self.changes)

    def document(self):
        """The case."""
        options = self.options()
        return {"name": self.name, "do": self.do, "passkey": self.passkey, "options": options,
                "credential": self.credential(options, PASSKEYS[self.passkey]),
                "answer": "refuse" if self.step else "accept", "step": self.step}


#: What is wrong with client data, by its name for the authenticator: in either ceremony at the same step.
_CLIENT_DATA = [
    ("another challenge", "challenge", "cd_challenge_other"), ("the challenge padded", "challenge", "cd_challenge_padded"),
    ("another origin", "origin", "cd_origin_other"), ("origin: http", "origin", "origin_http"), ("origin: a slash behind", "origin", "origin_path"),
    ("origin: a port", "origin", "origin_port"), ("origin: in upper case", "origin", "origin_upper"),
    ("origin: a subdomain that is not registered", "origin", "origin_sub_not_listed"), ("origin: a longer host", "origin", "origin_suffix_evil"),
    ("in a frame of another origin", "crossOrigin", "cross_origin_true"), ("a top-level origin", "topOrigin", "top_origin_present"),
    ("client data: no JSON", "clientDataSyntax", "cd_not_json"), ("client data: challenge twice", "clientDataSyntax", "cd_dup_challenge"),
    ("client data: cut off", "clientDataSyntax", "cd_truncated"), ("client data: UTF-16", "clientDataEncoding", "cd_utf16"),
]
_FLAGS = [
    ("another RP ID", "rpIdHash", "rpidhash_other"), ("the person was not there", "userPresent", "up_0"),
    ("the person was not verified", "userVerified", "uv_0"), ("backed up, but not to be backed up", "backupState", "bs_without_be"),
]
_TOLERATED = [("an extension that was not asked for", "ext_ok"), ("unknown members", "extra_members"), ("unknown members of client data", "cd_extra_members")]
_ALGORITHMS = [("ES256", "vector-passkey-1"), ("Ed25519", "vector-passkey-2"), ("RS256", "vector-passkey-3"), ("a passkey that is backed up", "vector-passkey-4")]


def _by_another(credential):
    return replace(credential, key=UNKNOWN.key)


def ceremonies():
    """All cases, in order: those that add a passkey, then those that sign in."""
    def cases(do, accepted, refused):
        return [
            *(Ceremony(do, f"{do}: {name}", passkey=passkey) for name, passkey in _ALGORITHMS),
            *(Ceremony(do, f"{do}: {name}", None, *how) for name, *how in [*_TOLERATED, *accepted]),
            *(Ceremony(do, f"{do}: {name}", step, spoil) for name, step, spoil in [*_CLIENT_DATA, *_FLAGS, *refused]),
        ]
    counted = {"passkey": "vector-passkey-5"}
    return [
        *cases("create", [("self attestation", "packed_ok"), ("members of the attestation object in another order", "cbor_unsorted")], [
            ("the type of a sign-in", "type", "cd_type_get"), ("type of the document in upper case", "response", "type_upper"),
            ("something behind the attestation object", "attestationObject", "ao_trailing_bytes"),
            ("no credential in the data", "attestationObject", "at_0_no_data"), ("something behind the key", "attestationObject", "cose_trailing"),
            ("an algorithm that was not offered", "algorithm", "alg_es512"), ("a point beside the curve", "algorithm", "cose_point_off_curve"),
            ("an unknown format", "format", "fmt_unknown"), ("format none with a statement", "attestationStatement", "none_with_statement"),
            ("self attestation: signed over other data", "attestationStatement", "packed_sig_bad"),
            ("self attestation: another algorithm", "attestationStatement", "packed_alg_mismatch"),
            ("an id of 1024 bytes", "credentialIdLength", "credid_1024"),
        ]),
        Ceremony("create", "create: a counter", **counted),
        Ceremony("create", "create: a passkey that is registered", "credentialIdUnknown", excludes=["vector-passkey-1"]),
        *cases("get", [
            ("a signature with the higher s", "sig_high_s"), ("client data behind a byte order mark", "cd_bom"),
            ("client data with blanks", "cd_blanks"), ("client data with escapes", "cd_escapes"),
        ], [
            ("the type of a registration", "type", "cd_type_create"), ("the id padded", "response", "id_not_b64url"), ("no signature", "response", "sig_missing"),
            ("no user handle", "userHandle", "uh_missing"), ("authenticator data: 36 bytes", "authenticatorData", "ad_len_36"),
            ("authenticator data: something behind", "authenticatorData", "ad_trailing_bytes"),
            ("authenticator data: extensions that are not there", "authenticatorData", "ad_ed_flag_no_ext"),
            ("another backup eligibility", "backupEligible", "be_changed"),
            ("signature: r and s of 32 bytes", "signature", "sig_p1363"), ("signature: something behind", "signature", "sig_trailing"),
            ("signature: s is 0", "signature", "sig_s_0"), ("signature: s beyond the order", "signature", "sig_s_plus_n"),
            ("signature: over the authenticator data alone", "signature", "sig_without_hash"), ("signature: over the hash alone", "signature", "sig_hash_only"),
            ("signature: hash and data exchanged", "signature", "sig_swapped"), ("signature: over client data written anew", "signature", "sig_cdj_reserialised"),
            ("a bit of the counter", "signature", "ad_bitflip"), ("a bit of client data", "signature", "cdj_bitflip"),
        ]),
        Ceremony("get", "get: the user handle of another account", "userHandle", user_handle=b"vector-user-handle-2"),
        Ceremony("get", "get: signed by another key", "signature", become=_by_another),
        Ceremony("get", "get: a passkey that the server does not know", "signature", become=lambda passkey: replace(UNKNOWN, user_handle=passkey.user_handle)),
        Ceremony("get", "get: the counter stands still", "signCount", count=41, **counted),
        Ceremony("get", "get: the counter goes back", "signCount", count=40, **counted),
        Ceremony("get", "get: the counter is 0 after others", "signCount", count=0, **counted),
        Ceremony("get", "get: the counter goes on", count=42, **counted),
    ]


def kept(passkey):
    """What is kept of a passkey, as the file has it."""
    return {
        "id": passkey.id_text, "userHandle": b64url(passkey.user_handle), "alg": passkey.key.algorithm,
        "publicKey": b64url(authenticator.cbor(passkey.key.cose())), "private": passkey.key.private_jwk(), "signCount": passkey.sign_count,
        "backupEligible": passkey.backup_eligible, "backupState": passkey.backup_state,
    }


def document():
    """The file."""
    passkeys = {name: kept(passkey) for name, passkey in PASSKEYS.items()}
    return {"rpId": HOST, "origin": ORIGIN, "passkeys": passkeys, "cases": [ceremony.document() for ceremony in ceremonies()]}
