"""A user's own addresses and phone numbers: added with a proof, made primary, removed, and undone."""

import re
import threading

import pytest

from harness.app import bearer
from harness.holder import signed_in
from harness.links import Links
from harness.phones import Phones, new_number

PATH = "/connect/identifiers"


@pytest.fixture(name="phones")
def _phones(realm):
    made = Phones(realm)
    yield made
    made.close()


def begin(who, **members):
    """Asks for a code for an identifier."""
    return who.app.post_json(f"{PATH}/begin", members, bearer(who.token))


def add(who, handle, code):
    """Presents the code."""
    return who.app.post_json(PATH, {"AuthSession": handle, "Code": code}, bearer(who.token))


def listed(who):
    """The user's identifiers."""
    answer = who.app.get(PATH, bearer(who.token))
    assert answer.status == 200, answer
    return answer.json()


def add_phone(who, phones, number):
    """Adds a number; its item."""
    begun = begin(who, Phone=number)
    assert begun.status == 200, begun
    added = add(who, begun.json()["AuthSession"], phones.wait(number)["code"])
    assert added.status == 200, added
    return added.json()


def add_email(who, realm, email):
    """Adds an address; its item."""
    begun = begin(who, Email=email)
    assert begun.status == 200, begun
    added = add(who, begun.json()["AuthSession"], realm.world.mailbox.wait(email, 1, kind="code").code)
    assert added.status == 200, added
    return added.json()


def wrong(code):
    """Another code of as many digits."""
    return f"{(int(code) + 1) % 10 ** len(code):0{len(code)}}"


def test_a_number_and_an_address_are_added_and_sign_in(realm, phones):
    """Both sign in to the same account; the first of a kind is the primary one."""
    who, number, email = signed_in(realm), new_number(), realm.new_email()
    phone = add_phone(who, phones, number)
    assert phone["Kind"] == "phone" and phone["Value"] == number and phone["Primary"] is True and phone["ProvedAt"]
    second = add_email(who, realm, email)
    assert second["Kind"] == "email" and second["Primary"] is False
    assert [(item["Value"], item["Primary"]) for item in listed(who)] == [
        (who.email, True), (email, False), (number, True)]
    me = who.app.account(who.token)["Sub"]
    by_phone = phones.sign_in(who.app, number)
    assert who.app.account(by_phone["access_token"])["Sub"] == me
    by_mail = who.app.request_code(email)
    token = who.app.redeem(by_mail.code, handle=by_mail.handle).json()["access_token"]
    assert who.app.account(token)["Sub"] == me
    changed = who.app.send_json("PATCH", f"{PATH}/{second['Id']}", {"Primary": True}, bearer(who.token))
    assert changed.status == 200 and changed.json()["Primary"] is True
    assert who.app.userinfo(who.token).json()["email"] == email
    assert who.app.userinfo(who.token).status == 200


def test_the_code_of_an_identifier_signs_nobody_in(realm, phones):
    """Neither by handle nor by number; and a code that signs in adds nothing."""
    who, number = signed_in(realm), new_number()
    handle = begin(who, Phone=number).json()["AuthSession"]
    code = phones.wait(number)["code"]
    assert who.app.redeem(code, handle=handle).error == "invalid_grant"
    assert who.app.redeem(code, email=number).error == "invalid_grant"
    asked = who.app.request_code(who.email)
    refused = add(who, asked.handle, asked.code)
    assert refused.status == 400 and refused.json() == {"error": "Invalid or expired code."}


def test_an_address_of_another_account_is_told_only_after_its_code(realm):
    """200 as ever, refused, 409."""
    who, other = signed_in(realm), realm.user()
    begun = begin(who, Email=other)
    assert begun.status == 200
    code = realm.world.mailbox.wait(other, 1, kind="code").code
    handle = begun.json()["AuthSession"]
    assert add(who, handle, wrong(code)).json() == {"error": "Invalid or expired code."}
    taken = add(who, handle, code)
    assert taken.status == 409 and taken.json() == {"error": "Identifier is in use."}


@pytest.mark.parametrize("dimension", ["registrations", "target-total"])
def test_an_account_causes_few_mails_to_others(realm, dimension):
    """Each counts as a mail to an unknown address, under its source, and under one target for the account."""
    who, bystander = signed_in(realm), signed_in(realm)
    realm.limit("native-otp", dimension, 3)
    try:
        addresses = [realm.new_email(), bystander.email, realm.new_email(), realm.new_email()]
        answers = [begin(who, Email=address) for address in addresses]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert answers[-1].json()["dimension"] == dimension
        # The limit of an account is its own, that of the source is one for all.
        other = begin(bystander, Email=realm.new_email())
        assert other.status == (429 if dimension == "registrations" else 200), other
    finally:
        realm.limit("native-otp", dimension, 1_000_000, per="1 minute", burst=1_000_000)


