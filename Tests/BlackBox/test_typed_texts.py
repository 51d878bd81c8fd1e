"""Addresses, names, lists, resources, languages and JSON as people and clients send them: one rule each, on every face that takes one."""

import json
import types
import urllib.parse

import pytest

from harness import authenticator, jose, wire
from harness.app import bearer
from harness.approvals import ask, switch_on
from harness.codeflow import Flow, hosted
from harness.holder import holder, signed_in
from harness.possession import furnished, possession
from harness.postgres import literal
from harness.service import service
from harness.sign_in_pages import Session
from harness.trusted import DEVICES, Device
from harness.world import World

TARGET = "https://app.example/done"
API = "https://bare.example"


@pytest.fixture(scope="module", name="world")
def _world():
    world = World("texts").open()
    yield world
    world.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = furnished(possession(hosted(world.realm(), offer_passkey=False)))
    admin = world.admin
    switch_on(realm, "app", "app-2", "api", public_clients=True)
    admin.call("put_scope", realm.slug, "bare.read", resources=[API])
    names = ("app", "app-2", "jwt", "api")
    for name in names:
        admin.call("grant_permission", realm.slug, realm.client(name), variadic=["scp:bare.read", "gt:urn:postern:device"])
    admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["scp:verify:email"])
    realm.host_of_names = realm.put_app("shop", ["app-2"], registration="JitOnOtp")
    admin.call("set_registration_fields", realm.slug, firstname="Required", lastname="Off", app="shop")
    realm.limit("native-otp", "registrations", 1_000_000, per="1 minute", burst=1_000_000)
    yield realm
    realm.phones.close()


def case(run, **more):
    """What a face does with a text."""
    return types.SimpleNamespace(run=run, **more)


# -- addresses: each face says where the message went, or whose sign-in it was; None: refused -------------------------


def mailed(realm, address, answer, kind):
    """The address that a message of this kind went to."""
    if answer.status != 200:
        return None
    realm.world.mailbox.wait(address, kind=kind)
    return address


def native(path, kind):
    """A JSON endpoint that sends a message."""
    return lambda realm, typed, address: mailed(realm, address, realm.app().post_json(f"/api/account/{path}", {"Email": typed}), kind)


def username(realm, typed, address):
    """Of the token endpoint."""
    app = realm.app()
    return address if app.redeem(app.request_code(address).code, email=typed).status == 200 else None


def on_page(realm, typed, address):
    """The field of the first page."""
    session = Session(realm)
    session.send(typed)
    if session.browser.page.step != "code":
        return None
    realm.world.mailbox.wait(address, kind="code")
    return address


def on_proof_page(realm, typed, address):
    """The field of a page that proves an address."""
    session = Session(realm, scope="openid verify:email")
    session.send(typed)
    if session.browser.page.step != "code":
        return None
    realm.world.mailbox.wait(address, kind="code")
    return address


def added(realm, typed, address):
    """An address that somebody adds to his account."""
    who = signed_in(realm)
    return mailed(realm, address, who.app.post_json("/connect/identifiers/begin", {"Email": typed}, bearer(who.token)), "code")


def hinted(realm, typed, address):
    """login_hint of a request for approval."""
    return address if ask(realm.app("api"), typed).status == 200 else None


def told_prove(realm, typed, address):
    """emailAddress of Prove's wire."""
    answer = realm.srv.ask("/v3/unify", possessionType="mobile", phoneNumber="+436641234567", emailAddress=typed)
    return address if answer.status == 200 else None


ADDRESS_FACES = {
    "otp/request": native("native/otp/request", "code"), "magic-link": native("magic-link/request", "link"), "username": username,
    "page": on_page, "proof page": on_proof_page, "identifiers": added, "login_hint": hinted, "Prove": told_prove,
}
#: What copying brings around an address.
AROUND = [
    "{}", " {}\t", "\u00a0{}\u3000", "\ufeff{}\u200b", "\u202a{}\u202c", "\u200e{}\r\n", "\u2060{}\u00ad",
]


@pytest.mark.parametrize("face", ADDRESS_FACES)
def test_what_copying_brings_around_an_address_does_not_count(realm, face):
    for around in AROUND:
        address = realm.new_email() if face in ("identifiers", "proof page") else realm.user()
        assert ADDRESS_FACES[face](realm, around.format(address), address) == address, (face, ascii(around))


