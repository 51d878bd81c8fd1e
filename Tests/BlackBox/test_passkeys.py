"""Sign-in by passkey (catalogue PK): what is accepted, what is refused, and that nobody can tell why."""

import json
import secrets
import time
import uuid

import pytest

from harness import authenticator, settings, wire
from harness.app import PASSKEY
from harness.authenticator import EDDSA, ES256, RS256, Credential, Foreign, Key
from harness.holder import holder, signed_in, stored_count
from harness.jose import parts, unb64url, verify_es256
from harness.realm import OTP

UNIFORM = {"error": "invalid_grant", "error_description": "Passkey verification failed."}


def assert_refused(answer):
    """The one body of every failure of this grant."""
    assert answer.status == 400, answer
    assert answer.json() == UNIFORM, answer
    assert "no-store" in answer.header("cache-control"), answer


@pytest.fixture(scope="module")
def other_realm(world):
    """Another tenant."""
    return world.realm()


@pytest.fixture(scope="module")
def mike(realm):
    """One holder for the tables, whose counter stays zero; nothing in a table may harm him."""
    return holder(realm)


# -- begin ------------------------------------------------------------------------------------------


def test_begin_gives_options_for_the_clients_rp_id(app, realm):
    """The realm's primary domain where the client names none, the client's own where it does."""
    answer = app.begin()
    assert answer.status == 200, answer
    assert "no-store" in answer.header("cache-control")
    assert set(answer.json()) == {"ceremonyId", "options"}
    options = answer.json()["options"]
    assert len(unb64url(options["challenge"])) == 32 and "=" not in options["challenge"]
    assert options["rpId"] == realm.host
    assert options["userVerification"] == "required"
    assert options["allowCredentials"] == []
    assert options["timeout"] == 300_000
    assert realm.app("app-2").ceremony()["options"]["rpId"] == realm.other_rp


def test_begin_says_how_long_a_ceremony_lives(world):
    """timeout follows the policy."""
    realm = world.realm()
    realm.policy(ceremony_lifetime="90 seconds")
    assert realm.app().ceremony()["options"]["timeout"] == 90_000


def test_challenges_never_repeat(app):
    """On one connection."""
    seen = set()
    body = wire.form_body({"client_id": app.client_id})
    count = 20_000 if settings.FULL else 500
    with wire.Connection(app.node.port) as connection:
        for _ in range(count):
            answer = connection.exchange("POST", "/connect/passkey/begin", {"Host": app.host, "Content-Type": wire.FORM}, body)
            assert answer.status == 200, answer
            document = answer.json()
            seen |= {document["options"]["challenge"], document["ceremonyId"]}
    assert len(seen) == 2 * count


def test_begin_stores_nothing(world, app):
    """An unfinished ceremony costs no row."""
    tables = world.cluster.sql("SELECT format('postern.%I', relname) FROM pg_class WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r'")
    text = "SELECT " + " + ".join(f"(SELECT count(*) FROM {name})" for (name,) in tables if "rate" not in name)
    time.sleep(0.3)
    before = world.cluster.value(text)
    for _ in range(100):
        app.ceremony()
    assert world.cluster.value(text) == before


@pytest.mark.parametrize("client", ["no-passkey", "no-grants", "disabled", "unheard-of", "foreign"])
def test_begin_for_a_client_that_may_not_is_unauthorized_client(realm, other_realm, client):
    """One answer for all of them."""
    app = realm.app(client)
    if client == "disabled":
        realm.put_client("disabled", enabled=False)
        realm.world.settle()
    if client == "foreign":
        app.client_id = other_realm.client("app")
    answer = app.begin()
    assert (answer.status, answer.json()) == (400, {"error": "unauthorized_client"}), answer


def test_begin_without_client_id_is_an_invalid_request(app):
    for parameters in ({}, {"client_id": ""}):
        answer = app.post("/connect/passkey/begin", parameters)
        assert (answer.status, answer.error) == (400, "invalid_request"), answer
    assert wire.exchange(app.node.port, "GET", "/connect/passkey/begin", {"Host": app.host}).status == 405


