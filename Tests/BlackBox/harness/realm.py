"""Provisioning, only through the functions of schema `admin` as a member of postern_admin."""

import itertools
import time

from . import wire
from .app import PASSKEY, NativeApp
from .ledger import LEDGER
from .links import MAGIC
from .postgres import literal

OTP = "urn:cocoar:otp"
UNLIMITED = [
    *[("native-otp", dimension) for dimension in ("target", "target-total", "source", "client", "app", "registrations")],
    *[("magic-link", dimension) for dimension in ("target", "target-total", "source", "client", "app")],
    ("token", "source"), ("refused", "source"),
    ("passkey-begin", "source"),
]
_NUMBERS = itertools.count(1)


def call(function, *positional, variadic=None, **named):
    """One call of an admin function as SQL text."""
    arguments = [literal(value) for value in positional]
    arguments += [f"{name} => {literal(value)}" for name, value in named.items()]
    if variadic is not None:
        arguments.append(f"VARIADIC {literal(variadic)}")
    return f"SELECT admin.{function}({', '.join(arguments)});"


class Admin:
    """An administrator with psql."""

    role = "bb_admin"

    def __init__(self, cluster):
        self.cluster = cluster

    def run(self, *statements):
        """Runs statements in one transaction and returns their rows."""
        return self.cluster.sql("\n".join(statements), role=self.role, one_transaction=len(statements) > 1)

    def call(self, function, *positional, **named):
        """Calls one function and returns its value."""
        rows = self.run(call(function, *positional, **named))
        return rows[0][0] if rows else None

    def rows_of(self, view, containing):
        """The rows of an admin view, each as JSON text, that contain a text (case-insensitive)."""
        pattern = literal("%" + containing + "%")
        rows = self.run(f"SELECT row_to_json(v)::text FROM admin.{view} v WHERE row_to_json(v)::text ILIKE {pattern};")
        return [row[0] for row in rows]

    def count(self, view):
        """The number of rows of an admin view."""
        return int(self.run(f"SELECT count(*) FROM admin.{view};")[0][0])


