"""Enrolment and management of passkeys (catalogue EN, LD)."""

import datetime
import json
import re
import time
import uuid

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.authenticator import EDDSA, ES256, RS256, Foreign
from harness.holder import holder, signed_in, stored_count
from harness.jose import unb64url
from harness.report import say

EXPIRED = {"Message": "Enrollment session expired. Please try again."}
FAILED = {"Message": "Passkey enrollment failed."}
ENDPOINTS = [
    ("POST", "/connect/passkey/enroll/begin", {}), ("POST", "/connect/passkey/enroll", {"ceremonyId": "x", "attestation": {}}),
    ("GET", "/connect/passkey", None), ("PATCH", "/connect/passkey/{id}", {"DisplayName": "x"}), ("DELETE", "/connect/passkey/{id}", None),
]
endpoints = pytest.mark.parametrize("method,path,document", ENDPOINTS, ids=[f"{m} {p}" for m, p, _ in ENDPOINTS])


def ask(app, method, path, document, headers):
    """One request to a protected endpoint."""
    body = None if document is None else json.dumps(document).encode()
    fields = {"Host": app.host, **({"Content-Type": "application/json"} if body else {}), **headers}
    return wire.exchange(app.node.port, method, path.format(id=uuid.uuid4()), fields, body)


def assert_failed(answer, document=None):
    """400 with one of the two messages of docs/wire.md."""
    assert answer.status == 400, answer
    assert answer.json() == (document or FAILED), answer
    assert "no-store" in answer.header("cache-control")


def assert_step_up(answer):
    """RFC 9470."""
    assert answer.status == 401, answer
    challenge = answer.header("www-authenticate")
    assert challenge.startswith("Bearer ") and 'error="insufficient_user_authentication"' in challenge, answer
    assert re.search(r'max_age="?600', challenge), answer
    assert answer.error == "insufficient_user_authentication", answer


@pytest.fixture
def new(realm):
    """Somebody signed in a moment ago, without a passkey."""
    return signed_in(realm)


@pytest.fixture(scope="module")
def mike(realm):
    """Somebody for the table of refusals; he has no passkey and gets none."""
    return signed_in(realm)


# -- enrolment: success -------------------------------------------------------------------------------------


def test_creation_options_are_as_documented(realm, new):
    """A discoverable, verified credential; the user's handle is random, stable and tells nothing."""
    options = new.app.enrolment(new.token)["options"]
    assert len(unb64url(options["challenge"])) == 32 and "=" not in options["challenge"]
    assert options["rp"] == {"id": realm.host, "name": f"Realm {realm.slug}"}
    assert [p["alg"] for p in options["pubKeyCredParams"]] == [ES256, EDDSA, RS256]
    assert {p["type"] for p in options["pubKeyCredParams"]} == {"public-key"}
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["attestation"] == "none"
    assert options["excludeCredentials"] == []
    assert options["timeout"] == 300_000
    handle = unb64url(options["user"]["id"])
    assert 16 <= len(handle) <= 64
    subject = new.app.userinfo(new.token).json()["sub"]
    for known in (new.email.encode(), subject.encode(), uuid.UUID(subject).bytes):
        assert known not in handle
    assert options["user"]["name"] == new.email
    again = new.app.enrolment(new.token)["options"]
    assert again["user"] == options["user"] and again["challenge"] != options["challenge"]
    elsewhere = signed_in(realm, "app-2", new.email)
    assert elsewhere.app.enrolment(elsewhere.token)["options"]["user"]["id"] == options["user"]["id"]
    other = signed_in(realm)
    assert other.app.enrolment(other.token)["options"]["user"]["id"] != options["user"]["id"]


def test_the_handle_of_one_address_differs_between_realms(world, realm, new):
    """No correlation across tenants."""
    there = world.realm()
    there.put_user(new.email)
    app = there.app()
    token = app.sign_in(new.email)["access_token"]
    assert app.enrolment(token)["options"]["user"]["id"] != new.app.enrolment(new.token)["options"]["user"]["id"]