def test_without_an_rp_id_passkeys_are_unavailable(world):
    """A realm without primary domain, a client without RP-ID: 503; a client with one works."""
    realm = world.realm(primary_domain=False)
    answer = realm.app().begin()
    assert (answer.status, answer.error) == (503, "Passkey.Unavailable"), answer
    assert answer.header("content-type").startswith("application/problem+json")
    token = realm.app().sign_in(realm.user())["access_token"]
    answer = realm.app().enroll_begin(token)
    assert (answer.status, answer.error) == (503, "Passkey.Unavailable"), answer
    one = holder(realm, "app-2")
    assert one.app.passkey_sign_in(one.credential)


def test_native_grants_off_stop_begin_and_the_grant(world):
    """An open ceremony is not redeemed either."""
    realm = world.realm()
    one = holder(realm)
    ceremony = one.app.ceremony()
    realm.native(enabled=False)
    answer = one.app.begin()
    assert (answer.status, answer.error) == (400, "NativeGrants.Disabled"), answer
    document = authenticator.assertion(ceremony["options"], one.credential)
    assert one.app.redeem_passkey(ceremony, document).error == "unsupported_grant_type"
    realm.native(enabled=True)
    assert one.app.redeem_passkey(ceremony, document).status == 200


# -- success ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eligible,state,amr", [(False, False, "hwk"), (True, False, "swk"), (True, True, "swk")])
def test_a_passkey_becomes_tokens_that_say_how(realm, eligible, state, amr):
    """Hwk for a device-bound key, swk for one that may be synchronised; the same account as the code's."""
    one = holder(realm, "jwt", backup_eligible=eligible, backup_state=state)
    tokens = one.app.passkey_sign_in(one.credential)
    assert tokens["token_type"] == "Bearer" and tokens["expires_in"] == 900
    jwks = one.app.get("/.well-known/jwks").json()
    subject = one.app.userinfo(one.token).json()["sub"]
    for name in ("id_token", "access_token"):
        _, payload = verify_es256(tokens[name], jwks)
        assert payload["amr"] == [amr, "user", "mfa"], name
        assert payload["sub"] == subject, name
        assert abs(payload["auth_time"] - time.time()) < 30, name
        assert payload["sid"] and payload["realm"] == realm.slug
    again = one.app.refreshed(tokens["refresh_token"])
    assert parts(again["id_token"])[1]["amr"] == [amr, "user", "mfa"]
    assert realm.app("api").active(again["access_token"])


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_every_offered_algorithm_signs_in(realm, algorithm):
    """Each algorithm of pubKeyCredParams, and a bad signature of each is refused."""
    one = holder(realm, algorithm=algorithm)
    one.app.passkey_sign_in(one.credential)
    assert_refused(one.app.try_passkey(one.credential, "sig_bitflip_anywhere"))
    assert_refused(one.app.try_passkey(one.credential, "sig_hash_only"))
    one.app.passkey_sign_in(one.credential)


def test_the_backup_state_may_change(realm):
    """BS is the authenticator's to set and clear while BE stays; the list shows it."""
    one = holder(realm, backup_eligible=True)
    for state in (True, False):
        one.credential.backup_state = state
        one.app.passkey_sign_in(one.credential)
        (item,) = one.app.passkeys(one.token)
        assert item["BackedUp"] is state and item["DeviceBound"] is False


def test_a_ceremony_needs_no_cookie(realm, mike):
    """Begun on one connection, finished on another, by another node."""
    ceremony = mike.app.ceremony()
    node = realm.world.start_node()
    try:
        there = realm.app(node=node)
        assert there.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential)).status == 200
        again = there.ceremony()
        document = authenticator.assertion(again["options"], mike.credential)
        assert mike.app.redeem_passkey(again, document).status == 200
    finally:
        node.stop()


@pytest.mark.parametrize("mutation", [
    "extra_members", "uv_discouraged", "cd_extra_members", "cd_bom", "cd_blanks", "cd_escapes", "tokenbinding_supported", "ext_ok",
    "sig_high_s", "ok", "cd_cross_origin_absent",
])
def test_unusual_but_right_is_accepted(mike, mutation):
    """What the specification tolerates."""
    if mutation == "cd_cross_origin_absent":
        client = {"type": "webauthn.get", "origin": "https://" + mike.credential.rp_id}
        ceremony = mike.app.ceremony()
        client["challenge"] = ceremony["options"]["challenge"]
        answer = mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential, client=client))
    else:
        answer = mike.app.try_passkey(mike.credential, mutation)
    assert answer.status == 200, answer


