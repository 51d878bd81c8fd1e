"""An account that changes hands: undo links end with their address, and the procedure after an incident leaves no thief."""

import time

import pytest

from harness.app import bearer
from harness.dpop import ProofKey
from harness.holder import Holder, signed_in
from harness.phones import new_number
from harness.possession import furnished, possession, signs_in
from harness.trusted import Device, with_devices
from harness.world import World
from test_identifiers import PATH, add, add_email, add_phone, begin, listed, undo_link


@pytest.fixture(scope="module", name="world")
def _world():
    world = World("secured").open()
    yield world
    world.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = signs_in(furnished(possession(with_devices(world.realm()))))
    yield realm
    realm.phones.close()


def links(realm, email):
    """The paths of all undo links in a mailbox."""
    return [undo_link(mail) for mail in realm.world.mailbox.to(email, "notice") if "/undo/" in mail.text]


def remove(who, email):
    """Removes one of the user's own addresses."""
    (item,) = [item["Id"] for item in listed(who) if item["Value"] == email]
    answer = who.app.delete(f"{PATH}/{item}", bearer(who.token))
    assert answer.status == 204, answer


def by_passkey(who):
    """Signs in again by the passkey."""
    who.token = who.app.passkey_sign_in(who.credential)["access_token"]


def test_who_reads_a_mailbox_that_was_given_up_takes_nothing_back(realm):
    """The owner has signed in by a passkey of long ago: no link that was ever sent to the removed address works."""
    who, new, mailbox = signed_in(realm), realm.new_email(), realm.world.mailbox
    _, who.credential = who.app.enroll(who.token)
    # A mail that still waits would be too old to be sent.
    mailbox.wait(who.email, 1, kind="notice")
    realm.world.time_travel(8 * 86400)
    by_passkey(who)
    add_email(who, realm, new)
    who.app.enrol_totp(who.token)
    mailbox.wait(who.email, 3, kind="notice")
    by_passkey(who)
    remove(who, who.email)
    told = mailbox.wait(who.email, 4, kind="notice")
    assert "/undo/" not in told.text, told.text
    paths = links(realm, who.email)
    assert len(paths) == 3
    for path in paths:
        assert who.app.get(path).status == 400
        assert who.app.post(path, {"action": "undo"}).status == 400
    assert who.app.userinfo(who.token).status == 200 and [item["Value"] for item in listed(who)] == [new]
    assert who.app.account(who.token)["HasTotp"] is True and len(who.app.passkeys(who.token)) == 1
    # The new address has a link of its own against the same factor.
    (own,) = links(realm, new)
    assert who.app.post(own, {"action": "undo"}).status == 200
    by_passkey(who)
    assert who.app.account(who.token)["HasTotp"] is False


def test_after_a_sign_in_by_mail_alone_both_mailboxes_can_undo_and_the_older_one_wins(realm):
    """It may be a thief who removed the address: it comes back, as the primary one, and what is older than that stays."""
    who, new, mailbox = signed_in(realm), realm.new_email(), realm.world.mailbox
    add_email(who, realm, new)
    mailbox.wait(who.email, 1, kind="notice")
    remove(who, who.email)
    back = undo_link(mailbox.wait(who.email, 2, kind="notice"))
    theirs = undo_link(mailbox.wait(new, 1, kind="notice"))
    page = who.app.get(back)
    assert page.status == 200 and who.email.encode() in page.body and b"Take it back" in page.body
    assert who.app.userinfo(who.token).status == 200, "looking changes nothing"
    assert b"It is back" in who.app.post(back, {"action": "undo"}).body
    assert who.app.userinfo(who.token).status == 401
    again = signed_in(realm, email=who.email)
    assert [(item["Value"], item["Primary"]) for item in listed(again)] == [(who.email, True), (new, False)]
    assert b"It is back" in who.app.post(back, {"action": "undo"}).body, "the same form again"
    assert who.app.post(theirs, {"action": "undo"}).status == 400
    assert [item["Value"] for item in listed(again)] == [who.email, new], "it changed nothing"
    # What the newer address is told gives it no way to undo the return.
    assert "/undo/" not in mailbox.wait(new, 2, kind="notice").text
    first = links(realm, who.email)[0]
    assert who.app.post(first, {"action": "undo"}).status == 200
    third = signed_in(realm, email=who.email)
    assert [item["Value"] for item in listed(third)] == [who.email]


