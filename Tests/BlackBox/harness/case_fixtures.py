"""What the placeholders of negative-cases.json stand for; everything is made for the one case that asks."""

import base64
import json
import secrets
import uuid

from . import authenticator, totp
from .jose import Forger
from .links import Links
from .pepper import set_code

LIMIT = 5

#: Placeholders whose making lets time pass: made first, so that the others stay fresh.
TRAVELLERS = ("otp_expired", "at_expired", "rt_expired", "rt_used", "rt_family_end")


class CaseWorld:
    """The realms all cases share: A and B, one with native grants off, and one with tight limits per case that wants it."""

    def __init__(self, world):
        self.world = world
        self.mails_before = len(world.mailbox.mails)
        self.a = world.realm("a")
        self.b = world.realm("b")
        self.off = world.realm("off", native=False)
        self.fields = world.realm("fields")
        world.admin.call("set_registration_fields", self.fields.slug, firstname="Required")
        self.a.native(session_lifetime="1 day")
        self._trusting = None
        app = self.a.app("disabled")
        self.rt_disabled_client = app.sign_in(self.a.user())["refresh_token"]
        world.admin.call("put_client", self.a.slug, app.client_id, enabled=False)
        self.android_hash = secrets.token_bytes(32)
        world.admin.call(
            "put_android_app", self.a.slug, self.a.client("app"), "example.bb.app", [self.android_hash.hex(":").upper()]
        )
        self._at_off = None
        self.expected_mails = {}
        self.silent = {}

    @property
    def at_off(self):
        """A token issued before the realm's native grants were switched off."""
        if self._at_off is None:
            self.off.native(enabled=True)
            self._at_off = self.off.app().sign_in(self.off.user())["access_token"]
            self.off.native(enabled=False)
        return self._at_off

    @property
    def trusting_node(self):
        """A node that takes 127.0.0.1 for its proxy."""
        if self._trusting is None:
            self._trusting = self.world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
        return self._trusting

    def tight_realm(self, path):
        """A realm where the sixth request from one source is too many."""
        policy = {
            "/connect/token": "token", "/connect/passkey/begin": "passkey-begin",
            "/api/account/magic-link/request": "magic-link",
        }.get(path.partition("?")[0], "native-otp")
        realm = self.world.realm("tight")
        realm.limit(policy, "source", LIMIT)
        return realm


