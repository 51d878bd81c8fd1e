"""What the mailbox of an account is told when one of its factors changes, and what it is not told."""

import re
import time

import pytest

from harness import totp
from harness.holder import signed_in
from harness.postgres import literal


def notices(realm, email):
    """The subjects of the notices for an address, oldest first."""
    return [mail.message["Subject"] for mail in realm.world.mailbox.to(email, "notice")]


def notice(realm, email, count, subject):
    """The newest of `count` notices: to this mailbox alone, with this subject, and with what to do about it."""
    mail = realm.world.mailbox.wait(email, count, kind="notice")
    assert mail.recipients == [email] and mail.message["Subject"] == subject, mail.message["Subject"]
    html = mail.message.get_body(("html",)).get_content()
    for part in (mail.text, html):
        assert f"Realm {realm.slug}" in part and "Not you?" in part, part
    undo = re.compile(r"https://\S+/undo/[A-Za-z0-9_-]+")
    assert bool(undo.search(mail.text)) == ("was added" in subject), mail.text
    assert not re.search(r"https?://|[0-9]{6}|pat_|prt_", undo.sub("", mail.text)), mail.text
    return mail


def with_totp(realm):
    """Somebody who has just set up an authenticator app; the secret and the recovery codes."""
    who = signed_in(realm)
    secret, codes = who.app.enrol_totp(who.token)
    return who, secret, codes


def quiet(realm):
    """Waits until what was queued before has been sent."""
    signed_in(realm)
    time.sleep(0.2)


def test_setting_up_and_removing_an_authenticator_app_is_told(realm):
    """M9: also when it takes the place of another."""
    who, _, _ = with_totp(realm)
    added = f"An authenticator app was added to your Realm {realm.slug} account"
    notice(realm, who.email, 1, added)
    who.app.enrol_totp(who.token)
    notice(realm, who.email, 2, added)
    assert who.app.totp_delete(who.token).status == 204
    notice(realm, who.email, 3, f"The authenticator app was removed from your Realm {realm.slug} account")
    who.app.totp_delete(who.token)
    quiet(realm)
    assert len(notices(realm, who.email)) == 3


def test_a_refused_set_up_is_told_to_nobody(realm):
    """A wrong code changes nothing."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    right = totp.code(begun["secret"])
    assert who.app.totp_enroll(who.token, begun, f"{(int(right) + 1) % 1_000_000:06}").status == 400
    quiet(realm)
    assert notices(realm, who.email) == []


def test_an_administrator_who_removes_it_tells_the_owner(realm):
    """admin.reset_totp; a second call has nothing to tell."""
    who, _, _ = with_totp(realm)
    realm.world.mailbox.wait(who.email, 1, kind="notice")
    assert realm.world.admin.call("reset_totp", realm.slug, who.email) == "t"
    notice(realm, who.email, 2, f"The authenticator app was removed from your Realm {realm.slug} account")
    assert realm.world.admin.call("reset_totp", realm.slug, who.email) == "f"
    quiet(realm)
    assert len(notices(realm, who.email)) == 2


def test_the_use_of_the_last_recovery_code_is_told(realm):
    """Not that of the others."""
    who, _, codes = with_totp(realm)
    realm.world.mailbox.wait(who.email, 1, kind="notice")
    realm.world.cluster.sql(
        "DELETE FROM postern.recovery_code WHERE (realm_id, user_id, mac) IN (SELECT r.realm_id, r.user_id, r.mac FROM postern.recovery_code r "
        f"JOIN postern.user_account u ON u.id = r.user_id WHERE u.email = {literal(who.email)} ORDER BY r.mac LIMIT 8)")
    used = 0
    for code in codes:
        asked = who.app.request_code(who.email)
        if who.app.redeem(asked.code, email=who.email, recovery_code=code).status == 200:
            used += 1
            if used == 1:
                quiet(realm)
                assert len(notices(realm, who.email)) == 1
            else:
                break
        # Five wrong ones in ten minutes would close the second factor.
        realm.world.time_travel(601)
    assert used == 2
    notice(realm, who.email, 2, f"You have used your last Realm {realm.slug} recovery code")


def test_a_notice_names_the_product_of_a_passkey_and_not_its_name(realm):
    """L12: whoever holds the token chooses the name; the model comes from the authenticator."""
    who = signed_in(realm)
    keepass = bytes.fromhex("fdb141b25d84443e8a354698c205a502")
    passkey, _ = who.app.enroll(who.token, "call +1 555 0100", aaguid=keepass)
    added = notice(realm, who.email, 1, f"A passkey was added to your Realm {realm.slug} account")
    assert who.app.rename_passkey(who.token, passkey, "urgent: call +1 555 0100").status == 200
    assert who.app.delete_passkey(who.token, passkey).status == 204
    removed = notice(realm, who.email, 2, f"A passkey was removed from your Realm {realm.slug} account")
    for mail in (added, removed):
        page = mail.message.get_body(("html",)).get_content()
        assert "KeePassXC" in mail.text and "KeePassXC" in page
        assert "555" not in mail.text + page and "urgent" not in mail.text + page


def test_an_address_that_was_never_confirmed_is_told_nothing(realm):
    """It may be anybody's."""
    who, _, _ = with_totp(realm)
    realm.world.mailbox.wait(who.email, 1, kind="notice")
    realm.put_user(who.email, email_verified=False)
    passkey, _ = who.app.enroll(who.token)
    assert who.app.delete_passkey(who.token, passkey).status == 204
    assert who.app.totp_delete(who.token).status == 204
    quiet(realm)
    assert len(notices(realm, who.email)) == 1


@pytest.mark.parametrize("template, subject", [
    ("address-changed", "The address of your Realm {} account was changed"), ("account-deleted", "Your Realm {} account was deleted")])
def test_what_other_changes_queue_is_sent(realm, template, subject):
    """To a mailbox that the account no longer has."""
    email = realm.new_email()
    realm.world.cluster.sql(
        f"SELECT postern.queue_notice(id, gen_random_uuid(), '{template}', NULL, {literal(email)}) FROM postern.realm WHERE slug = '{realm.slug}'")
    notice(realm, email, 1, subject.format(realm.slug))