class Realm:
    """One tenant with its clients. The names of clients and users begin with the slug."""

    def __init__(self, world, slug, native=True, cooldown="0", limits=True, primary_domain=True):
        self.world = world
        self.slug = slug
        self.host = f"{slug}.bb.example"
        self.issuer = f"https://{self.host}"
        self.forbidden_scope = "forbidden.read"
        self.forbidden_resource = "https://forbidden.example/api"
        self.granted_scope = "orders.read"
        self.granted_resource = "https://orders.example/api"
        self.other_rp = f"other-{slug}.example"
        self._provision(native, cooldown, limits, primary_domain)

    def client(self, name):
        """The client_id of one of the realm's clients."""
        return f"{self.slug}-{name}"

    def _provision(self, native, cooldown, limits, primary_domain):
        realm = self.slug
        everything = [
            "gt:" + OTP, "gt:" + MAGIC, "gt:" + PASSKEY, "gt:refresh_token", "ept:revocation", "scp:profile", "scp:email", "scp:" + self.granted_scope,
        ]
        without_refresh = [p for p in everything if p != "gt:refresh_token"]
        statements = [
            call("put_realm", realm, display_name=f"Realm {realm}", **(
                {"primary_domain": self.host} if primary_domain else {"public_origin": self.issuer, "domains": [self.host]}
            )),
            call("set_native_grants", realm, enabled=native),
            call("set_code_policy", realm, resend_cooldown=cooldown),
            call("put_scope", realm, self.granted_scope, resources=[self.granted_resource]),
            call("put_scope", realm, self.forbidden_scope, resources=[self.forbidden_resource]),
            call("put_scope", realm, "switched.off", enabled=False),
        ]
        if limits:
            statements += [
                call("set_rate_limit", realm, policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
                for policy, dimension in UNLIMITED
            ]
        without_passkey = [p for p in everything if p != "gt:" + PASSKEY]
        for name, kind, token, permissions in (
            ("app", "public", None, everything),
            ("app-2", "public", None, everything),
            ("jwt", "public", "jwt", everything),
            ("no-passkey", "public", None, without_passkey),
            ("api", "confidential", None, [*everything, "ept:introspection"]),
            ("other-api", "confidential", None, everything),
            ("no-refresh", "public", None, without_refresh),
            ("no-grants", "public", None, []),
            ("disabled", "public", None, everything),
        ):
            extra = {"access_token_type": token} if token else {}
            if name == "app-2":
                extra["rp_id"] = self.other_rp
            statements.append(call("put_client", realm, self.client(name), client_type=kind, **extra))
            if permissions:
                statements.append(call("grant_permission", realm, self.client(name), variadic=permissions))
        self.world.admin.run(*statements)
        self.secrets = {
            name: LEDGER.add("client_secret", self.world.admin.call("rotate_client_secret", realm, self.client(name)))
            for name in ("api", "other-api")
        }
        self.wait_served()

    def wait_served(self, timeout=3.0):
        """Waits until the server answers for this realm's host."""
        deadline = time.monotonic() + timeout
        while True:
            answer = wire.exchange(self.world.node.port, "GET", "/.well-known/openid-configuration", {"Host": self.host})
            if answer.status == 200:
                return
            assert time.monotonic() < deadline, f"realm {self.slug} is not served: {answer}"
            time.sleep(0.02)

    def app(self, name="app", node=None):
        """A client of this realm, at work."""
        return NativeApp(node or self.world.node, self.world.mailbox, self.host, self.client(name), self.secrets.get(name))

    def put_client(self, name, *permissions, **settings):
        """One more client (or a changed one); returns it, at work. Changes of settings want `world.settle()`."""
        self.world.admin.call("put_client", self.slug, self.client(name), **settings)
        if permissions:
            self.world.admin.run(call("grant_permission", self.slug, self.client(name), variadic=list(permissions)))
        return self.app(name)

    def put_app(self, slug, clients=(), **settings):
        """Creates or changes an App on a host of its own below the realm's; returns the host."""
        host = f"{slug}.{self.host}"
        self.world.admin.call(
            "put_app", self.slug, slug, subdomain=host, client_ids=[self.client(name) for name in clients] or None, **settings
        )
        self.world.settle()
        return host

    def app_on(self, host, name="app", node=None):
        """A client of this realm, at work on another host."""
        return NativeApp(node or self.world.node, self.world.mailbox, host, self.client(name), self.secrets.get(name))

    def new_email(self):
        """An address nobody has used."""
        return f"mike{next(_NUMBERS)}.{self.slug}@mail.example"

    def user(self, **details):
        """A new confirmed user; returns the address."""
        email = self.new_email()
        self.put_user(email, **details)
        return email

    def put_user(self, email, **details):
        """Creates or changes a user; returns the id."""
        return self.world.admin.call("put_user", self.slug, email, **{"first_name": "Mike", "email_verified": True, **details})

    def users(self, count):
        """Many new confirmed users."""
        emails = [self.new_email() for _ in range(count)]
        self.world.admin.run(*(call("put_user", self.slug, e, first_name="Mike", email_verified=True) for e in emails))
        return emails

    def limit(self, policy, dimension, permits, per="1 hour", burst=None):
        """Sets one rate limit."""
        self.world.admin.call("set_rate_limit", self.slug, policy, dimension, permits=permits, per=per, burst=burst or permits)
        self.world.settle()

    def policy(self, **settings):
        """Changes the code policy."""
        self.world.admin.call("set_code_policy", self.slug, **settings)
        self.world.settle()

    def native(self, **settings):
        """Changes the native-grant settings."""
        self.world.admin.call("set_native_grants", self.slug, **settings)
        self.world.settle()
