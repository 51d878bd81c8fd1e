"""Texts that askers and devices choose: what a device is shown is what was sent, as JSON and nothing else, or it was refused."""

import json

import pytest

from harness.app import bearer
from harness.approvals import Device, ask, poll, switch_on
from harness.trusted import DEVICES, with_devices
from harness.trusted import Device as Owner
from test_cotter_events import backend

#: Words that a page, a log or a terminal would read in its own way.
SHOWN = {
    "html": "<img src=x onerror=alert(1)>", "json": '"}],"Id":"x","a":[{"', "template": "{{7*7}} ${7*7} %s", "slash": "</script>\\u003c", "accents": "Zahlen Sie 5 €? مرحبا",
}
#: What changes the order of letters, or is no letter.
REFUSED = {
    "override": "a\u202eb", "isolate": "a\u2066b\u2069", "mark": "a\u200fb",
    "newline": "a\nb", "tab": "a\tb", "escape": "a\x1b[31mb", "NUL": "a\0b", "delete": "a\x7fb",
    "C1": "a\x9bb", "line": "a\u2028b",
}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = with_devices(world.realm("texts"), probation="0 seconds")
    switch_on(made, "app", "api", public_clients=True)
    made.events = backend(made, "events", "cap:cotter")
    made.world.settle()
    return made


@pytest.fixture(name="device")
def _device(realm, email):
    return Device(realm.app(), realm, email)


@pytest.fixture(name="email")
def _email(realm):
    return realm.user()


def assert_plain(answer):
    """JSON that no browser takes for something else."""
    assert answer.status == 200 and answer.header("content-type").startswith("application/json"), answer
    assert answer.header("x-content-type-options") == "nosniff" and not any(byte < 32 for byte in answer.body), answer
    return json.loads(answer.body)


def test_a_message_is_shown_as_it_was_sent_or_refused(realm, device):
    """`binding_message`; an event is a word of capital letters."""
    app = realm.app("api")
    for name, text in REFUSED.items():
        answer = ask(app, device.email, binding_message=text)
        assert (answer.status, answer.json()["error"]) == (400, "invalid_request" if name == "NUL" else "invalid_binding_message"), (name, answer)
    for name, text in {**SHOWN, **REFUSED}.items():
        answer = ask(app, device.email, event=text)
        assert (answer.status, answer.json()["error"]) == (400, "invalid_request"), (name, answer)
    for name, text in SHOWN.items():
        asked = ask(app, device.email, binding_message=text).json()
        item = device.item()
        assert item["BindingMessage"] == text and item["Event"] == "LOGIN", name
        assert_plain(device.look())
        assert device.answer(item, number=asked["match_number"]).status == 200, name
        assert poll(app, asked).status == 200


def test_what_a_backend_of_events_says_reaches_no_device(realm, device):
    """Its `ip` is its own, and comes back to it; whom it names is looked up and shown to nobody."""
    for name, text in {**SHOWN, **REFUSED}.items():
        answer = realm.events.create(device.email, ip=text)
        if answer.status == 200:
            assert assert_plain(answer)["ip"] == text, name
            item = device.item()
            assert text not in json.dumps(item, ensure_ascii=False) and "Source" not in item, (name, item)
            assert_plain(realm.events.get(answer.json()["ID"]))
            assert device.answer(item, "deny").status == 200
            realm.world.admin.call("resume_approvals", realm.slug, realm.world.cluster.value(
                f"SELECT id FROM postern.user_account WHERE address_key = lower('{device.email}')"))
        else:
            assert answer.status == 400 and name in REFUSED, (name, answer)
        for member in ("event", "client_user_id", "issuer", "method"):
            body = {"user": device.email, member: text} if member != "client_user_id" else {"user": text}
            answer = realm.events.create(body.pop("user"), **body)
            assert answer.status == 400, (name, member, answer)


def test_a_device_has_a_name_that_can_be_shown(realm, email):
    """When it is added, renamed and offered: refused, or listed as it was sent."""
    token = realm.app().sign_in(email)["access_token"]
    device = Owner(realm.app())
    assert device.enrol(token).status == 200
    for name, text in {**SHOWN, **REFUSED}.items():
        answers = [
            Owner(realm.app()).enrol(realm.app().sign_in(realm.user())["access_token"], DisplayName=text),
            device.call("PATCH", f"{DEVICES}/{device.id}", {"DisplayName": text}), Owner(realm.app()).offer(DisplayName=text),
        ]
        assert len({answer.status for answer in answers}) == 1 and answers[0].status in (200, 400), (name, [str(answer) for answer in answers])
        # A mark turns nothing but the letters beside it.
        assert name not in REFUSED or name == "mark" or answers[0].status == 400, name
        if answers[0].status == 200:
            listed = assert_plain(realm.app().get(DEVICES, bearer(token)))
            assert [one["DisplayName"] for one in listed] == [text], name
    assert device.itself().status == 200