def test_a_passkey_opens_the_codes_of_a_locked_account(world):
    """After 100 refused codes in a row only a passkey (or a link, or time) helps."""
    realm = world.realm()
    realm.limit("token", "failures", 1_000_000, burst=1_000_000)
    realm.native(access_token_lifetime="60 minutes")
    one = holder(realm)
    asked = one.app.request_code(one.email)
    wrong = f"{(int(asked.code) + 1) % 1_000_000:06}"
    for _ in range(100):
        assert one.app.redeem(wrong, email=one.email).error == "invalid_grant"
    assert one.app.redeem(asked.code, email=one.email).error == "invalid_grant", "not locked"
    one.app.passkey_sign_in(one.credential)
    asked = one.app.request_code(one.email)
    assert one.app.redeem(asked.code, email=one.email).status == 200


# -- refusals: the assertion ------------------------------------------------------------------------------

#: Rows of the catalogue of which negative-cases.json holds only a sample.
REFUSED = [
    "id_empty", "rawid_missing", "rawid_number", "rawid_empty", "type_missing", "type_upper", "type_empty",
    "response_null", "response_string", "response_number", "cdj_missing", "cdj_number", "cdj_empty", "cdj_not_b64url",
    "ad_missing", "ad_null", "ad_not_b64url", "sig_missing", "sig_empty", "sig_not_b64url", "sig_null", "uh_null", "uh_array", "uh_65",
    "uh_nobody", "ext_results_array", "ad_len_31", "ad_len_32", "ad_len_33", "ad_at_flag_no_data", "ad_at_credid_65535", "ext_not_map",
    "ext_indefinite", "ext_len_2_64", "cd_type_missing", "cd_type_empty", "cd_type_null", "cd_type_create", "cd_challenge_missing",
    "cd_challenge_empty", "cd_challenge_null", "cd_challenge_not_b64url", "cd_challenge_other", "cd_challenge_padded", "cd_origin_missing",
    "cd_origin_number", "cd_origin_empty", "cd_origin_null", "cd_origin_other", "origin_http", "origin_default_port", "origin_path",
    "origin_userinfo", "origin_sub_not_listed", "origin_punycode_twin", "origin_null", "origin_android", "cross_origin_string",
    "top_origin_present", "rpidhash_other", "up_0", "up_uv_0", "bs_without_be", "sig_bitflip_anywhere", "ad_bitflip", "sig_other_key",
    "sig_cdj_reserialised", "sig_hash_only", "sig_raw_client_data", "sig_swapped", "sig_r_0", "sig_s_0", "sig_r_n", "sig_s_plus_n",
    "cd_dup_type", "cd_utf16", "cd_truncated", "cd_trailing_text", "tokenbinding_no_status", "cred_unknown",
]


@pytest.mark.parametrize("mutation", REFUSED)
def test_a_wrong_assertion_is_refused(mike, mutation):
    """One thing wrong, the rest right and signed."""
    assert_refused(mike.app.try_passkey(mike.credential, mutation))


def test_after_all_refusals_the_passkey_still_works(mike):
    """The positive control of the table."""
    mike.app.passkey_sign_in(mike.credential)


@pytest.mark.parametrize("text", [
    "{}", "[]", "null", "\"a\"", "1", "x", "{", "{\"id\":", "\ufeff{}", "{}{}", "[" * 5000, "{\"a\":" * 5000, "\"" + "a" * 60_000 + "\"",
], ids=lambda text: text[:8])
def test_an_assertion_that_is_no_credential_is_refused(mike, text):
    """The ceremony is spent by it."""
    ceremony = mike.app.ceremony()
    assert_refused(mike.app.redeem_passkey(ceremony, text))
    assert_refused(mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential)))


def test_no_single_flipped_bit_is_accepted(mike):
    """Random places of signature, authenticator data and client data."""
    for _ in range(350 if settings.FULL else 20):
        for mutation in ("sig_bitflip_anywhere", "ad_bitflip", "cdj_bitflip"):
            assert_refused(mike.app.try_passkey(mike.credential, mutation))


def test_missing_parameters_are_an_invalid_request_and_spend_nothing(mike):
    """Checked before the factor."""
    ceremony = mike.app.ceremony()
    form = mike.app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], mike.credential))
    for name in ("ceremony_id", "assertion"):
        for value in (None, ""):
            assert mike.app.token({**form, name: value}).error == "invalid_request"
    assert mike.app.token({**form, "scope": "openid unheard-of"}).error == "invalid_scope"
    assert mike.app.token(form).status == 200


