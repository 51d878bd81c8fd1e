"""The endpoints of devices, approvals and possession: a request that is refused for its proof has done nothing at all."""

import urllib.parse

import pytest

from harness import wire
from harness.app import FULL_SCOPE
from harness.approvals import CIBA, Device, ask, form
from harness.codeflow import hosted
from harness.dpop import DPoPApp
from harness.phones import Phones, new_number
from harness.possession import Backend, possession
from harness.trusted import DEVICES, GRANT, with_devices
from harness.trusted import Device as Owner
from test_dpop_invariant import Request, assert_refusals_do_nothing, snapshot  # pylint: disable=unused-import  # a fixture

pytestmark = pytest.mark.slow
TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = possession(with_devices(hosted(world.realm("invariant")), probation="0 seconds"))
    made.phones = Phones(made)
    made.srv = Backend(made, "srv")
    admin = world.admin
    admin.call("put_web_origin", made.slug, made.client("srv"), "https://app.example")
    admin.run(*(f"SELECT admin.grant_permission('{made.slug}', '{made.client('app')}', '{permission}');"
                for permission in ("gt:" + CIBA, "gt:urn:postern:possession")))
    admin.run(f"SELECT admin.set_approvals('{made.slug}', true, public_clients => true);")
    admin.call("put_possession_client", made.slug, made.client("srv"), login_client=made.client("app"))
    world.settle()
    yield made
    made.phones.close()


# -- by an access token ---------------------------------------------------------------------


def _bound(realm, app, email=None):
    return app.bound(email or realm.user(), scope=FULL_SCOPE)["access_token"]


def _enrolment(realm, app):
    token = _bound(realm, app)
    new = Owner(realm.app())
    return Request.json(app, "POST", DEVICES, {"Proof": new.proof("POST", DEVICES, token)}, token=token)


def _list(realm, app):
    return Request(app, "GET", DEVICES, token=_bound(realm, app))


def _owned(method, document=None, statuses=(200,)):
    def make(realm, app):
        email = realm.user()
        device = Device(realm.app(), realm, email)
        token, path = _bound(realm, app, email), f"{DEVICES}/{device.id}"
        if document is None:
            return Request(app, method, path, token=token, statuses=statuses)
        return Request.json(app, method, path, document, token=token, statuses=statuses)
    return make


def _offered(realm, app):
    token = app.plain.sign_in(email := realm.user())["access_token"]
    old, new = Owner(realm.app()), Owner(realm.app())
    assert old.enrol(token).status == 200
    return old, new, new.offer().json(), _bound(realm, app, email)


def _inspect(realm, app):
    _, _, shown, token = _offered(realm, app)
    return Request.json(app, "POST", DEVICES + "/inspect", {"Offer": shown["Offer"]}, token=token)


def _adopt(realm, app):
    old, new, shown, token = _offered(realm, app)
    signed = old.approval(shown["Offer"], new, shown["CheckCode"])
    return Request.json(app, "POST", DEVICES + "/adopt", {"Offer": shown["Offer"], "Approval": signed}, token=token)


# -- by the key of a device -----------------------------------------------------------------


def _device(realm, app):
    """A trusted device with the key of `app`, and a nonce."""
    device = Device(realm.app(), realm, realm.user(), added=False)
    device.key = app.key
    device.add()
    assert device.inbox() == []
    return device


def _alone(method, path, document=None, statuses=(200,)):
    def make(realm, app):
        device = _device(realm, app)
        target = path.format(id=device.id)
        if document is None:
            return Request(device, method, target, statuses=statuses)
        return Request.json(device, method, target, {**document, **({"ClientId": device.client_id} if "offer" in path else {})}, statuses=statuses)
    return make


def _sign_in(realm, app):
    device = _device(realm, app)
    return Request.form(device, {"grant_type": GRANT, "client_id": device.client_id, "scope": "openid offline_access"})