def test_exclude_credentials_are_the_users_own_for_this_rp_id(realm):
    one = holder(realm)
    _, second = one.app.enroll(one.token)
    realm.world.mailbox.wait(one.email, 3)
    holder(realm, "app-2", one.email)
    holder(realm)
    excluded = one.app.enrolment(one.token)["options"]["excludeCredentials"]
    assert {e["id"] for e in excluded} == {one.credential.id_text, second.id_text}
    assert {e["type"] for e in excluded} == {"public-key"}


@pytest.mark.parametrize("mutation", ["ok", "packed_ok", "ext_ok", "cbor_unsorted", "extra_members", "cd_extra_members", "credid_1023"])
def test_unusual_but_right_is_enrolled(new, mutation):
    """And the passkey then signs in."""
    ceremony = new.app.enrolment(new.token)
    document, credential = authenticator.create(ceremony["options"], mutation=mutation)
    answer = new.app.complete(new.token, ceremony, document)
    assert answer.status == 200, answer
    assert answer.json()["Message"] == "Passkey enrolled successfully." and uuid.UUID(answer.json()["Id"])
    credential.id = unb64url(document["id"])
    new.app.passkey_sign_in(credential)


@pytest.mark.parametrize("algorithm", [EDDSA, RS256])
@pytest.mark.parametrize("mutation", ["ok", "packed_ok"])
def test_the_other_algorithms_enrol(new, algorithm, mutation):
    """pubKeyCredParams are meant."""
    _, credential = new.app.enroll(new.token, algorithm=algorithm, mutation=mutation)
    new.app.passkey_sign_in(credential)


@pytest.mark.parametrize("count", [0, 5, 2**32 - 1])
def test_the_first_counter_is_stored(realm, new, count):
    passkey, _ = new.app.enroll(new.token, sign_count=count)
    assert stored_count(realm.world, passkey) == count


def test_member_names_are_read_in_any_case(new):
    """Read case-insensitively."""
    ceremony = new.app.enrolment(new.token)
    document, _ = authenticator.create(ceremony["options"])
    answer = new.app.post_json(
        "/connect/passkey/enroll", {"CeremonyId": ceremony["ceremonyId"], "Attestation": document, "displayName": "Mine"}, bearer(new.token)
    )
    assert answer.status == 200, answer
    assert new.app.passkeys(new.token)[0]["DisplayName"] == "Mine"


# -- enrolment: refusals ---------------------------------------------------------------------------------------

#: Rows of the catalogue of which negative-cases.json holds only a sample.
REFUSED = [
    "id_missing", "id_number", "id_empty", "id_not_b64url", "id_ne_rawid", "rawid_missing", "type_missing", "type_number", "type_upper",
    "type_empty", "response_array", "response_null", "response_number", "cdj_missing", "cdj_not_b64url", "cdj_padded_std_b64", "ao_not_b64url",
    "ao_null", "ext_results_array", "cd_type_missing", "cd_type_number", "cd_type_empty", "cd_type_payment", "cd_challenge_missing",
    "cd_challenge_number", "cd_challenge_empty", "cd_challenge_padded", "cd_origin_missing", "cd_origin_number", "cd_origin_empty",
    "cd_not_json", "cd_json_array", "cd_dup_challenge", "tokenbinding_string", "tokenbinding_no_status", "cross_origin_string", "origin_http",
    "origin_port", "origin_path", "origin_upper", "origin_trailing_dot", "origin_sub_not_listed", "origin_suffix_evil", "origin_android",
    "rpidhash_bitflip", "rpidhash_empty_string", "up_uv_0", "ao_no_attstmt", "ao_no_authdata", "ao_fmt_number", "ao_authdata_text",
    "ao_not_map", "packed_alg_missing", "packed_sig_empty", "packed_sig_bad", "none_with_statement", "fmt_none_upper", "cbor_tag",
    "ad_ed_flag_no_ext", "ad_trailing_bytes", "ad_len_36", "ext_not_map", "ext_truncated", "ext_nested_1000", "ext_dup_keys", "ext_indefinite",
    "cose_kty_okp", "cose_crv_p384", "cose_no_x", "cose_no_y", "cose_x_31", "cose_x_33", "cose_y_bool", "cose_point_off_curve",
    "cose_infinity", "cose_dup_labels", "alg_es512", "rsa_e_1", "rsa_n_leading_zero",
]


