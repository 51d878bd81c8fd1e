"""The Swift client library against a server: the account of the user who is signed in."""

import pytest

from harness import authenticator, totp
from harness.phones import Phones, new_number
from harness.swift_client import SwiftClient
from harness.swift_people import sign_in


@pytest.fixture(name="client")
def _client(realm, email):
    """A client that has just signed in."""
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port) as made:
        sign_in(made, realm, email)
        yield made


def age(realm, client):
    """The sign-in was eleven minutes ago."""
    session = client.call("state")["user"]["sessionID"]
    realm.world.cluster.sql(f"UPDATE postern.session SET auth_time = auth_time - interval '11 minutes' WHERE id = '{session}'")


def test_the_account_is_read_and_changed(client, realm, email):
    details = client.call("account")
    assert (details["email"], details["emailVerified"], details["firstName"], details["sessions"]) == (email, True, "Mike", 1)
    assert details["id"] == client.call("state")["user"]["id"] and details["createdAt"] > 1_700_000_000
    changed = client.call("updateAccount", changes={"FirstName": "Augusta Ada", "LastName": None})
    assert (changed["firstName"], changed["lastName"]) == ("Augusta Ada", None)
    assert changed["members"]["FirstName"] == "Augusta Ada"
    assert client.fails("updateAccount", "refused", changes={"FirstName": " "})["code"] == "Firstname is invalid."


def test_an_account_that_is_deleted_signs_out(client, app, email):
    client.call("deleteAccount")
    assert client.call("state") == {"case": "signedOut", "reason": "byUser"}
    assert client.fails("account", "signedOut")["reason"] == "byUser"
    assert not app.mailbox.to(email, "code")[1:]


def test_passkeys_are_added_renamed_and_removed(client, realm):
    made = []
    client.person["create"] = lambda options: made.append(authenticator.create(options)) or made[-1][0]
    passkey = client.call("addPasskey")
    assert client.call("renamePasskey", target=passkey, name="Old phone")["name"] == "Old phone"
    assert client.fails("renamePasskey", "refused", target=passkey, name=" ")["code"] == "DisplayName is invalid."
    client.person["create"] = lambda _: made[-1][0]
    assert client.fails("addPasskey", "refused")["code"] == "Passkey enrollment failed."
    client.person["create"] = lambda _: None
    client.fails("addPasskey", "cancelled")
    client.person["create"] = lambda _: []
    client.fails("addPasskey", "misuse")
    client.call("removePasskey", target=passkey)
    assert client.fails("removePasskey", "refused", target=passkey)["status"] == 404
    assert client.call("passkeys") == []


def test_a_second_factor_is_turned_on_and_off(client, realm, email):
    totp.settle(3)
    enrolment = client.call("beginTOTP")
    assert enrolment["uri"].startswith("otpauth://totp/") and enrolment["secret"] in enrolment["uri"]
    assert client.fails("finishTOTP", "refused", code=totp.wrong(enrolment["secret"]))["code"] == "TOTP enrollment failed."
    recovery = client.call("finishTOTP", code=totp.code(enrolment["secret"], -1))
    assert len(set(recovery)) == 10
    assert client.call("account")["hasTOTP"] is True
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port) as other:
        assert sign_in(other, realm, email, totp=totp.code(enrolment["secret"]))["level"] == "urn:postern:acr:2"
        other.call("removeTOTP")
        assert other.fails("removeTOTP", "refused")["status"] == 404
    assert client.call("account")["hasTOTP"] is False


def test_a_step_up_is_asked_for_where_a_recent_sign_in_is_wanted(client, realm):
    age(realm, client)
    for method, arguments in (
        ("addPasskey", {}), ("beginTOTP", {}), ("deleteAccount", {}), ("beginIdentifier", {"email": realm.new_email()}),
        ("removePasskey", {"target": "5b3f6a4e-1f0a-4c39-9d0a-8a4a2a1f3c77"}),
    ):
        assert client.fails(method, "stepUpNeeded", **arguments)["maxAge"] == 600, method
    assert client.call("sessions")