@pytest.mark.parametrize("face", ADDRESS_FACES)
def test_a_domain_of_any_script_is_known_by_its_a_labels(realm, face):
    """The account, the mail and the key are those of xn--…; a local part of another script is no address anywhere."""
    for typed, domain in (("bücher.example", "xn--bcher-kva.example"), ("BU\u0308CHER.example", "xn--bcher-kva.example"), ("例え。テスト", "xn--r8jz45g.xn--zckzah")):
        local = realm.new_email().split("@")[0]
        address = f"{local}@{domain}"
        if face not in ("identifiers", "proof page"):
            realm.put_user(address)
        assert ADDRESS_FACES[face](realm, f"{local}@{typed}", address) == address, (face, typed)
    for wrong in ("ädä@mail.example", "ada@-ü.example", "ada@ü ü.example", "ada@ü\uff03.example", "a\u200bda@mail.example"):
        if face == "username":
            app = realm.app()
            assert app.redeem("123456", email=wrong).status == 400
        else:
            assert ADDRESS_FACES[face](realm, wrong, wrong) is None, (face, wrong)


# -- names: each face gives back the name as it was stored; None: refused ---------------------------------------------


def registered(realm, name):
    """FirstName of a request for a code."""
    app, email = realm.app_on(realm.host_of_names, "app-2"), realm.new_email()
    answer = app.post_json("/api/account/native/otp/request", {"Email": email, "FirstName": name})
    if answer.status != 200:
        return None
    tokens = app.redeem(realm.world.mailbox.wait(email, kind="code").code, handle=answer.json()["AuthSession"]).json()
    return app.account(tokens["access_token"]).get("FirstName")


def on_profile_page(realm, name):
    """first_name of the page that completes a registration."""
    session, email = Session(realm, "app-2"), realm.new_email()
    session.send(email)
    assert session.browser.submit("continue", code=session.code(email)).page.step == "profile"
    if session.browser.submit("continue", first_name=name).left_for is None:
        return None
    return realm.world.cluster.value(f"SELECT first_name FROM postern.user_account WHERE email = {literal(email)}")


def renamed(realm, name):
    """FirstName of the account."""
    who = signed_in(realm)
    answer = who.app.change_account(who.token, {"FirstName": name})
    return answer.json()["FirstName"] if answer.status == 200 else None


def passkey_enrolled(realm, name):
    """DisplayName of a new passkey."""
    who = signed_in(realm)
    ceremony = who.app.enrolment(who.token)
    document, _ = authenticator.create(ceremony["options"])
    answer = who.app.complete(who.token, ceremony, document, DisplayName=name)
    return who.app.passkeys(who.token)[0]["DisplayName"] if answer.status == 200 else None


def passkey_renamed(realm, name):
    """DisplayName of a passkey."""
    who = holder(realm)
    answer = who.app.rename_passkey(who.token, who.passkey, name)
    return answer.json()["DisplayName"] if answer.status == 200 else None


def device_added(realm, name):
    """DisplayName of a trusted device."""
    app = realm.app()
    token = app.sign_in(realm.user())["access_token"]
    device = Device(app)
    if device.enrol(token, DisplayName=name).status != 200:
        return None
    return device.itself().json()["DisplayName"]


def device_renamed(realm, name):
    """DisplayName that a device changes."""
    app = realm.app()
    device = Device(app)
    assert device.enrol(app.sign_in(realm.user())["access_token"]).status == 200
    answer = device.call("PATCH", f"{DEVICES}/{device.id}", {"DisplayName": name})
    return answer.json()["DisplayName"] if answer.status == 200 else None


def device_offered(realm, name):
    """DisplayName of an offer."""
    app = realm.app()
    token = app.sign_in(realm.user())["access_token"]
    answer = Device(app).offer(DisplayName=name)
    if answer.status != 200:
        return None
    return app.post_json(DEVICES + "/inspect", {"Offer": answer.json()["Offer"]}, bearer(token)).json()["DisplayName"]


NAME_FACES = [
    registered, on_profile_page, renamed, passkey_enrolled, passkey_renamed, device_added, device_renamed, device_offered,
]
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
NAMES = [
    ("Ada", "Ada"), ("\U0001f469\u200d\U0001f4bb laptop", None), ("\U0001f3f3\ufe0f\u200d\U0001f308", None), (WALES, None), ("\u2764\ufe0f", None),
    ("\u06af\u0648\u0634\u06cc\u200c\u0645\u0646", None), ("\ufeff Ada\u200b\u00a0", "Ada"), ("\u200fAda\r\n", "Ada"), ("O'Brien", None),
]
NO_NAMES = [
    "a\nb", "a\u0085b", "a\u2028b", "a\u202eb", "\u202aAda\u202c", "a\u2066b", "\u200b\u2060", "\u00a0\ufeff", "\u2800", "\U000e0041", "\ufe0f", "\u0301x",
]