@pytest.mark.parametrize("mutation", REFUSED)
def test_a_wrong_registration_is_refused(mike, mutation):
    """One thing wrong, the rest right; the ceremony is spent, no row and no mail come of it."""
    ceremony = mike.app.enrolment(mike.token)
    document, _ = authenticator.create(ceremony["options"], mutation=mutation)
    assert_failed(mike.app.complete(mike.token, ceremony, document))
    assert mike.app.passkeys(mike.token) == []
    right, _ = authenticator.create(ceremony["options"])
    assert_failed(mike.app.complete(mike.token, ceremony, right), EXPIRED)


def test_refused_registrations_mail_nothing(realm, mike):
    """He has the one mail with his code."""
    other = realm.user()
    realm.app().request_code(other)
    assert len(realm.world.mailbox.to(mike.email)) == 1


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"\"x\"", b"{}", b'{"ceremonyId":"x"}', b'{"attestation":{}}', b'{"ceremonyId":1,"attestation":{}}',
    b'{"ceremonyId":"x","attestation":"{}"}', b'{"ceremonyId":"x","attestation":[]}', b'{"ceremonyId":"x","ceremonyId":"y","attestation":{}}',
    b"[" * 20_000, b'{"ceremonyId":"\xff","attestation":{}}',
], ids=lambda body: repr(body[:30]))
def test_a_body_that_is_no_enrolment_is_400(mike, body):
    fields = {"Host": mike.app.host, "Content-Type": "application/json", **bearer(mike.token)}
    answer = wire.exchange(mike.app.node.port, "POST", "/connect/passkey/enroll", fields, body)
    assert answer.status == 400, answer


def test_a_credential_is_registered_once_per_realm(world, realm):
    """The same user, another user: the same answer, nothing moves; another realm is independent."""
    one, other = holder(realm), signed_in(realm)
    answers = []
    for who in (one, other):
        ceremony = who.app.enrolment(who.token)
        document, _ = authenticator.create(
            ceremony["options"], mutation="credid_existing_same_user", foreign=Foreign(existing=one.credential)
        )
        answers.append(who.app.complete(who.token, ceremony, document))
        assert_failed(answers[-1])
    assert answers[0].same_bytes() == answers[1].same_bytes()
    assert other.app.passkeys(other.token) == []
    one.app.passkey_sign_in(one.credential)
    there = signed_in(world.realm())
    ceremony = there.app.enrolment(there.token)
    document, credential = authenticator.create(ceremony["options"], id=one.credential.id)
    assert there.app.complete(there.token, ceremony, document).status == 200
    there.app.passkey_sign_in(credential)
    one.app.passkey_sign_in(one.credential)


def test_an_account_holds_twenty_passkeys(realm):
    """Deleting one makes room."""
    one = signed_in(realm)
    made = [one.app.enroll(one.token)[0] for _ in range(20)]
    ceremony = one.app.enroll_begin(one.token)
    if ceremony.status == 200:
        document, _ = authenticator.create(ceremony.json()["options"])
        ceremony = one.app.complete(one.token, ceremony.json(), document)
    assert ceremony.status == 400, ceremony
    assert len(one.app.passkeys(one.token)) == 20
    assert one.app.delete_passkey(one.token, made[7]).status == 204
    one.app.enroll(one.token)


# -- enrolment: whose ceremony -----------------------------------------------------------------------------------


def complete_as(owner, ceremony, app, token):
    """A right registration for `owner`'s ceremony, completed by somebody."""
    document, _ = authenticator.create(ceremony["options"])
    answer = app.complete(token, ceremony, document)
    assert owner.app.passkeys(owner.token) == []
    return answer


