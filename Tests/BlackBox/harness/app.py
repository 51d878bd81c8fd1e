"""What a native app (or an API, with a confidential client) does against one realm."""

import base64
import json
import urllib.parse
from dataclasses import dataclass

from . import authenticator, totp, wire
from .ledger import LEDGER

OTP = "urn:cocoar:otp"
PASSKEY = "urn:cocoar:passkey"
FULL_SCOPE = "openid offline_access profile email"


@dataclass
class Requested:
    """A code that was asked for: the handle, and the code from the mail."""

    email: str
    handle: str
    code: str = ""


def bearer(token):
    """The header of RFC 6750; none for no token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


class NativeApp:
    """One client at one node. Every secret it is given goes to the ledger."""

    def __init__(self, node, mailbox, host, client_id, secret=None):
        self.node = node
        self.mailbox = mailbox
        self.host = host
        self.client_id = client_id
        self.secret = secret

    # -- plain requests -----------------------------------------------------------------------

    def exchange(self, method, path, headers=None, body=None, timeout=10.0):
        """Any request to this client's host: every other one goes through here."""
        return wire.exchange(self.node.port, method, path, {"Host": self.host, **(headers or {})}, body, timeout)

    def post(self, path, parameters, headers=None, timeout=10.0):
        """POST of a form."""
        return self.exchange("POST", path, {"Content-Type": wire.FORM, **(headers or {})}, wire.form_body(parameters), timeout)

    def post_json(self, path, document, headers=None, timeout=10.0):
        """POST of JSON."""
        fields = {"Content-Type": "application/json", **(headers or {})}
        return self.exchange("POST", path, fields, json.dumps(document).encode(), timeout)

    def send_json(self, method, path, document, headers=None):
        """Another method with JSON."""
        return self.exchange(method, path, {"Content-Type": "application/json", **(headers or {})}, json.dumps(document).encode())

    def get(self, path, headers=None):
        """GET."""
        return self.exchange("GET", path, headers)

    @property
    def basic(self):
        """The value of an Authorization header for this confidential client."""
        pair = f"{urllib.parse.quote(self.client_id, safe='')}:{urllib.parse.quote(self.secret or '', safe='')}"
        return "Basic " + base64.b64encode(pair.encode()).decode()

    def credentials(self):
        """client_id, and the secret when there is one, as form parameters."""
        return {"client_id": self.client_id, **({"client_secret": self.secret} if self.secret else {})}

    # -- one-time codes -----------------------------------------------------------------------

    def ask(self, email, **members):
        """Asks for a code and returns the raw answer."""
        answer = self.post_json("/api/account/native/otp/request", {"Email": email, **members})
        if answer.status == 200:
            LEDGER.add("auth_session", answer.json().get("AuthSession"))
        return answer

    def request_code(self, email, **members):
        """Asks for a code and waits for the mail with it."""
        before = len(self.mailbox.to(email, "code"))
        answer = self.ask(email, **members)
        assert answer.status == 200, answer
        code = LEDGER.add("code", self.mailbox.wait(email, before + 1, kind="code").code)
        return Requested(email, answer.json()["AuthSession"], code)

    def redeem_form(self, code, email=None, handle=None, scope=FULL_SCOPE, **more):
        """The form of a redemption."""
        return {
            "grant_type": OTP, **self.credentials(), "username": email, "auth_session": handle,
            "otp_code": code, "scope": scope, **more,
        }

    def redeem(self, code, email=None, handle=None, scope=FULL_SCOPE, **more):
        """Redeems a code by address or by handle; returns the raw answer."""
        return self.token(self.redeem_form(code, email, handle, scope, **more))

    def token(self, parameters, headers=None, timeout=10.0):
        """POST /connect/token."""
        answer = self.post("/connect/token", parameters, headers, timeout)
        if answer.status == 200:
            LEDGER.tokens(answer.json())
        return answer

    def sign_in(self, email, scope=FULL_SCOPE, **more):
        """Code, mail, tokens; returns the token answer."""
        asked = self.request_code(email)
        answer = self.redeem(asked.code, email=email, scope=scope, **more)
        assert answer.status == 200, answer
        return answer.json()

    # -- passkeys -----------------------------------------------------------------------------

    def begin(self, headers=None, **more):
        """POST /connect/passkey/begin; returns the raw answer."""
        answer = self.post("/connect/passkey/begin", {"client_id": self.client_id, **more}, headers)
        if answer.status == 200:
            LEDGER.add("ceremony", answer.json().get("ceremonyId"))
        return answer

    def ceremony(self):
        """A login ceremony: `ceremonyId` and `options`."""
        answer = self.begin()
        assert answer.status == 200, answer
        return answer.json()

    def passkey_form(self, ceremony, document, scope=FULL_SCOPE, **more):
        """The form of a redemption; the assertion is a document or text."""
        text = document if isinstance(document, str) or document is None else json.dumps(document)
        return {
            "grant_type": PASSKEY, **self.credentials(), "ceremony_id": ceremony["ceremonyId"], "assertion": text, "scope": scope, **more,
        }

    def redeem_passkey(self, ceremony, document, scope=FULL_SCOPE, **more):
        """Redeems an assertion; returns the raw answer."""
        return self.token(self.passkey_form(ceremony, document, scope, **more))

    def try_passkey(self, credential, mutation="ok", origin=None, foreign=None, **changes):
        """A whole ceremony with what the authenticator makes of it; returns the raw answer."""
        ceremony = self.ceremony()
        document = authenticator.assertion(ceremony["options"], credential, mutation, origin, foreign, **changes)
        return self.redeem_passkey(ceremony, document)

    def passkey_sign_in(self, credential, **how):
        """A whole ceremony; returns the token answer."""
        answer = self.try_passkey(credential, **how)
        assert answer.status == 200, answer
        return answer.json()

    def enroll_begin(self, token):
        """POST /connect/passkey/enroll/begin; returns the raw answer."""
        answer = self.post_json("/connect/passkey/enroll/begin", {}, bearer(token))
        if answer.status == 200:
            LEDGER.add("ceremony", answer.json().get("ceremonyId"))
        return answer

    def enrolment(self, token):
        """An enrolment ceremony: `ceremonyId` and `options`."""
        answer = self.enroll_begin(token)
        assert answer.status == 200, answer
        return answer.json()

    def complete(self, token, ceremony, document, **members):
        """POST /connect/passkey/enroll; returns the raw answer."""
        body = {"ceremonyId": ceremony["ceremonyId"], "attestation": document, **members}
        return self.post_json("/connect/passkey/enroll", body, bearer(token))

    def enroll(self, token, name=None, origin=None, algorithm=authenticator.ES256, mutation="ok", changes=None, **settings):
        """Enrols a new passkey; returns its management id and what the authenticator keeps."""
        ceremony = self.enrolment(token)
        document, credential = authenticator.create(
            ceremony["options"], algorithm, mutation, origin, changes=changes, **settings
        )
        answer = self.complete(token, ceremony, document, **({"DisplayName": name} if name else {}))
        assert answer.status == 200, answer
        return answer.json()["Id"], credential

    def passkeys(self, token):
        """GET /connect/passkey, the list of a success."""
        answer = self.get("/connect/passkey", bearer(token))
        assert answer.status == 200, answer
        return answer.json()

    def rename_passkey(self, token, passkey, name):
        """PATCH; returns the raw answer."""
        return self.send_json("PATCH", f"/connect/passkey/{passkey}", {"DisplayName": name}, bearer(token))

    def delete_passkey(self, token, passkey):
        """DELETE; returns the raw answer."""
        return self.delete(f"/connect/passkey/{passkey}", bearer(token))

    # -- own data -----------------------------------------------------------------------------

    def delete(self, path, headers=None):
        """DELETE."""
        return self.exchange("DELETE", path, headers)

    def account(self, token):
        """GET /connect/account of a success."""
        answer = self.get("/connect/account", bearer(token))
        assert answer.status == 200, answer
        return answer.json()

    def change_account(self, token, document):
        """PATCH /connect/account; returns the raw answer."""
        return self.send_json("PATCH", "/connect/account", document, bearer(token))

    # -- second factor ------------------------------------------------------------------------

    def totp_begin(self, token):
        """POST /connect/totp/enroll/begin; returns the raw answer."""
        answer = self.post_json("/connect/totp/enroll/begin", {}, bearer(token))
        if answer.status == 200:
            LEDGER.add("ceremony", answer.json().get("ceremonyId"))
            LEDGER.add("totp_secret", answer.json().get("secret"))
        return answer

    def totp_enroll(self, token, ceremony, code):
        """POST /connect/totp/enroll; returns the raw answer."""
        answer = self.post_json("/connect/totp/enroll", {"ceremonyId": ceremony["ceremonyId"], "code": code}, bearer(token))
        if answer.status == 200:
            for recovery_code in answer.json()["recoveryCodes"]:
                LEDGER.add("recovery_code", recovery_code)
        return answer

    def enrol_totp(self, token):
        """Begins and proves; returns the secret and the recovery codes. The step before now is spent with it."""
        totp.settle(1)
        answer = self.totp_begin(token)
        assert answer.status == 200, answer
        secret = answer.json()["secret"]
        answer = self.totp_enroll(token, answer.json(), totp.code(secret, -1))
        assert answer.status == 200, answer
        return secret, answer.json()["recoveryCodes"]

    def totp_delete(self, token):
        """DELETE /connect/totp; returns the raw answer."""
        return self.delete("/connect/totp", bearer(token))

    # -- what comes after -----------------------------------------------------------------------

    def refresh(self, refresh_token, timeout=10.0, **more):
        """Refreshes; returns the raw answer."""
        return self.token(
            {"grant_type": "refresh_token", **self.credentials(), "refresh_token": refresh_token, **more}, timeout=timeout
        )

    def refreshed(self, refresh_token, **more):
        """Refreshes; returns the token answer of a success."""
        answer = self.refresh(refresh_token, **more)
        assert answer.status == 200, answer
        return answer.json()

    def userinfo(self, access_token):
        """GET /connect/userinfo."""
        return self.get("/connect/userinfo", {"Authorization": f"Bearer {access_token}"})

    def introspect(self, token, **more):
        """Introspects by Basic; returns the raw answer."""
        return self.post("/connect/introspect", {"token": token, **more}, {"Authorization": self.basic})

    def active(self, token):
        """Whether introspection says the token is active."""
        answer = self.introspect(token)
        assert answer.status == 200, answer
        return answer.json()["active"]

    def revoke(self, token, **more):
        """Revokes; returns the raw answer."""
        return self.post("/connect/revoke", {"token": token, **self.credentials(), **more})
