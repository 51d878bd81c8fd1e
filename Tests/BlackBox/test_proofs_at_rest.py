"""What a reader of the database, without the key file, can do with live codes, links, numbers and offers of devices and phones: find none of
them, by trying all values of a code or by any construction over what the dump holds."""

import hashlib
import json
import urllib.parse

import pytest

from harness import atrest, jose, wire
from harness.app import bearer
from harness.approvals import Device as Trusted
from harness.approvals import ask, poll, switch_on
from harness.ledger import LEDGER
from harness.pepper import Pepper
from harness.phones import new_number
from harness.possession import furnished, possession
from harness.report import say
from harness.trusted import DEVICES, Device, with_devices

pytestmark = pytest.mark.slow
TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = possession(with_devices(world.realm("atrest"), probation="0 seconds"))
    switch_on(made, "app", "api", public_clients=True)
    yield furnished(made)
    made.phones.close()


def dump_of(world):
    """The whole database as text."""
    return world.cluster.dump().decode(errors="replace")


def added_by(world, work):
    """What some work gives, the values that the dump has only since, and all of them."""
    before = atrest.values_of(dump_of(world))
    done = work()
    text = dump_of(world)
    everything = atrest.values_of(text)
    return done, everything - before, everything, text


def begun(realm, channel, kind="mobile", **members):
    """A message on a phone: transaction, app, number, answer of `send`, message."""
    number = new_number()
    started = realm.srv.unify(number, kind, **members)
    phone = realm.srv.phone(started)
    phone.call("open")
    sent = phone.call("send", channel=channel)
    return started, phone, number, sent, realm.phones.wait(number)


def row(world, started, *columns):
    """Columns of a transaction, bytes as bytes."""
    values = ", ".join(f"encode({column}, 'hex')" for column in columns)
    return [bytes.fromhex(value) for value in world.cluster.sql(f"SELECT {values} FROM postern.device_request WHERE id = '{started.correlationId}'")[0]]


def found(salt, digest, keyed):
    """Which of all million codes a reader takes for the right one who builds them so."""
    sha256 = hashlib.sha256
    return [code for code in (f"{number:06d}" for number in range(1_000_000)) if sha256(salt + keyed(code)).digest() == digest]


def test_no_code_for_a_number_can_be_recovered(world, realm):
    """All million codes with the salt of the row, as they are and under a key of zeros: none is the one. With the
    key file, the same search finds it, and it passes."""
    (started, phone, number, _, message), near, everything, text = added_by(world, lambda: begun(realm, "otp"))
    code = message["code"]
    salt, digest = row(world, started, "code_salt", "code_hash")
    assert digest in near and salt in near, "the row is not in the dump: the comparison is broken"
    real, zeros = Pepper(world, realm), Pepper(world, realm, bytes(32))
    assert found(salt, digest, lambda tried: real.of_number(started.correlationId, number, tried)) == [code], "the search does not find the code even with the key file"
    for name, keyed in {"plain": str.encode, "zeros": lambda tried: zeros.of_number(started.correlationId, number, tried)}.items():
        assert found(salt, digest, keyed) == [], name
    assert not atrest.plain_hashes_found(everything)
    labels = [realm.slug, realm.host, "possession", "otp", "code", started.correlationId, phone.call("open")["authId"], realm.client("srv")]
    assert not atrest.constructions_found(code, number, labels, near, everything)
    assert not atrest.standalone(code, text) and message["text"] not in text
    metrics = world.node.ops("/metrics").body.decode()
    assert code not in metrics.split() and number not in metrics
    assert phone.call("check", otp=code) == {"state": "passed"}, "the code was not live"
    say("codes for numbers: 0 of 10^6 recovered from the dump in two constructions, 1 with the key file")


def test_a_code_of_zeros_is_a_code(world, realm):
    """The construction that was searched is the server's: a code of our choosing in the place of the one sent passes."""
    started, phone, number, _, message = begun(realm, "otp")
    code = "000123" if message["code"] != "000123" else "000124"
    keyed = Pepper(world, realm).of_number(started.correlationId, number, code).hex()
    world.cluster.sql(f"UPDATE postern.device_request SET code_hash = sha256(code_salt || '\\x{keyed}'::bytea) WHERE id = '{started.correlationId}'")
    assert phone.call("check", otp=code) == {"state": "passed"}


@pytest.mark.parametrize("kind", ["desktop", "mobile"])
def test_no_link_and_no_return_code_can_be_recovered(world, realm, kind):
    """138 random bits of which the digest is kept, in no spelling; a reader of the number on a desktop has no page to type it on."""
    (started, phone, _, sent, message), near, _, text = added_by(world, lambda: begun(realm, "link", kind, finalTargetUrl=TARGET))
    path = urllib.parse.urlsplit(message["link"]).path
    token = path.removeprefix("/p/")
    assert hashlib.sha256(token.encode()).digest() in near, "the digest is not where the search looks"
    assert len(token) == 24 and not atrest.leaks({("link", token), ("link", token[1:]), ("url", message["link"])}, text)
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    guess = hashlib.sha256(token.encode()).hexdigest()
    for name in (guess[:24], "N" + guess[:23], "b" + guess[:23]):
        answer = realm.app().exchange("POST", "/p/" + name, headers, wire.form_body({"number": sent.get("matchNumber"), "action": "continue"}))
        assert answer.status in (400, 404), answer
    assert realm.srv.status(started).success == "pending"
    answered = realm.app().exchange("POST", path, headers, wire.form_body({"number": sent.get("matchNumber"), "action": "continue"}))
    assert answered.status == 303, answered
    if kind == "mobile":
        url = answered.header("location")
        returned = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["pc"][0]
        LEDGER.add("return_code", returned)
        text = dump_of(world)
        assert len(returned) >= 22 and not atrest.leaks({("return_code", returned)}, text)
        assert hashlib.sha256(returned.encode()).hexdigest() in text
        assert phone.call("finish", redirectUrl=url) == {"state": "passed"}


