"""Every request that a stranger can make: one that is accepted, or refused as late as a stranger's can be, for each endpoint."""

import json
import re
import secrets
import urllib.parse
import uuid

from . import wire
from .approvals import CIBA, switch_on
from .codeflow import Flow, challenge_of, hosted
from .dpop import DPoPApp, ProofKey
from .pages_client import PageBrowser
from .phones import Phones, new_number

COTTER = ("cap:cotter", "gt:authorization_code", "gt:refresh_token", "scp:email", "scp:profile")
ADDRESS = object()
#: Each grant with what a stranger can invent: right by its form.
GRANTS = {
    "urn:cocoar:otp": {"auth_session": "pas_" + "A" * 80, "otp_code": "000000"},
    "urn:cocoar:magic": {"user_id": str(uuid.uuid4()), "magic_token": "A" * 43},
    "urn:cocoar:passkey": {"ceremony_id": "pcm_" + "A" * 80, "assertion": "{}"},
    "urn:postern:possession": {"auth_token": "A" * 80},
    "urn:postern:device": {},
    CIBA: {"auth_req_id": "A" * 43},
    "refresh_token": {"refresh_token": "prt_" + "A" * 96},
    "authorization_code": {"code": "pac_" + "A" * 43, "redirect_uri": "https://app.a.example/cb", "code_verifier": "v" * 43},
    "client_credentials": {},
}
#: The forms of a sign-in's page: name, the steps before, the form.
PAGES = (
    ("address", (), {"action": "continue", "address": ADDRESS}),
    ("code", ({"action": "continue", "address": ADDRESS},), {"action": "continue", "code": "000000"}),
    ("resend", ({"action": "continue", "address": ADDRESS},), {"action": "resend"}),
    ("link", ({"action": "continue", "address": ADDRESS},), {"action": "link"}),
)


def long_text(size):
    """Text that nothing compresses."""
    return secrets.token_urlsafe(size)[:size]


class Request:
    """One kind of request. `make`: gives headers and members of a new one; `form`: how members are sent (form, json or query)."""

    def __init__(self, name, method, path, make, form, app):
        self.name, self.method, self.path, self.make, self.form, self.app = name, method, path, make, form, app

    def send(self, more=None, made=None):
        """Sends it with more members; the raw answer."""
        headers, members = made or self.make()
        headers, members = dict(headers), {**members, **(more or {})}
        headers = {"User-Agent": long_text(2000), "Accept-Language": "de-" + long_text(1000), "Referer": "https://x.example/" + long_text(1000),
                   **headers}
        target = self.path.replace("{id}", headers.pop("id", "A" * 24))
        body = None
        if self.form == "query":
            target += "?" + wire.form_body(members).decode()
        elif self.method in ("POST", "PATCH"):
            headers["Content-Type"] = "application/json" if self.form == "json" else wire.FORM
            body = json.dumps(members).encode() if self.form == "json" else wire.form_body(members)
        return self.app.exchange(self.method, target, headers, body)

    def outcome(self, more=None, made=None):
        """Sends it, and tells what became of it without what is different each time: a page is looked at where the answer leads to one."""
        made = made or self.make()
        answer = self.send(more, made)
        told, location = [answer.status], urllib.parse.urlsplit(answer.header("location") or "")
        if answer.status == 303 and location.netloc in ("", self.app.host):
            answer = self.app.exchange("GET", location._replace(scheme="", netloc="").geturl(), {
                name: value for name, value in made[0].items() if name == "Cookie"})
        text = answer.body.decode(errors="replace")
        for pattern in (r'data-step="([^"]*)"', r'data-error="([^"]*)"', r'"error": ?"([^"]*)"'):
            told += re.findall(pattern, text)
        return told + urllib.parse.parse_qs(location.query).get("error", [])


def anywhere():
    """The header of a request that comes from a source of its own."""
    return {"X-Forwarded-For": "10." + ".".join(str(secrets.randbelow(256)) for _ in range(3))}


