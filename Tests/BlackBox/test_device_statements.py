"""How often devices, approvals and proofs of numbers ask the database: each call once, but for what comes between two statements."""

import threading
import time
import urllib.parse

import pytest

from harness import wire
from harness.app import bearer
from harness.approvals import Device, ask, poll, switch_on
from harness.codeflow import hosted
from harness.phones import new_number
from harness.possession import furnished, opened, possession
from harness.trusted import DEVICES, enrolled, with_devices
from harness.trusted import Device as Owner
from harness.world import World
from test_cotter_events import backend
from test_hosted_statements import TIMES, statements

TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm():
    """A realm with approvals and proofs of numbers, on a database that counts statements."""
    made = World("devstatements", postgres="shared_preload_libraries = 'pg_stat_statements'\n")
    try:
        made.open().cluster.sql("CREATE EXTENSION pg_stat_statements")
        realm = hosted(made.realm(), offer_passkey=False)
        switch_on(realm, "app", "api", public_clients=True)
        with_devices(realm, probation="0 seconds")
        realm.limit("possession", "client", 1_000_000, per="1 minute", burst=1_000_000)
        furnished(possession(realm))
        realm.events = backend(realm, "events", "cap:cotter")
        made.settle()
        yield realm
        realm.phones.close()
    finally:
        made.close()


def counted(realm, action, made):
    """The calls of one action for each of what was made for it; the action's answers are right."""
    waiting = list(made)
    assert len(waiting) == TIMES
    return statements(realm, lambda: action(waiting.pop()))


def one_call(realm, action, made, function):
    """Each action is one call, of this function."""
    assert counted(realm, action, made) == {function: TIMES}


def answered(status):
    """Looks at an answer."""
    def look(answer):
        assert answer.status == status, answer
    return look


def linked(realm):
    """A transaction whose link was opened on the phone, and what the app got there."""
    number = new_number()
    _, phone = opened(realm, number, finalTargetUrl=TARGET)
    phone.call("send", channel="link")
    path = urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    return phone, realm.app().exchange("POST", path, headers, b"action=continue").header("location")


def test_what_an_app_brings_back_or_gives_up_is_one_call(realm):
    """With its door; so is a result that is known, and the refusal of a step that is over."""
    made = [linked(realm) for _ in range(TIMES)]
    one_call(realm, lambda one: one[0].call("finish", redirectUrl=one[1]), made, "finish_possession_by_proof")
    one_call(realm, lambda one: one[0].refused("finish", 400, "redirect_unknown", redirectUrl=one[1]), made, "finish_possession_by_proof")
    one_call(realm, lambda one: one[0].refused("cancel", 409, "transaction_over"), made, "cancel_possession_by_proof")
    one_call(realm, lambda one: one[0].call("result", wait=25), made, "enter_possession")
    phones = [opened(realm, new_number())[1] for _ in range(TIMES)]
    one_call(realm, lambda phone: phone.call("result"), phones, "enter_possession")
    one_call(realm, lambda phone: phone.call("cancel"), phones, "cancel_possession_by_proof")


def test_a_step_with_something_between_is_a_door_and_a_call(realm):
    """The operators are asked between the two, or the code is keyed with the number."""
    started = [realm.srv.phone(realm.srv.unify(new_number())) for _ in range(TIMES)]
    for phone in started:
        phone.app.nonce = Owner(phone.app).fresh_nonce()
    for step, members in {"open": {}, "send": {"channel": "otp"}, "check": {"otp": "000000"}}.items():
        answers = counted(realm, lambda phone, step=step, members=members: phone.ask(step, **members), started)
        assert answers == dict.fromkeys(["enter_possession", f"{step}_possession"], TIMES), step


def test_a_backend_asks_once(realm):
    """After its access token was looked up."""
    made = []
    answers = statements(realm, lambda: made.append(realm.srv.unify(new_number(), "none")))
    assert answers.pop("start_possession") == TIMES and sum(answers.values()) == TIMES, answers
    answers = counted(realm, realm.srv.status, made)
    assert answers.pop("possession_status") == TIMES and sum(answers.values()) == TIMES, answers


def test_an_approval_is_one_call_at_each_side(realm):
    """Asking, polling, looking, answering; a device's own calls."""
    app, devices = realm.app("api"), [Device(realm.app(), realm, realm.user()) for _ in range(TIMES)]
    asked = []
    one_call(realm, lambda device: asked.append(ask(app, device.email).json()), devices, "ask_approval")
    asked = dict(zip(reversed(devices), asked))
    items = {device: device.item() for device in devices}
    one_call(realm, lambda device: answered(200)(device.look()), devices, "approval_inbox")
    one_call(realm, lambda device: answered(400)(poll(app, asked[device])), devices, "redeem_authentication")
    one_call(realm, lambda device: answered(200)(device.answer(items[device], number=asked[device]["match_number"])), devices, "answer_approval")
    one_call(realm, lambda device: answered(200)(poll(app, asked[device])), devices, "redeem_authentication")


