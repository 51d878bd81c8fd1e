"""Trusted devices: enrolment, what a device does by its own proof, adoption by QR code, sign-in by the device itself."""

import itertools
import time
import uuid

import pytest

from harness import jose
from harness.app import bearer
from harness.dpop import (
    INVALID, NONCE_DUE, ProofKey, assert_bound, assert_invalid, assert_nonce_due, assert_token_refused)
from harness.trusted import DEVICES, Device, enrolled, owner_of, with_devices
from harness.world import World

NOT_TRUSTED = {"error": "invalid_grant", "error_description": "The device is not trusted."}
INVALID_OFFER = {"error": "invalid_offer"}


@pytest.fixture(scope="module", name="world")
def _world():
    world = World("devices").open()
    yield world
    world.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    return with_devices(world.realm())


@pytest.fixture(name="owner")
def _owner(realm):
    return owner_of(realm)


def trusted(world, realm, email, token):
    """The same, off probation."""
    device = enrolled(realm, token)
    world.cluster.sql(f"UPDATE postern.device_key SET probation_until = NULL WHERE id = '{device.id}'")
    return device


class Control:
    """After each twenty-five refusals and at their end: a device is added and signs in."""

    def __init__(self, realm):
        self.realm, self.cases = realm, itertools.count(1)

    def case(self):
        """One more refusal."""
        if next(self.cases) % 25 == 0:
            self.check()

    def check(self):
        """Enrolment and sign-in."""
        device = enrolled(self.realm, self.realm.app().sign_in(self.realm.user())["access_token"])
        assert device.sign_in().status == 200


def test_a_device_is_added_listed_and_told_of(world, realm, owner):
    """With the name, the client, and a notice that takes it back."""
    email, token = owner
    device = Device(realm.app())
    answer = device.enrol(token, DisplayName="Ada's phone", PushHandle="push-handle-of-ada")
    assert answer.status == 200 and answer.json().keys() == {"Message", "Id"}, answer
    listed = realm.app().get(DEVICES, bearer(token)).json()
    assert [(d["Id"], d["DisplayName"], d["ClientId"], d["AddedBy"]) for d in listed] == [
        (device.id, "Ada's phone", realm.client("app"), "sign-in")]
    assert "push" not in str(listed).lower()
    mail = world.mailbox.wait(email, kind="notice")
    assert "/undo/" in mail.text, mail.text
    added = next(line for line in mail.text.splitlines() if line.startswith("“Ada's phone”: added through "))
    assert added.endswith(", from 127.0.x.x.") and str(time.gmtime().tm_year) in added, mail.text
    assert world.cluster.value(f"SELECT count(*) FROM postern.audit_event WHERE event = 'device_added' AND detail ->> 'device' = '{device.id}'") == "1"
    dump = world.cluster.dump().decode(errors="replace")
    assert "push-handle-of-ada" not in dump and b"push-handle-of-ada".hex() not in dump
    assert device.itself().json() == listed[0]


def test_the_same_key_again_is_the_same_device(realm, owner):
    """And another user cannot take it."""
    device = enrolled(realm, owner[1])
    first = device.id
    assert device.enrol(owner[1]).json()["Id"] == first
    eve = realm.app().sign_in(realm.user())["access_token"]
    answer = device.enrol(eve)
    assert (answer.status, answer.json()) == (409, {"error": "key_in_use"})
    assert device.itself().json()["Id"] == first


def test_a_second_device_is_on_probation_unless_the_realm_wants_none(world, realm, owner):
    """The first has none; it may do what the second may not yet."""
    first, second = enrolled(realm, owner[1]), Device(realm.app())
    assert "ProbationUntil" not in first.itself().json()
    assert "ProbationUntil" in second.enrol(owner[1]).json()
    refused = second.sign_in()
    assert (refused.status, refused.json()) == (400, NOT_TRUSTED)
    world.cluster.sql(f"UPDATE postern.device_key SET probation_until = now() WHERE id = '{second.id}'")
    assert second.sign_in().status == 200
    other = with_devices(world.realm(), probation="0 seconds")
    token = other.app().sign_in(other.user())["access_token"]
    enrolled(other, token)
    assert "ProbationUntil" not in Device(other.app()).enrol(token).json()


