"""What strangers' requests for messages to phones cost others: nothing, unless a message left, and never the last fifth."""

import pytest

from harness.module_site import until
from harness.phones import Phones
from test_known_devices import anywhere

BLOCK = "+43664555"


def number(ending):
    """One of the ten thousand numbers of a block."""
    return f"{BLOCK}{ending:04d}"


@pytest.fixture(name="phones")
def _phones(world, proxied_node):
    realm = world.realm()
    realm.through = proxied_node
    made = Phones(realm)
    yield made
    made.close()


@pytest.fixture(name="realm")
def _realm(phones):
    return phones.realm


def person(realm, ending):
    """Somebody whose proven identifier the number is."""
    realm.world.admin.call("put_user", realm.slug, phone=number(ending))
    return number(ending)


def settled(realm):
    """The worker has decided every request, and what it queued has left."""
    until(lambda: realm.world.cluster.value("SELECT count(*) FROM postern.sign_in_request WHERE pending") == "0", "pending requests")
    realm.world.settle_messages()


def test_requests_that_send_nothing_close_no_block(realm, phones):
    """Numbers of nobody: not a prefix, a country, a client nor the budget of the day is used up."""
    for dimension in ("prefix", "country", "client", "spend"):
        realm.limit("phone-otp", dimension, 25)
    app, source = realm.app(node=realm.through), anywhere()
    answers = [phones.ask(app, number(n), ClientId=app.client_id) if n % 2 else app.post_json(
        "/api/account/native/otp/request", {"Phone": number(n)}, source) for n in range(40)]
    assert {answer.status for answer in answers} == {200}
    settled(realm)
    owner = person(realm, 9000)
    assert phones.ask(app, owner, ClientId=app.client_id).status == 200
    phones.wait(owner)


def test_a_message_that_no_provider_takes_costs_nothing(realm, phones):
    """Denied by the hook of the realm before it is sent."""
    realm.limit("phone-otp", "prefix", 5)
    app = realm.app(node=realm.through)
    realm.world.admin.call("set_pre_send_hook", realm.slug, "http://127.0.0.1:9/none", "deny")
    for n in range(8):
        assert app.post_json("/api/account/native/otp/request", {"Phone": person(realm, n)}, anywhere()).status == 200
    settled(realm)
    realm.world.admin.call("delete_pre_send_hook", realm.slug)
    owner = person(realm, 9000)
    assert app.post_json("/api/account/native/otp/request", {"Phone": owner}, anywhere()).status == 200
    phones.wait(owner)


@pytest.mark.parametrize("dimension", ["prefix", "country", "client", "app", "spend"])
def test_a_fifth_is_kept_for_known_devices_and_proven_numbers(realm, phones, dimension):
    """Strangers register numbers until they are refused; they find four fifths. Nothing tells them which numbers have accounts."""
    app = realm.app_on(realm.put_app("shop", registration="JitOnOtp"), node=realm.through)
    owner = person(realm, 9000)
    handle = phones.ask(app, owner).json()["AuthSession"]
    hint = app.redeem(phones.wait(owner)["code"], handle=handle, scope="openid").json()["id_token"]
    realm.limit("phone-otp", dimension, 25)
    realm.world.cluster.sql("DELETE FROM postern.rate_bucket")
    pump = anywhere()

    def ask(ending, source, **members):
        return app.post_json("/api/account/native/otp/request", {"Phone": number(ending), "ClientId": app.client_id, **members}, source)

    answers = []
    for n in range(60):
        answers.append(ask(n, pump))
        settled(realm)
    assert answers[-1].status == 429 and answers[-1].json()["dimension"] == dimension, answers[-1]
    assert len(phones.messages) == 1 + 20
    assert [ask(n, anywhere()).status for n in range(60, 64)] == [200] * 4, "another source is told nothing"
    settled(realm)
    assert len(phones.messages) == 21, "but a message goes to no number of a stranger"
    assert ask(9000, anywhere()).status == 200
    phones.wait(owner, 2)
    for count in (3, 4):
        assert ask(9000, anywhere(), IdTokenHint=hint).status == 200
        phones.wait(owner, count)
