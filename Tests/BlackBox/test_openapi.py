"""docs/openapi.yaml against a server: generated requests of every operation, and a walk that sees every success."""

import base64
import re
import sys

import pytest

from harness import approvals, authenticator, links, report, settings, totp, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted
from harness.dpop import ProofKey
from harness.holder import signed_in
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.possession import Backend, checked, coded, opened, possession
from harness.realm import call
from harness.trusted import Device, with_devices
from test_cotter import PERMISSIONS, REDIRECT, Cotter
from test_cotter_events import backend
from test_possession_keys import prove
from test_possession_link import TARGET, linked, post, target_of

if settings.SCHEMATHESIS.is_dir():
    sys.path.append(str(settings.SCHEMATHESIS))
try:
    import hypothesis
    import requests
    import schemathesis
    from schemathesis import GenerationMode, checks
except ImportError as absent:
    MISSING = f"schemathesis is absent ({absent}): pip install --target .build/schemathesis schemathesis"
    report.say("openapi: " + MISSING)
    pytest.skip(MISSING, allow_module_level=True)

#: Generated requests of one operation, of each kind. The same ones in every run.
EXAMPLES = 20 if settings.FULL else 6
#: The operations whose answers are pages that keep a browser's cookies.
PAGES = ("/connect/authorize", "/connect/logout", "/sign-in", "/app")
DOCUMENT = schemathesis.openapi.from_path(str(settings.REPOSITORY / "docs" / "openapi.yaml"))
OPERATIONS = {operation.label: operation for operation in (result.ok() for result in DOCUMENT.get_all_operations())}
SEEN = set()

checks.load_all_checks()
ALWAYS = [checks.CHECKS.get_one(name) for name in ("status_code_conformance", "response_headers_conformance")]
OF_A_BODY = [checks.CHECKS.get_one(name) for name in ("content_type_conformance", "response_schema_conformance")]


@pytest.fixture(scope="module", autouse=True)
def _told():
    yield
    report.say(f"openapi: {len(OPERATIONS)} operations, {len(SEEN)} pairs of an operation and a status seen and checked")


def definition(operation, status):
    """What the document says of an answer; None when it says nothing."""
    found = operation.definition.raw["responses"].get(str(status))
    if found and "$ref" in found:
        found = DOCUMENT.raw_schema["components"]["responses"][found["$ref"].rpartition("/")[2]]
    return found


def check(operation, case, answer):
    """Status, content type, headers and body are those of the document.

    An answer without a body has no content type, and is documented so.
    """
    asked = [*ALWAYS]
    described = definition(operation, answer.status_code) or {}
    headers = {name: ", ".join(values) for name, values in answer.headers.items()}
    where = f"{operation.label} {answer.status_code} {headers} {answer.content[:200]!r}"
    if not answer.content and (not described.get("content") or described.get("x-empty-body")):
        assert "content-type" not in headers, where
    else:
        assert described.get("content"), where
        asked += OF_A_BODY
    assert headers["x-content-type-options"] == "nosniff", where
    assert "set-cookie" not in headers or operation.path in PAGES, where
    assert not [name for name in headers if name.startswith("access-control-")], where
    for_ever = headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "etag" in headers or for_ever or (headers["cache-control"], headers["pragma"]) == ("no-store", "no-cache"), where
    case.validate_response(answer, checks=asked)
    SEEN.add((operation.label, answer.status_code))


# -- generated requests ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def realm(world):
    """A realm with approvals and possession on, so that requests get past the switches."""
    made = possession(with_devices(world.realm(), public_clients=True))
    made.srv = Backend(made, "srv", "cap:assert-possession")
    return made


@pytest.fixture(scope="module")
def base(world):
    """The address of each listener by tag."""
    return {True: f"http://127.0.0.1:{world.node.ops_port}", False: f"http://127.0.0.1:{world.node.port}"}


@pytest.fixture(params=sorted(OPERATIONS), ids=lambda label: label.replace(" ", ""))
def operation(request):
    """Each operation of the document."""
    return OPERATIONS[request.param]


