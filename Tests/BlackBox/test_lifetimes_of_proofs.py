"""How long the texts of devices and proofs of numbers serve, with the clocks of server and database moved together: under their time they
are good, over it they are not, and a day later the database has forgotten a proof."""

import time
import urllib.parse

import pytest

from harness import wire
from harness.app import bearer
from harness.dpop import DPoPApp, assert_nonce_due
from harness.moving_world import MovingWorld
from harness.phones import new_number
from harness.possession import coded, furnished, possession
from harness.trusted import DEVICES, Device, with_devices

pytestmark = pytest.mark.slow
OFFER = {"error": "invalid_offer"}


@pytest.fixture(scope="module", name="moving")
def _moving():
    made = MovingWorld("lifetimes")
    yield made.open()
    made.close()


@pytest.fixture(scope="module", name="realm")
def _realm(moving):
    made = furnished(possession(with_devices(moving.realm("lives"))))
    yield made
    made.phones.close()


def test_an_offer_and_a_nonce_of_a_device_serve_for_five_minutes(moving, realm):
    """At 280 s the offer can be read and the nonce is good; at 308 s the offer adopts no device and a new nonce is given."""
    token = realm.app().sign_in(realm.user())["access_token"]
    old, early, late = (Device(realm.app()) for _ in range(3))
    assert old.enrol(token).status == 200
    path = DEVICES + "/self"
    nonce, first, second = old.fresh_nonce(), early.offer().json(), late.offer().json()
    moving.travel(280)
    assert old.call("GET", path, proof=old.proof("GET", path, nonce=nonce)).status == 200
    seen = realm.app().post_json(DEVICES + "/inspect", {"Offer": first["Offer"]}, bearer(token)).json()
    assert 0 < seen["ExpiresIn"] <= 20 and old.adopt(token, first, early).status == 200
    moving.travel(28)
    old.nonce = assert_nonce_due(old.call("GET", path, proof=old.proof("GET", path, nonce=nonce)), protected=True)
    refused = old.adopt(token, second, late)
    assert (refused.status, refused.json()) == (400, OFFER)
    assert realm.app().post_json(DEVICES + "/inspect", {"Offer": second["Offer"]}, bearer(token)).json() == OFFER
    early.nonce = late.nonce = None
    assert old.itself().status == 200 and early.itself().status == 200 and late.itself().status == 404


def test_a_sign_in_that_adds_devices_is_ten_minutes_old_at_most(moving, realm):
    """At 580 s it adds one, at 608 s it does not."""
    email = realm.user()
    token = realm.app().sign_in(email)["access_token"]
    moving.travel(580)
    assert Device(realm.app()).enrol(token).status == 200
    moving.travel(28)
    answer = Device(realm.app()).enrol(token)
    assert (answer.status, answer.json()["error"]) == (401, "insufficient_user_authentication"), answer


def test_a_token_for_an_app_serves_for_a_quarter_of_an_hour(moving, realm):
    """With its own nonce for as long as nonces live; at 908 s it is refused, and the backend reads that the proof failed."""
    realm.srv.renew()
    started = realm.srv.unify(new_number())
    phone = realm.srv.phone(started)
    fresh = DPoPApp(realm.app(), phone.key, obeys=False)
    fresh.nonce = nonce_in(started.authToken)
    fields = {"Authorization": f"DPoP {started.authToken}", "Content-Type": "application/json"}
    moving.travel(280)
    assert fresh.exchange("POST", "/connect/possession/open", fields, b"{}").status == 200
    moving.travel(28)
    stale = fresh.exchange("POST", "/connect/possession/open", fields, b"{}")
    assert (stale.status, stale.error) == (401, "use_dpop_nonce"), stale
    moving.travel(572)
    assert phone.call("open")["state"] == "open"
    moving.travel(28)
    over = phone.ask("open")
    assert (over.status, over.error) == (401, "invalid_token"), over
    realm.srv.renew()
    status = realm.srv.status(started)
    assert status.success == "false" and set(status.evaluation["authentication"]["failureReasons"]) == {"9100"}


def nonce_in(token):
    """The claim `nonce` of a token for an app."""
    from harness.jose import parts  # pylint: disable=import-outside-toplevel
    return parts(token)[1]["nonce"]


def test_a_code_and_a_link_serve_for_their_time(moving, realm):
    """A code two minutes and a link five: before that they pass, after it they do not, and a new message does."""
    realm.srv.renew()
    _, live, _, code = coded(realm)
    _, old, _, dead = coded(realm, allowOTPRetry=True)
    links = [linked(realm) for _ in range(2)]
    moving.travel(100)
    assert live.call("check", otp=code) == {"state": "passed"}
    moving.travel(28)
    assert old.refused("check", 400, "otp_invalid", otp=dead)["triesLeft"] == 2
    number = new_number()
    realm.srv.renew()
    fresh = realm.srv.phone(realm.srv.unify(number))
    fresh.call("open")
    fresh.call("send", channel="otp")
    assert fresh.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}
    moving.travel(152)
    assert confirm(realm, *links[0][1:]).status == 303
    moving.travel(28)
    assert confirm(realm, *links[1][1:]).status == 400
    realm.srv.renew()
    assert [realm.srv.status(started).success for started, *_ in links] == ["true", "pending"]


def linked(realm):
    """A transaction with a link on the phone: transaction, path, the number to type."""
    number = new_number()
    realm.srv.renew()
    started = realm.srv.unify(number, "desktop", finalTargetUrl="https://app.example/")
    phone = realm.srv.phone(started)
    phone.call("open")
    sent = phone.call("send", channel="link")
    return started, urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path, sent["matchNumber"]


def confirm(realm, path, number):
    """Types a number on the page of a link."""
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    return realm.app().exchange("POST", path, headers, wire.form_body({"number": number}))


def test_a_day_after_its_end_a_proof_is_unknown(moving, realm):
    """Until then the backend reads that it is over; then 8008, and there is no row."""
    realm.srv.renew()
    passed, phone, _, code = coded(realm)
    assert phone.call("check", otp=code) == {"state": "passed"}
    failed, lost, _, _ = coded(realm)
    lost.call("cancel")
    moving.travel(23 * 3600)
    realm.srv.renew()
    assert [realm.srv.status(started).success for started in (passed, failed)] == ["true", "false"], "what passed stays so for its day"
    moving.travel(3 * 3600)
    realm.srv.renew()
    names = ", ".join(f"'{started.correlationId}'" for started in (passed, failed))
    deadline = time.monotonic() + 30
    while moving.cluster.value(f"SELECT count(*) FROM postern.device_request WHERE id IN ({names})") != "0":
        assert time.monotonic() < deadline, "the sweeper did not come"
        time.sleep(0.2)
    for started in (passed, failed):
        answer = realm.srv.ask("/v3/unify-status", correlationId=started.correlationId)
        assert (answer.status, answer.json()["code"]) == (400, 8008)