def test_an_enrolment_belongs_to_the_session_that_began_it(world, realm, new):
    """Another user's token, another client's, another sign-in of the same user, another realm."""
    other, second, elsewhere = signed_in(realm), signed_in(realm, "jwt", new.email), signed_in(realm, "app-2", new.email)
    for app, token in ((new.app, other.token), (other.app, other.token), (second.app, second.token), (elsewhere.app, elsewhere.token)):
        assert_failed(complete_as(new, new.app.enrolment(new.token), app, token), EXPIRED)
    assert other.app.passkeys(other.token) == []
    there = signed_in(world.realm())
    assert_failed(complete_as(new, new.app.enrolment(new.token), there.app, there.token), EXPIRED)


def test_the_owner_can_still_complete_what_a_stranger_tried(realm, new):
    """Nobody else can spend my ceremony."""
    other = signed_in(realm)
    ceremony = new.app.enrolment(new.token)
    assert_failed(complete_as(new, ceremony, other.app, other.token), EXPIRED)
    document, _ = authenticator.create(ceremony["options"])
    assert new.app.complete(new.token, ceremony, document).status == 200


def test_an_enrolment_survives_a_refresh_in_between(new):
    """The session is the same."""
    ceremony = new.app.enrolment(new.token)
    document, _ = authenticator.create(ceremony["options"])
    token = new.app.refreshed(new.refresh_token)["access_token"]
    assert new.app.complete(token, ceremony, document).status == 200


def test_a_login_ceremony_enrols_nobody(new):
    """Nor does one that was never begun."""
    enrolment, login = new.app.enrolment(new.token), new.app.ceremony()
    options = {**enrolment["options"], "challenge": login["options"]["challenge"]}
    document, _ = authenticator.create(options)
    assert_failed(new.app.complete(new.token, login, document), EXPIRED)
    assert_failed(new.app.complete(new.token, {"ceremonyId": str(uuid.uuid4())}, document), EXPIRED)
    assert_failed(new.app.complete(new.token, {"ceremonyId": enrolment["ceremonyId"][:-1]}, document), EXPIRED)
    assert new.app.passkeys(new.token) == []


def test_an_enrolment_is_not_repeated(new):
    """After success another registration is refused; the same one hears again of the one passkey."""
    ceremony = new.app.enrolment(new.token)
    document, _ = authenticator.create(ceremony["options"])
    made = new.app.complete(new.token, ceremony, document)
    assert made.status == 200 and new.app.complete(new.token, ceremony, document).json() == made.json()
    document, _ = authenticator.create(ceremony["options"])
    assert_failed(new.app.complete(new.token, ceremony, document), EXPIRED)
    assert len(new.app.passkeys(new.token)) == 1


@pytest.mark.parametrize("event", ["revoked", "disabled", "signed out everywhere"])
def test_a_session_that_ended_completes_nothing(realm, new, event):
    ceremony = new.app.enrolment(new.token)
    document, _ = authenticator.create(ceremony["options"])
    admin = realm.world.admin
    if event == "revoked":
        new.app.revoke(new.refresh_token)
    elif event == "disabled":
        admin.call("set_user_enabled", realm.slug, new.email, False)
    else:
        admin.call("sign_out_everywhere", realm.slug, new.email)
    answer = new.app.complete(new.token, ceremony, document)
    assert answer.status == 401, answer
    assert not admin.rows_of("passkeys", new.email)


def test_a_client_that_moved_completes_nothing(world):
    """The RP-ID changed between begin and complete."""
    realm = world.realm()
    one = signed_in(realm, "app-2")
    ceremony = one.app.enrolment(one.token)
    realm.put_client("app-2", rp_id="moved.example")
    world.settle()
    assert_failed(complete_as(one, ceremony, one.app, one.token), EXPIRED)


# -- who may ----------------------------------------------------------------------------------------------------


@endpoints
def test_without_a_token_there_is_a_challenge(realm, new, method, path, document):
    """No token, a wrong one, one in the query."""
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Bearer " + new.refresh_token}):
        answer = ask(new.app, method, path, document, headers)
        assert answer.status == 401 and answer.header("www-authenticate").startswith("Bearer"), answer
        assert "no-store" in answer.header("cache-control"), answer
    answer = ask(new.app, method, path + "?access_token=" + new.token, document, {})
    assert answer.status == 401, answer


