"""What PyPI's fido2 and webauthn say to each case of a file like ceremonies.json: a name, and the error or null."""

import base64
import json
import sys

import webauthn
from fido2 import cbor
from fido2.cose import CoseKey
from fido2.server import Fido2Server
from fido2.webauthn import (
    Aaguid, AttestedCredentialData, AuthenticationResponse, PublicKeyCredentialRpEntity, RegistrationResponse, UserVerificationRequirement,
)


def unb64url(text):
    """Bytes of base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def by_fido2(file, case):
    """Its server, which keeps no counters and no user handles."""
    server = Fido2Server(PublicKeyCredentialRpEntity(id=file["rpId"], name="Vectors"))
    state = {"challenge": case["options"]["challenge"], "user_verification": UserVerificationRequirement.REQUIRED}
    if case["do"] == "create":
        server.register_complete(state, RegistrationResponse.from_dict(case["credential"]))
        return
    kept = [
        AttestedCredentialData.create(Aaguid.NONE, unb64url(passkey["id"]), CoseKey.parse(cbor.decode(unb64url(passkey["publicKey"]))))
        for passkey in file["passkeys"].values()
    ]
    server.authenticate_complete(state, kept, AuthenticationResponse.from_dict(case["credential"]))


def by_webauthn(file, case):
    """Its functions; the caller finds the passkey by its id."""
    expected = {
        "credential": case["credential"], "expected_challenge": unb64url(case["options"]["challenge"]), "expected_rp_id": file["rpId"],
        "expected_origin": file["origin"], "require_user_verification": True,
    }
    if case["do"] == "create":
        webauthn.verify_registration_response(**expected)
        return
    kept = {passkey["id"]: passkey for passkey in file["passkeys"].values()}[case["credential"]["id"]]
    webauthn.verify_authentication_response(
        **expected, credential_public_key=unb64url(kept["publicKey"]), credential_current_sign_count=kept["signCount"])


def verdict(verify, file, case):
    """None: it accepts."""
    try:
        verify(file, case)
        return None
    except Exception as error:  # Their errors have no class in common.
        return f"{type(error).__name__}: {error}"


with open(sys.argv[1], encoding="utf-8") as opened:
    told = json.load(opened)
json.dump({
    name: {case["name"]: verdict(verify, told, case) for case in told["cases"]} for name, verify in {"fido2": by_fido2, "webauthn": by_webauthn}.items()
}, sys.stdout)
