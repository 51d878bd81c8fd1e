"""The calls of devices that take a proof with a nonce, for tables of proofs: each is as good as before as long as proofs are refused."""

import json

from . import wire
from .app import bearer
from .approvals import Device
from .dpop import DPoPApp, ProofKey, assert_invalid, nonce_of
from .dpop_places import Maker
from .phones import new_number
from .trusted import DEVICES, GRANT
from .trusted import Device as Owner


class NonceMaker(Maker):
    """A `Maker` whose proofs have a nonce."""

    def __init__(self, place, key):  # pylint: disable=super-init-not-called
        self.place, self.key, self.url = place, key, f"https://{place.app.host}{place.path(key)}"
        self.method, self.token, self.now = place.method, place.token(key), place.app.clock()
        self.nonce = place.nonce

    def __call__(self, key=None, **changes):
        return super().__call__(key, **{"nonce": self.nonce, **changes})

    def payload(self, **changes):
        return super().payload(**{"nonce": self.nonce, **changes})


class Door:
    """One call. `protected`: a refusal is 401; `in_body`: the proof is a member of the body."""

    name, method, protected, in_body = "", "GET", True, False

    def __init__(self, realm):
        self.realm, self.app, self.key = realm, DPoPApp(realm.app(), obeys=False), ProofKey()
        self._made = {}
        self.nonce = None
        self.renew()

    def renew(self):
        """Another nonce."""
        self.nonce = Owner(self.realm.app()).fresh_nonce()

    def made(self, key):
        """What a call of this key needs; no device has a key of another algorithm."""
        if key.alg != "ES256":
            key = self.key
        if key.thumbprint not in self._made:
            self._made[key.thumbprint] = self.make(key)
        return self._made[key.thumbprint]

    def make(self, key):
        """A trusted device with this key."""
        device = Device(self.realm.app(), self.realm, self.realm.user(), added=False)
        device.key = key
        # An id that has another spelling.
        device.id = device.id[:-4] + "abcd"
        device.add()
        return device

    def restore(self, key):
        """What a success took is there again."""

    def path(self, key):
        """What is called."""
        raise NotImplementedError

    def token(self, key):  # pylint: disable=unused-argument
        """The token beside the proof, or None."""
        return None

    def body(self, key):  # pylint: disable=unused-argument
        """Its members, or None for no body."""
        return None

    def send(self, key, *proofs, node=None):
        """The call with these proofs; the raw answer."""
        members = self.body(key)
        token = self.token(key)
        fields = [("Host", self.app.host)]
        if self.in_body:
            members = {**members, "Proof": proofs[0]}
            fields += bearer(token).items()
        else:
            fields += [("DPoP", proof) for proof in proofs] + ([("Authorization", f"DPoP {token}")] if token else [])
        if members is None:
            return wire.exchange((node or self.app.node).port, self.method, self.path(key), fields)
        text, kind = (wire.form_body(members), wire.FORM) if isinstance(self, SignIn) else (json.dumps(members).encode(), "application/json")
        return wire.exchange((node or self.app.node).port, self.method, self.path(key), [*fields, ("Content-Type", kind)], text)

    def succeeds(self, key, *proofs):
        """The call is served; what it took is there again."""
        answer = self.send(key, *proofs)
        assert answer.status in (200, 204) and nonce_of(answer) is None, (self.name, str(answer))
        self.restore(key)

    def control(self):
        """A right proof is served, once at whatever node."""
        proof = NonceMaker(self, self.key)()
        self.succeeds(self.key, proof)
        for node in (None, self.realm.second):
            assert_invalid(self.send(self.key, proof, node=node), self.protected)
        self.renew()


class Enrolment(Door):
    """The key of a new device, beside the token of its owner."""

    name, method, protected, in_body = "enrolment", "POST", False, True

    def make(self, key):
        return self.realm.app().sign_in(self.realm.user())["access_token"]

    def path(self, key):
        return DEVICES

    def token(self, key):
        return self.made(key)

    def body(self, key):
        return {}


class Itself(Door):
    """A device reads of itself."""

    name = "self"

    def path(self, key):
        self.made(key)
        return DEVICES + "/self"


class Inbox(Itself):
    """A device looks for requests."""

    name = "approvals"

    def path(self, key):
        self.made(key)
        return "/connect/approvals"


class Renaming(Door):
    """A device renames itself."""

    name, method = "rename", "PATCH"

    def path(self, key):
        return f"{DEVICES}/{self.made(key).id}"

    def body(self, key):
        return {"DisplayName": "x"}


class Removal(Door):
    """A device removes itself."""

    name, method = "removal", "DELETE"

    def path(self, key):
        return f"{DEVICES}/{self.made(key).id}"

    def restore(self, key):
        self.made(key).add()


class Offer(Door):
    """A key that wants to be adopted."""

    name, method = "offer", "POST"

    def path(self, key):
        return DEVICES + "/offer"

    def body(self, key):
        return {"ClientId": self.app.client_id}


class SignIn(Door):
    """A device signs in by itself; a nonce does that once."""

    name, method, protected = "sign-in", "POST", False

    def path(self, key):
        self.made(key)
        return "/connect/token"

    def body(self, key):
        return {"grant_type": GRANT, "client_id": self.app.client_id, "scope": "openid"}

    def restore(self, key):
        self.renew()


class Step(Door):
    """An app asks how its proof of a number stands."""

    name, method = "result", "POST"

    def make(self, key):
        phone = self.realm.srv.phone(self.realm.srv.unify(new_number()), key)
        phone.call("open")
        return phone.token

    def path(self, key):
        return "/connect/possession/result"

    def token(self, key):
        return self.made(key)

    def body(self, key):
        return {}


DOORS = (Enrolment, Itself, Inbox, Renaming, Removal, Offer, SignIn, Step)
