"""A request that is refused for its proof has done nothing at all: it consumed, counted, rotated and ended nothing.

For each endpoint and each way of refusing, in a random order: everything that the database holds of the realm is compared before and after,
but for permits of policy `refused`; then the same request with a right, new proof succeeds.
"""

import json
import random
import time

import pytest

from harness import authenticator, totp, wire
from harness.app import FULL_SCOPE
from harness.codeflow import Flow, hosted
from harness.dpop import INVALID, NONCE_DUE, DPoPApp, ProofKey
from harness.links import Links
from harness.postgres import literal
from harness.report import say
from harness.service import service
from harness.settings import FULL
from harness.transaction import OpenTransaction

pytestmark = pytest.mark.slow
#: What the server writes on its own, or writes of proofs themselves.
_IGNORED = {"message_outbox", "sweep_cursor", "signing_key", "signing_key_request", "data_key", "schema_migration", "service_account_use"}

#: Endpoints whose success changes nothing that is compared.
_SILENT = {
    "sessions", "passkeys", "account", "consents", "identifiers", "userinfo", "TOTP enrolment", "passkey enrolment", "passkey/begin", "service",
    "deleted TOTP",
}


class Request:
    """One request, ready to be sent with any proof: method, path, headers and body, the token beside it, and what a success is."""

    def __init__(self, app, method, path, headers=None, body=None, token=None, statuses=(200,)):
        self.app, self.method, self.path, self.token, self.statuses = app, method, path, token, statuses
        self.headers = {**(headers or {}), **({"Authorization": f"DPoP {token}"} if token else {})}
        self.body = body

    @classmethod
    def form(cls, app, parameters, path="/connect/token", **more):
        """A form."""
        return cls(app, "POST", path, {"Content-Type": wire.FORM}, wire.form_body(parameters), **more)

    @classmethod
    def json(cls, app, method, path, document, **more):
        """A JSON request."""
        return cls(app, method, path, {"Content-Type": "application/json"}, json.dumps(document).encode(), **more)

    def proof(self, **changes):
        """A right proof but for the changes."""
        return self.app.proof(self.method, self.path, self.token, **changes)

    def send(self, *proofs):
        """The raw answer."""
        return self.app.exchange(self.method, self.path, {**self.headers, "DPoP": list(proofs) or None}, self.body)


def refusals(request, used):
    """Ways of being refused for the proof: the `DPoP` fields of each."""
    stale = {"iat": 1}
    return {
        "junk": ["junk"], "empty": [""], "two": [request.proof(), request.proof()], "other signature": [request.proof(spoil=lambda raw: raw[::-1])],
        "other method": [request.proof(payload={"htm": "PUT"})], "other URL": [request.proof(payload={"htu": "https://evil.example/"})],
        "no jti": [request.proof(payload={"jti": None})], "alg none": [request.proof(header={"alg": "none"})], "used": [used],
        "old": [request.proof(payload=stale, nonce=None)], "no nonce of ours": [request.proof(nonce="n" * 40)], "too long": [request.proof(payload={"x": "x" * 4000})],
        "private key": [request.proof(header={"jwk": {**request.app.key.public(), "d": "AAAA"}})],
        **({"no ath": [request.proof(payload={"ath": None})], "other ath": [request.proof(payload={"ath": "A" * 43})]} if request.token else {}),
    }


# -- the endpoints ---------------------------------------------------------------------------------------


def _code(realm, app):
    asked = app.request_code(realm.user())
    return Request.form(app, app.redeem_form(asked.code, handle=asked.handle))


def _code_by_address(realm, app):
    asked = app.plain.request_code(realm.user())
    return Request.form(app, app.redeem_form(asked.code, email=asked.email))


def _link(realm, app):
    links = Links(app)
    return Request.form(app, links.redeem_form(links.link(realm.user())))


def _poll(realm, app):
    links = Links(app)
    link = links.link(realm.user())
    assert links.choose(link, link.number).status == 200
    return Request.form(app, links.poll_form(link.handle))


def _passkey(realm, app):
    _, credential = app.enroll(app.bound(realm.user())["access_token"])
    ceremony = app.ceremony()
    return Request.form(app, app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], credential)))


def _second_factor(realm, app):
    email = realm.user()
    secret, _ = app.enrol_totp(app.bound(email)["access_token"])
    asked = app.request_code(email)
    totp.settle(15)
    return Request.form(app, app.redeem_form(asked.code, handle=asked.handle, totp_code=totp.code(secret)))


