"""Proofs of phone numbers: a backend on Prove's wire, typed as its SDKs are, and the app with its key."""

import json
import types

from . import service, wire
from .dpop import DPoPApp, ProofKey
from .ledger import LEDGER
from .phones import Phones, new_number

TEXT, FLAG, OBJECT = str, bool, dict
#: What an SDK expects of each answer: required members, then optional ones.
ANSWERS = {
    "/v3/unify": ({"authToken": TEXT, "correlationId": TEXT, "success": TEXT}, {}),
    "/v3/unify-status": (
        {"success": TEXT},
        {"phoneNumber": TEXT, "clientHumanId": TEXT, "clientRequestId": TEXT, "deviceId": TEXT, "evaluation": OBJECT, "proveId": TEXT, "testNumber": FLAG}),
    "/v3/unify-bind": (
        {"success": TEXT},
        {"phoneNumber": TEXT, "clientHumanId": TEXT, "clientRequestId": TEXT, "deviceId": TEXT, "evaluation": OBJECT, "proveId": TEXT, "testNumber": FLAG}),
    "/v3/start": ({"authToken": TEXT, "correlationId": TEXT, "next": OBJECT}, {}),
    "/v3/validate": ({"success": FLAG, "challengeMissing": FLAG, "next": OBJECT}, {"phoneNumber": TEXT, "evaluation": OBJECT, "testNumber": FLAG}),
    "/v3/device/revoke": ({"success": FLAG}, {}),
}


def checked(path, document):
    """An answer as a typed client reads it: no member too few or too many, none of another type, none that is empty."""
    required, optional = ANSWERS[path]
    assert set(required) <= set(document) <= set(required) | set(optional), (path, document)
    for name, value in document.items():
        assert isinstance(value, {**required, **optional}[name]) and value not in ("", {}, []), (path, name, value)
    for part in document.get("evaluation", {}).values():
        assert isinstance(part, dict) and part["result"] in ("pass", "fail") and part.get("failureReasons", {"": ""}), document
    return types.SimpleNamespace(**document)


class Backend:
    """A client with `ept:possession` that calls for an access token and goes on with it."""

    def __init__(self, realm, name="srv", *permissions, **settings):
        self.app, _ = service.service(realm, name, **settings)
        realm.world.admin.call("grant_permission", realm.slug, realm.client(name), variadic=["ept:possession", *permissions])
        realm.world.settle()
        self.realm, self.name = realm, name
        self._token = None

    @property
    def token(self):
        """Its access token."""
        if self._token is None:
            answer = self.app.exchange(
                "POST", "/token", {"Content-Type": wire.FORM}, wire.form_body({"grant_type": "client_credentials", **self.app.credentials()}))
            assert answer.status == 200, answer
            self._token = LEDGER.add("access_token", answer.json()["access_token"])
        return self._token

    def renew(self):
        """Has it ask for a new access token with the next call."""
        self._token = None

    def ask(self, path, document=None, **members):
        """A call; the raw answer."""
        return self.app.post_json(path, {**(document or {}), **members}, {"Authorization": f"Bearer {self.token}"})

    def call(self, path, document=None, **members):
        """A call that succeeds; the answer as a typed client reads it."""
        answer = self.ask(path, document, **members)
        assert answer.status == 200, answer
        return checked(path, answer.json())

    def unify(self, phone=None, kind="mobile", **members):
        """Starts; the answer."""
        named = {} if phone is None else {"phoneNumber": phone}
        started = self.call("/v3/unify", possessionType=kind, **named, **members)
        assert started.success == "pending"
        return started

    def status(self, started):
        """How it stands."""
        return self.call("/v3/unify-status", correlationId=started.correlationId)

    def phone(self, started, key=None, node=None):
        """The app that got the token, with its key."""
        return Phone(self.realm, started.authToken, key, node)


class Phone:
    """An app with an authToken and a key."""

    def __init__(self, realm, token, key=None, node=None):
        self.app = DPoPApp(realm.app(node=node), key or ProofKey())
        self.token = token

    @property
    def key(self):
        """Its key."""
        return self.app.key

    def ask(self, step, timeout=35.0, **members):
        """A step; the raw answer."""
        fields = {"Authorization": f"DPoP {self.token}", "Content-Type": "application/json"}
        return self.app.exchange("POST", f"/connect/possession/{step}", fields, json.dumps(members).encode(), timeout)

    def call(self, step, **members):
        """A step that succeeds; the document."""
        answer = self.ask(step, **members)
        assert answer.status == 200, answer
        return answer.json()

    def refused(self, step, status, error, **members):
        """A step that is refused; the document."""
        answer = self.ask(step, **members)
        assert (answer.status, answer.json().get("error")) == (status, error), answer
        return answer.json()


def possession(realm, **settings):
    """A realm that proves numbers."""
    realm.world.admin.call("set_possession", realm.slug, **{"enabled": True, "resend_cooldown": "0 seconds", **settings})
    realm.world.settle()
    return realm


def furnished(realm, *permissions, **phones):
    """A realm that proves numbers, with its phones, a backend `srv` with these permissions, and the origin of that backend's pages."""
    realm.phones, realm.srv = Phones(realm, **phones), Backend(realm, "srv", *permissions)
    realm.world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "https://app.example")
    realm.world.settle()
    return realm


def signs_in(realm):
    """Proven numbers of the backend sign in to the realm's app."""
    admin = realm.world.admin
    admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["gt:urn:postern:possession"])
    admin.call("put_possession_client", realm.slug, realm.client("srv"), login_client=realm.client("app"))
    realm.world.settle()
    return realm


def opened(realm, number=None, kind="mobile", key=None, node=None, **members):
    """A transaction that the app has opened; transaction and app."""
    started = realm.srv.unify(number, kind, **members)
    phone = realm.srv.phone(started, key, node)
    phone.opened = phone.call("open")
    return started, phone


def coded(realm, node=None, number=None, **members):
    """A transaction with a code on the phone: transaction, app, number, code."""
    number = number or new_number()
    started, phone = opened(realm, number, node=node, **members)
    phone.sent = phone.call("send", channel="otp")
    return started, phone, number, realm.phones.wait(number)["code"]
