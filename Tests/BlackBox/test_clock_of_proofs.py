"""Approvals, devices and proofs of numbers at a node whose clock is wrong, beside one whose clock is right: the wrong one refuses to
sign tokens, and dates by the database what it hands out and judges. The database alone says when a code, a link or a request ends."""

import urllib.parse

import pytest

from harness import wire
from harness.approvals import Device as Trusted
from harness.approvals import approved, ask, error, poll, switch_on
from harness.dpop import DPoPApp
from harness.load import is_unavailable
from harness.node import Node
from harness.phones import new_number
from harness.possession import Phone, coded, furnished, opened, possession, signs_in
from harness.shift import Shift
from harness.trusted import DEVICES, Device, with_devices
from harness.app import bearer
from test_cotter_events import backend

pytestmark = pytest.mark.slow
GRANT = "urn:postern:possession"


@pytest.fixture(scope="module", name="shift")
def _shift(tmp_path_factory):
    return Shift.made(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module", name="wrong")
def _wrong(world, shift):
    made = Node(world.cluster.url("bb_serve"), world.key_file, world.mailbox.port, **shift.environment).start()
    world.nodes.append(made)
    yield made
    made.stop()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = possession(with_devices(world.realm("clocks"), probation="0 seconds"))
    switch_on(made, "app", "api", public_clients=True)
    made.events = backend(made, "events", "cap:cotter")
    signs_in(furnished(made))
    assert made.srv.token
    yield made
    made.phones.close()


class At:
    """Calls of one node by clients that are at home at another."""

    def __init__(self, node, *clients):
        self.node, self.clients = node, clients

    def __enter__(self):
        self.homes = [client.node for client in self.clients]
        for client in self.clients:
            client.node = self.node

    def __exit__(self, *_):
        for client, home in zip(self.clients, self.homes):
            client.node = home


def phone_at(realm, phone, node):
    """The same app at another node, with a nonce."""
    other = Phone(realm, phone.token, phone.key, node)
    other.app.nonce, other.app.obeys = phone.app.nonce, False
    return other


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_node_ten_minutes_off_signs_no_token_for_an_app_and_judges_right_ones_rightly(world, realm, wrong, shift, seconds):
    """Backends hear 503 to a start, as sign-ins do. The steps of an app go on there, and nonces of there are good here."""
    number = new_number()
    user = world.admin.call("put_user", realm.slug, phone=number)
    started, phone, _, code = coded(realm, number=number)
    unopened = realm.srv.phone(realm.srv.unify(new_number()))
    unopened.app.nonce = phone.app.nonce
    before = world.cluster.value("SELECT count(*) FROM postern.device_request WHERE kind <> 'approval'")
    shift.by(seconds)
    try:
        with At(wrong, realm.srv.app):
            refused = realm.srv.ask("/v3/unify", possessionType="mobile")
            assert (refused.status, refused.json().get("code")) == (503, 8000) and refused.header("retry-after"), refused
            assert realm.srv.status(started).success == "pending"
        opened = phone_at(realm, unopened, wrong).ask("open")
        assert opened.status == 200 and 880 <= opened.json()["expiresIn"] <= 900, opened
        fresh = Phone(realm, phone.token, phone.key, wrong)
        assert fresh.call("result") == {"state": "sent"} and fresh.app.challenges == 1
        assert phone_at(realm, phone, wrong).ask("check", otp=code).json() == {"state": "passed"}
    finally:
        shift.by(0)
    assert world.cluster.value("SELECT count(*) FROM postern.device_request WHERE kind <> 'approval'") == before
    client = DPoPApp(realm.app(), phone.key, obeys=False)
    client.nonce = fresh.app.nonce
    form = {"grant_type": GRANT, "client_id": client.client_id, "scope": "openid", "auth_token": phone.token}
    shift.by(seconds)
    try:
        assert is_unavailable(client.at(wrong).token(form))
    finally:
        shift.by(0)
    signed_in = client.token(form)
    assert signed_in.status == 200 and client.userinfo(signed_in.json()["access_token"]).json()["sub"] == user


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_node_ten_minutes_off_dates_requests_and_offers_by_the_database(world, realm, wrong, shift, seconds):
    """They are good at the right node for their time and no longer; tokens and signed events are not given there."""
    app, device = realm.app("api"), Trusted(realm.app(), realm, realm.user())
    waiting = approved(app, device)
    email = realm.user()
    token = realm.app().sign_in(email)["access_token"]
    old, new, late = (Device(realm.app()) for _ in range(3))
    assert old.enrol(token).status == 200
    shown, event = new.offer().json(), realm.events.create(device.email).json()
    shift.by(seconds)
    try:
        with At(wrong, app, old.app, late.app, device, realm.events.app):
            asked = ask(app, device.email, event="THERE").json()
            assert is_unavailable(poll(app, waiting))
            assert old.itself().status == 200 and device.look().status == 200
            elsewhere = late.offer().json()
            inspected = old.app.post_json(DEVICES + "/inspect", {"Offer": shown["Offer"]}, bearer(token))
            assert inspected.status == 200 and 280 <= inspected.json()["ExpiresIn"] <= 300, inspected
            assert old.adopt(token, shown, new).status == 200
            for answer in (old.sign_in(), realm.events.create(device.email), realm.events.get(event["ID"]), realm.events.new(device.email)):
                assert answer.status == 503 and answer.header("retry-after"), answer
    finally:
        shift.by(0)
    assert poll(app, waiting).status == 200 and realm.events.get(event["ID"]).json()["ID"] == event["ID"]
    inspected = realm.app().post_json(DEVICES + "/inspect", {"Offer": elsewhere["Offer"]}, bearer(token))
    assert inspected.status == 200 and 280 <= inspected.json()["ExpiresIn"] <= 300, inspected
    assert old.adopt(token, elsewhere, late).status == 200 and old.sign_in().status == 200
    item = next(item for item in device.inbox() if item["Event"] == "THERE")
    assert device.answer(item, number=asked["match_number"]).status == 200
    world.time_travel(181)
    assert error(poll(app, asked)) == "expired_token"


@pytest.mark.parametrize("seconds", [600, -600])
def test_what_a_device_or_a_person_answers_ends_by_the_database_alone(world, realm, wrong, shift, seconds):
    """A live request and a live link are answered at the wrong node, ended ones are not: no token and no nonce is dated there."""
    app, device = realm.app("api"), Trusted(realm.app(), realm, realm.user())

    def linked():
        number = new_number()
        realm.srv.renew()
        started = realm.srv.unify(number, "desktop", finalTargetUrl="https://app.example/")
        phone = realm.srv.phone(started)
        phone.call("open")
        sent = phone.call("send", channel="link")
        return started, urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path, sent["matchNumber"]

    def confirm(path, number):
        headers = {"Host": realm.host, "Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
        return wire.exchange(wrong.port, "POST", path, headers, wire.form_body({"number": number}))
    live, ended = ask(app, device.email, event="LIVE").json(), linked()
    item = device.item()
    shift.by(seconds)
    try:
        with At(wrong, device):
            assert device.answer(item, number=live["match_number"]).status == 200
        started, path, number = linked()
        assert confirm(path, number).status == 303
    finally:
        shift.by(0)
    assert poll(app, live).status == 200 and realm.srv.status(started).success == "true"
    late = ask(app, device.email, event="LATE").json()
    item = device.item()
    world.time_travel(301)
    shift.by(seconds)
    try:
        with At(wrong, device):
            assert device.answer(item, number=late["match_number"]).status == 404
        assert confirm(*ended[1:]).status == 400
    finally:
        shift.by(0)
    assert error(poll(app, late)) == "expired_token" and realm.srv.status(ended[0]).success == "pending"


@pytest.mark.parametrize("seconds", [50, -50])
def test_at_a_node_that_is_less_than_a_minute_off_ends_are_the_databases(world, realm, wrong, shift, seconds):
    """A code and a request live for 120 s of the database's, and no second longer or shorter by the node's clock."""
    app, device = realm.app("api"), Trusted(realm.app(), realm, realm.user())
    for age, is_live in ((80, True), (121, False)):
        realm.srv.renew()
        _, phone, _, code = coded(realm)
        asked = approved(app, device, event="AT_THE_END")
        world.time_travel(age)
        shift.by(seconds)
        try:
            there = phone_at(realm, phone, wrong)
            there.app.nonce, there.app.obeys = None, True
            answer = there.ask("check", otp=code)
            with At(wrong, app):
                polled = poll(app, asked)
        finally:
            shift.by(0)
        assert answer.status == (200 if is_live else 400), (age, answer)
        assert polled.status == 200 if is_live else error(polled) == "expired_token", (age, polled)