def credentials(operation, realm):
    """The headers that open the operation: the token of a user or a backend, or the secret of a confidential client."""
    schemes = {name for need in operation.definition.raw.get("security", []) for name in need}
    if operation.path.startswith("/v3/"):
        return bearer(realm.srv.token)
    if "bearer" in schemes:
        return bearer(signed_in(realm).token)
    if operation.path in ("/connect/introspect", "/connect/revoke"):
        return {"Authorization": realm.app("api").basic}
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_generated_requests_get_documented_answers(operation, mode, base, realm):
    """No request that fits the document, and none that does not, gets an answer that the document does not know."""
    headers = {"Host": realm.host, "User-Agent": "schemathesis", **credentials(operation, realm)}
    app = realm.client("app")

    @hypothesis.settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        if mode == GenerationMode.POSITIVE and isinstance(case.body, dict):
            for name in ("client_secret", "client_assertion", "client_assertion_type", "ClientId"):
                case.body.pop(name, None)
            if "Authorization" in headers:
                case.body.pop("client_id", None)
            elif case.media_type == "application/x-www-form-urlencoded" and operation.path != "/magic-login":
                case.body["client_id"] = app
        address = base["operations" in operation.definition.raw.get("tags", [])]
        answer = case.call(base_url=address, headers=headers, allow_redirects=False, timeout=10)
        # This realm sends nothing to phones.
        unsent = answer.status_code == 503 and b"Channel.Unavailable" in answer.content
        assert answer.status_code < 500 or unsent, f"{operation.label}: {answer.status_code} {answer.content!r}"
        check(operation, case, answer)

    try:
        run()
    except hypothesis.errors.Unsatisfiable:
        pass  # an operation without parameters and body: there is nothing to break


# -- a walk ---------------------------------------------------------------------------------------


def find(method, target):
    """The operation that a request is for; None when the document has none."""
    path = target.partition("?")[0]
    for operation in OPERATIONS.values():
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(operation.path))
        if operation.method.upper() == method and re.fullmatch(pattern, path):
            return operation
    return None


@pytest.fixture
def watched(monkeypatch, world):
    """Every answer that the harness gets is checked against the document."""
    exchange = wire.exchange

    def checked(port, method, target, headers, body=None, timeout=10.0):
        answer = exchange(port, method, target, headers, body, timeout)
        # A new realm is waited for; until it is served, its host is no server of this document.
        is_served = (answer.status, target) != (404, "/.well-known/openid-configuration")
        operation = find(method, target)
        if operation and is_served:
            sent = requests.Request(method, f"http://127.0.0.1:{port}{target}").prepare()
            fields = {}
            for name, value in answer.headers:
                fields.setdefault(name.lower(), []).append(value)
            made = schemathesis.Response(answer.status, fields, answer.body, sent, answer.seconds, verify=False)
            case = operation.Case(path_parameters={"id": "x"} if "{id}" in operation.path else {}, media_type=None)
            check(operation, case, made)
        return answer

    monkeypatch.setattr(wire, "exchange", checked)
    return SEEN


def expect(answer, status, error=None):
    """The answer, which has this status."""
    assert answer.status == status, answer
    assert error is None or answer.error == error, answer
    return answer


