"""Where a proof is checked, for tables of proofs: a code, a refresh and userinfo, each as good as before as long as proofs are refused."""

from . import wire
from .app import FULL_SCOPE
from .dpop import DPoPApp, assert_bound


class Maker:
    """Makes proofs for one request of one place."""

    def __init__(self, place, key):
        self.place, self.key, self.url = place, key, place.url
        self.method, self.token, self.now = place.method, place.token(key), place.app.clock()

    def __call__(self, key=None, **changes):
        """A right proof, but for the changes (see `ProofKey.proof`)."""
        return (key or self.key).proof(self.method, self.url, **{"token": self.token, "now": self.now, **changes})

    def header(self, **changes):
        """The header of a right proof."""
        return self.key.header(**changes)

    def payload(self, **changes):
        """The payload of a right proof."""
        return self.key.payload(self.method, self.url, **{"token": self.token, "now": self.now, **changes})

    def signed(self, header, payload, **how):
        """A proof of a header and a payload as they are."""
        return self.key.sign(header, payload, **how)


class Place:
    """One kind of request with one thing that it consumes or opens. `app` is a `DPoPApp`."""

    name, method, path, protected, EVERY = "", "POST", "/connect/token", False, 25

    def __init__(self, realm, client="jwt", host=None, node=None):
        self.realm = realm
        self.app = DPoPApp(realm.app_on(host or realm.host, client, node), obeys=False)
        self._cases = 0

    @property
    def url(self):
        """What a right proof names."""
        return self.app.url(self.path)

    def token(self, key):  # pylint: disable=unused-argument
        """The access token that a proof of a key is sent with, or None."""
        return None

    def request(self, key):
        """Headers and body of the request."""
        raise NotImplementedError

    def accepted(self, key, answer):
        """Takes note of a success."""

    def send(self, key, *proofs, headers=None):
        """The request with these values of `DPoP`; the raw answer."""
        fields, body = self.request(key)
        answer = self.app.exchange(self.method, self.path, {**fields, "DPoP": list(proofs) or None, **(headers or {})}, body)
        if answer.status == 200:
            self.accepted(key, answer)
        return answer

    def succeed(self, key, *proofs, headers=None):
        """The request is served, and what it gives is bound to the key."""
        answer = self.send(key, *proofs, headers=headers)
        assert answer.status == 200, answer
        if not self.protected:
            assert_bound(answer, key)
        return answer

    def control(self):
        """A right proof succeeds."""
        return self.succeed(self.app.key, Maker(self, self.app.key)())

    def case(self):
        """One more case is done; after some of them, what they had not to spend is still good."""
        self._cases += 1
        if self._cases % self.EVERY == 0:
            self.control()


class Redemption(Place):
    """A code."""

    name = "code"

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._asked = None

    def request(self, key):
        """The code is asked for without a proof, so that any key may redeem it."""
        if self._asked is None:
            self._asked = self.app.plain.request_code(self.realm.user())
        return {"Content-Type": wire.FORM}, wire.form_body(self.app.redeem_form(self._asked.code, handle=self._asked.handle))

    def accepted(self, key, answer):
        """A code serves once."""
        self._asked = None


class Refresh(Place):
    """A refresh token of a family of the key."""

    name = "refresh"

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._families = {}

    def request(self, key):
        """The newest refresh token."""
        if key.thumbprint not in self._families:
            self._families[key.thumbprint] = self.app.with_key(key).bound(self.realm.user())["refresh_token"]
        return {"Content-Type": wire.FORM}, wire.form_body(
            {"grant_type": "refresh_token", **self.app.credentials(), "refresh_token": self._families[key.thumbprint]})

    def accepted(self, key, answer):
        """The successor."""
        self._families[key.thumbprint] = answer.json()["refresh_token"]


class Userinfo(Place):
    """An access token of the key."""

    name, method, path, protected = "userinfo", "GET", "/connect/userinfo", True

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._tokens = {}

    def token(self, key):
        """One for each key."""
        if key.thumbprint not in self._tokens:
            self._tokens[key.thumbprint] = self.app.with_key(key).bound(self.realm.user(), scope=FULL_SCOPE)["access_token"]
        return self._tokens[key.thumbprint]

    def request(self, key):
        """GET with the token."""
        return {"Authorization": f"DPoP {self.token(key)}"}, None


PLACES = (Redemption, Refresh, Userinfo)