# -- refusals: whose credential -----------------------------------------------------------------------------


def test_the_reason_of_a_refusal_cannot_be_told(realm, other_realm):
    """Unknown, deleted, other realm's, other RP's, of a disabled user, bad signature, spent ceremony: the same bytes."""
    one, gone, off = holder(realm), holder(realm), holder(realm)
    foreign = Foreign(other_realm=holder(other_realm).credential, other_rp=holder(realm, "app-2").credential)
    assert gone.app.delete_passkey(gone.token, gone.passkey).status == 204
    realm.world.admin.call("set_user_enabled", realm.slug, off.email, False)
    answers = {
        "bad signature": one.app.try_passkey(one.credential, "sig_bitflip"),
        "unknown credential": one.app.try_passkey(one.credential, "cred_unknown"),
        "deleted credential": one.app.try_passkey(gone.credential),
        "of another realm": one.app.try_passkey(one.credential, "cred_other_realm", foreign=foreign),
        "of another RP-ID": one.app.try_passkey(one.credential, "cred_other_rp", foreign=foreign),
        "disabled user": one.app.try_passkey(off.credential),
        "no such ceremony": one.app.redeem_passkey({"ceremonyId": str(uuid.uuid4())}, "{}"),
        "malformed": one.app.redeem_passkey(one.app.ceremony(), "{}"),
        "user not verified": one.app.try_passkey(one.credential, "uv_0"),
    }
    expected = answers["bad signature"].same_bytes()
    for name, answer in answers.items():
        assert_refused(answer)
        assert answer.same_bytes() == expected, name
        assert answer.seconds >= settings.UNIFORM_DEADLINE_MS / 1000 * 0.9, f"{name} left before the deadline: {answer.seconds}"
    one.app.passkey_sign_in(one.credential)


def test_the_credential_of_one_user_with_the_handle_of_another_is_nobodys(realm, other_realm, mike):
    """X's credential signed by X with Y's handle, of another realm, or of a user without passkeys."""
    other, without = holder(realm), signed_in(realm)
    handle = unb64url(without.app.enrolment(without.token)["options"]["user"]["id"])
    foreign = Foreign(other_user=other.credential, other_realm=holder(other_realm).credential)
    for mutation in ("uh_other_user", "uh_other_realm", "id_other_user_rawid_own", "rawid_other_user_id_own"):
        assert_refused(mike.app.try_passkey(mike.credential, mutation, foreign=foreign))
    assert_refused(mike.app.try_passkey(mike.credential, user_handle=handle))
    forged = Credential(other.credential.rp_id, other.credential.user_handle, mike.credential.key, other.credential.id)
    assert_refused(mike.app.try_passkey(forged))


@pytest.mark.parametrize("event", ["disabled", "deleted", "disabled and enabled"])
def test_a_disabled_or_deleted_user_cannot_sign_in(realm, event):
    """Disabling is no deletion: enabled again, the passkey works."""
    one = holder(realm)
    ceremony = one.app.ceremony()
    document = authenticator.assertion(ceremony["options"], one.credential)
    if event == "deleted":
        realm.world.admin.call("delete_user", realm.slug, one.email)
    else:
        realm.world.admin.call("set_user_enabled", realm.slug, one.email, False)
    assert_refused(one.app.redeem_passkey(ceremony, document))
    if event == "disabled and enabled":
        realm.world.admin.call("set_user_enabled", realm.slug, one.email, True)
        one.app.passkey_sign_in(one.credential)
    else:
        assert_refused(one.app.try_passkey(one.credential))


# -- RP-IDs and clients -----------------------------------------------------------------------------------


def test_clients_that_share_an_rp_id_share_passkeys(realm):
    """Enrolled at one client, used at the other; ceremonies stay with their client."""
    one = holder(realm)
    sibling = realm.app("jwt")
    tokens = sibling.passkey_sign_in(one.credential)
    assert parts(tokens["id_token"])[1]["aud"] in (sibling.client_id, [sibling.client_id])
    assert [item["Id"] for item in sibling.passkeys(tokens["access_token"])] == [one.passkey]