@pytest.mark.slow
def test_a_walk_through_every_operation(watched, world):
    """Every operation succeeds once, and its usual refusals are seen; each answer is the document's."""
    realm = world.realm("walk")
    app, api = realm.app(), realm.app("api")
    world.admin.call("put_ios_app", realm.slug, app.client_id, "A1B2C3D4E5", "com.example.app")
    world.admin.call("put_android_app", realm.slug, app.client_id, "com.example.app", [":".join(["AB"] * 32)])
    world.admin.call("put_client", realm.slug, realm.client("service"), client_type="confidential")
    world.admin.call("put_service_account", realm.slug, "robot", realm.client("service"))
    world.admin.run(call("grant_permission", realm.slug, realm.client("service"), variadic=["gt:client_credentials"]))
    realm.secrets["service"] = world.admin.call("rotate_client_secret", realm.slug, realm.client("service"))
    shop = realm.app_on(realm.put_app("shop", ["app"], registration="ExplicitEndpoint"))

    for path in ("openid-configuration", "oauth-authorization-server", "jwks", "jwks.json", "apple-app-site-association", "assetlinks.json"):
        answer = expect(app.get(f"/.well-known/{path}"), 200)
        expect(app.get(f"/.well-known/{path}", {"If-None-Match": answer.header("etag")}), 304)
    for name in ("postern.js", "core.js", "client.js", "requests.js", "passkeys.js", "pages.js"):
        answer = expect(app.get(f"/sdk/v1/{name}"), 200)
        expect(app.get(f"/sdk/v1/{name}", {"If-None-Match": answer.header("etag")}), 304)
    expect(app.get("/api/app-info"), 200)
    for path in ("/healthz", "/readyz", "/metrics"):
        expect(world.node.ops(path), 200)

    service = realm.app("service")
    made = expect(service.token({"grant_type": "client_credentials", **service.credentials()}), 200).json()
    assert service.active(made["access_token"])
    expect(app.get("/connect/account", bearer(made["access_token"])), 403)

    walk_codes(realm, app, api, shop)
    walk_passkeys(realm, app)
    walk_second_factor(realm, app)
    walk_links(realm, app)
    walk_account(world, realm, app)
    walk_identifiers(realm, app)
    walk_devices(realm, app)
    walk_pages(world)
    walk_cotter(world)
    walk_approvals(world)
    walk_possession(world)
    walk_refusals(world, realm, app)

    missing = {
        label for label, one in OPERATIONS.items()
        if not any(seen == label and str(status) in one.definition.raw["responses"] and status < 400 for seen, status in watched)
    }
    assert not missing, f"no success was seen of {sorted(missing)}"


def walk_codes(realm, app, api, shop):
    """Codes, refresh, introspection, userinfo, revocation, registration."""
    email = realm.user(last_name="Ada")
    tokens = app.sign_in(email)
    expect(app.userinfo(tokens["access_token"]), 200)
    expect(app.post("/connect/userinfo", {}, bearer(tokens["access_token"])), 200)
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert api.active(token)
    refreshed = app.refreshed(tokens["refresh_token"])
    expect(app.redeem("000000", email=email), 400, "invalid_grant")
    expect(app.revoke(refreshed["refresh_token"]), 200)
    assert not api.active(refreshed["access_token"])
    expect(app.userinfo(refreshed["access_token"]), 401)
    expect(realm.app("jwt").userinfo(realm.app("jwt").sign_in(email, scope="openid")["access_token"]), 200)
    expect(app.userinfo(app.sign_in(email, scope="email")["access_token"]), 403)

    new = realm.new_email()
    before = len(realm.world.mailbox.to(new, "code"))
    expect(shop.post_json("/api/account/native/register", {"Email": new, "FirstName": "Nora"}), 200)
    expect(shop.redeem(realm.world.mailbox.wait(new, before + 1, kind="code").code, email=new), 200)


def walk_passkeys(realm, app):
    """Enrolled, used, listed, renamed, deleted."""
    user = signed_in(realm)
    passkey, credential = app.enroll(user.token, name="My phone")
    tokens = app.passkey_sign_in(credential)
    assert [one["Id"] for one in app.passkeys(tokens["access_token"])] == [passkey]
    expect(app.rename_passkey(user.token, passkey, "Old phone"), 200)
    expect(app.rename_passkey(user.token, passkey, ""), 400)
    ceremony = app.enrolment(user.token)
    document, _ = authenticator.create(ceremony["options"])
    expect(app.complete(user.token, ceremony, {**document, "type": "x"}), 400)
    expect(app.complete(user.token, ceremony, document), 400)
    expect(app.delete_passkey(user.token, passkey), 204)
    expect(app.delete_passkey(user.token, passkey), 404)
    expect(app.try_passkey(credential), 400, "invalid_grant")


def walk_second_factor(realm, app):
    """Enrolled, asked for, removed."""
    user = signed_in(realm)
    ceremony = expect(app.totp_begin(user.token), 200).json()
    expect(app.totp_enroll(user.token, ceremony, totp.wrong(ceremony["secret"])), 400)
    _, recovery = app.enrol_totp(user.token)
    asked = app.request_code(user.email)
    expect(app.redeem(asked.code, handle=asked.handle), 400, "invalid_grant")
    expect(app.redeem(asked.code, handle=asked.handle, totp_code="000000"), 400, "invalid_grant")
    expect(app.redeem(asked.code, handle=asked.handle, recovery_code=recovery[0]), 200)
    expect(app.totp_delete(user.token), 204)
    expect(app.totp_delete(user.token), 404)