@pytest.mark.parametrize("face", NAME_FACES, ids=lambda face: face.__name__)
def test_one_rule_for_names_of_people_passkeys_and_devices(realm, face):
    for typed, stored in NAMES:
        assert face(realm, typed) == (stored or typed), (face.__name__, ascii(typed))
    for typed in NO_NAMES:
        assert face(realm, typed) is None, (face.__name__, ascii(typed))


# -- lists, resources, languages --------------------------------------------------------------------------------------


def at_the_token_endpoint(realm, **more):
    """Scope and audience of a sign-in by a code."""
    app = realm.app("jwt")
    asked = app.request_code(realm.user())
    return app.redeem(asked.code, handle=asked.handle, **more)


def by_refresh(realm, **more):
    """Of a refresh."""
    app = realm.app("jwt")
    tokens = app.sign_in(realm.user(), scope="openid offline_access bare.read")
    return app.refresh(tokens["refresh_token"], **more)


def by_authorization(realm, **more):
    """Of a request by a browser."""
    flow = Flow(realm, "jwt")
    flow.sign_in(realm.user())
    answer = flow.authorize(**more)
    members = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer.header("location")).query))
    return flow.exchange(members["code"]) if "code" in members else answer


def by_pushed_request(realm, **more):
    """Of a pushed request."""
    flow = Flow(realm, "api")
    flow.sign_in(realm.user())
    pushed = flow.push(**more)
    assert pushed.status == 201, pushed
    answer = flow.authorize(query=wire.form_body({"client_id": flow.app.client_id, "request_uri": pushed.json()["request_uri"]}).decode())
    return flow.exchange(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer.header("location")).query))["code"])


LIST_FACES = [at_the_token_endpoint, by_refresh, by_authorization, by_pushed_request]
lists = pytest.mark.parametrize("face", LIST_FACES, ids=lambda face: face.__name__)


@lists
@pytest.mark.parametrize("scope", [" openid offline_access", "openid  offline_access ", "  openid   offline_access  "])
def test_empty_parts_of_a_scope_vanish(realm, face, scope):
    answer = face(realm, scope=scope)
    assert answer.status == 200 and answer.json()["scope"] == "openid offline_access", answer


@lists
def test_other_white_space_is_part_of_a_scope(realm, face):
    for scope in ("openid\toffline_access", "openid\u00a0offline_access"):
        if face is by_pushed_request:
            answer = Flow(realm, "api").push(scope=scope)
        else:
            answer = face(realm, scope=scope)
        assert b"invalid_scope" in answer.body or "error=invalid_scope" in answer.header("location"), answer


@pytest.mark.parametrize("ask_for_token", [False, True])
def test_a_service_and_a_request_for_approval_read_the_same_lists(realm, ask_for_token):
    if ask_for_token:
        name = "robot"
        robot, _ = service(realm, name, "bare.read", access_token_type="jwt")
        answer = robot.token({"grant_type": "client_credentials", **robot.credentials(), "scope": "  bare.read ", "resource": API + "/"})
        assert answer.status == 200 and answer.json()["scope"] == "bare.read", answer
        assert jose.parts(answer.json()["access_token"])[1]["aud"] in (API, [API])
    else:
        assert ask(realm.app("api"), realm.user(), scope=" openid  bare.read ", resource=API + "/", acr_values=" urn:postern:acr:1  ").status == 200


@lists
@pytest.mark.parametrize("resource", [API, API + "/"])
def test_an_empty_path_of_a_resource_is_a_slash(realm, face, resource):
    """`aud` is spelled as registered; the API that asks may be registered in the other spelling."""
    answer = face(realm, scope="openid bare.read", resource=resource)
    assert answer.status == 200, answer
    token = answer.json()["access_token"]
    audience = jose.parts(token)[1]["aud"] if token.count(".") == 2 else realm.app("api").introspect(token).json()["aud"]
    assert audience in (API, [API]), audience


@lists
def test_no_other_spelling_of_a_resource_counts(realm, face):
    for resource in (API.upper(), API + "//", API + "/v1", API + ":443", API + "/?x"):
        if face is by_pushed_request:
            answer = Flow(realm, "api").push(scope="openid bare.read", resource=resource)
        else:
            answer = face(realm, scope="openid bare.read", resource=resource)
        assert b"invalid_target" in answer.body or "error=invalid_target" in (answer.header("location") or ""), (resource, answer)


def test_a_resource_server_may_be_registered_in_the_other_spelling(realm, world):
    world.admin.call("put_client", realm.slug, realm.client("slash"), client_type="confidential")
    world.admin.call("grant_permission", realm.slug, realm.client("slash"), variadic=["ept:introspection"])
    world.admin.call("put_resource_server", realm.slug, realm.client("slash"), resources=[API + "/"])
    realm.secrets["slash"] = world.admin.call("rotate_client_secret", realm.slug, realm.client("slash"))
    world.settle()
    token = realm.app().sign_in(realm.user(), scope="openid bare.read")["access_token"]
    seen = realm.app("slash").introspect(token).json()
    assert seen["active"] is True and seen["aud"] in (API, [API]), seen


