"""PyPI's fido2 as an independent party: its client enrols and signs in, its server verifies the same bytes, its classes read our options."""

import secrets
import sys

import pytest

from harness import report, settings
from harness.holder import signed_in, stored_count
from harness.jose import parts, unb64url

if settings.PEERS:
    sys.path.append(str(settings.PEERS))
try:
    from fido2 import cbor, cose
    from fido2.client import ClientError, DefaultClientDataCollector, Fido2Client, UserInteraction
    from fido2.ctap import CtapDevice, CtapError
    from fido2.hid import CAPABILITY, CTAPHID
    from fido2.server import Fido2Server
    from fido2.utils import sha256
    from fido2.webauthn import (
        AttestedCredentialData, AuthenticationResponse, AuthenticatorData, PublicKeyCredentialCreationOptions,
        PublicKeyCredentialRequestOptions, PublicKeyCredentialRpEntity, RegistrationResponse, ResidentKeyRequirement,
        UserVerificationRequirement,
    )
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
except ImportError as problem:
    MISSING = f"fido2 2.x is absent ({problem}): pip install --no-deps --target DIR fido2, then POSTERN_PEERS=DIR"
    report.say("peers: " + MISSING)
    pytest.skip(MISSING, allow_module_level=True)

FLAG = AuthenticatorData.FLAG
DONE = []


@pytest.fixture(scope="module", autouse=True)
def _told():
    yield
    report.say(f"peers: fido2's client enrolled once and signed in three times, its server agreed: alg/counter {', '.join(DONE)}")


class Device(CtapDevice):
    """A CTAP 2.0 authenticator with discoverable credentials and user verification of its own, made of fido2's structures."""

    def __init__(self, algorithm=cose.ES256.ALGORITHM, counter=0):
        self.algorithm = algorithm
        self.counter = counter
        self.kept = {}

    @property
    def capabilities(self):
        """CTAP2 only."""
        return CAPABILITY.CBOR

    @classmethod
    def list_devices(cls):
        """There is no bus."""
        return iter(())

    def call(self, cmd, data=b"", event=None, on_keepalive=None):
        """One CTAP message."""
        assert cmd == CTAPHID.CBOR
        body = cbor.decode(data[1:]) if len(data) > 1 else {}
        answer = {1: self._make, 2: self._get, 4: self._info}[data[0]](body)
        return bytes([answer]) if isinstance(answer, int) else b"\0" + cbor.encode(answer)

    def _info(self, _body):
        return {1: ["FIDO_2_0"], 3: bytes(16), 4: {"rk": True, "up": True, "uv": True}, 6: [1]}

    def _make(self, body):
        if any(entry["id"] in self.kept for entry in body.get(5, [])):
            return CtapError.ERR.CREDENTIAL_EXCLUDED
        if self.algorithm not in [entry["alg"] for entry in body[4]]:
            return CtapError.ERR.UNSUPPORTED_ALGORITHM
        assert body[7] == {"rk": True, "uv": True}
        private, public = self._key()
        credential_id = secrets.token_bytes(48)
        self.kept[credential_id] = (private, body[2]["id"], body[3])
        data = AuthenticatorData.create(
            sha256(body[2]["id"].encode()), FLAG.UP | FLAG.UV | FLAG.AT, self.counter,
            AttestedCredentialData.create(bytes(16), credential_id, public),
        )
        return {1: "packed", 2: bytes(data), 3: {"alg": self.algorithm, "sig": self._sign(private, bytes(data) + body[1])}}

    def _get(self, body):
        allowed = [entry["id"] for entry in body.get(3, [])]
        found = [i for i, (_, rp_id, _) in self.kept.items() if rp_id == body[1] and (not allowed or i in allowed)]
        if not found:
            return CtapError.ERR.NO_CREDENTIALS
        private, _, user = self.kept[found[-1]]
        used = body.get(5, {}).get("up", True)
        self.counter += 1 if used and self.counter else 0
        data = AuthenticatorData.create(sha256(body[1].encode()), FLAG.UP | FLAG.UV if used else FLAG(0), self.counter)
        return {
            1: {"type": "public-key", "id": found[-1]}, 2: bytes(data), 3: self._sign(private, bytes(data) + body[2]), 4: {"id": user["id"]},
        }

    def _key(self):
        if self.algorithm == cose.EdDSA.ALGORITHM:
            private = ed25519.Ed25519PrivateKey.generate()
            return private, cose.EdDSA.from_cryptography_key(private.public_key())
        if self.algorithm == cose.RS256.ALGORITHM:
            private = rsa.generate_private_key(65537, 2048)
            return private, cose.RS256.from_cryptography_key(private.public_key())
        private = ec.generate_private_key(ec.SECP256R1())
        return private, cose.ES256.from_cryptography_key(private.public_key())

    def _sign(self, private, message):
        if self.algorithm == cose.EdDSA.ALGORITHM:
            return private.sign(message)
        if self.algorithm == cose.RS256.ALGORITHM:
            return private.sign(message, padding.PKCS1v15(), hashes.SHA256())
        return private.sign(message, ec.ECDSA(hashes.SHA256()))


class User(UserInteraction):
    """Always there, always willing."""

    def request_uv(self, permissions, rp_id):
        """Yes."""
        return True


def client(device, host):
    """fido2's WebAuthn client on a page of the host."""
    return Fido2Client(device, DefaultClientDataCollector(f"https://{host}"), user_interaction=User())


