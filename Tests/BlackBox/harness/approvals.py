"""Approvals: a client that asks (CIBA), and devices that answer."""

import json
import time
import uuid

from .dpop import DPoPApp, ProofKey
from .jose import b64url, unb64url
from .ledger import LEDGER
from .postgres import literal
from .realm import call

CIBA = "urn:openid:params:grant-type:ciba"
INVALID = {"error": "invalid_grant", "error_description": "The authentication request is invalid."}


def switch_on(realm, *clients, **settings):
    """Approvals of a realm, for clients by name; without limits."""
    statements = [call("set_approvals", realm.slug, True, **settings)]
    statements += [call("grant_permission", realm.slug, realm.client(name), variadic=["gt:" + CIBA]) for name in clients]
    statements += [
        call("set_rate_limit", realm.slug, policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
        for policy, dimension in (
            ("approval", "target"), ("approval", "target-total"), ("approval", "source"), ("approval", "client"),
            ("trusted-device", "source"), ("trusted-device", "target"))
    ]
    realm.world.admin.run(*statements)
    realm.world.settle()


def form(app, **more):
    """A right request for approval."""
    return {**app.credentials(), "scope": "openid", **more}


def ask(app, hint=None, headers=None, **more):
    """POST /connect/bc-authorize; the raw answer."""
    answer = app.post("/connect/bc-authorize", form(app, **{"login_hint": hint, **more}), headers)
    if answer.status == 200:
        LEDGER.add("auth_req_id", answer.json()["auth_req_id"])
    return answer


def poll(app, asked, headers=None, **more):
    """One poll for an answer of `ask`, or for the text of a handle."""
    handle = asked if isinstance(asked, str) else asked["auth_req_id"]
    return app.token({"grant_type": CIBA, **app.credentials(), "auth_req_id": handle, **more}, headers)


class Device(DPoPApp):
    """A trusted device."""

    def __init__(self, app, realm, email, probation=None, added=True):
        super().__init__(app, ProofKey())
        self.realm, self.email, self.id = realm, email, str(uuid.uuid4())
        if added:
            self.add(probation)

    def add(self, probation=None):
        """As if the owner had added it at this client."""
        point = (self.key.public()[name] for name in "xy")
        self.realm.world.cluster.sql(
            "INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, user_id, client, added_at, probation_until) "
            f"SELECT u.realm_id, {literal(self.id)}::uuid, '\\x{unb64url(self.key.thumbprint).hex()}', "
            f"'\\x{b''.join(map(unb64url, point)).hex()}', u.id, k.id, now(), now() + {literal(probation)}::interval "
            "FROM postern.user_account AS u JOIN postern.client AS k USING (realm_id) JOIN postern.realm AS r ON r.id = u.realm_id "
            f"WHERE r.slug = {literal(self.realm.slug)} AND u.address_key = lower({literal(self.email)}) AND k.client_id = {literal(self.client_id)}")

    def remove(self):
        """As if the owner had removed it."""
        self.realm.world.cluster.sql(f"DELETE FROM postern.device_key WHERE id = {literal(self.id)}::uuid")

    def look(self, wait=None, timeout=40.0):
        """GET /connect/approvals; the raw answer."""
        return self.exchange("GET", "/connect/approvals" + ("" if wait is None else f"?wait={wait}"), timeout=timeout)

    def inbox(self):
        """What is shown now."""
        answer = self.look()
        assert answer.status == 200, answer
        return answer.json()["Approvals"]

    def item(self, client=None, timeout=5.0):
        """The newest request, once it is shown."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            items = [item for item in self.inbox() if client in (None, item["ClientId"])]
            if items:
                return items[-1]
            time.sleep(0.02)
        raise AssertionError("nothing is shown")

    def payload(self, item, decision="approve", number=None, **changes):
        """What a right answer says; None leaves a member out."""
        members = {
            "aud": self.realm.issuer, "iat": int(time.time()), "approval_id": item["Id"], "challenge": item["Challenge"],
            "decision": decision, "client_id": item["ClientId"], "event": item["Event"],
            "binding_message": item.get("BindingMessage"), "match_number": number, **changes,
        }
        return {name: value for name, value in members.items() if value is not None}

    def response(self, payload, header=None, **signing):
        """The JWS over an answer."""
        right = {"typ": "postern-approval+jwt", "alg": "ES256", "jwk": self.key.public()}
        members = {name: value for name, value in {**right, **(header or {})}.items() if value is not None}
        return self.key.sign(members, payload, **signing)

    def send(self, approval, response):
        """POST /connect/approvals/{id}; the raw answer."""
        return self.plain.post_json(f"/connect/approvals/{approval}", {"Response": response})

    def answer(self, item, decision="approve", number=None, **changes):
        """Answers a request; the raw answer."""
        return self.send(item["Id"], self.response(self.payload(item, decision, number, **changes)))


def error(answer):
    """The error of a 400."""
    assert answer.status == 400, answer
    return answer.json()["error"]


def approved(app, device, hint=None, **more):
    """Asks, and has the device approve; the answer to the request."""
    asked = ask(app, hint or device.email, **more)
    assert asked.status == 200, asked
    document = asked.json()
    item = device.item()
    answer = device.answer(item, number=document.get("match_number"))
    assert answer.status == 200 and json.loads(answer.body)["Decision"] == "approve", answer
    return document


__all__ = ["CIBA", "INVALID", "Device", "approved", "ask", "b64url", "error", "form", "poll", "switch_on"]
