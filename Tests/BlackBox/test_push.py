"""Pushes about approvals: what a provider is given, and what comes of one that is down, slow, lying or redirecting."""

import contextlib
import json
import time

import pytest

from harness.approvals import Device as Trusted
from harness.approvals import ask, poll, switch_on
from harness.postgres import literal
from harness.settings import FULL
from harness.trusted import Device, with_devices
from test_channel_faults import status, vendors  # pylint: disable=unused-import  # a fixture

pytestmark = pytest.mark.slow
MEMBERS = {"id", "type", "realm", "channel", "to", "kind", "purpose", "expires_at", "sub", "device_id", "approval_id", "client_id"}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = with_devices(world.realm("push"), probation="24 hours")
    switch_on(made, "app", "api")
    return made


@contextlib.contextmanager
def provider(realm, url):
    """The realm's channel `push`."""
    admin = realm.world.admin
    admin.call("put_channel", realm.slug, "push", "push", provider="webhook", url=url)
    realm.world.settle()
    try:
        yield
    finally:
        admin.call("delete_channel", realm.slug, "push", "push")
        realm.world.settle()


class Owner:
    """A person with devices, each with a handle for pushes."""

    def __init__(self, realm):
        self.realm, self.email = realm, realm.user()
        self.token = realm.app().sign_in(self.email)["access_token"]
        self.sub = realm.app().userinfo(self.token).json()["sub"]
        self.devices = [self.device("first")]

    def device(self, name):
        """One more; all but the first are on probation."""
        made = Device(self.realm.app())
        made.handle = f"handle-{name}-{self.email}"
        assert made.enrol(self.token, PushHandle=made.handle).status == 200
        return made

    def inbox(self):
        """What the first device shows."""
        answer = self.devices[0].call("GET", "/connect/approvals")
        assert answer.status == 200, answer
        return answer.json()["Approvals"]

    def answered(self, item, number):
        """The first device approves."""
        signer = Trusted(self.realm.app(), self.realm, self.email, added=False)
        signer.key = self.devices[0].key
        answer = signer.answer(item, number=number)
        assert answer.status == 200, answer

    def shown(self, timeout=10.0):
        """The one request, once it is shown."""
        deadline = time.monotonic() + timeout
        while not (items := self.inbox()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return items[-1]


@pytest.fixture(name="owner")
def _owner(realm):
    return Owner(realm)


def outcome(realm, messages, timeout=30.0):
    """State and error of pushes by their ids, once they are done with."""
    deadline = time.monotonic() + timeout
    query = f"SELECT state, coalesce(last_error, '') FROM postern.message_outbox WHERE id IN ({', '.join(map(literal, messages))})"
    rows = realm.world.cluster.sql(query)
    while "queued" in [row[0] for row in rows]:
        assert time.monotonic() < deadline, rows
        time.sleep(0.05)
        rows = realm.world.cluster.sql(query)
    return rows


def test_each_device_that_may_approve_is_woken_without_a_word_of_it(realm, vendors, owner):  # noqa: F811
    """Not the one on probation. No text, name, address or scope; the handle is sent and shown to no administrator."""
    vendor = vendors()
    owner.device("second")
    realm.world.cluster.sql("UPDATE postern.device_key SET probation_until = NULL "
                            f"WHERE user_id = '{owner.sub}' AND id <> '{owner.devices[0].id}'")
    waits = owner.device("third")
    with provider(realm, vendor.url("/push")):
        asked = ask(realm.app("api"), owner.email, binding_message="Pay 5 euros to Eve").json()
        item = owner.shown()
        messages = vendor.wait(2)
        rows = outcome(realm, {message["id"] for message in messages})
    assert [row[0] for row in rows] == ["sent", "sent"] and len(messages) == 2, rows
    assert {message["to"] for message in messages} == {owner.devices[0].handle, f"handle-second-{owner.email}"}
    assert waits.id not in {message["device_id"] for message in messages}
    for message in messages:
        assert set(message) - {"locale", "domain", "app"} <= MEMBERS, message
        assert (message["channel"], message["kind"], message["purpose"], message["type"]) == ("push", "approval", "approval", "message.send")
        assert (message["sub"], message["approval_id"]) == (owner.sub, item["Id"])
        assert message["client_id"] == realm.client("app"), "the provider has to know whose app to wake, not who asks"
        words = json.dumps({name: value for name, value in message.items() if name != "to"})
        assert owner.email not in words and "Pay" not in words and asked["match_number"] not in (message.get("text"), message.get("code"))
    assert "handle-" not in json.dumps(realm.world.admin.run("SELECT to_json(m) FROM admin.messages m WHERE channel = 'push';"))


FAULTS = {
    "down": ([None, None], "dead"), "unwilling": ([status(400)], "dead"), "gone": ([status(410)], "dead"),
    "failing": ([status(500)], "sent"), "busy": ([status(429, "Retry-After: 1\r\n")], "sent"),
    "redirecting": ([status(302, "Location: http://127.0.0.1:1/elsewhere\r\n")], "sent"),
    "lying": ([status(200, body='{"error": "no such device"}')], "sent"), "endless": ([status(200, body="x" * 200_000)], "sent"),
    "slow": ([6.0], "sent"), **({"garbage": ([b"nonsense\r\n\r\n"], "sent")} if FULL else {}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_provider_does_changes_no_approval(realm, vendors, owner, fault):  # noqa: F811
    """The request is shown, answered and redeemed while the push is tried; no redirect is followed; one id for all tries."""
    script, end = FAULTS[fault]
    vendor = vendors(*script)
    with provider(realm, vendor.url("/push")):
        app = realm.app("api")
        began = time.monotonic()
        asked = ask(app, owner.email)
        assert asked.status == 200 and time.monotonic() - began < 5
        item = owner.shown()
        rows = outcome(realm, {vendor.wait(1)[0]["id"]})
    assert [row[0] for row in rows] == [end], rows
    assert set(vendor.paths) == {"/push"} and len({message["id"] for message in vendor.messages}) == 1
    assert len(vendor.messages) == (1 if fault in ("unwilling", "gone", "lying") else len(vendor.messages)) <= 2
    owner.answered(item, asked.json()["match_number"])
    assert poll(app, asked.json()).status == 200


def test_a_push_ends_with_its_approval(realm, vendors, owner):  # noqa: F811
    """The provider comes back after the request has expired: it is told nothing."""
    vendor = vendors()
    url = vendor.url("/push")
    vendor.close()
    with provider(realm, url):
        assert ask(realm.app("api"), owner.email).status == 200
        item = owner.shown()
        query = f"SELECT id FROM postern.message_outbox WHERE detail ->> 'approval_id' = '{item['Id']}' AND attempts > 0"
        deadline = time.monotonic() + 10
        while not (tried := realm.world.cluster.sql(query)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        realm.world.time_travel(600)
        rows = outcome(realm, tried[0], timeout=60)
    assert rows == [["dead", "expired"]], rows