def test_of_two_users_who_prove_one_number_one_gets_it(realm, phones):
    """Each of the two holds a right code; both present it at once, twenty times."""
    ada, bob = signed_in(realm), signed_in(realm)
    for _ in range(20):
        number = new_number()
        tries = []
        for count, who in enumerate((ada, bob), 1):
            handle = begin(who, Phone=number).json()["AuthSession"]
            tries.append((who, handle, phones.wait(number, count)["code"]))
        answers = []
        threads = [threading.Thread(target=lambda t=t: answers.append((t[0], add(*t)))) for t in tries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = sorted(answer.status for _, answer in answers)
        assert statuses == [200, 409], answers
        winner, item = next((who, answer.json()) for who, answer in answers if answer.status == 200)
        assert winner.app.delete(f"{PATH}/{item['Id']}", bearer(winner.token)).status == 204


def test_removal(realm, phones):
    """Codes that are out die with it; the last way in stays; foreign and unknown ones are 404."""
    who, other, number = signed_in(realm), signed_in(realm), new_number()
    phone = add_phone(who, phones, number)
    asked = phones.ask(who.app, number).json()
    code = phones.wait(number, 2)["code"]
    path = f"{PATH}/{phone['Id']}"
    assert other.app.delete(path, bearer(other.token)).status == 404
    assert who.app.delete(f"{PATH}/no-id", bearer(who.token)).status == 404
    assert who.app.delete(path, bearer(who.token)).status == 204
    assert who.app.delete(path, bearer(who.token)).status == 404
    assert who.app.redeem(code, handle=asked["AuthSession"]).error == "invalid_grant"
    (left,) = listed(who)
    last = who.app.delete(f"{PATH}/{left['Id']}", bearer(who.token))
    assert last.status == 409 and last.json() == {"error": "Identifier is the last way in."}
    assert who.app.userinfo(who.token).status == 200


def test_a_link_dies_with_its_address(realm):
    """By its token, on its page, and by a handle that was confirmed already; a link to another address of the account lives."""
    def added():
        who, email = signed_in(realm), realm.new_email()
        return who, email, Links(who.app), f"{PATH}/{add_email(who, realm, email)['Id']}"

    who, email, links, path = added()
    dead, other = links.link(email), links.link(who.email)
    assert who.app.delete(path, bearer(who.token)).status == 204
    assert links.redeem(dead).error == "invalid_grant" and links.choose(dead, dead.number).status == 400
    assert links.redeem(other).status == 200
    who, email, links, path = added()
    confirmed = links.link(email)
    assert links.choose(confirmed, confirmed.number).status == 200
    assert who.app.delete(path, bearer(who.token)).status == 204
    assert links.poll(confirmed.handle).error == "invalid_grant"


def test_a_recent_sign_in_is_needed(realm):
    """For asking, adding and removing; listing and the choice of the primary one need none."""
    who = signed_in(realm)
    realm.world.cluster.sql(
        f"UPDATE postern.session SET auth_time = now() - interval '601 s' WHERE user_id = "
        f"'{who.app.account(who.token)['Sub']}'")
    item = listed(who)[0]["Id"]
    for answer in (
        begin(who, Email=realm.new_email()), add(who, "pas_x", "1"), who.app.delete(f"{PATH}/{item}", bearer(who.token)),
    ):
        assert answer.status == 401 and "insufficient_user_authentication" in answer.header("WWW-Authenticate")
    assert who.app.send_json("PATCH", f"{PATH}/{item}", {"Primary": True}, bearer(who.token)).status == 200
    assert who.app.get(PATH).status == 401


def undo_link(mail):
    """The path of the link in a notice."""
    return re.search(r"https://[^/\s]+(/undo/[A-Za-z0-9_-]+)", mail.text).group(1)


def test_an_added_number_is_undone_from_the_notice(realm, phones):
    """GET and keep change nothing; undo removes it and ends every session, once."""
    who, number = signed_in(realm), new_number()
    add_phone(who, phones, number)
    path = undo_link(realm.world.mailbox.wait(who.email, 1, kind="notice"))
    for _ in range(3):
        page = who.app.get(path)
        assert page.status == 200 and b"+43" in page.body and b'data-step="undo"' in page.body
        assert page.header("Referrer-Policy") == "no-referrer" and page.header("Set-Cookie") is None
    assert who.app.post(path, {"action": "keep"}).status == 200
    assert who.app.userinfo(who.token).status == 200 and len(listed(who)) == 2
    assert who.app.get(path[:-2] + ("A" if path[-2] != "A" else "B") + path[-1]).status == 400
    assert who.app.post(path, {"action": "undo"}).status == 200
    assert who.app.userinfo(who.token).status == 401
    assert who.app.post(path, {"action": "undo"}).status == 200 and who.app.get(path).status == 400
    again = signed_in(realm, email=who.email)
    assert [item["Kind"] for item in listed(again)] == ["email"]
    assert realm.world.admin.rows_of("audit_log", "factor_undone")


def test_an_added_passkey_and_an_authenticator_app_are_undone(realm):
    """The same link stands in the notices about them."""
    who = signed_in(realm)
    who.app.enroll(who.token)
    first = undo_link(realm.world.mailbox.wait(who.email, 1, kind="notice"))
    assert who.app.post(first, {"action": "undo"}).status == 200
    again = signed_in(realm, email=who.email)
    assert again.app.passkeys(again.token) == []
    before = len(realm.world.mailbox.to(who.email, "notice"))
    again.app.enrol_totp(again.token)
    mail = realm.world.mailbox.wait(who.email, before + 1, kind="notice")
    assert again.app.post(undo_link(mail), {"action": "undo"}).status == 200
    third = signed_in(realm, email=who.email)
    assert third.app.account(third.token)["HasTotp"] is False


def test_notices_go_to_every_address_and_to_the_phone_of_a_user_without_one(realm, phones):
    """Two addresses get two mails; a user with a number alone gets an SMS, which takes of the budget only."""
    who, email = signed_in(realm), realm.new_email()
    add_email(who, realm, email)
    who.app.enroll(who.token)
    realm.world.mailbox.wait(email, 1, kind="notice")
    realm.world.mailbox.wait(who.email, 2, kind="notice")
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number)
    tokens = phones.sign_in(who.app, number)
    who.app.enroll(tokens["access_token"])
    message = phones.wait(number, 2)
    assert message["kind"] == "notice" and "/undo/" in message["text"] and "code" not in message, message