@endpoints
def test_a_client_without_the_permission_is_403(realm, method, path, document):
    one = signed_in(realm, "no-passkey")
    answer = ask(one.app, method, path, document, bearer(one.token))
    assert answer.status == 403, answer
    assert "no-store" in answer.header("cache-control"), answer


def test_native_off_is_said_by_every_endpoint(world):
    realm = world.realm()
    one = holder(realm)
    realm.native(enabled=False)
    for method, path, document in ENDPOINTS:
        answer = ask(one.app, method, path, document, bearer(one.token))
        assert (answer.status, answer.error) == (400, "NativeGrants.Disabled"), answer
    realm.native(enabled=True)
    assert len(one.app.passkeys(one.token)) == 1


def test_enrol_and_delete_need_a_recent_sign_in(world):
    """RFC 9470: ten minutes; a refresh is no sign-in, a passkey is; list and rename need none."""
    realm = world.realm()
    watch = world.stopwatch()
    one = holder(realm)
    watch.reach(540)
    late = one.app.enrolment(one.token)
    document, _ = authenticator.create(late["options"])
    watch.reach(660)
    for token in (one.token, one.app.refreshed(one.refresh_token)["access_token"]):
        assert_step_up(one.app.enroll_begin(token))
        assert_step_up(one.app.complete(token, late, document))
        assert_step_up(one.app.delete_passkey(token, one.passkey))
        assert_step_up(one.app.delete_passkey(token, uuid.uuid4()))
        assert [item["Id"] for item in one.app.passkeys(token)] == [one.passkey]
        assert one.app.rename_passkey(token, one.passkey, "Old hand").status == 200
    fresh = one.app.passkey_sign_in(one.credential)["access_token"]
    one.app.enroll(fresh)
    assert one.app.delete_passkey(fresh, one.passkey).status == 204


def test_a_jwt_access_token_steps_up_like_a_reference(world):
    """The age is the session's, not the token's."""
    realm = world.realm()
    one = holder(realm, "jwt")
    world.time_travel(615)
    token = one.app.refreshed(one.refresh_token)["access_token"]
    assert_step_up(one.app.enroll_begin(token))
    assert_step_up(one.app.delete_passkey(token, one.passkey))
    assert len(one.app.passkeys(token)) == 1


# -- list -----------------------------------------------------------------------------------------------------------


def test_the_list_shows_what_its_owner_needs(realm):
    """Newest first, all RP-IDs, each with its own; nothing of the credential."""
    one = holder(realm, aaguid=uuid.UUID("fbfc3007-154e-4ecc-8c0b-6e020557d7bd").bytes, backup_eligible=True, backup_state=True)
    named, _ = one.app.enroll(one.token, "Büro-Schlüssel 🔑")
    realm.world.mailbox.wait(one.email, 3)
    elsewhere = holder(realm, "app-2", one.email)
    holder(realm)
    items = one.app.passkeys(one.token)
    assert items == elsewhere.app.passkeys(elsewhere.token)
    assert [item["Id"] for item in items] == [elsewhere.passkey, named, one.passkey]
    assert [item["RpId"] for item in items] == [realm.other_rp, realm.host, realm.host]
    assert items[1]["DisplayName"] == "Büro-Schlüssel 🔑"
    assert items[2]["DisplayName"] == "iCloud Keychain", "the product's name where the user gave none"
    assert items[2]["BackedUp"] is True and items[2]["DeviceBound"] is False
    assert items[1]["BackedUp"] is False and items[1]["DeviceBound"] is True
    text = json.dumps(items)
    for hidden in (one.credential.id_text, one.credential.id.hex(), "publicKey", "public_key", "signCount", one.email):
        assert hidden not in text
    for item in items:
        created = datetime.datetime.fromisoformat(item["CreatedAt"].replace("Z", "+00:00"))
        assert abs(created.timestamp() - time.time()) < 60 and created.tzinfo
        assert item.get("LastUsedAt") is None