#: What is wrong with a proof: changes of header or payload, or how it is signed.
WRONG = {
    "typ JWT": {"header": {"typ": "JWT"}}, "no typ": {"header": {"typ": None}}, "another statement's typ": {"header": {"typ": "postern-approval+jwt"}},
    "alg none": {"header": {"alg": "none"}}, "alg HS256": {"header": {"alg": "HS256"}}, "alg ES384": {"header": {"alg": "ES384"}},
    "alg es256": {"header": {"alg": "es256"}}, "no jwk": {"header": {"jwk": None, "kid": "1"}}, "crit": {"header": {"crit": ["x"]}},
    "b64": {"header": {"b64": False}}, "63 bytes": {"spoil": lambda raw: raw[:63]}, "65 bytes": {"spoil": lambda raw: raw + b"\0"},
    "r is 0": {"spoil": lambda raw: bytes(32) + raw[32:]}, "s is 0": {"spoil": lambda raw: raw[:32] + bytes(32)},
    "htm in lower case": {"payload": {"htm": "post"}}, "another method": {"payload": {"htm": "GET"}}, "another path": {"payload": {"htu": "https://x.example/"}},
    "no jti": {"payload": {"jti": None}}, "empty jti": {"payload": {"jti": ""}}, "long jti": {"payload": {"jti": "j" * 257}}, "jti a number": {"payload": {"jti": 1}},
    "no iat": {"payload": {"iat": None}}, "iat a text": {"payload": {"iat": "1"}}, "no ath": {"payload": {"ath": None}},
    "ath of another token": {"payload": {"ath": jose.b64url(bytes(32))}},
}
RIGHT = {
    "typ in upper case": {"header": {"typ": "DPOP+JWT"}}, "iat an hour ahead": {"payload": {"iat": int(time.time()) + 3600}},
    "iat an hour behind": {"payload": {"iat": int(time.time()) - 3600}},
}


def test_a_wrong_proof_adds_nothing_and_the_right_one_does(world, realm, owner):
    """Each check; with a proof of another algorithm too."""
    control, token = Control(realm), owner[1]
    for name, changes in WRONG.items():
        device = Device(realm.app())
        answer = device.enrol(token, proof=device.proof("POST", DEVICES, token, **changes))
        assert (answer.status, answer.json()) == (400, INVALID), (name, answer)
        control.case()
    for alg in ("EdDSA", "PS256", "RS256"):
        device = Device(realm.app(), ProofKey(alg))
        answer = device.enrol(token, proof=device.proof("POST", DEVICES, token, nonce=Device(realm.app()).fresh_nonce()))
        assert (answer.status, answer.json()) == (400, INVALID), (alg, answer)
        control.case()
    for text in (None, "", 1, "x" * 9000, "a.b.c"):
        answer = realm.app().post_json(DEVICES, {"Proof": text}, bearer(token))
        assert (answer.status, answer.json()) == (400, INVALID), (text, answer)
        control.case()
    for name, jwk in {"private": {"d": "AA"}, "symmetric": {"k": "AA"}, "curve": {"crv": "P-384"}, "type": {"kty": "OKP"}, "short": {"x": "AA"}}.items():
        device = Device(realm.app())
        answer = device.enrol(token, proof=device.proof("POST", DEVICES, token, header={"jwk": {**device.key.public(), **jwk}}))
        assert (answer.status, answer.json()) == (400, INVALID), (name, answer)
        control.case()
    assert world.cluster.value(f"SELECT count(*) FROM postern.audit_event WHERE event = 'device_added' AND user_id = "
                               f"(SELECT id FROM postern.user_account WHERE email = '{owner[0]}')") == "0"
    for name, changes in RIGHT.items():
        fresh = realm.app().sign_in(realm.user())["access_token"]
        device = Device(realm.app())
        assert device.enrol(fresh, proof=device.proof("POST", DEVICES, fresh, **changes)).status == 200, name
    control.check()


