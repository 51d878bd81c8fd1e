"""Trusted devices at their bounds: proofs that are none, offers that are too old or of elsewhere, what an adopted device may not do yet."""

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.approvals import CIBA
from harness.approvals import Device as Signer
from harness.approvals import ask
from harness.dpop import assert_invalid
from harness.realm import call
from harness.receiver import Receiver
from harness.settings import FULL
from harness.trusted import DEVICES, Device, enrolled, owner_of, with_devices

OFFERS = 10_000 if FULL else 300
OFFER = {"error": "invalid_offer"}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = with_devices(world.realm("devbounds"), probation="24 hours")
    world.admin.run(*(call("grant_permission", made.slug, made.client(name), variadic=["gt:" + CIBA]) for name in ("app", "api")))
    world.admin.call("set_approvals", made.slug, True, public_clients=True)
    world.settle()
    return made


@pytest.fixture(name="owner")
def _owner(realm):
    return owner_of(realm)


def raw(device, method, path, fields, body=None):
    """A call with exactly these header fields; the raw answer."""
    return wire.exchange(device.app.node.port, method, path, [("Host", device.app.host), *fields], body)


def test_calls_of_a_device_need_one_proof(realm, owner):
    """None, an empty one, two, one that is too long; at each call that a proof alone opens."""
    device = enrolled(realm, owner[1])
    for method, path in (("GET", DEVICES + "/self"), ("DELETE", f"{DEVICES}/{device.id}"), ("GET", "/connect/approvals")):
        right = device.proof(method, path)
        for fields in ([], [("DPoP", "")], [("DPoP", right), ("DPoP", right)], [("DPoP", right + "A" * 4097)]):
            assert_invalid(raw(device, method, path, fields), protected=True)
    assert device.itself().status == 200


def test_a_used_proof_is_used_at_every_call_and_node(world, realm, owner):
    """A proof that one node has taken is refused by the other one, which removes and shows no device."""
    device, node = enrolled(realm, owner[1]), world.start_node()
    try:
        proof = device.proof("DELETE", f"{DEVICES}/{device.id}")
        other = enrolled(realm, owner[1])
        proofs = {path: device.proof("GET", path) for path in (DEVICES + "/self", "/connect/approvals")}
        for path, one in proofs.items():
            assert device.call("GET", path, proof=one).status == 200
            assert_invalid(wire.exchange(node.port, "GET", path, {"Host": realm.host, "DPoP": one}), protected=True)
        assert device.call("DELETE", f"{DEVICES}/{device.id}", proof=proof).status == 204
        assert_invalid(wire.exchange(node.port, "DELETE", f"{DEVICES}/{device.id}", {"Host": realm.host, "DPoP": proof}), protected=True)
        assert other.itself().status == 200
    finally:
        node.stop()


def test_a_key_has_a_device_in_each_realm_of_its_own(world, realm, owner):
    """Unknown where it was not added; added in both it is two devices, and the end of one leaves the other."""
    device, elsewhere = enrolled(realm, owner[1]), with_devices(world.realm("devother"))
    there = Device(elsewhere.app(), device.key)
    assert there.itself().status == 404
    token = elsewhere.app().sign_in(elsewhere.user())["access_token"]
    assert there.enrol(token).status == 200 and there.id != device.id
    assert there.call("DELETE", f"{DEVICES}/{there.id}").status == 204
    assert there.itself().status == 404 and device.itself().json()["Id"] == device.id
    assert there.enrol(owner[1]).status == 401, "a token of the other realm"


def test_a_statement_of_its_maker_is_not_believed(realm, owner):
    """`attestation` in the body is ignored: the key is never said to lie in hardware."""
    device = enrolled(realm, owner[1], attestation={"fmt": "android-key"})
    answer = device.sign_in()
    assert answer.status == 200 and "hwk" not in answer.body.decode()
    assert jose.parts(answer.json()["id_token"])[1]["amr"] == ["pop"]


# -- offers -----------------------------------------------------------------------------------------


def test_an_offer_is_of_its_realm_and_needs_a_recent_sign_in(world, realm, owner):
    """Of another realm, another seal, an old sign-in: refused, and the offer is good afterwards."""
    email, token = owner
    old, new = enrolled(realm, token), Device(realm.app())
    shown = new.offer().json()
    elsewhere = with_devices(world.realm("devoffer"))
    foreign = Device(elsewhere.app(), new.key).offer().json()
    handle = realm.app().begin().json()["ceremonyId"]
    for text in (foreign["Offer"], "pdo_" + handle[4:], shown["Offer"][:-3] + "AAA"):
        answer = old.adopt(token, {**shown, "Offer": text}, new)
        assert (answer.status, answer.json()) == (400, OFFER), (text, answer)
        assert realm.app().post_json(DEVICES + "/inspect", {"Offer": text}, bearer(token)).json() == OFFER
    world.cluster.sql(f"UPDATE postern.session SET auth_time = auth_time - interval '11 minutes' WHERE user_id = (SELECT id FROM "
                      f"postern.user_account WHERE address_key = '{email}')")
    stale = old.adopt(token, shown, new)
    assert (stale.status, stale.json()["error"]) == (401, "insufficient_user_authentication"), stale
    assert old.adopt(realm.app().sign_in(email)["access_token"], shown, new).status == 200