def test_last_used_is_set_by_use(realm):
    """Absent or null until then."""
    one = holder(realm)
    one.app.passkey_sign_in(one.credential)
    (item,) = one.app.passkeys(one.token)
    used = datetime.datetime.fromisoformat(item["LastUsedAt"].replace("Z", "+00:00"))
    assert abs(used.timestamp() - time.time()) < 60
    assert one.app.passkeys(signed_in(realm).token) == []


# -- rename -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(realm):
    """A holder whose passkey is renamed over and over."""
    return holder(realm)


@pytest.mark.parametrize("name", ["x", "x" * 64, "🔑" * 64, "Omas Handy", "<b>&amp;\"'", "‘ключ’", "אבג"])
def test_a_name_is_what_its_owner_wrote(named, name):
    """PATCH: 200 with the item; HTML is text like any other."""
    answer = named.app.rename_passkey(named.token, named.passkey, name)
    assert answer.status == 200, answer
    (item,) = named.app.passkeys(named.token)
    assert answer.json() == item and item["DisplayName"] == name and item["Id"] == named.passkey


@pytest.mark.parametrize("name", [
    "", "x" * 65, "🔑" * 65, "x" * 1024, "a\0b", "a\nb", "a\u202eb", "a\u2066b", "\u200b", "\ufeff", 7, None, [], {}, True,
], ids=repr)
def test_a_bad_name_is_refused_by_patch_and_enrol(named, new, name):
    """And changes nothing."""
    before = named.app.passkeys(named.token)
    answer = named.app.rename_passkey(named.token, named.passkey, name)
    assert answer.status == 400, answer
    assert named.app.passkeys(named.token) == before
    if name is not None:
        ceremony = new.app.enrolment(new.token)
        document, _ = authenticator.create(ceremony["options"])
        assert new.app.complete(new.token, ceremony, document, DisplayName=name).status == 400
        assert new.app.passkeys(new.token) == []


def test_only_ones_own_passkey_is_renamed_or_deleted(world, realm, named):
    """Unknown, foreign, another realm's, malformed: the same 404, in PATCH and DELETE."""
    other, there = holder(realm), holder(world.realm())
    targets = [
        str(uuid.uuid4()), other.passkey, there.passkey, "x", "1", "%2e%2e", "{" + named.passkey + "}", named.credential.id_text,
        named.passkey + "/", named.passkey + "/x", named.passkey[:-1], "urn:uuid:" + named.passkey, named.passkey.replace("-", ""), "x" * 4000,
        "' or '1'='1".replace(" ", "%20").replace("'", "%27"), "*",
    ]
    for ask_for in (named.app.delete_passkey, lambda token, target: named.app.rename_passkey(token, target, "Stolen")):
        answers = {target: ask_for(named.token, target) for target in targets}
        for target, answer in answers.items():
            assert answer.status == 404, f"{target}: {answer}"
            assert answer.same_bytes() == answers[targets[0]].same_bytes(), target
    assert other.app.passkeys(other.token)[0]["DisplayName"] != "Stolen"
    assert len(there.app.passkeys(there.token)) == len(named.app.passkeys(named.token)) == 1


# -- delete -----------------------------------------------------------------------------------------------------------


def test_a_deleted_passkey_is_unusable_at_once_on_every_node(realm):
    """204 without a body, then 404; the last one may go; what it signed in lives on."""
    one = holder(realm)
    tokens = one.app.passkey_sign_in(one.credential)
    node = realm.world.start_node()
    try:
        there = realm.app(node=node)
        there.passkey_sign_in(one.credential)
        open_ceremony = there.ceremony()
        document = authenticator.assertion(open_ceremony["options"], one.credential)
        answer = one.app.delete_passkey(one.token, one.passkey)
        assert (answer.status, answer.body) == (204, b""), answer
        assert there.redeem_passkey(open_ceremony, document).error == "invalid_grant"
        assert one.app.try_passkey(one.credential).error == "invalid_grant"
        assert there.try_passkey(one.credential).error == "invalid_grant"
    finally:
        node.stop()
    assert one.app.delete_passkey(one.token, one.passkey).status == 404
    assert one.app.passkeys(one.token) == []
    assert one.app.refresh(tokens["refresh_token"]).status == 200
    one.app.enroll(one.token)