def test_sessions_are_listed_and_ended(client, realm, app, email):
    app.sign_in(email)
    ended = app.sign_in(email)
    sessions = client.call("sessions")
    assert [session["isCurrent"] for session in sessions] == [False, False, True]
    assert [session["isBound"] for session in sessions] == [False, False, True]
    assert sessions[-1]["id"] == client.call("state")["user"]["sessionID"]
    client.call("endSession", target=sessions[0]["id"])
    assert app.refresh(ended["refresh_token"]).status == 400
    assert client.fails("endSession", "refused", target=sessions[0]["id"])["status"] == 404
    for nothing in ("", ".", ".."):
        client.fails("endSession", "misuse", target=nothing)
    assert len(client.call("sessions")) == 2
    client.call("endOtherSessions")
    assert [session["id"] for session in client.call("sessions")] == [sessions[-1]["id"]]


def test_what_a_session_says_of_its_device_is_the_apps(realm, email):
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port, agent="AcmeApp/3.1 (iPhone)") as client:
        sign_in(client, realm, email)
        assert client.call("sessions")[0]["userAgent"] == "AcmeApp/3.1 (iPhone)"


def test_an_address_is_added_made_primary_and_removed(client, realm, email):
    new = realm.new_email()
    asked = client.call("beginIdentifier", email=new)
    code = realm.world.mailbox.wait(new, kind="code").code
    client.fails("signIn", "misuse", request=asked, code=code)
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    assert client.fails("finishIdentifier", "refused", request=asked, code=wrong)["code"] == "Invalid or expired code."
    added = client.call("finishIdentifier", request=asked, code=f" {code[:3]} {code[3:]}")
    assert (added["kind"], added["value"], added["isPrimary"]) == ("email", new, False)
    assert client.call("pending") == []
    assert client.call("makePrimary", target=added["id"])["isPrimary"] is True
    former = next(one for one in client.call("identifiers") if one["value"] == email)
    client.call("removeIdentifier", target=former["id"])
    assert [one["value"] for one in client.call("identifiers")] == [new]
    assert client.fails("removeIdentifier", "refused", target=added["id"])["code"] == "Identifier is the last way in."


def test_a_number_is_added_by_a_code_that_is_sent_again(client, realm):
    phones = Phones(realm)
    try:
        number = new_number()
        asked = client.call("beginIdentifier", phone=number)
        phones.wait(number)
        again = client.call("resendCode", request=asked)
        assert again["id"] == asked["id"] and again["sendsLeft"] == asked["sendsLeft"] - 1
        added = client.call("finishIdentifier", request=asked, code=phones.wait(number, 2)["code"])
        assert (added["kind"], added["value"]) == ("phone", number)
        client.call("signOut")
        code = client.call("requestCode", phone=number, channel="voice")
        assert client.call("signIn", request=code, code=phones.wait(number, 3)["code"])["methods"] == ["otp", "tel"]
    finally:
        phones.close()


def test_consents_are_listed_and_taken_back(client, realm, email):
    partner = realm.client("app-2")
    realm.world.cluster.sql(
        "SELECT set_config('postern.realm', u.realm_id::text, true), postern.give_consent(u.realm_id, u.id, c.id,"
        f" ARRAY['openid','email'], ARRAY['{partner}']) FROM postern.user_account u JOIN postern.client c ON c.realm_id = u.realm_id"
        f" WHERE u.address_key = '{email}' AND c.client_id = '{partner}'")
    (consent,) = client.call("consents")
    assert (consent["clientID"], sorted(consent["scopes"])) == (partner, ["email", "openid"])
    client.call("revokeConsent", target=partner)
    assert client.call("consents") == []
    assert client.fails("revokeConsent", "refused", target=partner)["status"] == 404
    client.fails("revokeConsent", "misuse", target="")


def test_what_the_server_does_not_have_is_refused(client):
    for method, arguments in (
        ("identities", {}), ("passkeySignals", {}), ("deviceRequest", {"code": "BCDF-GHJK"}), ("requestDeviceSignIn", {}),
        ("beginProvider", {"provider": "apple"}), ("removeIdentity", {"target": "x"}),
    ):
        assert client.fails(method, "refused", **arguments)["status"] in (404, 405), method
    assert all("BCDF" not in detail["path"] for detail in client.logged("request"))


def test_nothing_of_the_account_is_told_without_a_session(realm):
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port) as client:
        for method in ("account", "passkeys", "sessions", "identifiers", "consents", "beginTOTP", "deleteAccount"):
            assert client.fails(method, "signedOut")["reason"] == "never"
        assert client.requests("/connect/account") == 0