def test_a_proof_needs_a_nonce_of_this_realm(world, realm, owner):
    """Also where the realm asks for none otherwise; the nonce that the answer gives works."""
    other = with_devices(world.realm())
    foreign = Device(other.app()).fresh_nonce()
    good = Device(realm.app()).fresh_nonce()
    bent = good[:-1] + ("A" if good[-1] != "A" else "B")
    for nonce in (None, foreign, bent, "x"):
        device = Device(realm.app())
        given = assert_nonce_due(device.enrol(owner[1], proof=device.key.proof("POST", device.url(DEVICES), nonce, owner[1])))
        assert_nonce_due(device.call("GET", DEVICES + "/self", proof=device.key.proof("GET", device.url(DEVICES + "/self"), nonce)), protected=True)
    device.nonce = given
    assert device.enrol(owner[1]).status == 200


def test_a_proof_works_once_everywhere(realm, owner):
    """At each call of a device, in the header and in the body."""
    device = enrolled(realm, owner[1])
    proof = device.proof("GET", DEVICES + "/self")
    assert device.call("GET", DEVICES + "/self", proof=proof).status == 200
    assert_invalid(device.call("GET", DEVICES + "/self", proof=proof), protected=True)
    proof = device.proof("PATCH", f"{DEVICES}/{device.id}")
    assert device.call("PATCH", f"{DEVICES}/{device.id}", {"DisplayName": "x"}, proof).status == 200
    assert_invalid(device.call("PATCH", f"{DEVICES}/{device.id}", {"DisplayName": "y"}, proof), protected=True)
    proof = device.proof("POST", DEVICES, owner[1])
    assert device.enrol(owner[1], proof=proof).status == 200
    assert_invalid(device.enrol(owner[1], proof=proof))
    proof = device.proof("POST", DEVICES + "/offer")
    document = {"ClientId": realm.client("app")}
    assert device.call("POST", DEVICES + "/offer", document, proof).status == 200
    assert_invalid(device.call("POST", DEVICES + "/offer", document, proof), protected=True)


def test_a_device_needs_a_recent_sign_in_and_an_app_that_may(world, realm):
    """Old sign-in 401, another client 403, no token 401, in that order before the proof."""
    email = realm.user()
    token = realm.app().sign_in(email)["access_token"]
    device = Device(realm.app())
    other = realm.app("app-2").sign_in(email)["access_token"]
    answer = Device(realm.app("app-2")).enrol(other)
    assert (answer.status, answer.json()) == (403, {"error": "insufficient_scope"})
    assert device.enrol("junk").status == 401
    world.cluster.sql("UPDATE postern.session SET auth_time = auth_time - interval '11 minutes'")
    answer = device.enrol(token)
    assert (answer.status, answer.json()["error"]) == (401, "insufficient_user_authentication")


def test_names_and_handles_are_bounded(realm, owner):
    """And nothing is stored of a refused call."""
    for members in ({"DisplayName": "x" * 65}, {"DisplayName": "a\u202eb"}, {"DisplayName": "  "}, {"DisplayName": "<b>"}, {"PushHandle": "x" * 513},
                    {"PushHandle": "a\0b"}, {"PushHandle": ""}, {"DisplayName": 1}):
        assert Device(realm.app()).enrol(owner[1], **members).status == 400, members
    assert realm.app().get(DEVICES, bearer(owner[1])).json() == []