def _authorization_code(realm, app):
    flow = Flow(realm)
    flow.sign_in(realm.user())
    return Request.form(app, {
        "grant_type": "authorization_code", **app.credentials(), "code": flow.code(dpop_jkt=app.key.thumbprint),
        "redirect_uri": flow.redirect_uri, "code_verifier": flow.verifier})


def _refresh(realm, app):
    return Request.form(app, {"grant_type": "refresh_token", **app.credentials(), "refresh_token": app.bound(realm.user())["refresh_token"]})


def _unbound_refresh(realm, app):
    token = app.plain.sign_in(realm.user())["refresh_token"]
    return Request.form(app, {"grant_type": "refresh_token", **app.credentials(), "refresh_token": token})


def _old_refresh(realm, app):
    """With a right proof the second-last generation would end the family: it is the exception whose success is that end."""
    chain = [app.bound(realm.user())]
    for _ in range(2):
        chain.append(app.refreshed(chain[-1]["refresh_token"]))
    return Request.form(
        app, {"grant_type": "refresh_token", **app.credentials(), "refresh_token": chain[0]["refresh_token"]}, statuses=(400,))


def _service(realm, app):
    worker = DPoPApp(service(realm, f"worker-{app.key.thumbprint[:6].lower().replace('_', 'x').replace('-', 'x')}", realm.granted_scope)[0], app.key)
    return Request.form(worker, {"grant_type": "client_credentials", **worker.credentials(), "scope": realm.granted_scope})


def _otp_request(realm, app):
    return Request.json(app, "POST", "/api/account/native/otp/request", {"Email": realm.user()})


def _register(realm, app):
    there = DPoPApp(realm.app_on(realm.open_host), app.key)
    return Request.json(there, "POST", "/api/account/native/register", {"Email": realm.new_email()})


def _link_request(realm, app):
    return Request.json(app, "POST", "/api/account/magic-link/request", {"Email": realm.user()})


def _begin(realm, app):  # pylint: disable=unused-argument
    return Request.form(app, {"client_id": app.client_id}, "/connect/passkey/begin")


def _par(realm, app):
    return Request.form(app, Flow(realm).request(), "/connect/par", statuses=(201,))


def _account(method, path, document=None, statuses=(200,)):
    def make(realm, app):
        token = app.bound(realm.user(), scope=FULL_SCOPE)["access_token"]
        target = path
        if "{session}" in path:
            sessions = app.get("/connect/sessions", {"Authorization": f"Bearer {token}"}).json()
            target = path.format(session=next(item["Id"] for item in sessions if item["Current"]))
        if "{passkey}" in path:
            target = path.format(passkey=app.enroll(token)[0])
        if document is None:
            return Request(app, method, target, token=token, statuses=statuses)
        return Request.json(app, method, target, document, token=token, statuses=statuses)
    return make


def _enrol(realm, app):
    token = app.bound(realm.user())["access_token"]
    ceremony = app.enrolment(token)
    document, _ = authenticator.create(ceremony["options"])
    return Request.json(app, "POST", "/connect/passkey/enroll", {"ceremonyId": ceremony["ceremonyId"], "attestation": document}, token=token)


def _enrol_totp(realm, app):
    token = app.bound(realm.user())["access_token"]
    begun = app.totp_begin(token).json()
    totp.settle(15)
    return Request.json(app, "POST", "/connect/totp/enroll", {"ceremonyId": begun["ceremonyId"], "code": totp.code(begun["secret"])}, token=token)


def _delete_totp(realm, app):
    token = app.bound(realm.user())["access_token"]
    app.enrol_totp(token)
    return Request(app, "DELETE", "/connect/totp", token=token, statuses=(204, 401))


ENDPOINTS = {
    "code by handle": _code, "code by address": _code_by_address, "link": _link, "poll": _poll, "passkey": _passkey, "code and second factor": _second_factor,
    "authorization code": _authorization_code, "refresh": _refresh, "refresh of an unbound family": _unbound_refresh, "refresh of an old generation": _old_refresh,
    "service": _service, "otp/request": _otp_request, "register": _register, "magic-link/request": _link_request, "passkey/begin": _begin, "par": _par,
    "userinfo": _account("GET", "/connect/userinfo"), "account": _account("GET", "/connect/account"),
    "changed account": _account("PATCH", "/connect/account", {"FirstName": "Ada"}), "deleted account": _account("DELETE", "/connect/account", statuses=(204,)),
    "sessions": _account("GET", "/connect/sessions"), "ended sessions": _account("DELETE", "/connect/sessions?current=true", statuses=(204,)),
    "ended session": _account("DELETE", "/connect/sessions/{session}", statuses=(204,)), "passkeys": _account("GET", "/connect/passkey"),
    "passkey enrolment": _account("POST", "/connect/passkey/enroll/begin", {}), "enrolled passkey": _enrol,
    "renamed passkey": _account("PATCH", "/connect/passkey/{passkey}", {"DisplayName": "x"}),
    "deleted passkey": _account("DELETE", "/connect/passkey/{passkey}", statuses=(204,)),
    "TOTP enrolment": _account("POST", "/connect/totp/enroll/begin", {}), "enrolled TOTP": _enrol_totp, "deleted TOTP": _delete_totp,
    "consents": _account("GET", "/connect/consents"), "identifiers": _account("GET", "/connect/identifiers"),
}


