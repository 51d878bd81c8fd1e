"""A device with a key of its own (ES256), which proves it with a nonce in every call."""

import hashlib
import time

from . import wire
from .app import bearer
from .dpop import ProofKey, is_challenge, kept, nonce_of
from .jose import b64url

DEVICES = "/connect/devices"
GRANT = "urn:postern:device"


class Device:
    """A key at one client of one realm. A call without `proof` makes a right one, with a nonce that it asks for first."""

    def __init__(self, app, key=None):
        self.app = app
        self.key = key or ProofKey()
        self.nonce = None
        self.id = None

    def url(self, path):
        """What a proof names."""
        return f"https://{self.app.host}{path}"

    def fresh_nonce(self):
        """A nonce that was not used before."""
        answer = self.app.exchange("GET", DEVICES + "/self", {"DPoP": self.key.proof("GET", self.url(DEVICES + "/self"))})
        assert is_challenge(answer), answer
        self.nonce = nonce_of(answer)
        return self.nonce

    def proof(self, method, path, token=None, **changes):
        """A right proof, but for the changes (as of `ProofKey.proof`)."""
        if "nonce" not in changes and self.nonce is None:
            self.fresh_nonce()
        return self.key.proof(method, self.url(path), **{"nonce": self.nonce, "token": token, **changes})

    def call(self, method, path, document=None, proof=None):
        """A call with a proof alone."""
        headers = {"DPoP": proof or self.proof(method, path)}
        if document is None:
            return self.app.exchange(method, path, headers)
        return self.app.send_json(method, path, document, headers)

    # -- the steps of an owner ----------------------------------------------------------------

    def enrol(self, token, proof=None, **members):
        """Adds the key with an access token."""
        document = {"Proof": proof or self.proof("POST", DEVICES, token), **members}
        answer = self.app.post_json(DEVICES, document, bearer(token))
        if answer.status == 200:
            self.id = answer.json()["Id"]
        return answer

    def itself(self):
        """What it reads of itself."""
        return self.call("GET", DEVICES + "/self")

    def offer(self, **members):
        """Offers its key for adoption."""
        return self.call("POST", DEVICES + "/offer", {"ClientId": self.app.client_id, **members})

    def approval(self, offer, new, code, header=None, **changes):
        """What it signs to adopt a device; `header`, `changes`: what is wrong with it."""
        claims = {
            "aud": f"https://{self.app.host}", "iat": int(time.time()), "offer": b64url(hashlib.sha256(offer.encode()).digest()),
            "jkt": new.key.thumbprint, "check_code": code, **changes,
        }
        return self.key.sign(self.key.header(**{"typ": "postern-adopt+jwt", **(header or {})}), kept(claims))

    def adopt(self, token, shown, new, approval=None):
        """Adopts the device of an offer's answer."""
        signed = approval or self.approval(shown["Offer"], new, shown["CheckCode"])
        return self.app.post_json(DEVICES + "/adopt", {"Offer": shown["Offer"], "Approval": signed}, bearer(token))

    def sign_in(self, proof=None, app=None, **more):
        """Signs in by the key; a nonce signs in once."""
        path = "/connect/token"
        made = proof or self.proof("POST", path, nonce=self.fresh_nonce())
        app = app or self.app
        form = {"grant_type": GRANT, "client_id": app.client_id, "scope": "openid offline_access", **more}
        return app.exchange("POST", path, {"Content-Type": wire.FORM, "DPoP": made}, wire.form_body(form))


def with_devices(realm, **settings):
    """The realm with approvals on, and its client `app` allowed to sign in by devices."""
    realm.world.admin.call("set_approvals", realm.slug, True, **settings)
    for policy, dimension in (("trusted-device", "source"), ("trusted-device", "target")):
        realm.world.admin.call(
            "set_rate_limit", realm.slug, policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
    for name in ("app", "api"):
        realm.world.admin.run(f"SELECT admin.grant_permission('{realm.slug}', '{realm.client(name)}', 'gt:urn:postern:device');")
    realm.world.settle()
    return realm


def enrolled(realm, token, **members):
    """A device of the token's user."""
    device = Device(realm.app())
    assert device.enrol(token, **members).status == 200
    return device


def owner_of(realm):
    """A user, signed in a moment ago: address and access token."""
    email = realm.user()
    return email, realm.app().sign_in(email)["access_token"]