def test_ids_of_others_are_unknown(realm, owner):
    """The same bytes for a foreign id, an unknown one and none."""
    eve = realm.app().sign_in(realm.user())["access_token"]
    hers = enrolled(realm, eve)
    answers = set()
    for name in (hers.id, str(uuid.uuid4()), "none", "{id}"):
        for method, document in (("PATCH", {"DisplayName": "x"}), ("DELETE", None)):
            headers = {**bearer(owner[1]), "Content-Type": "application/json"}
            answer = realm.app().send_json(method, f"{DEVICES}/{name}", document, headers) if document else realm.app().delete(f"{DEVICES}/{name}", headers)
            answers.add((answer.status, answer.body))
    assert answers == {(404, b"")}
    mine = enrolled(realm, owner[1])
    assert mine.call("DELETE", f"{DEVICES}/{hers.id}").status == 404
    assert hers.itself().status == 200


def test_a_device_removes_itself_and_its_owner_removes_it(realm, owner):
    """A key that is no device any more is unknown; sign-out everywhere leaves devices."""
    first, second = enrolled(realm, owner[1]), enrolled(realm, owner[1])
    assert first.call("DELETE", f"{DEVICES}/{first.id}").status == 204
    assert_invalid(first.call("DELETE", f"{DEVICES}/{first.id}"), protected=True)
    assert first.itself().status == 404
    realm.app().delete("/connect/sessions", bearer(owner[1]))
    assert second.itself().status == 200
    token = realm.app().sign_in(owner[0])["access_token"]
    assert realm.app().delete(f"{DEVICES}/{second.id}", bearer(token)).status == 204
    assert second.itself().status == 404


def test_a_disabled_user_has_no_device_until_enabled_again(world, realm, owner):
    """A deleted one has none for good."""
    device = enrolled(realm, owner[1])
    world.admin.call("set_user_enabled", realm.slug, owner[0], False)
    assert device.itself().status == 404 and device.sign_in().json() == NOT_TRUSTED
    world.admin.call("set_user_enabled", realm.slug, owner[0], True)
    assert device.itself().status == 200 and device.sign_in().status == 200
    world.admin.call("delete_user", realm.slug, owner[0])
    assert device.itself().status == 404


def test_with_approvals_off_nothing_is_looked_at(world):
    """Neither proof nor token; the grant does not exist."""
    realm = world.realm()
    for method, path in (("GET", ""), ("POST", ""), ("GET", "/self"), ("POST", "/offer"), ("POST", "/inspect"), ("POST", "/adopt"),
                         ("PATCH", "/x"), ("DELETE", "/x")):
        answer = realm.app().exchange(method, DEVICES + path, {"DPoP": "junk", "Content-Type": "application/json"}, b"{}")
        assert (answer.status, answer.json()["title"]) == (400, "Approvals.Disabled"), (method, path, answer)
    world.admin.run(f"SELECT admin.grant_permission('{realm.slug}', '{realm.client('app')}', 'gt:urn:postern:device');")
    world.settle()
    answer = realm.app().token({"grant_type": "urn:postern:device", "client_id": realm.client("app")})
    assert answer.json()["error"] == "unsupported_grant_type", answer


# -- adoption ---------------------------------------------------------------------------------------


def test_a_device_is_adopted_by_its_qr_code(world, realm, owner):
    """Offer, inspect, adopt, and the new device finds itself."""
    old, new = enrolled(realm, owner[1]), Device(realm.app())
    shown = new.offer(DisplayName="Laptop").json()
    assert shown["QrText"] == f"postern-device:{realm.host}:{shown['Offer']}" and shown["ExpiresIn"] == 300 and len(shown["CheckCode"]) == 4
    inspected = realm.app().post_json(DEVICES + "/inspect", {"Offer": shown["Offer"]}, bearer(owner[1])).json()
    assert inspected["DisplayName"] == "Laptop" and 0 < inspected["ExpiresIn"] <= 300 and inspected["Source"] == "127.0.0.1", inspected
    assert new.itself().status == 404
    adopted = old.adopt(owner[1], shown, new)
    assert adopted.status == 200 and adopted.json()["AddedBy"] == "device" and "ProbationUntil" in adopted.json(), adopted
    assert new.itself().json()["Id"] == adopted.json()["Id"]
    again = old.adopt(owner[1], shown, new)
    assert (again.status, again.json()) == (400, INVALID_OFFER)
    detail = world.cluster.value(f"SELECT detail FROM postern.audit_event WHERE event = 'device_adopted' AND detail ->> 'device' = '{adopted.json()['Id']}'")
    assert old.id in detail


