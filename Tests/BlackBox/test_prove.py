"""Prove's wire for backends: what a typed client meets, what is refused and in which order."""

import json
import uuid

import pytest

from harness import jose, service, wire
from harness.dpop import ProofKey
from harness.phones import Phones, new_number
from harness.possession import Backend, possession

TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = possession(world.realm())
    phones = Phones(realm, default_region="US")
    realm.phones = phones
    yield realm
    phones.close()


@pytest.fixture(scope="module", name="srv")
def _srv(realm):
    backend = Backend(realm, "srv", "cap:assert-possession")
    realm.world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "https://app.example")
    realm.world.settle()
    return backend


@pytest.fixture(scope="module", name="srv2")
def _srv2(realm):
    return Backend(realm, "srv2")


def assert_refused(answer, status, code, message=None):
    """Code, message and error of a refusal."""
    document = answer.json()
    assert (answer.status, document["code"]) == (status, code), answer
    assert document["message"] and document["error"] and set(document) >= {"code", "message", "error"}
    assert message is None or document["message"] == message, document


def test_the_token_endpoint_under_its_other_name(realm, srv):
    """Only client_credentials, by form or Basic; errors say code and message too."""
    form = {"grant_type": "client_credentials", **srv.app.credentials()}
    kinds = {"Content-Type": wire.FORM}
    for grant in ("password", "authorization_code", "refresh_token"):
        answer = srv.app.exchange("POST", "/token", kinds, wire.form_body({**form, "grant_type": grant}))
        assert_refused(answer, 400, 8001)
        assert answer.error == "unsupported_grant_type"
    basic = srv.app.exchange("POST", "/token", {**kinds, "Authorization": srv.app.basic},
                             wire.form_body({"grant_type": "client_credentials"}))
    assert basic.status == 200 and basic.json()["token_type"] == "Bearer", basic
    assert_refused(srv.app.post_json("/token", form), 400, 8001)
    assert srv.app.get("/token").status == 405
    assert_refused(srv.app.exchange("POST", "/token", kinds, wire.form_body({**form, "client_secret": "x" * 43})), 401, 8002)
    assert srv.app.exchange("POST", "/v3/token", kinds, wire.form_body(form)).status == 404


def test_without_the_switch_there_is_none_of_it(realm, srv):
    """404 without a body; the app's side says why."""
    srv.unify()
    realm.world.admin.call("set_possession", realm.slug, False)
    realm.world.settle()
    try:
        answer = srv.app.exchange("POST", "/token", {"Content-Type": wire.FORM}, b"grant_type=client_credentials")
        assert (answer.status, answer.body) == (404, b"")
        answer = srv.ask("/v3/unify", possessionType="mobile")
        assert (answer.status, answer.body) == (404, b"")
        assert srv.app.get("/p/" + "x" * 24).status == 404
        answer = srv.app.post_json("/connect/possession/open", {})
        assert (answer.status, answer.error) == (400, "Possession.Disabled")
    finally:
        realm.world.admin.call("set_possession", realm.slug, True)
        realm.world.settle()
    assert srv.unify()


def test_who_may_call(realm, srv):
    """A service account's Bearer token with the permission."""
    tokens = realm.app().sign_in(realm.user())
    other, _ = service.service(realm, "plain")
    plain = service.granted(other)["access_token"]
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Bearer {tokens['access_token']}"},
                    {"Authorization": f"DPoP {srv.token}"}, {"Authorization": f"Basic {srv.token}"}):
        answer = srv.app.post_json("/v3/unify", {"possessionType": "mobile"}, headers)
        assert_refused(answer, 401, 8002)
        assert answer.header("www-authenticate").startswith("Bearer")
    assert_refused(srv.app.post_json("/v3/unify", {}, {"Authorization": f"Bearer {plain}"}), 403, 8003)
    assert srv.app.get("/v3/unify").status == 405