def test_a_passkey_that_a_thief_adds_ends_no_link_of_the_owner(realm):
    """A reader of the mailbox adds a passkey, signs in by it and removes the owner's address: the owner undoes it."""
    who, mailbox = signed_in(realm), realm.world.mailbox
    realm.world.time_travel(400 * 86400)
    thief, new = signed_in(realm, email=who.email), realm.new_email()
    _, thief.credential = thief.app.enroll(thief.token)
    by_passkey(thief)
    add_email(thief, realm, new)
    remove(thief, who.email)
    mailbox.wait(who.email, 3, kind="notice")
    assert [who.app.get(path).status for path in links(realm, who.email)] == [200, 200, 200]
    # The thief adds the address again by a code that is read there, and undoes that: the owner's stays the older one.
    begun = begin(thief, Email=who.email)
    code = mailbox.wait(who.email, 3, kind="code").code
    assert add(thief, begun.json()["AuthSession"], code).status == 200
    mailbox.wait(new, 2, kind="notice")
    assert who.app.post(links(realm, new)[-1], {"action": "undo"}).status == 200
    mailbox.wait(who.email, 4, kind="notice")
    (against,) = [path for path in links(realm, who.email)[1:2] if who.app.get(path).status == 200]
    assert who.app.post(against, {"action": "undo"}).status == 200
    again = signed_in(realm, email=who.email)
    assert [item["Value"] for item in listed(again)] == [who.email]


def test_links_of_an_address_do_not_outlive_its_next_holder(realm):
    """A removed address that another person proves, when its account cannot take it back any more."""
    who, new, mailbox = signed_in(realm), realm.new_email(), realm.world.mailbox
    add_email(who, realm, new)
    mailbox.wait(who.email, 1, kind="notice")
    remove(who, who.email)
    mailbox.wait(who.email, 2, kind="notice")
    other = signed_in(realm)
    begun = begin(other, Email=who.email)
    code = mailbox.wait(who.email, 2, kind="code").code
    refused = add(other, begun.json()["AuthSession"], code)
    assert (refused.status, refused.json()) == (409, {"error": "Identifier is in use."})
    assert who.app.get(links(realm, who.email)[-1]).status == 200
    realm.world.time_travel(7 * 86400)
    other = signed_in(realm, email=other.email)
    begun = begin(other, Email=who.email)
    code = mailbox.wait(who.email, 3, kind="code").code
    assert add(other, begun.json()["AuthSession"], code).status == 200
    for path in links(realm, who.email):
        assert who.app.post(path, {"action": "undo"}).status == 400
    who = signed_in(realm, email=new)
    assert [item["Value"] for item in listed(who)] == [new] and who.app.userinfo(who.token).status == 200


def proven(realm, number, key):
    """A transaction that the key has passed: by the code of its first time, and alone from then on."""
    phone = realm.srv.phone(realm.srv.unify(number), key)
    if phone.call("open")["state"] != "passed":
        before = [message for message in realm.phones.to(number) if "code" in message]
        phone.call("send", channel="otp")
        deadline = time.monotonic() + 10
        while len(codes := [message for message in realm.phones.to(number) if "code" in message]) == len(before):
            assert time.monotonic() < deadline, "no code"
            time.sleep(0.02)
        assert phone.call("check", otp=codes[-1]["code"]) == {"state": "passed"}
        return phone, "code"
    return phone, "key"


def by_number(realm, phone):
    """Signs in by a passed transaction; the raw answer."""
    return phone.app.token({
        "grant_type": "urn:postern:possession", "client_id": realm.client("app"), "auth_token": phone.token, "scope": "openid"})