def walk_links(realm, app):
    """A link that is polled for and confirmed, one that the app opens, and pages that refuse."""
    at, email = links.Links(app), realm.user()
    link = at.link(email)
    expect(at.poll(link.handle), 400, "authorization_pending")
    expect(at.poll(link.handle), 400, "slow_down")
    expect(at.open(link), 200)
    expect(at.choose(link, "x"), 400)
    expect(at.choose(link, link.number), 200)
    expect(at.choose(link, at.wrong(link)), 400)
    expect(at.poll(link.handle), 200)
    expect(at.poll(link.handle), 200)
    expect(at.poll(link.handle, scope="openid"), 400, "invalid_grant")
    expect(at.redeem(at.link(email)), 200)
    link = at.link(email)
    expect(at.choose(link, at.wrong(link)), 400)
    expect(at.poll(link.handle), 400, "access_denied")


def walk_account(world, realm, app):
    """Own data and sessions, and the step-up that an old sign-in gets."""
    user, other = signed_in(realm), signed_in(realm)
    expect(app.get("/connect/account", bearer(user.token)), 200)
    expect(app.change_account(user.token, {"FirstName": "Augusta", "LastName": None}), 200)
    expect(app.change_account(user.token, {"FirstName": "\n"}), 400)
    current = [one["Id"] for one in expect(app.get("/connect/sessions", bearer(user.token)), 200).json()]
    expect(app.delete("/connect/sessions?current=perhaps", bearer(user.token)), 400)
    expect(app.delete("/connect/sessions", bearer(user.token)), 204)
    expect(app.delete(f"/connect/sessions/{current[0]}", bearer(user.token)), 204)
    expect(app.delete(f"/connect/sessions/{current[0]}", bearer(other.token)), 404)
    world.time_travel(700)
    for answer in (
        app.delete("/connect/account", bearer(other.token)), app.enroll_begin(other.token), app.totp_begin(other.token),
        app.totp_delete(other.token), app.delete_passkey(other.token, current[0]),
    ):
        expect(answer, 401, "insufficient_user_authentication")
    expect(app.delete("/connect/account", bearer(signed_in(realm).token)), 204)


def walk_devices(realm, app):
    """A device is added, adopts another, and both go; each refusal of the document's once."""
    with_devices(realm)
    user = signed_in(realm)
    mine, device, new = bearer(user.token), Device(app), Device(app)
    expect(device.enrol(user.token), 200)
    expect(app.get("/connect/devices", mine), 200)
    expect(device.itself(), 200)
    expect(new.itself(), 404)
    shown = expect(new.offer(DisplayName="Laptop"), 200).json()
    expect(app.post_json("/connect/devices/inspect", {"Offer": shown["Offer"]}, mine), 200)
    expect(app.post_json("/connect/devices/inspect", {"Offer": "x"}, mine), 400)
    expect(Device(app).adopt(user.token, shown, new), 403)
    added = expect(device.adopt(user.token, shown, new), 200).json()
    expect(device.adopt(user.token, shown, new), 400)
    path = f"/connect/devices/{added['Id']}"
    expect(app.send_json("PATCH", path, {"DisplayName": "Desk", "PushHandle": "x"}, mine), 200)
    expect(app.send_json("PATCH", path, {"DisplayName": "Desk"}, {"DPoP": "x"}), 401, "invalid_dpop_proof")
    expect(app.delete(path, {"DPoP": "x"}), 401, "invalid_dpop_proof")
    expect(app.delete(path, mine), 204)
    expect(app.delete(path, mine), 404)