def test_a_deleted_credential_may_be_enrolled_again(realm):
    """The same authenticator, the same id: a new passkey."""
    one = holder(realm)
    assert one.app.delete_passkey(one.token, one.passkey).status == 204
    ceremony = one.app.enrolment(one.token)
    document = authenticator.attestation(ceremony["options"], one.credential)
    answer = one.app.complete(one.token, ceremony, document)
    assert answer.status == 200 and answer.json()["Id"] != one.passkey, answer
    one.app.passkey_sign_in(one.credential)


def test_what_a_delete_ignores(realm):
    """A body, an override header; a token in the query is no token."""
    one = holder(realm)
    fields = {"Host": one.app.host, "Content-Type": "application/json", **bearer(one.token)}
    path = f"/connect/passkey/{one.passkey}"
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        answer = wire.exchange(one.app.node.port, "POST", path, {**fields, header: "DELETE"}, b"{}")
        assert answer.status in (404, 405), answer
    answer = wire.exchange(one.app.node.port, "DELETE", f"{path}?access_token={one.token}", {"Host": one.app.host})
    assert answer.status == 401, answer
    assert len(one.app.passkeys(one.token)) == 1
    answer = wire.exchange(one.app.node.port, "DELETE", path, fields, b'{"Id":"00000000-0000-0000-0000-000000000000"}')
    assert answer.status == 204, answer


@pytest.mark.parametrize("query", ["?cursor=x", "?page=-1", "?limit=99999999999999999999", "?$filter=1%20eq%201", "?user=", "?UserId=%27"])
def test_the_list_takes_no_parameters(named, query):
    """Whatever is forged, only the own list comes."""
    answer = named.app.get("/connect/passkey" + query, bearer(named.token))
    assert answer.status in (200, 400), answer
    if answer.status == 200:
        assert [item["Id"] for item in answer.json()] == [named.passkey]


# -- notices -----------------------------------------------------------------------------------------------------------


def test_enrol_and_delete_are_told_by_mail_exactly_once(realm):
    """To the owner, naming realm and product, with no secret in it and not the name its holder chose."""
    mailbox = realm.world.mailbox
    one = signed_in(realm)
    name = "<b>Mike's & key</b> call +1 555 0100"
    passkey, credential = one.app.enroll(one.token, name)
    added = mailbox.wait(one.email, 2)
    one.app.passkey_sign_in(credential)
    assert one.app.rename_passkey(one.token, passkey, name + " 2").status == 200
    assert one.app.delete_passkey(one.token, passkey).status == 204
    removed = mailbox.wait(one.email, 3)
    assert one.app.delete_passkey(one.token, passkey).status == 404
    for mail in (added, removed):
        html = mail.message.get_body(("html",)).get_content()
        assert mail.recipients == [one.email]
        assert f"Realm {realm.slug}" in mail.text and re.search(r"^Passkey\r?$", mail.text, re.MULTILINE), mail.text
        assert "Mike" not in mail.text + html and "555" not in mail.text + html
        for secret in (credential.id_text, credential.id.hex(), one.token, one.refresh_token, passkey):
            assert secret not in mail.text and secret not in html
        assert not re.search(r"(?<![0-9])[0-9]{6}(?![0-9])", mail.text), "looks like a code"
        assert "@localhost #" not in mail.text and f"@{realm.host} #" not in mail.text, "an autofill line"
    assert added.message["Subject"] != removed.message["Subject"]
    control = signed_in(realm)
    holder(realm, email=control.email)
    assert len(mailbox.to(one.email)) == 3, "code, added, removed"
    say("passkey notices: one mail per enrolment and per deletion, none for use, rename or refusal")
