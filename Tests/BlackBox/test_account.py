"""Own data: a person reads, renames and deletes the own account and signs out everywhere."""

import re
import time
import uuid

import pytest

from harness import wire
from harness.app import bearer
from harness.holder import holder

MEMBERS = [
    "Sub", "Email", "EmailVerified", "Phone", "PhoneVerified", "FirstName", "LastName", "CreatedAt", "HasTotp", "Passkeys", "Sessions",
]


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


def outbox(realm, email, template):
    """How many mails of a kind are queued or sent to an address."""
    return int(realm.world.admin.run(
        f"SELECT count(*) FROM admin.outbox WHERE realm = '{realm.slug}' AND recipient = '{email}' AND template = '{template}';")[0][0])


def test_the_account_as_its_owner_sees_it(realm, app):
    """Every member is there; what is not set is null; counts are of now."""
    email = realm.user(first_name="Ada", last_name="Lovelace")
    tokens = app.sign_in(email)
    account = app.account(tokens["access_token"])
    assert list(account) == MEMBERS
    assert account["Sub"] == app.userinfo(tokens["access_token"]).json()["sub"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", account["CreatedAt"])
    assert {name: account[name] for name in MEMBERS if name not in ("Sub", "CreatedAt")} == {
        "Email": email, "EmailVerified": True, "Phone": None, "PhoneVerified": False, "FirstName": "Ada", "LastName": "Lovelace", "HasTotp": False, "Passkeys": 0, "Sessions": 1,
    }
    app.sign_in(email)
    app.enroll(tokens["access_token"])
    app.enrol_totp(tokens["access_token"])
    after = app.account(tokens["access_token"])
    assert (after["HasTotp"], after["Passkeys"], after["Sessions"]) == (True, 1, 2)
    bare = app.account(app.sign_in(realm.user(first_name=""))["access_token"])
    assert (bare["FirstName"], bare["LastName"]) == (None, None)
    assert "no-store" in app.get("/connect/account", bearer(tokens["access_token"])).header("cache-control")


def test_own_data_outlives_native_grants(world):
    """Sessions do, and so does what they may see and end."""
    realm = world.realm()
    token = realm.app().sign_in(realm.user())["access_token"]
    realm.native(enabled=False)
    assert realm.app().account(token)["Sessions"] == 1
    assert realm.app().delete("/connect/account", bearer(token)).status == 204


def test_names_are_changed_one_by_one(realm, app, email):
    """Absent stays, null goes, blanks around a name are cut; names of members in any case; the answer is the account."""
    token = app.sign_in(email)["access_token"]
    answer = app.change_account(token, {"FirstName": " \u2003Ada\u00a0", "LastName": "Lovelace"})
    assert answer.status == 200 and answer.json() == app.account(token)
    assert (answer.json()["FirstName"], answer.json()["LastName"]) == ("Ada", "Lovelace")
    assert app.change_account(token, {"lastname": "King"}).json()["FirstName"] == "Ada"
    answer = app.change_account(token, {"LastName": None}).json()
    assert (answer["FirstName"], answer["LastName"]) == ("Ada", None)
    assert app.change_account(token, {}).json() == answer
    assert app.userinfo(token).json()["name"] == "Ada"
    assert app.change_account(token, {"FirstName": "x" * 100}).status == 200
    assert app.change_account(token, {"FirstName": "Zoë 家族 👩\u200d👩\u200d👧 O’Neill"}).status == 200


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\u0085b", "a\u2028b", "a\u202eb", "a\u2067b", "\u0301a", " \u0301a", "a\tb", 5, ["a"]])
@pytest.mark.parametrize("member,label", [("FirstName", "Firstname"), ("LastName", "Lastname")])
def test_what_is_no_name_is_refused(realm, app, name, member, label):
    """400 as for a registration, and nothing is changed."""
    if not hasattr(realm, "namer"):
        realm.namer = app.sign_in(realm.user(first_name="Mia"))["access_token"]
    answer = app.change_account(realm.namer, {"FirstName": "Other", "LastName": "Other", member: name})
    said = {f"{label} is invalid.", f"{member} is invalid."} if not isinstance(name, str) else {f"{label} is invalid."}
    assert answer.status == 400 and answer.json()["error"] in said, answer
    assert app.account(realm.namer)["FirstName"] == "Mia"


def test_a_required_name_is_not_removed(world):
    """The realm's registration fields say so."""
    realm = world.realm()
    token = realm.app().sign_in(realm.user())["access_token"]
    world.admin.call("set_registration_fields", realm.slug, firstname="Required")
    world.settle()
    answer = realm.app().change_account(token, {"FirstName": None})
    assert (answer.status, answer.json()) == (400, {"error": "Firstname is required."})
    assert realm.app().change_account(token, {"LastName": None}).status == 200


def test_a_name_that_the_realm_does_not_want_is_ignored_and_can_be_removed(world):
    """As in a registration, a text for a field that is off changes nothing."""
    realm = world.realm()
    token = realm.app().sign_in(realm.user(first_name="Mia"))["access_token"]
    world.admin.call("set_registration_fields", realm.slug, firstname="Off")
    world.settle()
    answer = realm.app().change_account(token, {"FirstName": "Ada", "LastName": "Lovelace"})
    assert answer.status == 200, answer
    assert (answer.json()["FirstName"], answer.json()["LastName"]) == ("Mia", "Lovelace")
    assert realm.app().change_account(token, {"FirstName": None}).json()["FirstName"] is None


@pytest.mark.parametrize("body,status", [("[]", 400), ("", 400), ('{"FirstName":"a","FIRSTNAME":"b"}', 400)])
def test_what_is_no_change_is_refused(app, email, body, status):
    """As every JSON body."""
    token = app.sign_in(email)["access_token"]
    headers = {"Host": app.host, "Content-Type": "application/json", **bearer(token)}
    assert wire.exchange(app.node.port, "PATCH", "/connect/account", headers, body.encode()).status == status
    headers["Content-Type"] = "text/plain"
    assert wire.exchange(app.node.port, "PATCH", "/connect/account", headers, b"{}").status == 415


def test_deletion_ends_everything_at_once_in_every_process(world, realm, nodes):
    """204; user, sessions, passkeys and factors are gone, every token is dead, one mail says so, the audit log has no address."""
    one = holder(realm)
    app, email = one.app, one.email
    jwt = realm.app("jwt").sign_in(email)
    tokens = app.sign_in(email)
    app.enrol_totp(tokens["access_token"])
    pending = app.ask(email).json()["AuthSession"]
    user = app.account(tokens["access_token"])["Sub"]
    answer = app.delete("/connect/account", bearer(tokens["access_token"]))
    assert (answer.status, answer.body) == (204, b""), answer
    for node in nodes:
        at = realm.app("app", node)
        for token in (tokens["access_token"], jwt["access_token"]):
            assert at.get("/connect/account", bearer(token)).status == 401
            assert at.userinfo(token).status == 401
            assert not realm.app("api", node).active(token)
        for client, refresh in (("app", tokens["refresh_token"]), ("jwt", jwt["refresh_token"])):
            refused = realm.app(client, node).refresh(refresh)
            assert (refused.status, refused.error) == (400, "invalid_grant"), refused
        assert at.try_passkey(one.credential).error == "invalid_grant"
        assert at.redeem("000000", handle=pending).error == "invalid_grant"
    for view in ("users", "passkeys", "sessions"):
        assert world.admin.rows_of(view, email) == []
    assert outbox(realm, email, "account-deleted") == 1
    events = world.admin.run(
        f"SELECT event, source FROM admin.audit_log WHERE user_id = '{user}' AND event = 'account_deleted';")
    assert events == [["account_deleted", "127.0.0.1"]]
    assert world.admin.rows_of("audit_log", email) == []


def test_the_owner_is_told_by_mail(world, realm, app, email):
    """One mail, to the mailbox that was the account's."""
    before = len(world.mailbox.to(email)) + 1
    token = app.sign_in(email)["access_token"]
    assert app.delete("/connect/account", bearer(token)).status == 204
    mail = world.mailbox.wait(email, before + 1)
    assert "deleted" in mail.text and f"Realm {realm.slug}" in mail.text
    assert len(world.mailbox.to(email)) == before + 1


def test_deletion_needs_a_sign_in_of_the_last_ten_minutes(world, realm, app, email):
    """Else 401 insufficient_user_authentication (RFC 9470), and nothing happens."""
    tokens = app.sign_in(email)
    world.time_travel(601)
    refreshed = app.refreshed(tokens["refresh_token"])["access_token"]
    answer = app.delete("/connect/account", bearer(refreshed))
    assert (answer.status, answer.error) == (401, "insufficient_user_authentication"), answer
    assert 'error="insufficient_user_authentication"' in answer.header("www-authenticate")
    assert 'max_age="600"' in answer.header("www-authenticate")
    assert app.account(refreshed)["Email"] == email
    assert app.delete("/connect/account", bearer(app.sign_in(email)["access_token"])).status == 204


def test_the_address_is_free_again(world, realm, app, email):
    """A new account under it is another one."""
    token = app.sign_in(email)["access_token"]
    former = app.account(token)["Sub"]
    app.delete("/connect/account", bearer(token))
    realm.put_user(email)
    token = app.sign_in(email)["access_token"]
    assert app.account(token)["Sub"] != former
    assert app.delete("/connect/account", bearer(token)).status == 204


def test_a_test_identity_is_emptied_and_can_sign_in_again(world, realm, app):
    """The reviewer of an app store tries deletion, and more than once."""
    email = realm.new_email()
    world.admin.call("put_test_identity", realm.slug, email, app.client_id, "41830529")
    for _ in range(2):
        answer = _until_redeemed(app, email)
        token = answer.json()["access_token"]
        app.change_account(token, {"FirstName": "Rita"})
        app.enroll(token)
        assert app.delete("/connect/account", bearer(token)).status == 204
        assert app.get("/connect/account", bearer(token)).status == 401
    account = app.account(_until_redeemed(app, email).json()["access_token"])
    assert (account["FirstName"], account["Passkeys"], account["Sessions"]) == (None, 0, 1)
    assert outbox(realm, email, "account-deleted") == 0


def _until_redeemed(app, email):
    """A sign-in by the fixed code, which a server has keyed within a second or two."""
    deadline = time.monotonic() + 10
    while True:
        handle = app.ask(email).json()["AuthSession"]
        answer = app.redeem("41830529", handle=handle)
        if answer.status == 200 or time.monotonic() > deadline:
            assert answer.status == 200, answer
            return answer
        time.sleep(0.1)


# -- sessions -----------------------------------------------------------------------------------------


def test_all_other_sessions_end_and_the_current_one_goes_on(realm, nodes):
    """DELETE /connect/sessions: 204; a code that was asked for before is dead too."""
    app, email = realm.app(), realm.user()
    others = [app.sign_in(email), realm.app("jwt").sign_in(email)]
    current = app.sign_in(email)
    stranger = app.sign_in(realm.user())
    asked = app.request_code(email)
    answer = app.delete("/connect/sessions", bearer(current["access_token"]))
    assert (answer.status, answer.body) == (204, b""), answer
    for node in nodes:
        at = realm.app("app", node)
        listed = at.get("/connect/sessions", bearer(current["access_token"])).json()
        assert [item["Current"] for item in listed] == [True]
        for tokens in others:
            assert at.userinfo(tokens["access_token"]).status == 401
            assert not realm.app("api", node).active(tokens["access_token"])
        assert at.userinfo(stranger["access_token"]).status == 200
    for client, tokens in zip(("app", "jwt"), others):
        assert realm.app(client).refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert app.redeem(asked.code, handle=asked.handle).error == "invalid_grant"
    refreshed = app.refreshed(current["refresh_token"])
    assert app.delete("/connect/sessions", bearer(refreshed["access_token"])).status == 204
    assert app.account(refreshed["access_token"])["Sessions"] == 1


@pytest.mark.parametrize("query,ends", [("?current=true", True), ("?current=false", False), ("?other=1", False), ("?current=", False)])
def test_the_current_session_ends_when_asked(app, email, query, ends):
    """`current=true` and nothing else."""
    tokens = app.sign_in(email)
    assert app.delete(f"/connect/sessions{query}", bearer(tokens["access_token"])).status == 204
    assert app.userinfo(tokens["access_token"]).status == (401 if ends else 200)
    assert app.refresh(tokens["refresh_token"]).status == (400 if ends else 200)


@pytest.mark.parametrize("query", ["?current=TRUE", "?current=1", "?current=true&current=false", "?current=%"])
def test_a_query_that_says_something_else_ends_nothing(app, email, query):
    """400: nobody ends the wrong sessions by a spelling."""
    app.sign_in(email)
    token = app.sign_in(email)["access_token"]
    answer = app.delete(f"/connect/sessions{query}", bearer(token))
    assert (answer.status, answer.json()) == (400, {"error": "current is invalid."})
    assert app.account(token)["Sessions"] == 2


def test_a_session_that_is_over_ends_nothing(realm, app, email):
    """401, and the others live."""
    gone, kept = app.sign_in(email), app.sign_in(email)
    app.revoke(gone["refresh_token"])
    assert app.delete("/connect/sessions", bearer(gone["access_token"])).status == 401
    assert app.userinfo(kept["access_token"]).status == 200
    assert app.delete(f"/connect/sessions/{uuid.uuid4()}", bearer(kept["access_token"])).status == 404


def test_signing_out_everywhere_is_audited(world, realm, app, email):
    """Who asked and how many ended."""
    app.sign_in(email)
    token = app.sign_in(email)["access_token"]
    session = realm.app("api").introspect(token).json()["sid"]
    app.delete("/connect/sessions", bearer(token))
    assert world.admin.run(
        f"SELECT detail ->> 'sessions', detail ->> 'kept_current' FROM admin.audit_log"
        f" WHERE event = 'user_signed_out' AND session_id = '{session}';") == [["1", "true"]]