@pytest.mark.parametrize("members, message", [
    ({}, "field 'possessionType' is missing"),
    ({"possessionType": None}, "field 'possessionType' is missing"),
    ({"possessionType": "Mobile"}, "field 'possessionType' is invalid"),
    ({"possessionType": 1}, "field 'possessionType' is invalid"),
    ({"possessionType": "desktop"}, "field 'finalTargetUrl' is missing"),
    *[({"possessionType": "desktop", "finalTargetUrl": url}, "field 'finalTargetUrl' is invalid") for url in (
        "http://app.example/", "https://app.example/" + "a" * 120, "https://app.example/#a", "https://app.example/?a=1&b=2", "https://a@app.example/",
        "https://app.example/ a", "//evil", "javascript:alert",
        # What the redirect adds, some readers take from the first place.
        "https://app.example/?asc=true", "https://app.example/?authId=1", "https://app.example/a?pc", "https://app.example/?ASC=true")],
    *[({"possessionType": "desktop", "finalTargetUrl": origin + "/"},
       f"field 'finalTargetUrl' is invalid: {origin} is not a web origin of the client; an administrator registers it with admin.put_web_origin")
      for origin in ("https://other.example", "https://app.example.evil")],
    *[({"possessionType": "mobile", "phoneNumber": phone}, "field 'phoneNumber' is invalid") for phone in (
        "(200) 100-4014", "+0123456789", "+" + "1" * 17, "+٤٣٦٦٤١٢٣٤٥", "+1 2001004014", "+4915112345678", 5)],
    ({"possessionType": "mobile", "allowOTPRetry": "true"}, "field 'allowOTPRetry' is invalid"),
    ({"possessionType": "mobile", "allowOTPRetry": 1}, "field 'allowOTPRetry' is invalid"),
    ({"possessionType": "mobile", "clientRequestId": "x" * 129}, "field 'clientRequestId' is invalid"),
    ({"possessionType": "mobile", "clientHumanId": "a\nb"}, "field 'clientHumanId' is invalid"),
    *[({"possessionType": "mobile", "smsMessage": text}, "field 'smsMessage' is invalid") for text in (
        "no code", "###", "#### and ####", "#######", "####\n", "####" + "x" * 159)],
    ({"possessionType": "mobile", "dob": "2000-01-01"}, "field 'dob' is invalid"),
    ({"possessionType": "mobile", "ssn": "1"}, "field 'ssn' is invalid"),
    ({"possessionType": "mobile", "proveId": "1"}, "field 'proveId' is invalid"),
    ({"possessionType": "mobile", "ipAddress": "." * 300}, "field 'ipAddress' is invalid"),
])
def test_a_start_names_what_is_wrong(srv, members, message):
    """Each member within its bounds."""
    assert_refused(srv.ask("/v3/unify", members), 400, 8001, message)


def test_a_target_may_be_http_below_localhost(srv, world, realm):
    """At its registered origin; names that only look like it are refused before that is asked."""
    world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "http://app.localhost:8080")
    world.settle()
    assert srv.ask("/v3/unify", {"possessionType": "desktop", "finalTargetUrl": "http://app.localhost:8080/done"}).status == 200
    for url, message in (("http://app.localhost:8081/", "http://app.localhost:8081 is not a web origin of the client"),
                         ("http://app.localhost.example:8080/", "field 'finalTargetUrl' is invalid"), ("http://xlocalhost/", "field 'finalTargetUrl' is invalid")):
        answer = srv.ask("/v3/unify", {"possessionType": "desktop", "finalTargetUrl": url})
        assert_refused(answer, 400, 8001)
        assert message in answer.body.decode(), answer


def test_every_port_of_localhost_may_be_one_web_origin(srv, world, realm):
    """For development: as `finalTargetUrl` and to read answers, and nothing that only begins so."""
    app = srv.app
    for url in ("http://localhost:5173/done", "http://localhost/done"):
        assert_refused(srv.ask("/v3/unify", {"possessionType": "desktop", "finalTargetUrl": url}), 400, 8001)
    world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "http://localhost:*")
    world.settle()
    for url in ("http://localhost:5173/done", "http://localhost:3000", "http://localhost/done?a=1"):
        assert srv.ask("/v3/unify", {"possessionType": "desktop", "finalTargetUrl": url}).status == 200, url
    for url in ("http://localhost:0/", "http://localhost:65536/", "http://localhost:*/", "http://localhost.evil/", "https://localhost:5173/"):
        assert_refused(srv.ask("/v3/unify", {"possessionType": "desktop", "finalTargetUrl": url}), 400, 8001)
    for origin, may in (("http://localhost:5173", True), ("http://localhost.evil:80", False), ("https://localhost:5173", False)):
        answer = app.get("/api/app-info", {"Origin": origin})
        assert (answer.header("access-control-allow-origin") == origin) == may, origin


def test_bodies_that_are_no_object(srv):
    """8001; too large and of another type as everywhere."""
    headers = {"Authorization": f"Bearer {srv.token}", "Content-Type": "application/json"}
    for body in (b"[]", b"", b"x", b'{"possessionType":"mobile","POSSESSIONTYPE":"none"}'):
        assert_refused(srv.app.exchange("POST", "/v3/unify", headers, body), 400, 8001)
    assert srv.app.exchange("POST", "/v3/unify", headers, b'{"a":"' + b"x" * 65536 + b'"}').status == 413
    assert srv.app.exchange("POST", "/v3/unify", {**headers, "Content-Type": "text/plain"}, b"{}").status == 415