def test_a_wrong_adoption_leaves_the_offer_unless_the_digits_are_wrong(world, realm, owner):
    """Checks in their order; after each case of the table the right approval still works."""
    email, token = owner
    old = enrolled(realm, token)
    eve = realm.app().sign_in(realm.user())["access_token"]
    hers = enrolled(realm, eve)
    late = enrolled(realm, token)
    new = Device(realm.app())
    shown = new.offer().json()
    offer, code = shown["Offer"], shown["CheckCode"]
    other = Device(realm.app()).offer().json()["Offer"]
    for name, signed in {
        "signature": old.approval(offer, new, code)[:-8] + "AAAAAAAA", "no JWS": "x", "alg": old.approval(offer, new, code, header={"alg": "ES384"}),
    }.items():
        answer = old.adopt(token, shown, new, signed)
        assert (answer.status, answer.json()) == (400, INVALID_OFFER), (name, answer)
    for name, by in {"the new device": new, "eve's": hers, "unknown": Device(realm.app()), "on probation": late}.items():
        answer = by.adopt(token, shown, new)
        assert (answer.status, answer.json()) == (403, {"error": "device_not_trusted"}), (name, answer)
    assert old.adopt(eve, shown, new).status == 403
    for name, signed in {
        "offer": old.approval(other, new, code), "jkt": old.approval(offer, old, code), "aud": old.approval(offer, new, code, aud="https://b.example"),
        "typ": old.approval(offer, new, code, header={"typ": "postern-approval+jwt"}), "iat": old.approval(offer, new, code, iat=None),
        "no code": old.approval(offer, new, None), "a number": old.approval(offer, new, int(code)), "empty": old.approval(offer, new, ""),
        "three digits": old.approval(offer, new, code[:3]), "five digits": old.approval(offer, new, code + "0"),
        "a blank": old.approval(offer, new, " " + code), "other digits": old.approval(offer, new, "".join(chr(0xFF10 + int(c)) for c in code)),
    }.items():
        answer = old.adopt(token, shown, new, signed)
        assert (answer.status, answer.body) == (400, b'{"error":"invalid_offer"}'), (name, answer)
    for text in ("", "pdo_", "pdo_AAAA", offer[:-2] + "AA", "pcm_" + offer[4:]):
        answer = old.adopt(token, {"Offer": text, "CheckCode": code}, new, old.approval(text, new, code))
        assert (answer.status, answer.body) == (400, b'{"error":"invalid_offer"}'), (text, answer)
    assert old.adopt(token, shown, new).status == 200
    second, wrong = Device(realm.app()), None
    shown = second.offer().json()
    wrong = f"{(int(shown['CheckCode']) + 1) % 10000:04d}"
    assert old.adopt(token, shown, second, old.approval(shown["Offer"], second, wrong)).json() == INVALID_OFFER
    assert old.adopt(token, shown, second).json() == INVALID_OFFER
    shown = hers.offer().json()
    answer = old.adopt(token, shown, hers)
    assert (answer.status, answer.json()) == (409, {"error": "key_in_use"})


def test_an_offer_writes_no_row_and_is_refused_to_other_clients(world, realm):
    """Only the used proof, and the permits."""
    device = Device(realm.app())
    device.fresh_nonce()
    tables = ("device_key", "device_request", "spent_ceremony", "audit_event", "message_outbox", "undo_link")
    count = "SELECT " + " || ' ' || ".join(f"(SELECT count(*) FROM postern.{table})" for table in tables)
    before = world.cluster.value(count)
    assert device.offer().status == 200
    assert world.cluster.value(count) == before
    for client in ("none", realm.client("app-2"), ""):
        answer = device.offer(ClientId=client)
        assert (answer.status, answer.json()["error"]) == (400, "unauthorized_client"), answer
    for name in ("<b>x</b>", "a\nb", "x" * 65):
        assert device.offer(DisplayName=name).status == 400