@pytest.fixture(scope="module")
def realm(world):
    """With pages, and an App where one may register."""
    made = hosted(world.realm("invariant"))
    made.open_host = made.put_app("open", ["app", "app-2"], registration="ExplicitEndpoint")
    return made


@pytest.fixture(scope="module")
def snapshot(world, realm):
    """Says what the realm's tables hold: a digest for each."""
    realm_id = world.cluster.value(f"SELECT id FROM postern.realm WHERE slug = {literal(realm.slug)}")
    tables = [name for name, in world.cluster.sql(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE n.nspname = 'postern' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'realm_id' AND c.relname NOT LIKE 'used_proof%'")]
    tables = sorted(set(tables) - _IGNORED)
    assert {"session", "login_code", "sign_in_request", "rate_bucket", "audit_event", "spent_ceremony"} <= set(tables)

    def digest(table):
        # A refusal counts against its source, and a request against its source and client.
        # The server makes a new realm's keys beside its requests, and tells of them.
        more = {"rate_bucket": " AND t.key !~ '^(refused|token.(source|client|app))'",
                "audit_event": " AND t.event NOT LIKE 'signing_key%'"}.get(table, "")
        return (f"SELECT {literal(table)}, md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM postern.{table} AS t"
                f" WHERE t.realm_id = {literal(realm_id)}{more}")

    query = " UNION ALL ".join(digest(table) for table in tables)
    return lambda: dict(world.cluster.sql(query))


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_request_refused_for_its_proof_has_done_nothing(world, realm, snapshot, name):
    """Every way of refusing, in a random order; then the same request with a right proof succeeds."""
    assert_refusals_do_nothing(world, realm, snapshot, name, ENDPOINTS[name], name in _SILENT)


def assert_refusals_do_nothing(world, realm, snapshot, name, make, is_silent):  # pylint: disable=too-many-arguments,too-many-positional-arguments
    """At the endpoint of `make`; `is_silent`: success changes nothing that is compared."""
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    spender = DPoPApp(realm.app(), ProofKey())
    app = DPoPApp(realm.app(), spender.key)
    request = make(realm, app)
    request.app.obeys = False
    spender.bound(realm.user())
    # Both proofs have one time, so that one slot of the store is asked.
    used = {"jti": f"used-{seed}", "iat": int(time.time())}
    token = spender.bound(realm.user())["refresh_token"]
    form = {"grant_type": "refresh_token", **spender.credentials(), "refresh_token": token}
    assert spender.token(form, {"DPoP": spender.proof(payload=used)}).status == 200
    ways = list(refusals(request, request.proof(payload=used)).items()) * (5 if FULL else 1)
    dice.shuffle(ways)
    # Of the tables only the sweeper takes without being asked.
    with OpenTransaction(world, "SELECT pg_advisory_xact_lock(postern.lock_of_sweep());", role="postgres"):
        before = quiet(world, snapshot)
        for way, proofs in ways:
            answer = request.send(*proofs)
            assert answer.status in (400, 401) and answer.json() in (INVALID, NONCE_DUE), (seed, way, str(answer))
        world.pause()
        after = snapshot()
    assert before == after, (seed, sorted(table for table in before if before[table] != after[table]))
    answer = request.send(request.proof())
    assert answer.status in request.statuses, (seed, str(answer))
    if not is_silent:
        assert quiet(world, snapshot, settled=False) != after, "the comparison would see nothing"
    say(f"invariant: {len(ways)} refusals at {name} did nothing")


def quiet(world, snapshot, settled=True):
    """What the tables hold once the workers have done what was asked for before: two looks that agree."""
    last = snapshot()
    for _ in range(20 if settled else 0):
        world.pause()
        if (now := snapshot()) == last and not int(world.cluster.value("SELECT count(*) FROM postern.sign_in_request WHERE pending")):
            break
        last = now
    return last