def test_names_of_members_in_any_case(srv):
    """As SDKs spell them differently; members that nobody knows are ignored."""
    started = srv.call("/v3/unify", PossessionType="desktop", finalTargetURL=TARGET, mobileAuthEnabled=True, unknown={"a": 1}, allowOTPRetry=None)
    assert srv.status(started).success == "pending"


def test_one_number_in_three_spellings(srv):
    """Digits alone are read in the realm's default region."""
    numbers = {srv.phone(srv.unify(phone, smsMessage="Code ####")).call("open")["phoneNumberNeeded"] for phone in (
        "2025550143", "12025550143", "+12025550143")}
    assert numbers == {False}


def test_the_token_for_the_app(realm, srv):
    """Signed by the realm; nothing about a person."""
    number = new_number()
    started = srv.unify(number, clientRequestId="request-7", clientHumanId="human-7")
    header, claims = jose.verify(started.authToken, realm.app().get("/.well-known/jwks").json())
    assert header["typ"] == "postern-possession+jwt"
    assert set(claims) == {"iss", "aud", "iat", "exp", "jti", "nonce"} and claims["exp"] - claims["iat"] == 900
    assert claims["aud"] == realm.issuer + "/connect/possession" and claims["jti"] != started.correlationId
    assert number not in json.dumps(claims)
    assert_refused(srv.ask("/v3/unify-status", correlationId=claims["jti"]), 400, 8008)
    assert realm.app().userinfo(started.authToken).status == 401


def test_what_a_backend_gave_comes_back(srv):
    """Texts as they are."""
    for text in ("<b>\"'\\", "a\u2028b", "ü€"):
        started = srv.unify(clientRequestId=text, clientHumanId=text, clientCustomerId=text)
        status = srv.status(started)
        assert (status.clientRequestId, status.clientHumanId) == (text, text)


def test_transactions_of_others_do_not_exist(srv, srv2):
    """One answer to all."""
    started = srv.unify()
    answers = [srv2.ask("/v3/unify-status", correlationId=started.correlationId), srv.ask("/v3/unify-status", correlationId=str(uuid.uuid4())),
               srv.ask("/v3/unify-status", correlationId="x"), srv.ask("/v3/unify-bind", correlationId="x", phoneNumber=new_number()),
               srv.ask("/v3/validate", correlationId=str(uuid.uuid4()))]
    for answer in answers:
        assert_refused(answer, 400, 8008)
        assert answer.same_bytes() == answers[0].same_bytes()


def test_two_families_of_calls(srv):
    """A transaction belongs to the one that started it."""
    started = srv.call("/v3/start", flowType="mobile")
    assert started.next == {"v3-validate": "/v3/validate"}
    assert_refused(srv.ask("/v3/unify-status", correlationId=started.correlationId), 403, 8003)
    assert_refused(srv.ask("/v3/validate", correlationId=srv.unify().correlationId), 403, 8003)
    waiting = srv.call("/v3/validate", correlationId=started.correlationId)
    assert (waiting.success, waiting.challengeMissing, waiting.next) == (False, False, {"v3-validate": "/v3/validate"})


def test_both_families_to_the_end(realm, srv):
    """A code proves the number; status, validate and revoke say so in their types."""
    number = new_number()
    started = srv.call("/v3/start", flowType="mobile", phoneNumber=number)
    phone = srv.phone(started)
    phone.call("open")
    phone.call("send", channel="otp")
    assert phone.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}
    validated = srv.call("/v3/validate", correlationId=started.correlationId)
    assert (validated.success, validated.next, validated.phoneNumber) == (True, {"done": "done"}, number)
    assert validated.evaluation == {"authentication": {"result": "pass"}}
    again = srv.unify(number)
    assert srv.phone(again, phone.key).call("open")["state"] == "passed"
    status = srv.status(again)
    assert (status.success, status.phoneNumber, status.evaluation) == ("true", number, {"authentication": {"result": "pass"}})
    uuid.UUID(status.proveId)
    assert srv.call("/v3/device/revoke", deviceId=status.deviceId).success is True
    assert_refused(srv.ask("/v3/device/revoke", deviceId=status.deviceId), 404, 8008)


def test_revoking_what_is_not_ones_own(srv, srv2):
    """404 for another client's and an unknown key; 8001 for no UUID."""
    assert_refused(srv2.ask("/v3/device/revoke", deviceId=str(uuid.uuid4())), 404, 8008)
    assert_refused(srv.ask("/v3/device/revoke", deviceId="x"), 400, 8001)
    assert_refused(srv.ask("/v3/device/revoke"), 400, 8001, "field 'deviceId' is missing")