def walk_identifiers(realm, app):
    """A second address, made primary; the first removed; the addition undone from its notice."""
    user, second = signed_in(realm), realm.new_email()
    mine = bearer(user.token)
    handle = expect(app.post_json("/connect/identifiers/begin", {"Email": second}, mine), 200).json()["AuthSession"]
    code = realm.world.mailbox.wait(second, 1, kind="code").code
    expect(app.post_json("/connect/identifiers", {"AuthSession": handle, "Code": "x"}, mine), 400)
    added = expect(app.post_json("/connect/identifiers", {"AuthSession": handle, "Code": code}, mine), 200).json()
    path = f"/connect/identifiers/{added['Id']}"
    expect(app.send_json("PATCH", path, {"Primary": True}, mine), 200)
    first = next(one for one in expect(app.get("/connect/identifiers", mine), 200).json() if one["Id"] != added["Id"])
    undo = re.search(r"/undo/[A-Za-z0-9_-]+", realm.world.mailbox.wait(user.email, 1, kind="notice").text).group(0)
    expect(app.get(undo), 200)
    expect(app.delete(f"/connect/identifiers/{first['Id']}", mine), 204)
    expect(app.delete(f"/connect/identifiers/{first['Id']}", mine), 404)
    expect(app.delete(path, mine), 409)
    expect(app.post(undo, {"action": "keep"}), 200)


def walk_pages(world):
    """A sign-in on pages by a pushed request, a consent taken back, style and logo, and a sign-out."""
    realm = hosted(world.realm("pages"), offer_passkey=False)
    world.admin.call("put_client", realm.slug, realm.client("app"), consent="explicit")
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    world.admin.run(f"SELECT admin.set_branding('{realm.slug}', logo => '\\x{svg.hex()}');")
    world.settle()
    flow = Flow(realm)
    pushed = expect(flow.push(), 201).json()["request_uri"]
    expect(flow.push(scope="nonsense"), 400)
    browser = PageBrowser(flow.app.node, flow.host)
    expect(wire.exchange(flow.app.node.port, "POST", "/connect/authorize", {
        "Host": flow.host, "Content-Type": wire.FORM}, wire.form_body(flow.request())), 303)
    browser.open("/connect/authorize?" + wire.form_body({"client_id": flow.app.client_id, "request_uri": pushed}).decode())
    for asset in browser.page.assets:
        if asset.startswith("/"):
            expect(flow.app.get(asset), 200)
    email = realm.user()
    browser.submit("continue", address=email)
    expect(flow.app.post("/sign-in/wait", {"tx": browser.page.fields["tx"]}, browser.cookie_header()), 200)
    browser.submit("continue", code=world.mailbox.wait(email, kind="code").code)
    assert browser.page.step == "consent", browser.answer
    browser.submit("allow")
    tokens = expect(flow.exchange(browser.members["code"]), 200).json()
    mine = bearer(flow.app.refreshed(tokens["refresh_token"], scope="openid")["access_token"])
    consents = expect(flow.app.get("/connect/consents", mine), 200).json()
    browser.open("/connect/logout")
    browser.submit("continue")
    assert browser.page.step == "signed-out", browser.answer
    expect(flow.app.delete(f"/connect/consents/{consents[0]['ClientId']}", mine), 204)


def walk_cotter(world):
    """An address proven on Cotter's wire, its identity, a refresh, and the keys."""
    realm = hosted(world.realm("cotter"), offer_passkey=False)
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", *PERMISSIONS)
    world.admin.call("put_redirect_uri", realm.slug, realm.client("cotter"), REDIRECT)
    world.settle()
    client = Cotter(realm)
    tokens = client.identity(client.prove(realm.new_email()))["oauth_token"]
    expect(client.refresh(tokens["refresh_token"]), 200)
    expect(client.refresh("x"), 400)
    expect(client.refresh("x", "nobody"), 401)
    expect(client.app.get("/api/v0/token/jwks"), 200)


