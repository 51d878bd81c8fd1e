"""The modules of a plan of the OpenID Foundation's conformance suite, each with a test of ours and the result that it gets."""

import copy

from . import phones
from .codeflow import REDIRECT, hosted
from .realm import call
from .relying_party import RelyingParty

PASSES = "passes"
#: The suite warns of something optional that Postern does not do.
WARNS = "passes with a warning"
#: The suite leaves the module out for a server whose discovery document says what our test checks.
SKIPPED = "left out"


class Plan(dict):
    """Modules by name, in the order of the plan: the result and the test. `prefix`: what all names begin with."""

    def __init__(self, name, prefix=""):
        super().__init__()
        self.name = name
        self._prefix = prefix

    def module(self, name, result=PASSES):
        """Declares the test of a module."""
        def declare(test):
            assert self._prefix + name not in self
            self[self._prefix + name] = (result, test)
            return test
        return declare

    def run(self, module, *arguments):
        """The test of a module."""
        self[module][1](*arguments)


class Suite:
    """A realm with two confidential clients, a user, and relying parties of one response mode."""

    def __init__(self, world):
        self.world = world
        self.mode = None
        self.realm = hosted(world.realm(), offer_passkey=False)
        for name in ("api", "other-api"):
            client = self.realm.client(name)
            world.admin.run(
                call("put_client", self.realm.slug, client, require_pkce=False),
                call("grant_permission", self.realm.slug, client, variadic=["gt:authorization_code", "scp:phone"]),
                call("put_redirect_uri", self.realm.slug, client, REDIRECT))
        world.admin.call("set_rate_limit", self.realm.slug, "authorize", "source", permits=1_000_000, per="1 minute", burst=1_000_000)
        self.email = self.realm.new_email()
        user = self.realm.put_user(self.email, last_name="Rounds")
        world.admin.call("put_identifier", self.realm.slug, user, "phone", phones.new_number())
        world.settle()

    def with_mode(self, mode):
        """The same with another response mode."""
        made = copy.copy(self)
        made.mode = mode
        return made

    def party(self, name="api", **settings):
        """A relying party with a browser of its own."""
        return RelyingParty(self.realm, name, self.mode, **settings)

    def signed_in(self, **changes):
        """A relying party whose user has signed in, and the tokens."""
        party = self.party()
        return party, party.signed_in(self.email, **changes)

    @property
    def discovery(self):
        """The answer with the discovery document."""
        return self.realm.app("api").get("/.well-known/openid-configuration")

    @property
    def metadata(self):
        """The discovery document."""
        return self.discovery.json()