def enroll(one, device):
    """Options parsed, credential made and answered by fido2; returns the RegistrationResponse and our management id."""
    ceremony = one.app.enrolment(one.token)
    options = PublicKeyCredentialCreationOptions.from_dict(ceremony["options"])
    response = client(device, one.app.host).make_credential(options)
    answer = one.app.complete(one.token, ceremony, dict(response))
    assert answer.status == 200, answer
    return ceremony, response, answer.json()["Id"]


def sign_in(app, device):
    """Options parsed and answered by fido2; returns ceremony, response and the raw answer."""
    ceremony = app.ceremony()
    options = PublicKeyCredentialRequestOptions.from_dict(ceremony["options"])
    response = client(device, app.host).get_assertion(options).get_response(0)
    return ceremony, response, app.redeem_passkey(ceremony, dict(response))


@pytest.mark.parametrize("algorithm", [-7, -8, -257])
@pytest.mark.parametrize("counter", [0, 41])
def test_fido2s_client_enrols_and_signs_in(realm, algorithm, counter):
    """Issue 3: without special treatment; and fido2's server accepts what ours accepted."""
    one, device = signed_in(realm), Device(algorithm, counter)
    ceremony, registration, passkey = enroll(one, device)
    server = Fido2Server(PublicKeyCredentialRpEntity(id=realm.host, name="x"))
    state = {"challenge": ceremony["options"]["challenge"], "user_verification": UserVerificationRequirement.REQUIRED}
    kept = server.register_complete(state, RegistrationResponse.from_dict(dict(registration))).credential_data
    for _ in range(3):
        ceremony, response, answer = sign_in(one.app, device)
        assert answer.status == 200, answer
        assert parts(answer.json()["id_token"])[1]["amr"] == ["hwk", "user", "mfa"]
        state = {"challenge": ceremony["options"]["challenge"], "user_verification": UserVerificationRequirement.REQUIRED}
        server.authenticate_complete(state, [kept], AuthenticationResponse.from_dict(dict(response)))
    assert stored_count(realm.world, passkey) == device.counter == (counter + 3 if counter else 0)
    (item,) = one.app.passkeys(one.token)
    assert item["Id"] == passkey and item["DeviceBound"] is True
    DONE.append(f"{algorithm}/{counter}")


def test_fido2s_client_sees_its_own_credential_excluded(realm):
    """excludeCredentials reach an authenticator: it refuses to make a second credential for the account."""
    one, device = signed_in(realm), Device()
    enroll(one, device)
    options = PublicKeyCredentialCreationOptions.from_dict(one.app.enrolment(one.token)["options"])
    with pytest.raises(ClientError) as refused:
        client(device, one.app.host).make_credential(options)
    assert refused.value.code == ClientError.ERR.DEVICE_INELIGIBLE
    enroll(one, Device())


def test_fido2s_client_on_another_page_is_refused(realm):
    """A page below the RP-ID may ask for it; unregistered, it is refused by us, at both ends."""
    one, device = signed_in(realm), Device()
    enroll(one, device)
    ceremony = one.app.ceremony()
    options = PublicKeyCredentialRequestOptions.from_dict(ceremony["options"])
    response = client(device, "login." + one.app.host).get_assertion(options).get_response(0)
    assert one.app.redeem_passkey(ceremony, dict(response)).error == "invalid_grant"
    realm.world.admin.call("put_web_origin", realm.slug, one.app.client_id, "https://login." + one.app.host)
    realm.world.settle()
    ceremony = one.app.ceremony()
    options = PublicKeyCredentialRequestOptions.from_dict(ceremony["options"])
    response = client(device, "login." + one.app.host).get_assertion(options).get_response(0)
    assert one.app.redeem_passkey(ceremony, dict(response)).status == 200


def test_fido2_reads_our_options_as_they_are_meant(realm):
    """Every member survives the round trip through fido2's own classes."""
    one, device = signed_in(realm), Device()
    _, registration, _ = enroll(one, device)
    given = one.app.enrolment(one.token)["options"]
    read = PublicKeyCredentialCreationOptions.from_dict(given)
    assert read.rp.id == realm.host and read.rp.name == f"Realm {realm.slug}"
    assert read.user.id == unb64url(given["user"]["id"]) and read.user.name == one.email
    assert read.challenge == unb64url(given["challenge"]) and len(read.challenge) == 32
    assert [p.alg for p in read.pub_key_cred_params] == [-7, -8, -257]
    assert read.authenticator_selection.resident_key == ResidentKeyRequirement.REQUIRED
    assert read.authenticator_selection.user_verification == UserVerificationRequirement.REQUIRED
    assert [c.id for c in read.exclude_credentials] == [registration.raw_id]
    assert read.timeout == 300_000
    again = dict(read)
    for name in ("rp", "user", "challenge", "pubKeyCredParams", "timeout", "excludeCredentials", "attestation"):
        assert again[name] == given[name] or [dict(item) for item in again[name]] == given[name], name

    given = one.app.ceremony()["options"]
    read = PublicKeyCredentialRequestOptions.from_dict(given)
    assert read.rp_id == realm.host and read.user_verification == UserVerificationRequirement.REQUIRED
    assert read.challenge == unb64url(given["challenge"]) and not read.allow_credentials
    assert read.timeout == 300_000