def walk_approvals(world):
    """A client asks and a device answers; the same as events on Cotter's wire; each refusal of the document's once."""
    realm = world.realm("approvals")
    approvals.switch_on(realm, "app", "api")
    events = backend(realm, "events", "cap:cotter")
    world.settle()
    api, email = realm.app("api"), realm.user()
    device = approvals.Device(realm.app(), realm, email)
    asked = expect(approvals.ask(api, email), 200).json()
    expect(approvals.ask(api), 400, "invalid_request")
    expect(api.post("/connect/bc-authorize", {"login_hint": email}), 401, "invalid_client")
    expect(approvals.poll(api, asked), 400, "authorization_pending")
    item = device.item()
    expect(device.look("x"), 400)
    expect(approvals.Device(realm.app(), realm, email, added=False).look(), 401, "invalid_dpop_proof")
    expect(device.send(item["Id"], "x"), 400, "invalid_response")
    expect(approvals.Device(realm.app(), realm, email, added=False).answer(item, "deny"), 403, "device_not_trusted")
    expect(device.answer({**item, "Id": device.id}, "deny"), 404)
    expect(device.answer(item, number=asked["match_number"]), 200)
    expect(device.answer(item, "deny"), 409, "already_decided")
    world.time_travel(5)
    expect(approvals.poll(api, asked), 200)

    made = expect(events.create(email), 200).json()
    expect(events.create(email, method="PIN"), 400)
    expect(events.create(email, headers={}), 401)
    assert expect(events.new(email), 200).json()["ID"] == made["ID"]
    expect(device.answer(device.item(), number=made["match_number"]), 200)
    assert "oauth_token" in expect(events.get(made["ID"], "?oauth_token=true"), 200).json()
    assert expect(events.new(email), 200).json() is None
    expect(events.get("0"), 404)
    realm.limit("approval", "target", 1)
    approvals.ask(api, email)
    expect(approvals.ask(api, email), 429, "rate_limited")
    expect(device.send(item["Id"], []), 400)
    expect(device.plain.post("/connect/approvals/x", {}), 415)


def walk_possession(world):
    """Numbers proven by a code, by a link and by the backend's word; a key that is bound and revoked; and what is refused."""
    realm = possession(world.realm("possession"))
    realm.phones = Phones(realm)
    realm.srv = srv = Backend(realm, "srv", "cap:assert-possession")
    world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "https://app.example")
    world.settle()
    key, number = ProofKey(), new_number()
    status = srv.status(prove(realm, number, key))
    assert srv.call("/v3/device/revoke", deviceId=status.deviceId).success
    expect(srv.ask("/v3/device/revoke", deviceId=status.deviceId), 404)
    started, phone = opened(realm, kind="none")
    expect(srv.ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=number), 200)
    expect(phone.ask("check", otp="000000"), 409, "transaction_over")

    started = srv.call("/v3/start", flowType="mobile", phoneNumber=number)
    expect(srv.phone(started).ask("send", channel="otp"), 403, "step_not_allowed")
    expect(srv.ask("/v3/validate", correlationId=started.correlationId), 200)
    expect(srv.ask("/v3/validate", correlationId="x"), 400)
    expect(srv.ask("/v3/unify-status", correlationId=started.correlationId), 403)
    _, phone, _, code = coded(realm, allowOTPRetry=True)
    expect(phone.ask("check", otp=code + "0"), 400, "otp_invalid")
    expect(phone.ask("cancel"), 200)

    _, phone, _, path = linked(realm, "mobile")
    expect(realm.app().get(path), 200)
    expect(post(realm, path, action="x"), 400)
    location, _ = target_of(post(realm, path, action="continue"))
    expect(phone.ask("finish", redirectUrl=TARGET), 400, "redirect_invalid")
    expect(phone.ask("finish", redirectUrl=location.geturl()), 200)
    expect(phone.ask("result"), 200)

    form = {"grant_type": "client_credentials", **srv.app.credentials()}
    expect(srv.app.post("/token", {**form, "grant_type": "password"}), 400, "unsupported_grant_type")
    expect(srv.app.post("/token", {**form, "client_secret": "x"}), 401, "invalid_client")
    expect(srv.app.post_json("/v3/unify", {}), 401)
    expect(srv.app.post_json("/connect/possession/open", {}), 401)
    realm.limit("possession", "client", 1)
    srv.ask("/v3/unify", possessionType="mobile")
    expect(srv.ask("/v3/unify", possessionType="mobile"), 429, "rate_limited")
    realm.phones.close()