class Thief:
    """Reads the owner's mailbox, signs in, and settles down in the account."""

    def __init__(self, realm, email):
        self.realm, self.app, self.email, self.number = realm, realm.app(), realm.new_email(), new_number()
        self.tokens = self.app.sign_in(email)
        self.who = Holder(self.app, email, self.tokens["access_token"], self.tokens["refresh_token"], None, None)
        _, self.credential = self.app.enroll(self.who.token)
        self.device, self.key = Device(self.app), ProofKey()
        assert self.device.enrol(self.who.token).status == 200 and self.device.sign_in().status == 200
        add_phone(self.who, realm.phones, self.number)
        _, how = proven(realm, self.number, self.key)
        assert how == "code"
        add_email(self.who, realm, self.email)
        self.seed = self.app.enrol_totp(self.who.token)

    def ways_in(self):
        """What each of the thief's ways answers: an account, or None."""
        def subject(answer, app=None):
            return (app or self.app).userinfo(answer.json()["access_token"]).json()["sub"] if answer.status == 200 else None
        yield "passkey", subject(self.app.try_passkey(self.credential))
        yield "device", "an account" if self.device.sign_in().status == 200 else None
        phone, how = proven(self.realm, self.number, self.key)
        assert how == "code", "the key proves the number by itself still"
        yield "number", subject(by_number(self.realm, phone), phone.app)
        # The realm registers nobody: a code for an address that is no account's is not sent.
        (holder,) = self.realm.world.cluster.sql(
            f"SELECT count(*) FROM postern.user_identifier WHERE key = '{self.email}'")[0]
        yield "address", None if holder == "0" else "an account"
        yield "refresh token", subject(self.app.refresh(self.tokens["refresh_token"]))


def test_the_procedure_after_an_incident_leaves_the_owner_alone_in_the_account(realm):
    """docs/security.md, "After an incident": from the thief's first code to a clean account."""
    owner, world = signed_in(realm), realm.world
    account = owner.app.account(owner.token)["Sub"]
    _, owner.credential = owner.app.enroll(owner.token)
    world.mailbox.wait(owner.email, 1, kind="notice")
    number, key = new_number(), ProofKey()
    add_phone(owner, realm.phones, number)
    proven(realm, number, key)
    since = world.cluster.value("SELECT clock_timestamp()")
    thief = Thief(realm, owner.email)
    undo = links(realm, thief.email)

    def secured(**more):
        arguments = "".join(f", {name} => {value}" for name, value in more.items())
        return world.admin.run(f"SELECT what, done FROM admin.secure_user('{realm.slug}', '{account}', '{since}'{arguments});")

    before = world.cluster.value("SELECT count(*) FROM postern.passkey")
    dry = [what for what, done in secured(dry_run="true") if done == "f"]
    assert "passkey" in dry and "device" in dry and "second-factor" in dry and world.cluster.value("SELECT count(*) FROM postern.passkey") == before
    assert thief.app.userinfo(thief.who.token).status == 200
    secured(restore_addresses="true")
    assert thief.app.userinfo(thief.who.token).status == 401
    for way, subject in thief.ways_in():
        assert subject is None, f"the thief is in by {way}"
    for path in undo:
        assert owner.app.post(path, {"action": "undo"}).status == 400
    # The owner's older factors work, without the thief's second one.
    by_passkey(owner)
    me = owner.app.account(owner.token)
    assert me["Sub"] == account and me["HasTotp"] is False
    assert owner.app.account(owner.app.sign_in(owner.email)["access_token"])["Sub"] == account
    phone, how = proven(realm, number, key)
    assert how == "key", "the owner's key still proves the number"
    answer = by_number(realm, phone)
    assert answer.status == 200 and phone.app.userinfo(answer.json()["access_token"]).json()["sub"] == account
    assert sorted(item["Value"] for item in listed(owner)) == sorted([owner.email, number])
    assert len(owner.app.passkeys(owner.token)) == 1
    # The key of the owner's phone is listed with devices; the thief's device and key are not.
    assert [device["AddedBy"] for device in owner.app.get("/connect/devices", bearer(owner.token)).json()] == ["phone"]
    told = [mail for mail in world.mailbox.to(owner.email, "notice") if "has ended every session of your account" in mail.text]
    assert len(told) == 1 and "/undo/" not in told[0].text
    assert world.admin.rows_of("audit_log", "user_secured")
