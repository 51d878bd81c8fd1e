"""What is measured: the request, the material behind it, our own statement under pgbench, and the floor's."""

import base64
import hashlib
import urllib.parse
from dataclasses import dataclass, field

from paths import FLOOR, SQL
from realm import REDIRECT, VERIFIER
from server import HOST

_FORM = "application/x-www-form-urlencoded"
#: More than this per second nothing here does; how much single-use material a run gets.
_CEILING = {"codes": 9000, "assertions": 6000, "addresses": 14000}


def get(path, *headers):
    """A GET request as the load generator's template."""
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", *headers, "", ""])


def post(path, body, *headers, kind=_FORM):
    """A POST request as the load generator's template."""
    return "\r\n".join([f"POST {path} HTTP/1.1", f"Host: {HOST}", f"Content-Type: {kind}", "Content-Length: {length}", *headers, "", body])


@dataclass
class Statement:
    """A pgbench script with what it needs: `seed(run, connections, seconds)` is SQL, `check` counts its effects."""

    script: object
    seed: object = None
    check: str = None
    floor: bool = False


@dataclass
class Scenario:
    """One row of the table. `material(realm, seconds)` returns the values' path; it is called before each run unless reusable."""

    name: str
    request: object
    material: object
    options: tuple = ()
    reusable: bool = False
    own: Statement = None
    floors: dict = field(default_factory=dict)
    static: bool = False
    #: `proofs(realm, values, seconds)` is the path of a proof of possession for each request; called before each run.
    proofs: object = None
    #: Ratios that are wanted: of HTTP to our own statement (or the static route), and of our statement to the floor's.
    http_target: float = None
    #: The scenario without proofs, which is measured in turns with this one, and the wanted ratio of the rates.
    bearer: str = None
    bearer_target: float = None
    floor_target: float = None


def _enough(kind, seconds):
    return int(_CEILING[kind] * (seconds + 1))


def _chains(schema):
    return lambda run, connections, seconds: f"SELECT {schema}.seed_chains({run}, {connections})"


def _codes(schema):
    return lambda run, connections, seconds: f"SELECT {schema}.seed_otps({run}, {connections}, {int(seconds * 9000 / connections)})"


_REFRESH = Statement(SQL / "refresh.sql", _chains("bench"), "SELECT sum(generation) FROM postern.session WHERE client_id LIKE 'client-%'")
_SESSIONS = "SELECT count(*) FROM postern.session"
_REDEEM = {by: Statement(SQL / f"redeem_{by}.sql", _codes("bench"), _SESSIONS) for by in ("handle", "address")}
_REQUEST = Statement(SQL / "request_code.sql", lambda *_: "TRUNCATE postern.sign_in_request", "SELECT count(*) FROM postern.sign_in_request")
_PASSKEY = Statement(SQL / "passkey.sql", None, _SESSIONS)
_INTROSPECT = Statement(SQL / "introspect.sql")
_SILENT = Statement(SQL / "silent_sign_on.sql", lambda *_: "TRUNCATE postern.authorization_code", "SELECT count(*) FROM postern.authorization_code")
_PUSH = Statement(SQL / "push_request.sql", lambda *_: "TRUNCATE postern.pushed_request", "SELECT count(*) FROM postern.pushed_request")
_CODE = Statement(
    SQL / "redeem_authorization_code.sql",
    lambda run, connections, seconds: "TRUNCATE postern.authorization_code; SELECT bench.seed_authorization_codes("
    f"{run} * 10000000::bigint + c * 100000 + 1, {min(99_999, int(seconds * 9000 / connections))}) FROM generate_series(0, {connections - 1}) AS c", _SESSIONS)
_ROTATE = Statement(FLOOR / "rotate_func.sql", _chains("public"), "SELECT count(*) FROM refresh_tokens", floor=True)
_ROTATE_CTE = Statement(FLOOR / "rotate_cte.sql", _chains("public"), "SELECT count(*) FROM refresh_tokens", floor=True)
_FLOOR_REDEEM = Statement(FLOOR / "otp_redeem.sql", _codes("public"), "SELECT count(*) FROM refresh_tokens", floor=True)
_FLOOR_INTROSPECT = Statement(FLOOR / "introspect.sql", floor=True)


def _token(grant, client, rest):
    return lambda realm: post("/connect/token", f"grant_type={grant}&client_id={client}&{rest}{{value}}")


def _refresh(name, client, scope, expect, target):
    return Scenario(
        name, _token("refresh_token", client, "refresh_token="), lambda realm, seconds: realm.refresh_tokens(256, client, scope),
        ("--rotate", "refresh_token", "--expect", expect), reusable=True, own=_REFRESH,
        floors={"rotate_func": _ROTATE, "rotate_cte": _ROTATE_CTE}, http_target=target, floor_target=0.70)


def _redeem(name, client, scope, by, expect, target):
    return Scenario(
        name, _token("urn:cocoar:otp", client, f"scope={scope}&otp_code=123456&"),
        lambda realm, seconds: realm.codes(_enough("codes", seconds), by), ("--expect", expect),
        own=_REDEEM["handle" if by == "auth_session" else "address"], floors={"otp_redeem": _FLOOR_REDEEM}, http_target=target,
        floor_target=0.70)