class Fixtures:
    """Resolves placeholders for one case, lazily, each name once."""

    def __init__(self, shared, case):
        self.shared = shared
        self.world = shared.world
        self.a = shared.tight_realm(case.path) if "known_limits" in (case.needs or []) else shared.a
        self.b = shared.b
        self.node = shared.trusting_node if "trusted_peer" in (case.needs or []) else self.world.node
        self._known = {}
        self._fresh = {"random", "random_ip", "random_token"} | ({"email_unknown"} if case.repeat else set())
        self._passkeys = {}
        self._links = {}
        self.before = None
        self._fixed_code = "000123" if "fixture:otp_is_000123" in (case.needs or []) else None

    def prepare(self, names):
        """Makes what the case needs: time travellers first, codes late (a sign-in kills the codes of its address), what answers
        a ceremony last.

        Returns the names nobody can make.
        """
        unknown = [n for n in names if not self._can(n)]
        if not unknown:
            for name in sorted(names, key=lambda n: (not n.startswith(TRAVELLERS), n in ("otp", "otp_wrong"), n.startswith("a") and ":" in n, n)):
                if name != "otp_issued":
                    self(name)
        self.before = self.passkeys()
        return unknown

    def _can(self, name):
        if name.startswith("jwt:"):
            return name == "jwt:iss_b" or hasattr(Forger, "_" + name[4:])
        if name.startswith(("assertion:", "attestation:")):
            return name.partition(":")[2] in authenticator.mutations()
        return name in self._known or hasattr(self, "make_" + name)

    def __call__(self, name):
        if name in self._fresh:
            return getattr(self, "make_" + name)()
        if name not in self._known:
            kind, colon, which = name.partition(":")
            self._known[name] = getattr(self, "_" + kind)(which) if colon else getattr(self, "make_" + name)()
        return self._known[name]

    # -- helpers --------------------------------------------------------------------------------

    def _code(self, email, realm=None, app="app"):
        """Asks for a code and remembers that this mail was meant to be."""
        realm = realm or self.a
        self.shared.expected_mails[email] = self.shared.expected_mails.get(email, 0) + 1
        return realm.app(app).request_code(email).code

    def _sign_in(self, realm=None, app="app", email=None):
        email = email or (realm or self.a).user()
        self.shared.expected_mails[email] = self.shared.expected_mails.get(email, 0) + 1
        return (realm or self.a).app(app).sign_in(email)

    def expect_mail(self, email):
        """One more mail to this address is as it should be."""
        self.shared.expected_mails[email] = self.shared.expected_mails.get(email, 0) + 1

    def _tokens(self, key, **how):
        if key not in self._known:
            self._known[key] = self._sign_in(**how)
        return self._known[key]

    def _jwt(self, name):
        if name == "iss_b":
            return self._tokens("tokens jwt b", realm=self.b, app="jwt")["access_token"]
        jwks = self.a.app("jwt").get("/.well-known/jwks").json()
        return Forger(self.make_at_jwt(), jwks).make(name)

    # -- hosts and clients ------------------------------------------------------------------------

    def make_host(self): return self.a.host
    def make_host_b(self): return self.b.host
    def make_host_fields(self): return self.shared.fields.host
    def make_host_off(self): return self.shared.off.host
    def make_client_id(self): return self.a.client("app")
    def make_client_id_2(self): return self.a.client("app-2")
    def make_client_id_b(self): return self.b.client("app")
    def make_client_id_off(self): return self.shared.off.client("app")
    def make_client_id_conf(self): return self.a.client("api")
    def make_client_secret(self): return self.a.secrets["api"]
    def make_client_id_noperm(self): return self.a.client("no-grants")
    def make_client_id_norefresh(self): return self.a.client("no-refresh")
    def make_client_id_disabled(self): return self.shared.a.client("disabled")
    def make_basic_conf(self): return self._basic(self.a.client("api"), self.a.secrets["api"])
    def make_basic_conf_wrong(self): return self._basic(self.a.client("api"), "wrong")
    def make_basic_public_empty(self): return self._basic(self.a.client("app"), "")
    def make_scope_forbidden(self): return self.a.forbidden_scope
    def make_scope_not_granted(self): return self.a.granted_scope
    def make_resource_not_granted(self): return self.a.forbidden_resource
    def make_resource_b(self): return "https://only-in-b.example/"
    def make_limit(self): return str(LIMIT)

    @staticmethod
    def _basic(client, secret):
        return base64.b64encode(f"{client}:{secret}".encode()).decode()

    # -- chance -------------------------------------------------------------------------------------

    def make_uuid(self): return str(uuid.uuid4())
    def make_random(self): return secrets.token_hex(8)
    def make_random_token(self): return secrets.token_urlsafe(32)
    def make_random_ip(self): return "203.0.113." + str(1 + secrets.randbelow(254))
    def make_email_unknown(self): return self.a.new_email()
    def make_lb(self): return "{{"
    def make_rb(self): return "}}"
    def make_lb1(self): return "{"
    def make_rb1(self): return "}"

    # -- users and codes -----------------------------------------------------------------------------

    def make_email(self): return self.a.user()
    def make_email_2(self): return self.a.user()
    def make_user_id(self): return self.a.put_user(self("email"))
    def make_user_id_other(self): return self.a.put_user(self("email_2"))
    def make_email_unconfirmed(self): return self.a.user(email_verified=False)
    def make_email_disabled(self): return self.a.user()
    def make_otp(self):
        """The mailed code, or the one the case is about."""
        code = self._code(self("email"))
        return set_code(self.world, self.a, self("email"), self._fixed_code) if self._fixed_code else code

    def make_otp_wrong(self): return f"{(int(self('otp')) + 1) % 1_000_000:06}"

    def make_otp_issued(self):
        """Asked for by the case itself: in the mail after the request."""
        email = self("email")
        self.expect_mail(email)
        return self.world.mailbox.wait(email, self.shared.expected_mails[email]).code

    def make_otp_used(self):
        """Redeemed once."""
        email = self("email")
        code = self._code(email)
        assert self.a.app().redeem(code, email=email).status == 200
        return code

    def make_otp_expired(self):
        """Eleven minutes old."""
        code = self._code(self("email"))
        self.world.time_travel(660)
        return code

    def make_otp_superseded(self):
        """The oldest of four."""
        codes = [self._code(self("email")) for _ in range(4)]
        return codes[0]

    def make_otp_b(self):
        """A live code of the same address in realm B."""
        self.b.put_user(self("email"))
        return self._code(self("email"), self.b)

    def make_email_totp(self):
        """Somebody with a second factor."""
        email = self.a.user()
        self._totp_secret, _ = self.a.app().enrol_totp(self._sign_in(email=email)["access_token"])
        self.expect_mail(email)  # the notice
        self.world.mailbox.wait(email, self.shared.expected_mails[email])
        return email

    def make_otp_totp(self): return self._code(self("email_totp"))

    def make_totp(self):
        """What that authenticator shows."""
        self("email_totp")
        return totp.code(self._totp_secret)

    def make_otp_disabled(self):
        """Issued before the account was disabled."""
        code = self._code(self("email_disabled"))
        self.world.admin.call("set_user_enabled", self.a.slug, self("email_disabled"), False)
        return code

    def make_otp_after_5_wrong(self):
        """The right code of an account whose budget is used up."""
        code = self._code(self("email"))
        for step in range(5):
            self.a.app().redeem(f"{(int(code) + 1 + step) % 1_000_000:06}", email=self("email"))
        return code

    # -- magic links -----------------------------------------------------------------------------------

    def _link(self, key, email=None, realm=None):
        """A live link; `magic` is that of `email`."""
        if key not in self._links:
            email = email or (realm or self.a).user()
            self.expect_mail(email)
            self._links[key] = Links((realm or self.a).app()).link(email)
        return self._links[key]

    def make_magic(self): return self._link("magic", self("email"))
    def make_magic_user_id(self): return self("magic").user_id
    def make_magic_token(self): return self("magic").token
    def make_magic_user_id_b(self): return self._link("b", realm=self.b).user_id
    def make_magic_token_b(self): return self._link("b", realm=self.b).token

    def make_magic_token_used(self):
        """Redeemed once."""
        assert Links(self.a.app()).redeem(self("magic")).status == 200
        return self("magic").token

    # -- tokens -------------------------------------------------------------------------------------

    def make_at(self): return self._tokens("tokens", email=self("email"))["access_token"]
    def make_rt(self): return self._tokens("tokens", email=self("email"))["refresh_token"]
    def make_id_token(self): return self._tokens("tokens", email=self("email"))["id_token"]
    def make_rt_2(self): return self._tokens("tokens 2", app="app-2")["refresh_token"]
    def make_at_client_2(self): return self._tokens("tokens 2", app="app-2")["access_token"]
    def make_rt_b(self): return self._tokens("tokens b", realm=self.b)["refresh_token"]
    def make_at_b(self): return self._tokens("tokens b", realm=self.b)["access_token"]
    def make_rt_conf(self): return self._tokens("tokens conf", app="api")["refresh_token"]
    def make_at_2user(self): return self._tokens("tokens of another user")["access_token"]
    def make_at_jwt(self): return self._tokens("tokens jwt", app="jwt")["access_token"]
    def make_rt_disabled_client(self): return self.shared.rt_disabled_client

    def make_at_expired(self):
        """Sixteen minutes old."""
        token = self._sign_in()["access_token"]
        self.world.time_travel(16 * 60)
        return token

    def make_at_revoked(self):
        """Revoked by its client."""
        token = self._sign_in()["access_token"]
        assert self.a.app().revoke(token).status == 200
        return token

    def make_at_disabled_user(self):
        """Of a user disabled since."""
        email = self.a.user()
        token = self._sign_in(email=email)["access_token"]
        self.world.admin.call("set_user_enabled", self.a.slug, email, False)
        return token

    def make_rt_disabled_user(self):
        """Of a user disabled since."""
        email = self.a.user()
        token = self._sign_in(email=email)["refresh_token"]
        self.world.admin.call("set_user_enabled", self.a.slug, email, False)
        return token

    def make_rt_old_stamp(self):
        """Of a user signed out everywhere since."""
        email = self.a.user()
        token = self._sign_in(email=email)["refresh_token"]
        self.world.admin.call("sign_out_everywhere", self.a.slug, email)
        return token

    def make_rt_revoked(self):
        """Revoked by its client."""
        token = self._sign_in()["refresh_token"]
        assert self.a.app().revoke(token).status == 200
        return token

    def make_rt_used(self):
        """Rotated, the retry window over."""
        token = self._sign_in()["refresh_token"]
        self.a.app().refreshed(token)
        self.world.time_travel(200)
        return token

    def make_rt_expired(self):
        """Fifteen days old."""
        token = self._sign_in()["refresh_token"]
        self.world.time_travel(15 * 86400)
        return token

    def make_rt_family_end(self):
        """Refreshed in time, but the family's day is over (realm A: one day)."""
        token = self._sign_in()["refresh_token"]
        self.world.time_travel(20 * 3600)
        token = self.a.app().refreshed(token)["refresh_token"]
        self.world.time_travel(5 * 3600)
        return token

    # -- passkeys -----------------------------------------------------------------------------------

    def make_at_off(self): return self.shared.at_off
    def make_ceremony(self): return self._login_ceremony()["ceremonyId"]
    def make_enroll_ceremony(self): return self._enrolment()["ceremonyId"]
    def make_passkey_id(self): return self._enrolled("own")[0]
    def make_credential_id_b64url(self): return self._enrolled("own")[1].id_text
    def make_passkey_id_other(self): return self._enrolled("other", email=self("email_2"))[0]
    def make_passkey_id_b(self): return self._enrolled("b", realm=self.b)[0]

    def _login_ceremony(self):
        if "login" not in self._passkeys:
            self._passkeys["login"] = self.a.app().ceremony()
        return self._passkeys["login"]

    def _enrolment(self):
        if "enrolment" not in self._passkeys:
            self._passkeys["enrolment"] = self.a.app().enrolment(self.make_at())
        return self._passkeys["enrolment"]

    def _enrolled(self, key, realm=None, app="app", email=None):
        """Management id and credential of a passkey; "own" is that of `email`, with its token `at`."""
        if key not in self._passkeys:
            if key == "own":
                email, token = self("email"), self.make_at()
            else:
                email = email or (realm or self.a).user()
                token = self._tokens("tokens for " + key, realm=realm, app=app, email=email)["access_token"]
            self.expect_mail(email)
            self._passkeys[key] = (realm or self.a).app(app).enroll(token)
        return self._passkeys[key]

    def _foreign(self, mutation):
        """What this mutation borrows; made only when it does."""
        foreign = authenticator.Foreign(android_hash=self.shared.android_hash)
        if "other_user" in mutation:
            foreign.other_user = self._enrolled("other", email=self("email_2"))[1]
        if "other_realm" in mutation:
            foreign.other_realm = self._enrolled("b", realm=self.b)[1]
        if mutation in ("cred_other_rp", "rpidhash_other_client"):
            foreign.other_rp = self._enrolled("other rp", app="app-2")[1]
        if "existing" in mutation:
            foreign.existing = self._enrolled("own")[1]
        return foreign

    def _assertion(self, mutation):
        """By the own passkey, for the case's ceremony: a login, unless the case uses only an enrolment."""
        credential = self._enrolled("own")[1]
        options = self._login_ceremony()["options"]
        if "enrolment" in self._passkeys:
            options = {**options, "challenge": self._enrolment()["options"]["challenge"]}
        return json.dumps(authenticator.assertion(options, credential, mutation, foreign=self._foreign(mutation)))

    def _attestation(self, mutation):
        """Of a new credential, for the case's ceremony: an enrolment, unless the case uses only a login."""
        foreign = self._foreign(mutation)
        options = self._enrolment()["options"]
        if "login" in self._passkeys:
            options = {**options, "challenge": self._login_ceremony()["options"]["challenge"]}
        return json.dumps(authenticator.create(options, mutation=mutation, foreign=foreign)[0])

    def make_ceremony_used(self):
        """Redeemed with success."""
        ceremony = self._login_ceremony()
        answer = self.a.app().redeem_passkey(ceremony, self("assertion_used"))
        assert answer.status == 200, answer
        return ceremony["ceremonyId"]

    def make_assertion_used(self):
        """The assertion it was redeemed with."""
        return self._assertion("ok")

    def passkeys(self):
        """All passkeys of the case's realms, as the administrator sees them."""
        return sorted(row for realm in (self.a, self.b) for row in self.world.admin.run(
            f"SELECT id, email, display_name, last_used_at FROM admin.passkeys WHERE realm = '{realm.slug}';"
        ))

    # -- after the request ------------------------------------------------------------------------------

    def usable(self, name):
        """The positive control of `after`: the same secret then succeeds. Returns the answer."""
        if name == "ceremony":
            return self.a.app().redeem_passkey(self._login_ceremony(), self._assertion("ok"))
        if name == "magic":
            return Links(self.a.app()).redeem(self("magic"))
        if name == "otp":
            return self.a.app().redeem(self("otp"), email=self("email"))
        app = {
            "rt": self.a.app(), "rt_2": self.a.app("app-2"), "rt_b": self.b.app(), "rt_conf": self.a.app("api"),
        }[name]
        return app.refresh(self(name))