def test_an_offer_and_its_digits_are_nowhere(world, realm):
    """The database keeps no part of an offer: no construction over its four digits gives a value of the dump, before or after it is adopted."""
    token = realm.app().sign_in(realm.user())["access_token"]
    old, new = Device(realm.app()), Device(realm.app())
    assert old.enrol(token).status == 200
    new.fresh_nonce()
    shown, near, everything, text = added_by(world, lambda: new.offer(DisplayName="A laptop that waits").json())
    offer, digits = shown["Offer"], shown["CheckCode"]
    assert not atrest.leaks({("offer", offer)}, text) and "A laptop that waits" not in text
    labels = [realm.slug, realm.host, "offer", new.key.thumbprint, realm.client("app")]
    assert not atrest.constructions_found(digits, offer, labels, near, everything)
    known = atrest.digests_in(everything)
    for text_of in (lambda n: f"{n:04d}", lambda n: offer + f"{n:04d}", lambda n: f"{n:04d}" + offer):
        assert not [n for n in range(10_000) if hashlib.sha256(text_of(n).encode()).digest() in known]
    assert old.adopt(token, shown, new).status == 200
    assert not atrest.leaks({("offer", offer)}, dump_of(world))
    assert realm.app().get(DEVICES, bearer(token)).json()[0]["DisplayName"] == "A laptop that waits"


def test_a_request_and_its_number_let_a_reader_approve_nothing(world, realm):
    """The number of a request is kept as it is: it is worth something only under the signature of a key that is kept by its public half. The
    handle, the tokens and the push handle are nowhere."""
    app = realm.app("api")
    device = Trusted(realm.app(), realm, realm.user())
    asked, near, _, text = added_by(world, lambda: (ask(app, device.email).json(), device.item())[0])
    item = device.item()
    assert near and not atrest.leaks({("auth_req_id", asked["auth_req_id"])}, text)
    private = device.key.private.private_numbers().private_value.to_bytes(32, "big")
    assert private not in atrest.values_of(text) and private.hex() not in text
    thief = Trusted(realm.app(), realm, device.email, added=False)
    numbers = [asked["match_number"], *(f"{n}" for n in range(10, 100))]
    answers = [thief.answer(item, number=number) for number in numbers]
    assert {(answer.status, answer.body) for answer in answers} == {(403, json.dumps({"error": "device_not_trusted"}, separators=(",", ":")).encode())}
    spoilt = [device.response(device.payload(item, number=asked["match_number"]), spoil=lambda raw, at=at: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:]) for at in (0, 63)]
    assert {device.send(item["Id"], one).status for one in spoilt} == {400}
    assert device.answer(item, number=asked["match_number"]).status == 200, "none of that was a try"
    assert poll(app, asked).status == 200


def test_what_is_erased_is_in_no_row(world, realm):
    """After `erase_phone` and `delete_user` the dump has neither number nor key, address, name or push handle of them, but in the counts of
    limits; before, it had."""
    number, email, key = new_number(), realm.new_email(), Device(realm.app()).key
    user = world.admin.call("put_user", realm.slug, email, phone=number, email_verified=True)
    started = realm.srv.unify(number, clientHumanId="human-of-the-erased")
    phone = realm.srv.phone(started, key)
    phone.call("open")
    phone.call("send", channel="otp")
    assert phone.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}
    device = Device(realm.app(), key)
    token = realm.app().sign_in(email)["access_token"]
    assert device.enrol(token, DisplayName="Phone of the erased", PushHandle="push-handle-of-the-erased").status == 200
    assert ask(realm.app("api"), email).status == 200 and ask(realm.app("api"), number).status == 200
    thumbprint = jose.unb64url(key.thumbprint).hex()
    before = dump_of(world)
    kept = (number, email, thumbprint, "Phone of the erased", "human-of-the-erased")
    assert all(text in before for text in kept), [text for text in kept if text not in before]
    assert not atrest.leaks({("push", "push-handle-of-the-erased")}, before + world.node.log())
    for message in realm.phones.to(number):
        assert message["text"] not in before
    world.admin.call("erase_phone", realm.slug, number)
    world.admin.call("delete_user", realm.slug, user)
    after = dump_of(world)
    # Limits count by address and number, a while longer than the longest of them takes to forget.
    assert not [line for line in after.splitlines() if any(text in line for text in kept) and "|target" not in line]
    assert device.itself().status == 404 and realm.srv.ask("/v3/unify-status", correlationId=started.correlationId).json()["code"] == 8008


def test_an_administrator_reads_no_handle_and_no_digest(world):
    """Neither in a table nor in a column of a view: push handles, digests of codes and links, keys of numbers, whole phone numbers."""
    for column, table in (("push_handle", "device_key"), ("code_hash", "device_request"), ("link_hash", "device_request"), ("return_hash", "device_request"),
                          ("match_number", "device_request"), ("phone", "phone_identity"), ("code_mac", "test_number")):
        with pytest.raises(Exception, match="permission denied"):
            world.admin.run(f"SELECT {column} FROM postern.{table}")
    columns = {row[0] for row in world.admin.run(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'admin'"
        " AND table_name IN ('devices', 'approvals', 'possessions', 'phone_keys', 'providers', 'test_numbers')")}
    assert {"correlation_id", "phone", "display_name"} <= columns
    assert not columns & {"push_handle", "code_hash", "code_salt", "link_hash", "return_hash", "match_number", "code", "challenge", "key", "public_key"}