def test_what_an_adopted_device_may_not_do_yet(world, realm, owner):
    """Neither approve nor adopt nor sign in, and its inbox is empty and says until when; the owner is told and takes it back."""
    email, token = owner
    old, new, third = enrolled(realm, token), Device(realm.app()), Device(realm.app())
    mails = len(world.mailbox.to(email))
    adopted = old.adopt(token, new.offer().json(), new).json()
    notice = world.mailbox.wait(email, mails + 1, kind="notice")
    assert "/undo/" in notice.text, notice.text
    assert ask(realm.app("api"), email).status == 200
    signer = Signer(realm.app(), realm, email, added=False)
    signer.key = old.key
    item = signer.item()
    inbox = new.call("GET", "/connect/approvals").json()
    assert inbox["Approvals"] == [] and inbox["ProbationUntil"] == adopted["ProbationUntil"]
    signer.key = new.key
    refused = signer.answer(item, "deny")
    assert (refused.status, refused.json()) == (403, {"error": "device_not_trusted"})
    refused = new.adopt(token, third.offer().json(), third)
    assert (refused.status, refused.json()) == (403, {"error": "device_not_trusted"})
    assert new.sign_in().json()["error"] == "invalid_grant"
    assert realm.app().delete(f"{DEVICES}/{adopted['Id']}", bearer(token)).status == 204
    assert new.itself().status == 404
    signer.key = old.key
    assert signer.answer(item, "deny").status == 200


def test_an_adopted_device_may_all_of_it_after_its_probation(world, realm, owner):
    """Approve, adopt, sign in: what was refused before."""
    email, token = owner
    old, new, third = enrolled(realm, token), Device(realm.app()), Device(realm.app())
    adopted = old.adopt(token, new.offer().json(), new).json()
    world.cluster.sql(f"UPDATE postern.device_key SET probation_until = now() WHERE id = '{adopted['Id']}'")
    asked = ask(realm.app("api"), email).json()
    signer = Signer(realm.app(), realm, email, added=False)
    signer.key = new.key
    assert signer.answer(signer.item(), number=asked["match_number"]).status == 200
    assert new.adopt(token, third.offer().json(), third).json()["AddedBy"] == "device"
    assert new.sign_in().status == 200 and third.sign_in().json()["error"] == "invalid_grant"


def test_a_key_that_is_a_device_already_is_adopted_as_it_is(world, realm, owner):
    """The owner's: the same id, on probation or off it as before; another user's: refused, and it stays hers."""
    token = owner[1]
    old, own = enrolled(realm, token), enrolled(realm, token)
    until = own.itself().json()["ProbationUntil"]
    answer = old.adopt(token, own.offer().json(), own)
    assert (answer.status, answer.json()["Id"], answer.json()["ProbationUntil"]) == (200, own.id, until), answer
    world.cluster.sql(f"UPDATE postern.device_key SET probation_until = now() WHERE id = '{own.id}'")
    answer = old.adopt(token, own.offer().json(), own)
    assert (answer.status, answer.json()["Id"]) == (200, own.id) and "ProbationUntil" not in answer.json(), answer
    hers = enrolled(realm, owner_of(realm)[1])
    answer = old.adopt(token, hers.offer().json(), hers)
    assert (answer.status, answer.json()) == (409, {"error": "key_in_use"}) and hers.itself().json()["Id"] == hers.id


def rows(world):
    """How many each table has."""
    counted = world.cluster.sql(
        "SELECT c.relname, (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM postern.%I', c.relname), false, true, '')))[1]::text "
        "FROM pg_class AS c WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r'")
    return {table: int(count) for table, count in counted}


def test_offers_of_one_source_are_limited(world):
    """429 with policy and dimension; the trusted device goes on, and no table grows but that of used proofs."""
    realm = with_devices(world.realm("devlimit"))
    token = realm.app().sign_in(realm.user())["access_token"]
    old, new = enrolled(realm, token), Device(realm.app())
    realm.limit("trusted-device", "source", 3, per="1 hour", burst=3)
    new.fresh_nonce()
    before = rows(world)
    answers = [new.offer() for _ in range(OFFERS)]
    assert [answer.status for answer in answers] == [200] * 3 + [429] * (OFFERS - 3)
    grown = {table for table, count in rows(world).items() if count - before[table] > OFFERS // 4}
    assert all(table.startswith("used_proof_") for table in grown), grown
    assert (answers[3].json()["policy"], answers[3].json()["dimension"]) == ("trusted-device", "source") and answers[3].header("retry-after")
    assert old.itself().status == 200
    assert old.adopt(token, answers[0].json(), new).status == 200


def test_devices_are_heard_of_by_webhooks_with_both_names(world, realm, owner):
    """device_added, device_adopted and device_removed of one user, in this order."""
    receiver = Receiver()
    world.admin.call("put_webhook", realm.slug, "devices", receiver.url)
    try:
        old, new = enrolled(realm, owner[1]), Device(realm.app())
        adopted = old.adopt(owner[1], new.offer().json(), new).json()
        assert new.call("DELETE", f"{DEVICES}/{adopted['Id']}").status == 204
        events = receiver.wait(lambda events: len([event for event in events if ":device_" in event.name]) >= 3)
        assert [event.name.rsplit(":", 1)[-1] for event in events if ":device_" in event.name] == ["device_added", "device_adopted", "device_removed"]
    finally:
        world.admin.call("delete_webhook", realm.slug, "devices")
        receiver.close()