# -- sign-in ----------------------------------------------------------------------------------------


def test_a_device_signs_itself_in_once_for_each_nonce(realm, owner):
    """Tokens are bound to its key; amr is pop."""
    device = enrolled(realm, owner[1])
    nonce = device.fresh_nonce()
    proof = device.proof("POST", "/connect/token")
    document = assert_bound(device.sign_in(proof), device.key)
    assert jose.parts(document["id_token"])[1]["amr"] == ["pop"]
    assert_invalid(device.sign_in(proof))
    answer = device.sign_in(device.proof("POST", "/connect/token", nonce=nonce))
    assert (answer.status, answer.json()) == (400, NONCE_DUE), answer
    assert device.sign_in().status == 200
    assert_token_refused(realm.app().exchange("GET", "/connect/userinfo", {
        "Authorization": f"DPoP {document['access_token']}",
        "DPoP": ProofKey().proof("GET", f"https://{realm.host}/connect/userinfo", token=document["access_token"])}))


def test_other_keys_and_clients_do_not_sign_in(realm, owner):
    """One body for all; without a proof, or with one that no device may make, invalid_dpop_proof."""
    device = enrolled(realm, owner[1])
    answers = [Device(realm.app()).sign_in(), enrolled(realm, owner[1]).sign_in()]
    gone = enrolled(realm, owner[1])
    gone.call("DELETE", f"{DEVICES}/{gone.id}")
    answers.append(gone.sign_in())
    assert {(a.status, a.body) for a in answers} == {(400, answers[0].body)} and answers[0].json() == NOT_TRUSTED
    assert_invalid(realm.app().token({"grant_type": "urn:postern:device", "client_id": realm.client("app")}))
    other = realm.app("app-2")
    answer = device.sign_in(app=other, client_id=other.client_id)
    assert answer.json()["error"] == "unauthorized_client", answer
    # One that may, for devices of its own alone.
    other = realm.put_client("devices-too", "gt:urn:postern:device", "gt:refresh_token")
    realm.world.settle()
    answer = device.sign_in(app=other, client_id=other.client_id)
    assert (answer.status, answer.json()) == (400, NOT_TRUSTED), answer
    assert device.sign_in().status == 200


def test_without_native_grants_no_device_signs_in(world):
    """The grant does not exist; on again, the same device signs in."""
    realm = with_devices(world.realm())
    device = enrolled(realm, owner_of(realm)[1])
    world.admin.call("set_native_grants", realm.slug, False)
    world.settle()
    answer = device.sign_in()
    assert (answer.status, answer.json()["error"]) == (400, "unsupported_grant_type"), answer
    world.admin.call("set_native_grants", realm.slug, True)
    world.settle()
    assert device.sign_in().status == 200


def test_an_account_with_a_second_factor_is_asked_for_it(realm, owner):
    """The prompt spends no nonce."""
    device = enrolled(realm, owner[1])
    _, recovery = realm.app().enrol_totp(owner[1])
    nonce = device.fresh_nonce()
    prompted = device.sign_in(device.proof("POST", "/connect/token", nonce=nonce))
    assert prompted.json()["error"] == "invalid_grant" and prompted.json() != NOT_TRUSTED, prompted
    assert device.sign_in(device.proof("POST", "/connect/token", nonce=nonce), recovery_code=recovery[0]).status == 200
    answer = device.sign_in(device.proof("POST", "/connect/token", nonce=nonce), recovery_code=recovery[1])
    assert (answer.status, answer.json()) == (400, NONCE_DUE), answer
    assert device.sign_in(recovery_code=recovery[1]).status == 200