def test_a_passkey_of_one_rp_id_is_unusable_under_another(realm):
    """Both directions, even when the authenticator signs for the other RP-ID."""
    here, there = holder(realm), holder(realm, "app-2")
    for app, credential in ((there.app, here.credential), (here.app, there.credential)):
        assert_refused(app.try_passkey(credential))
    here.app.passkey_sign_in(here.credential)
    there.app.passkey_sign_in(there.credential)


@pytest.mark.parametrize("other", ["jwt", "app-2"])
def test_a_ceremony_belongs_to_the_client_that_began_it(realm, mike, other):
    """Whether or not the RP-ID is the same; the attempt by the wrong client does not help it either."""
    ceremony = mike.app.ceremony()
    document = authenticator.assertion(ceremony["options"], mike.credential)
    assert_refused(realm.app(other).redeem_passkey(ceremony, document))


def test_a_ceremony_belongs_to_its_realm(realm, other_realm, mike):
    """Another realm's, and an enrolment's."""
    stranger = holder(other_realm)
    ceremony = mike.app.ceremony()
    assert_refused(stranger.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], stranger.credential)))
    assert mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential)).status == 200
    enrolment = mike.app.enrolment(mike.token)
    options = {"challenge": enrolment["options"]["challenge"], "rpId": mike.credential.rp_id}
    assert_refused(mike.app.redeem_passkey(enrolment, authenticator.assertion(options, mike.credential)))


@pytest.mark.parametrize("change", ["flip", "short", "long", "uuid", "spaces", "huge", "other prefix"])
def test_a_ceremony_that_was_never_issued_is_refused(mike, change):
    ceremony = mike.app.ceremony()
    text = ceremony["ceremonyId"]
    middle = len(text) // 2
    text = {
        "flip": text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1:], "short": text[:-1], "long": text + "A",
        "uuid": str(uuid.uuid4()), "spaces": f" {text}", "huge": text * 30, "other prefix": "x" + text,
    }[change]
    document = authenticator.assertion(ceremony["options"], mike.credential)
    assert_refused(mike.app.redeem_passkey({"ceremonyId": text}, document))
    assert mike.app.redeem_passkey(ceremony, document).status == 200, "the real one was spent by a forged one"


def test_a_client_that_moves_to_another_rp_id_leaves_its_passkeys_behind(world):
    """Between begin and redeem, and after; moving back brings them back."""
    realm = world.realm()
    one = holder(realm, "app-2")
    ceremony = one.app.ceremony()
    realm.put_client("app-2", rp_id="moved.example")
    world.settle()
    assert_refused(one.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], one.credential)))
    assert one.app.ceremony()["options"]["rpId"] == "moved.example"
    assert_refused(one.app.try_passkey(one.credential))
    (item,) = one.app.passkeys(one.token)
    assert item["RpId"] == realm.other_rp, "still listed, with the RP-ID it belongs to"
    realm.put_client("app-2", rp_id=realm.other_rp)
    world.settle()
    one.app.passkey_sign_in(one.credential)


def test_a_client_must_be_allowed_when_it_redeems(world):
    """The permission or the client itself gone since begin."""
    realm = world.realm()
    one = holder(realm)
    ceremony = one.app.ceremony()
    document = authenticator.assertion(ceremony["options"], one.credential)
    world.admin.run(f"SELECT admin.revoke_permission('{realm.slug}', '{one.app.client_id}', VARIADIC ARRAY['gt:{PASSKEY}']);")
    world.settle()
    assert one.app.redeem_passkey(ceremony, document).error == "unauthorized_client"
    realm.put_client("app", "gt:" + PASSKEY, enabled=False)
    world.settle()
    answer = one.app.redeem_passkey(ceremony, document)
    assert (answer.status, answer.error) == (401, "invalid_client"), answer


# -- single use and expiry ------------------------------------------------------------------------------------


def test_a_ceremony_is_spent_by_success(mike):
    """The same assertion, and a new one for the same challenge."""
    ceremony = mike.app.ceremony()
    document = authenticator.assertion(ceremony["options"], mike.credential)
    assert mike.app.redeem_passkey(ceremony, document).status == 200
    assert_refused(mike.app.redeem_passkey(ceremony, document))
    assert_refused(mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential)))