def test_a_device_asks_once_by_its_own_key(realm):
    """Reading, renaming, offering, signing in and removing itself."""
    devices = [enrolled(realm, realm.app().sign_in(realm.user())["access_token"]) for _ in range(TIMES)]
    one_call(realm, lambda device: answered(200)(device.itself()), devices, "call_of_device")
    one_call(realm, lambda device: answered(200)(device.call("PATCH", f"{DEVICES}/{device.id}", {"DisplayName": "x"})), devices, "call_of_device")
    new = [Owner(realm.app()) for _ in range(TIMES)]
    for device in new:
        device.fresh_nonce()
    assert sum(counted(realm, lambda device: answered(200)(device.offer()), new).values()) == TIMES
    proofs = {device: device.proof("POST", "/connect/token", nonce=device.fresh_nonce()) for device in devices}
    assert sum(counted(realm, lambda device: answered(200)(device.sign_in(proofs[device])), devices).values()) == TIMES
    one_call(realm, lambda device: answered(204)(device.call("DELETE", f"{DEVICES}/{device.id}")), devices, "call_of_device")


def test_an_owner_asks_once_beside_the_access_token(realm):
    """Adding and listing."""
    tokens = [realm.app().sign_in(realm.user())["access_token"] for _ in range(TIMES)]
    new = []
    for token in tokens:
        new.append((Owner(realm.app()), token))
        new[-1][0].fresh_nonce()
    answers = counted(realm, lambda one: answered(200)(one[0].enrol(one[1])), new)
    assert answers.pop("add_device") == TIMES and sum(answers.values()) <= TIMES, answers
    answers = counted(realm, lambda token: answered(200)(realm.app().get(DEVICES, bearer(token))), tokens)
    assert sum(answers.values()) <= 2 * TIMES, answers


def test_an_event_is_read_by_one_call_and_its_session_opened_by_another(realm):
    """Once; before and after that a look is a look, whatever it asks for."""
    devices, made = [Device(realm.app(), realm, realm.user()) for _ in range(TIMES)], []
    one_call(realm, lambda device: made.append(realm.events.create(device.email).json()), devices, "ask_approval")
    devices.reverse()
    numbers = [one["ID"] for one in made]
    one_call(realm, lambda device: answered(200)(realm.events.new(device.email)), devices, "approval_event")
    one_call(realm, lambda number: answered(200)(realm.events.get(number)), numbers, "approval_event")
    one_call(realm, lambda number: answered(200)(realm.events.get(number, "?oauth_token=true")), numbers, "approval_event")
    for device, one in zip(devices, made):
        assert device.answer(device.item(), number=one["match_number"]).status == 200
    first = counted(realm, lambda number: realm.events.get(number, "?oauth_token=true").json()["oauth_token"], numbers)
    assert first == {"approval_event": TIMES, "redeem_authentication": TIMES}
    one_call(realm, lambda number: answered(200)(realm.events.get(number, "?oauth_token=true")), numbers, "approval_event")


def test_a_device_that_waits_asks_nothing_and_learns_at_once(realm):
    """At one node, of a request that came to the other: the first look, the look when it was woken, and none between."""
    world, app = realm.world, realm.app("api")
    device, node = Device(realm.app(), realm, realm.user()), world.start_node()
    try:
        assert device.inbox() == []
        here, device.node = device.node, node
        told = []

        def wait():
            answer = device.look(wait=25)
            told.append((answer, time.monotonic()))
        thread = threading.Thread(target=wait)
        world.settle_messages()
        world.cluster.sql("SELECT pg_stat_statements_reset()")
        thread.start()
        time.sleep(6)
        assert inbox_calls(world) == 1 and not told
        asked = time.monotonic()
        assert ask(app, device.email).status == 200
        thread.join(20)
        answer, when = told[0]
        assert len(answer.json()["Approvals"]) == 1 and when - asked < 1.5, (when - asked, answer)
        assert inbox_calls(world) == 2
        device.node = here
    finally:
        node.stop()


def inbox_calls(world):
    """How often an inbox was looked into."""
    return int(world.cluster.value("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query ~ 'postern\\.approval_inbox\\(' AND toplevel"))