def realm_for_strangers(world, node):
    """A realm where everything that answers strangers is on: pages, registration, phones, approvals, devices, numbers, Cotter, a hook."""
    realm = hosted(world.realm("strangers"), offer_passkey=False)
    realm.through, realm.phones = node, Phones(realm)
    admin = world.admin
    switch_on(realm, "app", public_clients=True)
    admin.call("put_scope", realm.slug, "openid")
    admin.call("set_possession", realm.slug, enabled=True, resend_cooldown="0 seconds")
    admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["gt:urn:postern:device", "scp:verify:email"])
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", *COTTER)
    admin.call("put_redirect_uri", realm.slug, realm.client("cotter"), "yourapp://")
    for policy, dimension in (("authorize", "source"), ("par", "source"), ("par", "client"), ("phone-otp", "client"), ("phone-otp", "app"),
                              ("phone-otp", "spend")):
        admin.call("set_rate_limit", realm.slug, policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
    admin.call("set_pre_send_hook", realm.slug, f"http://127.0.0.1:{realm.phones.port}/hook", "allow")
    realm.open, realm.explicit = realm.put_app("open", registration="JitOnOtp"), realm.put_app("explicit", registration="ExplicitEndpoint")
    return realm


class Strangers:
    """The requests of strangers at a realm, by endpoint."""

    def __init__(self, realm):
        self.realm, self.node = realm, realm.through
        self.app = realm.app_on(realm.open, node=self.node)
        self.owner = realm.user()
        self.requests = {}
        for method, path in (("post", "/api/account/native/otp/request"), ("post", "/api/account/magic-link/request")):
            self.add(method, path, lambda: {"Email": realm.new_email(), "ClientId": self.app.client_id}, "json")
            self.add(method, path, lambda: {"Email": realm.user(), "ClientId": self.app.client_id}, "json", "of an account")
            self.add(method, path, lambda: {"Phone": new_number(), "ClientId": self.app.client_id}, "json", "by phone")
        self.add("post", "/api/account/native/register", lambda: {
            "Email": realm.new_email(), "FirstName": "A", "LastName": "B", "ClientId": self.app.client_id}, "json",
            app=realm.app_on(realm.explicit, node=self.node))
        self.add("post", "/connect/passkey/begin", lambda: {"client_id": self.app.client_id})
        for name, flow in (("", Flow(realm)), ("proof of an address", Flow(realm))):
            changes = {"scope": "openid verify:email"} if name else {}
            for method, path, form in (("post", "/connect/par", "form"), ("post", "/connect/authorize", "form"), ("get", "/connect/authorize", "query")):
                self.add(method, path, lambda flow=flow, changes=changes: flow.request(**changes), form, name)
        self.add("get", "/app", lambda: {
            "api_key": realm.client("cotter"), "redirect_url": "yourapp://", "type": "EMAIL", "code_challenge": challenge_of("v" * 43), "state": "s"},
            "query")
        self.add("post", "/api/v0/verify/get_identity", lambda: {
            "code_verifier": "v" * 43, "authorization_code": "pac_" + "A" * 43, "challenge_id": 7, "redirect_url": "yourapp://"}, "json",
            headers={"API_KEY_ID": realm.client("cotter")})
        self.add("post", "/api/v0/token/{id}", lambda: {"grant_type": "refresh_token", "refresh_token": "prt_" + "A" * 96}, "json",
                 headers={"id": realm.client("cotter")})
        for grant, members in GRANTS.items():
            self.add("post", "/connect/token", lambda grant=grant, members=members: {
                "grant_type": grant, "client_id": self.app.client_id, "scope": "openid", **members}, name=grant)
        self.add("post", "/connect/token", lambda: {
            "grant_type": "urn:cocoar:otp", "client_id": self.app.client_id, "username": self.owner, "otp_code": "000000"}, name="of an account")
        self.add("post", "/token", lambda: {"grant_type": "client_credentials", "client_id": self.app.client_id})
        self.add("post", "/connect/bc-authorize", lambda: {"client_id": self.app.client_id, "scope": "openid", "login_hint": realm.new_email()})
        self.add("post", "/connect/bc-authorize", lambda: {
            "client_id": self.app.client_id, "scope": "openid", "login_hint": realm.user()}, name="of an account")
        self.add("post", "/connect/revoke", lambda: {"client_id": self.app.client_id, "token": "prt_" + "A" * 96})
        self.add("post", "/connect/logout", lambda: {"client_id": self.app.client_id, "state": "s"})
        self.add("get", "/connect/logout", lambda: {"client_id": self.app.client_id, "state": "s"}, "query")
        self.add("get", "/magic-login", lambda: {"userId": str(uuid.uuid4()), "token": "A" * 43}, "query")
        self.add("post", "/magic-login", lambda: {"user_id": str(uuid.uuid4()), "magic_token": "A" * 43, "action": "confirm", "number": "12"})
        self.add("get", "/sign-in", lambda: {"tx": "A" * 43}, "query")
        for path in ("/p/{id}", "/undo/{id}"):
            self.add("post", path, lambda: {"action": "continue", "number": "12"})
        for name, steps, last in PAGES:
            self.add("post", "/sign-in", lambda steps=steps, last=last: self.page(steps, last), name=name)
        self.add("post", "/sign-in/wait", lambda: self.page((), {"action": "continue"}))
        for method, path, form in (("get", "/connect/approvals", "query"), ("get", "/connect/devices/self", "query"),
                                   ("post", "/connect/devices/offer", "json"), ("delete", "/connect/devices/{id}", "json"),
                                   ("patch", "/connect/devices/{id}", "json")):
            self.add(method, path, lambda: {"ClientId": self.app.client_id} if form == "json" else {}, form,
                     app=DPoPApp(self.app, ProofKey()))

    def add(self, method, path, make, form="form", name="", headers=None, app=None):
        """One more request of an endpoint. `make` gives members, or headers and members."""

        def made():
            given = make()
            own, members = given if isinstance(given, tuple) else ({}, given)
            return {**anywhere(), **(headers or {}), **own}, members

        self.requests.setdefault((method, path), []).append(Request(name, method.upper(), path, made, form, app or self.app))

    def of(self, method, path):
        """The requests of an endpoint: those above, or one without credentials."""
        plain = Request("", method.upper(), path, lambda: (anywhere(), {}), "query" if method == "get" else "json", self.app)
        return self.requests.get((method, path), [plain])

    def page(self, steps, last):
        """Headers and members of a form of a sign-in that has come through some steps."""
        flow = Flow(self.realm, host=self.realm.open)
        flow.app.node = self.node
        browser = PageBrowser(self.node, self.realm.open)
        browser.open("/connect/authorize?" + wire.form_body(flow.request()).decode())
        for step in steps:
            browser.submit(**self.filled(step))
        return ({**browser.cookie_header(), "Sec-Fetch-Site": "same-origin"}, {**browser.page.fields, **self.filled(last)})

    def filled(self, step):
        """A step with an address of its own."""
        return {name: self.realm.new_email() if value is ADDRESS else value for name, value in step.items()}