@pytest.mark.parametrize("mutation", ["sig_bitflip", "uv_0", "cred_unknown", "id_missing", "cd_not_json"])
def test_a_ceremony_is_spent_by_failure_too(mike, mutation):
    """Consumed before verification, so that nobody tries twice."""
    ceremony = mike.app.ceremony()
    assert_refused(mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential, mutation)))
    assert_refused(mike.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], mike.credential)))


@pytest.mark.full
def test_a_ceremony_ends_with_its_lifetime(world):
    """The expiry is sealed into the ceremony, so this one really waits (30 seconds, the shortest allowed)."""
    realm = world.realm()
    realm.policy(ceremony_lifetime="30 seconds")
    one = holder(realm)
    early, late, enrolment = one.app.ceremony(), one.app.ceremony(), one.app.enrolment(one.token)
    time.sleep(27)
    assert one.app.redeem_passkey(early, authenticator.assertion(early["options"], one.credential)).status == 200
    time.sleep(5)
    assert_refused(one.app.redeem_passkey(late, authenticator.assertion(late["options"], one.credential)))
    document, _ = authenticator.create(enrolment["options"])
    answer = one.app.complete(one.token, enrolment, document)
    assert answer.json() == {"Message": "Enrollment session expired. Please try again."}, answer


# -- the counter ---------------------------------------------------------------------------------------------

TOP = 2**32 - 1


@pytest.mark.parametrize("stored,presented,accepted", [
    (5, 6, True), (5, 5, False), (5, 4, False), (0, 0, True), (5, 0, False), (0, 5, True), (TOP, 0, False), (TOP - 1, TOP, True), (TOP, TOP, False),
])
def test_the_counter_only_goes_up(realm, stored, presented, accepted):
    """The row shows the new value after success; a refusal leaves it, is audited, and a zero never lowers it."""
    one = holder(realm, sign_count=stored)
    assert stored_count(realm.world, one.passkey) == stored, "the counter of the registration is stored"
    answer = one.app.try_passkey(one.credential, count=presented)
    events = [json.loads(row) for row in realm.world.admin.rows_of("audit_log", one.passkey)]
    regressed = [event for event in events if event["event"] == "passkey_sign_count_regressed"]
    if accepted:
        assert answer.status == 200, answer
        assert stored_count(realm.world, one.passkey) == presented
        assert not regressed
        return
    assert_refused(answer)
    assert stored_count(realm.world, one.passkey) == stored
    assert len(regressed) == 1 and regressed[0]["client_id"] == one.app.client_id, events
    assert regressed[0]["realm"] == realm.slug
    if stored < TOP:
        assert one.app.try_passkey(one.credential, count=stored + 1).status == 200


def test_the_audit_row_of_a_regress_names_the_counter_that_was_presented(realm):
    """Issue 3: "regress refused and audited": the value tells a clone from a stuck counter."""
    one = holder(realm, sign_count=50)
    assert_refused(one.app.try_passkey(one.credential, count=7))
    events = [json.loads(row) for row in realm.world.admin.rows_of("audit_log", one.passkey)]
    (regressed,) = [event for event in events if event["event"] == "passkey_sign_count_regressed"]
    assert regressed["detail"]["presented"] == 7, regressed


def test_a_bad_signature_does_not_move_the_counter(realm):
    """Nothing of an unverified assertion is stored."""
    one = holder(realm, sign_count=5)
    assert_refused(one.app.try_passkey(one.credential, "sig_bitflip", count=1000))
    assert stored_count(realm.world, one.passkey) == 5
    (item,) = one.app.passkeys(one.token)
    assert item.get("LastUsedAt") is None


# -- other ways to spoil it -------------------------------------------------------------------------------------


def test_a_code_grant_takes_no_assertion_and_the_reverse(mike):
    """The grant decides which factor is read."""
    ceremony = mike.app.ceremony()
    form = mike.app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], mike.credential))
    assert mike.app.token({**form, "grant_type": OTP}).error == "invalid_request"
    assert mike.app.token(form).status == 200


def test_a_key_of_ones_own_is_of_no_use(mike):
    """The right id and handle, another key."""
    forged = Credential(mike.credential.rp_id, mike.credential.user_handle, Key(), mike.credential.id)
    assert_refused(mike.app.try_passkey(forged))
    forged = Credential(mike.credential.rp_id, mike.credential.user_handle, Key(), secrets.token_bytes(16))
    assert_refused(mike.app.try_passkey(forged))