def walk_refusals(world, realm, app):
    """What clients and hosts are refused."""
    for answer in (
        app.token({"grant_type": "refresh_token", "client_id": "nobody", "refresh_token": "x"}),
        app.post("/connect/introspect", {"token": "x"}, {"Authorization": "Basic " + base64.b64encode(b"a:b").decode()}),
        app.revoke("x", client_secret="x"),
    ):
        expect(answer, 401, "invalid_client")
    expect(app.token({"grant_type": "password", **app.credentials()}), 400, "unsupported_grant_type")
    expect(app.token({"grant_type": "urn:cocoar:otp", **app.credentials()}), 400, "invalid_request")
    expect(app.ask("nobody"), 400, "Email is invalid.")
    expect(app.post("/api/account/native/otp/request", {"Email": "x"}), 415)
    expect(app.post("/connect/token", {"padding": "x" * 65_536}), 413)
    expect(app.post("/connect/token", {"grant_type": "x"}, {"Content-Encoding": "gzip"}), 415)
    expect(app.get("/connect/sessions"), 401)
    expect(app.post("/magic-login", {"userId": "x", "token": "x", "number": "11"}), 400)
    expect(realm.app("no-passkey").begin(), 400, "unauthorized_client")

    off = world.realm("off", native=False)
    user = realm.user()
    for answer in (
        off.app().ask(user), off.app().begin(), off.app().enroll_begin("x"), off.app().totp_begin("x"),
        off.app().post_json("/api/account/magic-link/request", {"Email": user}),
    ):
        expect(answer, 400, "NativeGrants.Disabled")
    expect(off.app().get("/.well-known/assetlinks.json"), 404)

    tight = world.realm("tight")
    tight.limit("native-otp", "target", 1)
    tight.app().ask(user)
    expect(tight.app().ask(user), 429, "rate_limited")
    tight.limit("magic-link", "source", 1)
    tight.app().get("/magic-login")
    expect(tight.app().get("/magic-login"), 429)
    tight.limit("refused", "source", 1)
    tight.app().userinfo("x")
    expect(tight.app().userinfo("x"), 429, "rate_limited")
    for answer in (
        off.app().get("/connect/approvals"), off.app().post_json("/connect/approvals/x", {}), off.app().get("/connect/devices/self"),
        off.app().post_json("/connect/devices/offer", {}),
    ):
        expect(answer, 400, "Approvals.Disabled")
    expect(off.app().post_json("/connect/possession/open", {}), 400, "Possession.Disabled")
    for path in ("/token", "/v3/unify"):
        expect(off.app().post(path, {}), 404)
    lacking = world.realm("lacking", primary_domain=False)
    expect(lacking.app().begin(), 503, "Passkey.Unavailable")


# -- the page for people ---------------------------------------------------------------------------


#: The request line and the status of each ```http block.
_EXAMPLE = re.compile(r"^```http\n([A-Z]+) (\S+) HTTP/1\.1\n.*?^HTTP/1\.1 ([0-9]{3})", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_are_of_the_document():
    """docs/wire.md has an example of every path, and shows no answer that the document does not know."""
    page = (settings.REPOSITORY / "docs" / "wire.md").read_text(encoding="utf-8")
    shown = set()
    for method, target, status in _EXAMPLE.findall(page):
        operation = find(method, target)
        assert operation and definition(operation, status), f"{method} {target} {status}"
        shown.add(operation.path)
    # The second name of one document has no example of its own.
    assert {operation.path for operation in OPERATIONS.values()} - shown == {
        "/.well-known/oauth-authorization-server", "/.well-known/jwks.json"}


# -- what the document does not say of single operations --------------------------------------------


@pytest.mark.parametrize("path", sorted({operation.path for operation in OPERATIONS.values()}))
def test_the_server_names_the_documented_methods(path, world, realm):
    """The server's own table: `Allow` of a 405 has the methods of the document, and HEAD wherever GET is."""
    documented = {operation.method.upper() for operation in OPERATIONS.values() if operation.path == path}
    is_operations = any("operations" in o.definition.raw["tags"] for o in OPERATIONS.values() if o.path == path)
    port = world.node.ops_port if is_operations else world.node.port
    for method in ("OPTIONS", "PUT"):
        answer = wire.exchange(port, method, path.replace("{id}", "x"), {"Host": realm.host})
        assert answer.status == 405 and answer.body == b"", answer
        assert set(answer.header("allow").split(", ")) == documented | ({"HEAD"} if "GET" in documented else set()), answer


@pytest.mark.parametrize("path", sorted({o.path for o in OPERATIONS.values() if "operations" not in o.definition.raw["tags"]}))
def test_an_unknown_host_is_404_everywhere(path, world):
    """With an empty body."""
    answer = wire.exchange(world.node.port, "POST", path.replace("{id}", "x"), {"Host": "unknown.example"})
    assert (answer.status, answer.body, answer.header("content-type")) == (404, b"", None), answer