def _request(name, known):
    return Scenario(
        name, lambda realm: post("/api/account/native/otp/request", '{"Email":"{value}"}', kind="application/json"),
        lambda realm, seconds: realm.addresses(_enough("addresses", seconds), known), ("--expect", '"AuthSession"'), own=_REQUEST,
        http_target=None if known else 0.75)


def _bound(name, bearer, target, enough, path="/connect/token"):
    """The scenario `bearer` with a proof for each request; the target is the ratio of the rates."""
    def request(realm):
        head, separator, rest = bearer.request(realm).replace("Bearer {value}", "DPoP {value}").partition("\r\n\r\n")
        return head + "\r\nDPoP: {proof}" + separator + rest
    return Scenario(
        name, request, bearer.material if path == "/connect/token" else lambda realm, seconds: realm.bound_tokens(enough * (seconds + 1)),
        tuple(option for option in bearer.options if option != "--cyclic"), reusable=bearer.reusable and path == "/connect/token", own=None,
        proofs=lambda realm, values, seconds: realm.proofs(path, None if path == "/connect/token" else values, int(enough * (seconds + 1))),
        bearer=bearer.name, bearer_target=target)


def _static(name, path):
    return Scenario(name, lambda realm: get(path), lambda realm, seconds: realm.nothing(), ("--cyclic",), reusable=True, static=True, http_target=0.85)


#: An authorization request of the client bench-web. The challenge is VERIFIER's.
_CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
_REQUEST_OF_WEB = urllib.parse.urlencode({
    "client_id": "bench-web", "redirect_uri": REDIRECT, "response_type": "code", "scope": "openid profile", "nonce": "n",
    "code_challenge": _CHALLENGE, "code_challenge_method": "S256", "state": "s"})

_ALL = [
    _refresh("refresh", "bench-app", "{profile,offline_access}", '"access_token":"pat_', 0.80),
    _refresh("refresh-jwt", "bench-jwt", "{openid,profile,offline_access}", '"id_token":"', 0.72),
    _redeem("otp", "bench-app", "profile+offline_access", "auth_session", '"refresh_token":"', 0.80),
    _redeem("otp-address", "bench-app", "profile+offline_access", "username", '"refresh_token":"', 0.80),
    _redeem("otp-jwt", "bench-jwt", "openid+profile+offline_access", "auth_session", '"id_token":"', 0.72),
    _request("otp-request", known=False),
    _request("otp-request-known", known=True),
    Scenario("passkey-begin", lambda realm: post("/connect/passkey/begin", "client_id=bench-app"), lambda realm, seconds: realm.nothing(),
             ("--cyclic", "--expect", '"ceremonyId"'), reusable=True, static=True),
    Scenario("passkey", _token("urn:cocoar:passkey", "bench-app", "scope=profile+offline_access&"),
             lambda realm, seconds: realm.assertions(_enough("assertions", seconds)), ("--expect", '"refresh_token":"'), own=_PASSKEY,
             http_target=0.50),
    Scenario("introspection", lambda realm: post("/connect/introspect", "token={value}", f"Authorization: Basic {realm.basic}"),
             lambda realm, seconds: realm.access_tokens(50_000), ("--cyclic", "--expect", '"active":true'), reusable=True, own=_INTROSPECT,
             floors={"introspect": _FLOOR_INTROSPECT}, http_target=0.45, floor_target=0.80),
    Scenario("userinfo", lambda realm: get("/connect/userinfo", "Authorization: Bearer {value}"),
             lambda realm, seconds: realm.access_tokens(50_000), ("--cyclic", "--expect", '"sub"'), reusable=True, own=_INTROSPECT),
    Scenario("authorize-sso", lambda realm: get(f"/connect/authorize?{_REQUEST_OF_WEB}", "Cookie: __Host-postern-session={value}"),
             lambda realm, seconds: realm.browsers(), ("--cyclic", "--status", "303", "--expect", "code=pac_"), reusable=True, own=_SILENT,
             http_target=0.60),
    Scenario("authorize-page", lambda realm: get(f"/connect/authorize?{_REQUEST_OF_WEB}"), lambda realm, seconds: realm.nothing(),
             ("--cyclic", "--expect", 'data-step="address"'), reusable=True, static=True, http_target=0.50),
    Scenario("par", lambda realm: post("/connect/par", _REQUEST_OF_WEB), lambda realm, seconds: realm.nothing(),
             ("--cyclic", "--expect", '"request_uri":"'), reusable=True, own=_PUSH),
    Scenario("code", _token("authorization_code", "bench-web", f"redirect_uri={urllib.parse.quote(REDIRECT, safe='')}&code_verifier={VERIFIER}&code="),
             lambda realm, seconds: realm.authorization_codes(_enough("codes", seconds)), ("--expect", '"id_token":"'), own=_CODE),
    _static("discovery", "/.well-known/openid-configuration"),
    _static("jwks", "/.well-known/jwks"),
]
_BY_NAME = {scenario.name: scenario for scenario in _ALL}
_ALL += [
    _bound("refresh-dpop", _BY_NAME["refresh"], 0.72, 9000),
    _bound("otp-dpop", _BY_NAME["otp"], 0.85, 9000),
    _bound("userinfo-dpop", _BY_NAME["userinfo"], 0.35, 14000, "/connect/userinfo"),
]
SCENARIOS = {scenario.name: scenario for scenario in _ALL}