def test_a_failed_proof_says_why(realm, srv):
    """9100 and the reason; every member an object."""
    number = new_number()
    started = srv.unify(number)
    phone = srv.phone(started)
    phone.call("open")
    assert srv.status(started).success == "pending"
    phone.call("send", channel="otp")
    assert srv.status(started).success == "pending"
    phone.refused("check", 400, "possession_failed", otp="x")
    status = srv.status(started)
    assert status.success == "false" and set(status.evaluation["authentication"]["failureReasons"]) == {"9100", "9210"}


def test_limits_and_faults_in_this_form(realm, srv):
    """429 with policy and dimension, and what SDKs read."""
    backend = Backend(realm, "limited")
    assert backend.unify()
    realm.limit("possession", "client", 1)
    try:
        backend.ask("/v3/unify", possessionType="mobile")
        answer = backend.ask("/v3/unify", possessionType="mobile")
        assert_refused(answer, 429, 8000)
        assert (answer.json()["policy"], answer.json()["dimension"]) == ("possession", "client") and answer.header("retry-after")
    finally:
        realm.limit("possession", "client", 1_000_000)


@pytest.mark.parametrize("target", [
    "https://app.example:443/done", "https://APP.Example/done", "HTTPS://app.example/Done?a=1", "https://app.example"])
def test_the_target_is_compared_as_an_origin(srv, target):
    """However its host and port are written."""
    assert srv.unify(new_number(), "desktop", finalTargetUrl=target).correlationId


@pytest.mark.parametrize("target", [
    "https://app.example:444/done", "http://app.example/done", "https://app.example.evil.example/", "https://evil.example/https://app.example",
    "https:app.example/done", "https:///app.example", "https://", "http://localhost.evil.example/"])
def test_a_target_elsewhere_is_refused(srv, target):
    """Control of the one before."""
    assert_refused(srv.ask("/v3/unify", possessionType="desktop", finalTargetUrl=target), 400, 8001)


def test_the_request_id_of_a_call_is_the_one_in_its_answer(srv):
    """Of the status and of the binding; without one, that of the start; of another type it is refused."""
    started = srv.unify(new_number(), "none", clientRequestId="start")
    srv.phone(started).call("open")
    call = {"correlationId": started.correlationId}
    assert srv.call("/v3/unify-status", **call).clientRequestId == "start"
    assert srv.call("/v3/unify-status", clientRequestId="ask", **call).clientRequestId == "ask"
    for wrong in (7, True, {}, "a" * 129, "a\n"):
        for path, more in (("/v3/unify-status", {}), ("/v3/unify-bind", {"phoneNumber": new_number()})):
            assert_refused(srv.ask(path, clientRequestId=wrong, **call, **more), 400, 8001)
    bound = srv.call("/v3/unify-bind", clientRequestId="bind", phoneNumber=new_number(), **call)
    assert (bound.success, bound.clientRequestId) == ("true", "bind")
    assert srv.call("/v3/unify-status", **call).clientRequestId == "start"


def test_test_numbers(realm, srv, srv2):
    """pass, fail and code; nothing is sent; to another client they are numbers like any other."""
    admin = realm.world.admin
    numbers = {outcome: new_number() for outcome in ("pass", "fail", "code")}
    admin.call("put_test_number", realm.slug, numbers["pass"], realm.client("srv"), "pass")
    admin.call("put_test_number", realm.slug, numbers["fail"], realm.client("srv"), "fail")
    admin.call("put_test_number", realm.slug, numbers["code"], realm.client("srv"), "code", "123406")
    status = srv.status(srv.unify(numbers["pass"]))
    assert (status.success, status.testNumber) == ("true", True)
    assert srv.status(srv.unify(numbers["fail"])).success == "false"
    none = srv.unify(numbers["pass"], "none")
    assert srv.status(none).success == "possession_required"
    assert srv.call("/v3/unify-bind", correlationId=none.correlationId, phoneNumber=numbers["pass"]).success == "true"
    started = srv.unify(numbers["code"])
    phone = srv.phone(started)
    phone.call("open")
    phone.call("send", channel="otp")
    assert phone.call("check", otp="123406") == {"state": "passed"}
    assert srv.status(started).testNumber is True
    assert not any(realm.phones.to(number) for number in numbers.values())
    other = srv2.unify(numbers["pass"])
    assert srv2.status(other).success == "pending"


def test_the_key_needs_no_second_account(srv):
    """A key of the harness is one key for every transaction."""
    key = ProofKey()
    started = srv.unify()
    assert srv.phone(started, key).call("open")["state"] == "open"