def _request(realm, app):
    return Request.form(app, form(app, login_hint=realm.user()), "/connect/bc-authorize")


def _poll(realm, app):
    device = Device(realm.app(), realm, realm.user())
    asked = ask(app, device.email).json()
    assert device.answer(device.item(), number=asked["match_number"]).status == 200
    return Request.form(app, {"grant_type": CIBA, **app.credentials(), "auth_req_id": asked["auth_req_id"]})


# -- by the key of a possession transaction -------------------------------------------------


def _step(phone, step, **members):
    if phone.app.nonce is None:
        phone.app.nonce = _nonce_of(phone)
    return Request.json(phone.app, "POST", f"/connect/possession/{step}", members, token=phone.token)


def _nonce_of(phone):
    other = Owner(phone.app)
    return other.fresh_nonce()


def _opened(realm, app, kind="mobile", **members):
    number = new_number()
    phone = realm.srv.phone(realm.srv.unify(number, kind, **members), app.key)
    phone.call("open")
    return number, phone


def _open(realm, app):
    return _step(realm.srv.phone(realm.srv.unify(new_number()), app.key), "open")


def _send(realm, app):
    return _step(_opened(realm, app)[1], "send", channel="otp")


def _coded(realm, app):
    number, phone = _opened(realm, app)
    phone.call("send", channel="otp")
    return phone, realm.phones.wait(number)["code"]


def _check(realm, app):
    phone, code = _coded(realm, app)
    return _step(phone, "check", otp=code)


def _result(realm, app):
    return _step(_opened(realm, app)[1], "result", wait=0)


def _cancel(realm, app):
    return _step(_opened(realm, app)[1], "cancel")


def _finish(realm, app):
    number, phone = _opened(realm, app, finalTargetUrl=TARGET)
    phone.call("send", channel="link")
    path = urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    url = realm.app().exchange("POST", path, headers, b"action=continue").header("location")
    return _step(phone, "finish", redirectUrl=url)


def _possession_sign_in(realm, app):
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number)
    phone = realm.srv.phone(realm.srv.unify(number), app.key)
    phone.call("open")
    phone.call("send", channel="otp")
    phone.call("check", otp=realm.phones.wait(number)["code"])
    client = DPoPApp(realm.app(), app.key)
    client.nonce = phone.app.nonce
    return Request.form(client, {"grant_type": "urn:postern:possession", "client_id": client.client_id, "scope": "openid", "auth_token": phone.token})


ENDPOINTS = {
    "device enrolment": _enrolment, "devices": _list, "renamed device": _owned("PATCH", {"DisplayName": "x"}),
    "removed device": _owned("DELETE", statuses=(204,)), "inspect": _inspect, "adopt": _adopt,
    "self": _alone("GET", DEVICES + "/self"), "offer": _alone("POST", DEVICES + "/offer", {}),
    "device renames itself": _alone("PATCH", DEVICES + "/{id}", {"DisplayName": "x"}),
    "device removes itself": _alone("DELETE", DEVICES + "/{id}", statuses=(204,)), "approvals": _alone("GET", "/connect/approvals"),
    "approvals, waiting": _alone("GET", "/connect/approvals?wait=1"),
    "device signs in": _sign_in, "bc-authorize": _request, "poll of an approval": _poll,
    "open": _open, "send": _send, "check": _check, "result": _result, "cancel": _cancel, "finish": _finish, "possession signs in": _possession_sign_in,
}
#: Their success changes nothing that is compared.
_SILENT = {"devices", "inspect", "self", "offer", "approvals", "approvals, waiting", "result"}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_request_refused_for_its_proof_has_done_nothing(world, realm, snapshot, name):  # noqa: F811  # pylint: disable=redefined-outer-name
    """Every way of refusing, in a random order; then the same request with a right proof succeeds."""
    assert_refusals_do_nothing(world, realm, snapshot, name, ENDPOINTS[name], name in _SILENT)