@pytest.mark.parametrize("tag, language", [("de_AT", "de"), ("de-AT", "de"), ("pt_BR", "pt-BR"), ("xx_YY  ar_EG", "ar"), ("DE_at", "de")])
def test_a_locale_may_be_written_with_an_underscore(realm, tag, language):
    """By `ui_locales` of both endpoints, and in Accept-Language."""
    assert Session(realm, ui_locales=tag).browser.page.language == language
    browser = Session(realm).browser.open("/connect/logout?" + wire.form_body({"ui_locales": tag}).decode())
    assert browser.page.language == language
    if " " not in tag:
        request = wire.form_body(Flow(realm).request()).decode()
        assert Session(realm).browser.open("/connect/authorize?" + request, **{"Accept-Language": tag}).page.language == language


# -- JSON and its charset ---------------------------------------------------------------------------------------------


def test_null_is_absent_in_the_document_of_a_passkey(realm):
    """As libraries serialise what an authenticator has not told; the ceremony is spent once."""
    who = signed_in(realm)
    ceremony = who.app.enrolment(who.token)
    document, credential = authenticator.create(ceremony["options"])
    document = {**document, "clientExtensionResults": None, "authenticatorAttachment": None,
                "response": {**document["response"], "transports": None, "publicKey": None}}
    answer = who.app.complete(who.token, ceremony, document, DisplayName=None)
    assert answer.status == 200, answer
    ceremony = who.app.ceremony()
    document = authenticator.assertion(ceremony["options"], credential)
    document = {**document, "clientExtensionResults": None, "authenticatorAttachment": None, "response": {**document["response"], "x": None}}
    assert who.app.redeem_passkey(ceremony, document).status == 200


@pytest.mark.parametrize("path, right", [
    ("/api/account/native/otp/request", {"FirstName": None, "LastName": None, "ClientId": None, "AuthSession": None, "IdTokenHint": None, "Phone": None, "Channel": None}),
    ("/api/account/magic-link/request", {"ClientId": None, "AuthSession": None, "IdTokenHint": None, "Phone": None, "Channel": None}),
])
def test_null_is_absent_in_requests_for_messages(realm, path, right):
    answer = realm.app().post_json(path, {"Email": realm.user(), **right})
    assert answer.status == 200, answer
    assert realm.app().post_json(path, {**right, "Email": None}).json() == {"error": "Email is invalid."}


def test_null_is_absent_on_proves_wire_and_for_devices(realm):
    nothing = {name: None for name in (
        "finalTargetUrl", "checkReputation", "clientHumanId", "clientRequestId", "smsMessage", "deviceId", "emailAddress", "ipAddress", "proveId",
        "allowOTPRetry", "rebind", "dob", "ssn")}
    started = realm.srv.ask("/v3/unify", possessionType="mobile", phoneNumber="+436641234567", **nothing)
    assert started.status == 200, started
    phone = realm.srv.phone(types.SimpleNamespace(**started.json()))
    assert phone.ask("open", deviceId=None, operatorToken=None).status == 200
    assert phone.ask("result", wait=None).status == 200
    app = realm.app()
    assert Device(app).enrol(app.sign_in(realm.user())["access_token"], DisplayName=None, PushHandle=None).status == 200


@pytest.mark.parametrize("charset", ["utf8", "UTF8", '"UTF-8"', '"utf8"', "utf-8", "unicode-1-1-utf-8"])
def test_a_charset_may_be_any_label_of_utf_8(realm, charset):
    """Of forms and of JSON."""
    app, email = realm.app(), realm.user()
    headers = {"Content-Type": f"application/json; charset={charset}"}
    answer = app.exchange("POST", "/api/account/native/otp/request", headers, json.dumps({"Email": email}).encode())
    assert answer.status == 200, answer
    code = realm.world.mailbox.wait(email, kind="code").code
    assert app.token(app.redeem_form(code, email=email), {"Content-Type": f"{wire.FORM}; charset={charset}"}).status == 200


@pytest.mark.parametrize("charset", ["utf-16", "iso-8859-1", '"utf-8', "", "utf-8x"])
def test_no_other_charset_is_read(realm, charset):
    answer = realm.app().exchange(
        "POST", "/api/account/native/otp/request", {"Content-Type": f"application/json; charset={charset}"}, json.dumps({"Email": realm.user()}).encode())
    assert answer.status == 415, answer
