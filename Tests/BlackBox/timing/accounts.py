"""Accounts by the thousand for the harness realm, written straight into its throw-away database."""

import json
import os
import secrets

from harness import approvals, authenticator, wire
from harness.app import OTP, PASSKEY
from harness.codeflow import Flow, hosted
from harness.pages_client import PageBrowser
from harness.postgres import literal
from harness.realm import call

MAGIC = "urn:cocoar:magic"


class Accounts:
    """Makes users, codes and passkeys of a new realm. Addresses are random and of one length, so that nothing but the row differs."""

    def __init__(self, world):
        self.world = world
        self.realm = realm = world.realm()
        foreign = world.realm()
        foreign.put_client("otherone")
        self.foreign_client = foreign.client("otherone")
        world.admin.call("put_client", realm.slug, realm.client("disabled"), enabled=False)
        world.admin.run(*(
            call("set_rate_limit", realm.slug, "magic-link", dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
            for dimension in ("target", "target-total", "source", "client", "app")
        ), call("grant_permission", realm.slug, realm.client("app"), variadic=["gt:" + MAGIC]))
        approvals.switch_on(realm, "app", public_clients=True)
        self.hosts = {posture: realm.put_app(posture.lower(), registration=posture) for posture in ("JitOnOtp", "ExplicitEndpoint")}
        # The clients app-2 and jwt show the pages of Apps with other postures.
        realm.put_app("jit", ["app-2"], registration="JitOnOtp")
        realm.put_app("explicit", ["jwt"], registration="ExplicitEndpoint")
        hosted(realm).limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
        self._browsers = {}
        self.app = realm.app()
        self.id = world.cluster.sql(f"SELECT id FROM postern.realm WHERE slug = {literal(realm.slug)}")[0][0]
        self.key = authenticator.Key()

    def _run(self, text):
        return self.world.cluster.sql(text)

    def addresses(self, count):
        """Addresses nobody has."""
        return [f"{secrets.token_hex(8)}@mail.example" for _ in range(count)]

    def users(self, count, enabled=True, verified=True):
        """Users, by address."""
        emails = self.addresses(count)
        self._run(
            f"INSERT INTO postern.user_account (realm_id, email, first_name, enabled, email_verified) "
            f"SELECT {literal(self.id)}, e, 'Mike', {literal(enabled)}, {literal(verified)} FROM unnest({literal(emails)}) AS e; "
            f"ANALYZE postern.user_account;"
        )
        return emails

    def suppressed(self, emails):
        """Has nothing sent to these addresses."""
        self._run(
            f"INSERT INTO postern.suppressed_address (realm_id, email) SELECT {literal(self.id)}, e FROM unnest({literal(emails)}) AS e; "
            "ANALYZE postern.suppressed_address;"
        )
        return emails

    def ids(self, emails):
        """The ids of users, in the order of the addresses."""
        rows = dict(self._run(
            f"SELECT u.address_key, u.id FROM postern.user_account AS u WHERE u.realm_id = {literal(self.id)} AND u.address_key = ANY ({literal(emails)});"
        ))
        return [rows[email] for email in emails]

    def with_links(self, emails):
        """Gives each user a live link that nobody knows, and returns the users' ids."""
        self._run(
            "INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, address_key, source, security_stamp, expires_at) "
            "SELECT u.realm_id, u.id, sha256(uuid_send(gen_random_uuid())), uuid_send(gen_random_uuid()), u.address_key, '192.0.2.1', u.security_stamp, "
            f"       now() + interval '9 minutes' FROM postern.user_account AS u WHERE u.realm_id = {literal(self.id)} "
            f"   AND u.address_key = ANY ({literal(emails)}); ANALYZE postern.login_link;"
        )
        return self.ids(emails)

    def with_codes(self, emails):
        """Gives each user a live code that nobody knows."""
        self._run(
            "INSERT INTO postern.login_code (realm_id, address_key, id, user_id, expires_at, salt, mac) "
            "SELECT u.realm_id, u.address_key, gen_random_uuid(), u.id, now() + interval '9 minutes', "
            "       uuid_send(gen_random_uuid()), sha256(uuid_send(gen_random_uuid())) "
            f"  FROM postern.user_account AS u WHERE u.realm_id = {literal(self.id)} AND u.address_key = ANY ({literal(emails)}); "
            "ANALYZE postern.login_code;"
        )
        return emails

    def credentials(self, count):
        """Users with a passkey each; all passkeys have one key, which we hold."""
        emails = self.users(count)
        ids = [secrets.token_bytes(32) for _ in emails]
        public = authenticator.cbor(self.key.cose()).hex()
        rows = ", ".join(f"({literal(e)}, '\\x{i.hex()}'::bytea)" for e, i in zip(emails, ids))
        handles = self._run(
            f"WITH wanted (email, id) AS (VALUES {rows}), made AS ("
            "INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state) "
            f"SELECT u.realm_id, u.id, {literal(self.realm.host)}, w.id, '\\x{public}'::bytea, false, false "
            f"  FROM wanted AS w JOIN postern.user_account AS u ON u.realm_id = {literal(self.id)} AND u.address_key = w.email "
            "RETURNING credential_id, user_id, id) "
            "SELECT encode(m.credential_id, 'hex'), encode(u.user_handle, 'hex'), m.id FROM made AS m JOIN postern.user_account AS u "
            f"    ON u.realm_id = {literal(self.id)} AND u.id = m.user_id;"
        )
        found = [
            (authenticator.Credential(self.realm.host, bytes.fromhex(handle), self.key, id=bytes.fromhex(credential)), management)
            for credential, handle, management in handles
        ]
        self._run("ANALYZE postern.passkey")
        return [credential for credential, _ in found], [management for _, management in found]

    def sign_in(self, credential, app=None):
        """Tokens for the owner of a passkey: no mail is needed."""
        return (app or self.app).passkey_sign_in(credential)

    # -- requests as bytes --------------------------------------------------------------------

    def form(self, path, parameters, headers=()):
        """A form."""
        return wire.request_bytes(
            "POST", path, [("Host", self.realm.host), ("Content-Type", wire.FORM), *headers], wire.form_body(parameters)
        )

    def json(self, path, document, posture=None):
        """A JSON document, to the realm's host or to that of the App of a posture."""
        host = self.hosts[posture] if posture else self.realm.host
        return wire.request_bytes("POST", path, [("Host", host), ("Content-Type", "application/json")], json.dumps(document).encode())

    def get(self, target):
        """A page."""
        return wire.request_bytes("GET", target, {"Host": self.realm.host})

    def delete(self, target, token):
        """DELETE with a bearer token."""
        return wire.request_bytes("DELETE", target, {"Host": self.realm.host, "Authorization": f"Bearer {token}"})

    def token(self, **parameters):
        """A token request of the public client, unless it names another."""
        return self.form("/connect/token", {"client_id": self.app.client_id, **parameters})

    def code_request(self, email, posture=None):
        """A request for a code."""
        return self.json("/api/account/native/otp/request", {"Email": email}, posture)

    def registration(self, email):
        """A request to register, where that is open."""
        return self.json("/api/account/native/register", {"Email": email}, "ExplicitEndpoint")

    def link_request(self, email):
        """A request for a link."""
        return self.json("/api/account/magic-link/request", {"Email": email})

    def approval_request(self, email):
        """A request for an approval."""
        fields = {"Host": self.realm.host, "Content-Type": wire.FORM}
        return wire.request_bytes("POST", "/connect/bc-authorize", fields, wire.form_body(approvals.form(self.app, login_hint=email)))

    def devices(self, emails):
        """Gives each a trusted device; returns the addresses."""
        self._run(
            "INSERT INTO postern.device_key (realm_id, thumbprint, public_key, user_id, client, added_at) "
            "SELECT u.realm_id, sha256(u.id::text::bytea), sha256(u.id::text::bytea) || sha256('y'), u.id, k.id, now() "
            "FROM postern.user_account AS u JOIN postern.client AS k USING (realm_id) "
            f"WHERE u.realm_id = {literal(self.id)} AND k.client_id = {literal(self.app.client_id)} AND u.email = ANY ({literal(emails)}); "
            "ANALYZE postern.device_key;")
        return emails

    def redemption(self, email=None, handle=None):
        """A code that is right by one chance in a million."""
        return self.token(
            grant_type=OTP, username=email, auth_session=handle, otp_code=f"{int.from_bytes(os.urandom(4)) % 1_000_000:06d}", scope=""
        )

    # -- pages --------------------------------------------------------------------------------

    def _browser(self, client, action=None):
        """A browser that began a sign-in of a client, and pressed a button: once, for any number of forms."""
        if (client, action) not in self._browsers:
            flow = Flow(self.realm, client)
            browser = PageBrowser(flow.app.node, flow.host)
            if action:
                browser.cookies = self._browser(client).cookies
            browser.open("/connect/authorize?" + wire.form_body(flow.request()).decode())
            if action:
                browser.submit(action)
            self._browsers[client, action] = browser
        return self._browsers[client, action]

    def page_form(self, client, state, action, path="/sign-in", **fields):
        """A form of a page."""
        return self.form(path, {"tx": state, **fields, "action": action}, [
            ("Sec-Fetch-Site", "same-origin"), *self._browser(client).cookie_header().items()])

    def address_form(self, client, email):
        """The first form of a sign-in."""
        return self.page_form(client, self._browser(client).page.fields["tx"], "continue", address=email)

    def registration_state(self, client):
        """The state of the page of a registration."""
        return self._browser(client, "register").page.fields["tx"]

    def page(self, client, state):
        """A page again."""
        return wire.request_bytes("GET", f"/sign-in?tx={state}", {"Host": self.realm.host, **self._browser(client).cookie_header()})

    def assertion(self, ceremony, credential, mutation="ok", origin=None):
        """A passkey redemption."""
        document = authenticator.assertion(ceremony["options"], credential, mutation, origin)
        return self.token(grant_type=PASSKEY, ceremony_id=ceremony["ceremonyId"], assertion=json.dumps(document), scope="")
