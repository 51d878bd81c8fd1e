"""What strangers' requests for approval cost the person they mean: nothing that the person needs."""

import pytest

from harness.approvals import Device, ask, poll, error, switch_on
from harness.phones import new_number
from test_approvals import wait_resolved
from test_known_devices import anywhere


@pytest.fixture(name="realm")
def _realm(world, proxied_node):
    made = world.realm()
    made.through = proxied_node
    switch_on(made, "app", "app-2", "api", "jwt", public_clients=True)
    world.admin.call("put_scope", made.slug, "openid")
    for dimension, permits in (("target", 5), ("target-total", 10)):
        made.limit("approval", dimension, permits)
    return made


@pytest.fixture(name="owner")
def _owner(realm):
    """A person with an address, a number, a device, and an ID token of `app`."""
    email, number = realm.user(), new_number()
    user = realm.world.cluster.value(f"SELECT id FROM postern.user_account WHERE address_key = '{email}'")
    realm.world.admin.call("put_identifier", realm.slug, user, "phone", number, True)
    owner = Device(at(realm), realm, email)
    owner.number, owner.sub = number, user
    owner.hint = at(realm).sign_in(email)["id_token"]
    return owner


def at(realm, name="app"):
    """A client of the realm that may come from anywhere."""
    return realm.app(name, realm.through)


def flood(app, *hints, count=30):
    """Strangers ask from everywhere until they are refused at each hint."""
    return [ask(app, hints[number % len(hints)], anywhere()) for number in range(count)]


def shown_of(realm):
    """How many requests for the realm's people were shown to some device."""
    return int(realm.world.cluster.value(
        "SELECT count(*) FROM postern.audit_event AS a JOIN postern.realm AS r ON r.id = a.realm_id"
        f" WHERE r.slug = '{realm.slug}' AND a.event = 'approval_requested' AND a.user_id IS NOT NULL"
        " AND NOT EXISTS (SELECT FROM postern.audit_event AS h WHERE h.event = 'approval_hidden'"
        " AND h.detail ->> 'approval_id' = a.detail ->> 'approval_id')"))


def test_a_hint_is_used_up_for_strangers_at_one_client(realm, owner):
    """Ten an hour; an unknown person is answered alike."""
    for hint in (owner.email, realm.new_email()):
        answers = flood(at(realm, "api"), hint, count=12)
        assert [answer.status for answer in answers] == [200] * 10 + [429] * 2
        assert answers[-1].json()["dimension"] == "target-total"
        assert ask(at(realm, "api"), hint.upper(), anywhere()).status == 429


def test_the_owner_is_asked_all_the_same(realm, owner):
    """By an ID token, and by a client that the owner is signed in to, after strangers asked at every client by every identifier."""
    signed_in = at(realm, "jwt")
    signed_in.sign_in(owner.email)
    for name in ("app", "app-2", "api"):
        flood(at(realm, name), owner.email, owner.number, owner.sub)
    wait_resolved(realm)
    asked = ask(at(realm), headers=anywhere(), id_token_hint=owner.hint)
    assert asked.status == 200, asked
    wait_resolved(realm)
    item = owner.item(at(realm).client_id)
    assert owner.answer(item, number=asked.json()["match_number"]).status == 200
    assert poll(at(realm), asked.json()).status == 200
    asked = ask(signed_in, owner.email, anywhere())
    wait_resolved(realm)
    assert asked.status == 200 and owner.item(signed_in.client_id)["ClientId"] == signed_in.client_id


def test_all_clients_and_identifiers_of_a_person_are_one_target(realm, owner):
    """Ten of strangers' requests an hour reach the account; the others wait in vain, and nothing shows that they do."""
    asked = []
    for name in ("app", "app-2", "api"):
        for hint in (owner.email, owner.number, owner.sub):
            for _ in range(4):
                asked.append((at(realm, name), ask(at(realm, name), hint, anywhere())))
                wait_resolved(realm)
                realm.world.cluster.sql("UPDATE postern.device_request SET is_shown = false WHERE kind = 'approval'")
    assert {answer.status for _, answer in asked} == {200}
    assert shown_of(realm) == 10
    app, last = asked[-1]
    assert error(poll(app, last.json())) == "authorization_pending"
