"""What a native app (or an API, with a confidential client) does against one realm."""

import base64
import json
import urllib.parse
from dataclasses import dataclass

from . import wire
from .ledger import LEDGER

OTP = "urn:cocoar:otp"
FULL_SCOPE = "openid offline_access profile email"


@dataclass
class Requested:
    """A code that was asked for: the handle, and the code from the mail."""

    email: str
    handle: str
    code: str = ""


class NativeApp:
    """One client at one node. Every secret it is given goes to the ledger."""

    def __init__(self, node, mailbox, host, client_id, secret=None):
        self.node = node
        self.mailbox = mailbox
        self.host = host
        self.client_id = client_id
        self.secret = secret

    # -- plain requests -----------------------------------------------------------------------

    def post(self, path, parameters, headers=None, timeout=10.0):
        """POST of a form."""
        fields = {"Host": self.host, "Content-Type": wire.FORM, **(headers or {})}
        return wire.exchange(self.node.port, "POST", path, fields, wire.form_body(parameters), timeout)

    def post_json(self, path, document, headers=None, timeout=10.0):
        """POST of JSON."""
        fields = {"Host": self.host, "Content-Type": "application/json", **(headers or {})}
        return wire.exchange(self.node.port, "POST", path, fields, json.dumps(document).encode(), timeout)

    def get(self, path, headers=None):
        """GET."""
        return wire.exchange(self.node.port, "GET", path, {"Host": self.host, **(headers or {})})

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
        before = len(self.mailbox.to(email))
        answer = self.ask(email, **members)
        assert answer.status == 200, answer
        code = LEDGER.add("code", self.mailbox.wait(email, before + 1).code)
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
