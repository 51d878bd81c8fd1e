"""TOTP and recovery codes. The authenticator app is harness/totp.py."""

import collections
import json
import re
import urllib.parse

import pytest

from harness import jose, totp, wire
from harness.app import bearer
from harness.holder import holder, signed_in
from harness.keyfile import line_id
from harness.links import Links
from harness.node import run_postern, write_key_file
from harness.postgres import literal
from harness.volley import in_parallel, token_request, volley

UNIFORM = {"error": "invalid_grant", "error_description": "Invalid or expired code."}
REQUIRED = {"error": "invalid_grant", "error_description": "Two-factor authentication is required; supply totp_code."}
INVALID = {"error": "invalid_grant", "error_description": "The two-factor code is invalid."}
EXPIRED = {"Message": "Enrollment session expired. Please try again."}
FAILED = {"Message": "TOTP enrollment failed."}
ENDPOINTS = [
    ("POST", "/connect/totp/enroll/begin", {}), ("POST", "/connect/totp/enroll", {"ceremonyId": "x", "code": "000000"}),
    ("DELETE", "/connect/totp", None),
]
endpoints = pytest.mark.parametrize("method,path,document", ENDPOINTS, ids=[f"{m} {p}" for m, p, _ in ENDPOINTS])
WIDTH = 48


def assert_refused(answer, document):
    """400 with exactly this body."""
    assert answer.status == 400 and answer.json() == document, answer
    assert "no-store" in answer.header("cache-control"), answer


class Protected:
    """Somebody with a second factor: who it is, the secret in the authenticator app, and the recovery codes on paper."""

    def __init__(self, realm, client="app"):
        who = signed_in(realm, client)
        self.realm, self.app, self.email, self.token = realm, who.app, who.email, who.token
        self.secret, self.recovery_codes = self.app.enrol_totp(self.token)

    def code(self, offset=0):
        """What the authenticator app shows, so many steps from now."""
        return totp.code(self.secret, offset)

    def sign_in(self, **factors):
        """A new code by mail, redeemed with these; the raw answer."""
        asked = self.app.request_code(self.email)
        return self.app.redeem(asked.code, email=self.email, **factors)

    def later(self, steps=4):
        """Lets some time steps pass, for what the server remembers of this account."""
        self.sql(f"last_step_at = last_step_at - interval '{steps * 30} seconds'")

    def sql(self, assignment):
        """Changes the account's row."""
        self.realm.world.cluster.sql(f"UPDATE postern.totp_factor f SET {assignment} FROM postern.user_account u "
                                     f"WHERE u.id = f.user_id AND u.email = {literal(self.email)}")

    def value(self, expression):
        """Reads from the account's row."""
        return self.realm.world.cluster.value(
            f"SELECT {expression} FROM postern.totp_factor f JOIN postern.user_account u ON u.id = f.user_id "
            f"WHERE u.email = {literal(self.email)}")

    def audit(self):
        """The events of this account, oldest first."""
        return self.realm.world.cluster.value(
            "SELECT coalesce(string_agg(a.event, ',' ORDER BY a.at, a.id), '') FROM postern.audit_event a JOIN postern.user_account u "
            f"ON u.id = a.user_id WHERE u.email = {literal(self.email)} AND a.event ~ 'totp|second|recovery'").split(",")


@pytest.fixture
def ada(realm):
    """Somebody with a second factor."""
    return Protected(realm)


# -- enrolment ----------------------------------------------------------------------------------------------


def test_begin_hands_out_a_secret_and_its_uri(realm):
    """Base32, and what authenticator apps read from a QR code."""
    who = signed_in(realm)
    answer = who.app.totp_begin(who.token)
    assert answer.status == 200 and "no-store" in answer.header("cache-control"), answer
    begun = answer.json()
    assert set(begun) == {"ceremonyId", "secret", "uri"}
    assert re.fullmatch(r"[A-Z2-7]{32}", begun["secret"]), "160 bits"
    uri = urllib.parse.urlsplit(begun["uri"])
    assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
    assert urllib.parse.unquote(uri.path) == f"/Realm {realm.slug}:{who.email}"
    assert urllib.parse.parse_qs(uri.query) == {
        "secret": [begun["secret"]], "issuer": [f"Realm {realm.slug}"], "algorithm": ["SHA1"], "digits": ["6"], "period": ["30"],
    }
    again = who.app.totp_begin(who.token).json()
    assert again["secret"] != begun["secret"] and again["ceremonyId"] != begun["ceremonyId"]
    who.app.sign_in(who.email)  # beginning changes nothing


def test_a_proven_secret_gives_ten_recovery_codes(realm):
    """Shown once; different; readable."""
    who = signed_in(realm)
    _, codes = who.app.enrol_totp(who.token)
    assert len(set(codes)) == 10
    for code in codes:
        assert re.fullmatch(r"([0-9a-hjkmnp-tv-z]{4}-){2}[0-9a-hjkmnp-tv-z]{4}", code), code


def test_a_mistyped_code_enrols_nothing_and_may_be_corrected(realm):
    """The secret is in the app already: it need not be scanned again."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    for code in (totp.wrong(begun["secret"]), "", "abcdef", "1" * 10_000, totp.code(begun["secret"])[:5]):
        assert_refused(who.app.totp_enroll(who.token, begun, code), FAILED)
    who.app.sign_in(who.email)
    assert who.app.totp_enroll(who.token, begun, totp.code(begun["secret"])).status == 200
    assert_refused(who.app.redeem(who.app.request_code(who.email).code, email=who.email), REQUIRED)


def test_enrolment_accepts_a_step_before_and_after(realm):
    """By the database clock."""
    totp.settle()
    for offset, good in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        who = signed_in(realm)
        begun = who.app.totp_begin(who.token).json()
        answer = who.app.totp_enroll(who.token, begun, totp.code(begun["secret"], offset))
        assert answer.status == (200 if good else 400), f"{offset}: {answer}"


def test_a_ceremony_completes_once(realm):
    """Also of 48 at the same instant."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    code = totp.code(begun["secret"])
    raw = wire.request_bytes(
        "POST", "/connect/totp/enroll", {"Host": who.app.host, "Content-Type": "application/json", **bearer(who.token)},
        json.dumps({"ceremonyId": begun["ceremonyId"], "code": code}).encode())
    answers = volley(who.app.node.port, [raw] * WIDTH)
    assert collections.Counter(a.status for a in answers) == {200: 1, 400: WIDTH - 1}
    assert all(a.json() == EXPIRED for a in answers if a.status == 400)
    assert_refused(who.app.totp_enroll(who.token, begun, code), EXPIRED)


def test_a_ceremony_belongs_to_the_session_that_began_it(world, realm):
    """Another user's token, another sign-in of the same user, another client's, another realm's."""
    who, other = signed_in(realm), signed_in(realm)
    same, elsewhere = signed_in(realm, "app", who.email), signed_in(realm, "app-2", who.email)
    there = world.realm()
    there.put_user(who.email)
    foreign = signed_in(there, "app", who.email)
    begun = who.app.totp_begin(who.token).json()
    for thief in (other, same, elsewhere, foreign):
        assert_refused(thief.app.totp_enroll(thief.token, begun, totp.code(begun["secret"])), EXPIRED)
    assert who.app.totp_enroll(who.token, begun, totp.code(begun["secret"])).status == 200


@pytest.mark.parametrize("change", ["flip", "drop", "passkey", "empty", "long"])
def test_a_changed_ceremony_is_none(realm, change):
    """Whatever it was."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    text = begun["ceremonyId"]
    changed = {
        "flip": text[:30] + ("A" if text[30] != "A" else "B") + text[31:], "drop": text[:-1], "empty": "", "long": text * 100,
        "passkey": who.app.enroll_begin(who.token).json()["ceremonyId"],
    }[change]
    assert_refused(who.app.totp_enroll(who.token, {"ceremonyId": changed}, totp.code(begun["secret"])), EXPIRED)


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b'{"ceremonyId":"x"}', b'{"code":"000000"}', b'{"ceremonyId":1,"code":"000000"}', b'{"ceremonyId":"x","code":0}',
    b'{"ceremonyId":"x","ceremonyId":"y","code":"000000"}', b'{"ceremonyId":"\xff","code":"000000"}', b"[" * 20_000,
], ids=lambda body: repr(body[:30]))
def test_a_body_that_is_no_enrolment_is_400(realm, body):
    """As for passkeys."""
    who = signed_in(realm)
    fields = {"Host": who.app.host, "Content-Type": "application/json", **bearer(who.token)}
    assert wire.exchange(who.app.node.port, "POST", "/connect/totp/enroll", fields, body).status == 400


def test_a_new_secret_replaces_the_old_one_only_when_proven(ada):
    """Begin changes nothing; then the old secret and the old recovery codes are dead, and the new ones good."""
    begun = ada.app.totp_begin(ada.token).json()
    assert ada.sign_in(totp_code=ada.code()).status == 200
    answer = ada.app.totp_enroll(ada.token, begun, totp.code(begun["secret"], -1))
    assert answer.status == 200, answer
    assert_refused(ada.sign_in(totp_code=ada.code(1)), INVALID)
    assert_refused(ada.sign_in(recovery_code=ada.recovery_codes[0]), INVALID)
    assert ada.sign_in(totp_code=totp.code(begun["secret"])).status == 200
    assert ada.sign_in(recovery_code=answer.json()["recoveryCodes"][0]).status == 200


def test_enrolling_and_removing_end_no_session(realm):
    """What is signed in stays signed in; the next sign-in is what changes."""
    who = signed_in(realm)
    elsewhere = signed_in(realm, "app", who.email)
    who.app.enrol_totp(who.token)
    assert elsewhere.app.userinfo(elsewhere.token).status == 200
    refreshed = elsewhere.app.refreshed(elsewhere.refresh_token)
    assert who.app.totp_delete(who.token).status == 204
    elsewhere.app.refreshed(refreshed["refresh_token"])


# -- who may -------------------------------------------------------------------------------------------------


@endpoints
def test_without_a_token_it_is_401(realm, method, path, document):
    """RFC 6750."""
    app = realm.app()
    for headers in ({}, bearer("pat_nonsense"), {"Authorization": "Basic eDp5"}):
        fields = {"Host": app.host, "Content-Type": "application/json", **headers}
        answer = wire.exchange(app.node.port, method, path, fields, None if document is None else json.dumps(document).encode())
        assert answer.status == 401 and answer.header("www-authenticate").startswith("Bearer"), answer


@endpoints
def test_a_sign_in_of_eleven_minutes_ago_is_too_old(world, realm, method, path, document):
    """RFC 9470, as for passkeys; a refresh is no new sign-in."""
    who = signed_in(realm)
    world.time_travel(601)
    token = who.app.refreshed(who.refresh_token)["access_token"]
    answer = who.app.send_json(method, path, document, bearer(token))
    assert answer.status == 401 and answer.error == "insufficient_user_authentication", answer
    assert 'error="insufficient_user_authentication"' in answer.header("www-authenticate"), answer
    assert re.search(r'max_age="?600', answer.header("www-authenticate")), answer


def test_a_client_without_a_grant_that_asks_for_it_is_403(world, realm):
    """gt:urn:cocoar:otp or gt:urn:cocoar:magic."""
    app = realm.put_client("moody", "gt:urn:cocoar:otp", "gt:urn:cocoar:passkey", "gt:refresh_token")
    world.settle()
    token = app.sign_in(realm.user(), scope="offline_access")["access_token"]
    world.admin.call("revoke_permission", realm.slug, app.client_id, variadic=["gt:urn:cocoar:otp"])
    world.settle()
    for method, path, document in ENDPOINTS:
        assert app.send_json(method, path, document, bearer(token)).status == 403, path
    world.admin.call("grant_permission", realm.slug, app.client_id, variadic=["gt:urn:cocoar:magic"])
    world.settle()
    assert [app.send_json(method, path, document, bearer(token)).status for method, path, document in ENDPOINTS] == [200, 400, 404]


@endpoints
def test_with_native_grants_off_nothing_is_there(world, method, path, document):
    """NativeGrants.Disabled, whoever asks."""
    realm = world.realm()
    who = signed_in(realm)
    realm.native(enabled=False)
    for headers in ({}, bearer(who.token)):
        answer = who.app.send_json(method, path, document, headers)
        assert answer.status == 400 and answer.json()["title"] == "NativeGrants.Disabled", answer


@pytest.mark.parametrize("method,path", [("GET", "/connect/totp/enroll/begin"), ("PUT", "/connect/totp/enroll"), ("POST", "/connect/totp")])
def test_other_methods_are_405(realm, method, path):
    """With what is allowed."""
    answer = wire.exchange(realm.app().node.port, method, path, {"Host": realm.host})
    assert answer.status == 405 and answer.header("allow") == ("DELETE" if path == "/connect/totp" else "POST"), answer


def test_only_a_session_with_the_second_factor_changes_it(ada):
    """Or the one that enrolled it: a code by mail of a minute before is not enough to take it away."""
    realm = ada.realm
    who = signed_in(realm)
    before = signed_in(realm, "app", who.email)
    secret, _ = who.app.enrol_totp(who.token)
    begun = before.app.totp_begin(before.token).json()
    for answer in (before.app.totp_delete(before.token), before.app.totp_enroll(before.token, begun, totp.code(begun["secret"]))):
        assert answer.status == 401 and answer.error == "insufficient_user_authentication", answer
    tokens = who.app.sign_in(who.email, totp_code=totp.code(secret))
    assert who.app.totp_delete(tokens["access_token"]).status == 204
    # With a passkey it is the same.
    passkey = holder(realm)
    passkey.app.enrol_totp(passkey.token)
    token = passkey.app.passkey_sign_in(passkey.credential)["access_token"]
    assert passkey.app.totp_delete(token).status == 204


def test_removal_takes_recovery_codes_with_it(ada):
    """204 once; then a code by mail is enough, and what is sent beside it is ignored."""
    assert ada.app.totp_delete(ada.token).status == 204
    assert ada.app.totp_delete(ada.token).status == 404
    answer = ada.sign_in(recovery_code=ada.recovery_codes[0])
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp"], answer
    assert ada.realm.world.cluster.value(
        "SELECT count(*) FROM postern.recovery_code r JOIN postern.user_account u ON u.id = r.user_id "
        f"WHERE u.email = {literal(ada.email)}") == "0"
    assert ada.audit() == ["totp_enrolled", "totp_removed"]


# -- sign-in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["email", "handle"])
def test_both_factors_sign_in(ada, by):
    """Needed and missing, wrong, right: the code stays live until both are there, and amr says what was proven."""
    asked = ada.app.request_code(ada.email)
    who = {by: getattr(asked, by)}
    assert_refused(ada.app.redeem(asked.code, **who), REQUIRED)
    assert_refused(ada.app.redeem(asked.code, **who, totp_code=totp.wrong(ada.secret)), INVALID)
    answer = ada.app.redeem(asked.code, **who, totp_code=ada.code())
    assert answer.status == 200, answer
    _, claims = jose.parts(answer.json()["id_token"])
    assert claims["amr"] == ["otp", "mfa"]
    assert_refused(ada.app.redeem(asked.code, **who, totp_code=ada.code(1)), UNIFORM)


def test_the_access_token_of_a_jwt_client_says_so_too(realm):
    """And after a refresh, which asks for no second factor."""
    ada = Protected(realm, "jwt")
    tokens = ada.sign_in(totp_code=ada.code()).json()
    refreshed = ada.app.refreshed(tokens["refresh_token"])
    for answer in (tokens, refreshed):
        assert jose.parts(answer["access_token"])[1]["amr"] == ["otp", "mfa"]
        assert jose.parts(answer["id_token"])[1]["amr"] == ["otp", "mfa"]


def test_the_answers_are_the_same_bytes_for_every_account(realm, ada):
    """Each text one body; a wrong or replayed or locked TOTP code and a wrong recovery code are alike."""
    other = Protected(realm)
    required, invalid = [], []
    for who in (ada, other):
        required.append(who.sign_in())
        invalid += [who.sign_in(totp_code=totp.wrong(who.secret)), who.sign_in(recovery_code="0000-0000-0000"), who.sign_in(totp_code=who.code(-1))]
    assert len({str(a.same_bytes()) for a in required}) == 1 and required[0].json() == REQUIRED
    assert len({str(a.same_bytes()) for a in invalid}) == 1 and invalid[0].json() == INVALID


@pytest.mark.parametrize("factors", [{}, {"totp_code": "right"}, {"totp_code": "000000"}, {"recovery_code": "right"}, {"totp_code": "x" * 10_240}])
def test_a_wrong_code_says_nothing_of_the_second_factor(realm, ada, factors):
    """The uniform answer of the first factor, byte for byte that of an account without; nothing of the second is spent."""
    right = {"totp_code": ada.code(), "recovery_code": ada.recovery_codes[0]}
    factors = {name: right[name] if value == "right" else value for name, value in factors.items()}
    plain = realm.user()
    answers = [realm.app().redeem("x", email=email, **factors) for email in (plain, realm.new_email())]
    asked = ada.app.request_code(ada.email)
    answers.append(ada.app.redeem(f"{(int(asked.code) + 1) % 1_000_000:06}", email=ada.email, **factors))
    assert len({str(a.same_bytes()) for a in answers}) == 1 and answers[0].json() == UNIFORM, answers
    assert ada.value("wrong_1_at IS NULL") == "t"
    assert ada.app.redeem(asked.code, email=ada.email, totp_code=ada.code()).status == 200


@pytest.mark.parametrize("factors", [{"totp_code": "000000"}, {"totp_code": "letters"}, {"totp_code": "x" * 10_240}, {"recovery_code": "x"}])
def test_who_has_none_needs_none(realm, factors):
    """Ignored, and amr claims nothing."""
    answer = realm.app().redeem(*(lambda asked: (asked.code, asked.email))(realm.app().request_code(realm.user())), **factors)
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp"], answer


def test_a_second_factor_of_one_realm_is_not_asked_for_in_another(world, ada):
    """Accounts are per realm."""
    there = world.realm()
    there.put_user(ada.email)
    there.app().sign_in(ada.email)


def test_a_passkey_needs_no_second_factor(realm):
    """It is two by itself."""
    one = holder(realm)
    one.app.enrol_totp(one.token)
    tokens = one.app.passkey_sign_in(one.credential)
    assert "mfa" in jose.parts(tokens["id_token"])[1]["amr"]


def test_asking_and_failing_use_up_no_try_of_the_first_factor(ada):
    """Twelve answers that say "required", by handle of five tries and by address of five failures in ten minutes, and four wrong ones."""
    asked = ada.app.request_code(ada.email)
    for _ in range(6):
        assert_refused(ada.app.redeem(asked.code, handle=asked.handle), REQUIRED)
        assert_refused(ada.app.redeem(asked.code, email=ada.email), REQUIRED)
    for who in ({"email": ada.email}, {"handle": asked.handle}) * 2:
        assert_refused(ada.app.redeem(asked.code, **who, totp_code=totp.wrong(ada.secret)), INVALID)
    tries = ada.realm.world.cluster.value(
        f"SELECT max(attempts) FROM postern.sign_in_request WHERE address_key = {literal(ada.email)}")
    assert tries == "0", "all were given back"
    assert ada.app.redeem(asked.code, handle=asked.handle, totp_code=ada.code()).status == 200


def test_a_used_step_is_never_accepted_again(ada):
    """With a new code by mail; nor one before it; the next one is."""
    spent = ada.code()
    assert ada.sign_in(totp_code=spent).status == 200
    assert_refused(ada.sign_in(totp_code=spent), INVALID)
    assert ada.sign_in(totp_code=ada.code(1)).status == 200
    assert_refused(ada.sign_in(totp_code=ada.code()), INVALID)
    assert ada.value("wrong_2_at IS NOT NULL AND wrong_3_at IS NULL") == "t", "replays are wrong tries"


def test_the_step_that_proved_the_enrolment_is_used(realm):
    """RFC 6238 5.2: no code is validated twice."""
    who = signed_in(realm)
    begun = who.app.totp_begin(who.token).json()
    code = totp.code(begun["secret"])
    assert who.app.totp_enroll(who.token, begun, code).status == 200
    asked = who.app.request_code(who.email)
    assert_refused(who.app.redeem(asked.code, email=who.email, totp_code=code), INVALID)


@pytest.mark.parametrize("offset,good", [(-3, False), (-2, False), (-1, True), (0, True), (1, True), (2, False), (3, False)])
def test_one_step_either_way_is_accepted(ada, offset, good):
    """Clocks differ; the database's counts."""
    totp.settle()
    ada.later()
    answer = ada.sign_in(totp_code=ada.code(offset))
    assert answer.status == 200 if good else answer.json() == INVALID, answer


@pytest.mark.parametrize("typed", ["{0} {1}", " {0}{1} ", "{0}{1} "])
def test_spaces_in_a_code_do_not_matter(ada, typed):
    """As apps show it."""
    code = ada.code()
    assert ada.sign_in(totp_code=typed.format(code[:3], code[3:])).status == 200


def test_a_recovery_code_stands_in_once(ada):
    """However it is typed; audited with how many are left."""
    first, second = ada.recovery_codes[:2]
    answer = ada.sign_in(recovery_code=first.upper().replace("-", " "))
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp", "mfa"], answer
    assert_refused(ada.sign_in(recovery_code=first), INVALID)
    asked = ada.app.request_code(ada.email)
    assert_refused(ada.app.redeem("0", email=ada.email, recovery_code=second), UNIFORM)
    assert ada.app.redeem(asked.code, email=ada.email, recovery_code=second).status == 200
    assert ada.audit() == ["totp_enrolled", "recovery_code_used", "recovery_code_used"]
    rows = [json.loads(row) for row in ada.realm.world.admin.rows_of("audit_log", "recovery_code_used")]
    assert {"left": 8} in [row["detail"] for row in rows]


def test_of_both_the_totp_code_counts(ada):
    """A recovery code beside it is not spent."""
    assert_refused(ada.sign_in(totp_code=totp.wrong(ada.secret), recovery_code=ada.recovery_codes[0]), INVALID)
    assert ada.sign_in(totp_code=ada.code(), recovery_code=ada.recovery_codes[0]).status == 200
    assert ada.sign_in(recovery_code=ada.recovery_codes[0]).status == 200


# -- with a link -----------------------------------------------------------------------------------------------

REFUSED_LINK = {"error": "invalid_grant", "error_description": "Invalid or expired link."}


def test_a_link_by_its_token_needs_the_second_factor_too(ada):
    """The link stays live until both are there; a dead link says nothing of the second factor."""
    links = Links(ada.app)
    link = links.link(ada.email)
    for _ in range(3):
        assert_refused(links.redeem(link), REQUIRED)
    assert_refused(links.redeem(link, totp_code=totp.wrong(ada.secret)), INVALID)
    assert_refused(links.redeem(link, magic_token="A" * 43, totp_code=ada.code()), REFUSED_LINK)
    answer = links.redeem(link, totp_code=ada.code())
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp", "mfa"], answer
    assert_refused(links.redeem(link, totp_code=ada.code(1)), REFUSED_LINK)
    assert_refused(links.redeem(links.link(ada.email), totp_code=ada.code()), INVALID)
    assert links.redeem(links.link(ada.email), recovery_code=ada.recovery_codes[0]).status == 200


def test_a_link_confirmed_elsewhere_needs_the_second_factor_too(ada):
    """The device that asked brings it; the confirmation stays until then."""
    links = Links(ada.app)
    link = links.link(ada.email)

    def poll(**factors):
        return ada.app.token({**links.poll_form(link.handle), **factors})

    assert poll(totp_code=ada.code()).error == "authorization_pending"
    assert links.choose(link, link.number).status == 200
    for _ in range(3):
        assert_refused(poll(), REQUIRED)
    assert_refused(poll(totp_code=totp.wrong(ada.secret)), INVALID)
    answer = poll(totp_code=ada.code())
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp", "mfa"], answer
    assert_refused(poll(totp_code=ada.code(1)), REFUSED_LINK)


def test_wrong_tries_count_together_whatever_the_first_factor(ada):
    """Five in all, by code, token and poll; and what has no second factor ignores one."""
    links = Links(ada.app)
    asked, link = ada.app.request_code(ada.email), links.link(ada.email)
    for _ in range(3):
        assert_refused(links.redeem(link, totp_code=totp.wrong(ada.secret)), INVALID)
    for _ in range(2):
        assert_refused(ada.app.redeem(asked.code, email=ada.email, totp_code=totp.wrong(ada.secret)), INVALID)
    assert_refused(links.redeem(link, totp_code=ada.code()), INVALID)
    assert_refused(links.redeem(link, recovery_code=ada.recovery_codes[0]), INVALID)
    plain = ada.realm.user()
    answer = links.redeem(links.link(plain), totp_code="000000")
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp"], answer


# -- how often ---------------------------------------------------------------------------------------------------


def test_five_wrong_ones_close_it_for_the_rest_of_ten_minutes(world, ada):
    """TOTP or recovery codes, whatever the form; with the same text, and the code by mail stays as good as it was."""
    stopwatch = world.stopwatch()
    asked = ada.app.request_code(ada.email)
    for number, who in enumerate([{"email": ada.email}, {"handle": asked.handle}, {"email": ada.email}, {"handle": asked.handle}]):
        wrong = {"totp_code": totp.wrong(ada.secret, number)} if number % 2 else {"recovery_code": "0000-0000-0000"}
        assert_refused(ada.app.redeem(asked.code, **who, **wrong), INVALID)
    assert ada.audit() == ["totp_enrolled"]
    assert_refused(ada.app.redeem(asked.code, email=ada.email, totp_code="x"), INVALID)
    assert ada.audit() == ["totp_enrolled", "second_factor_locked"]
    for factors in ({"totp_code": ada.code()}, {"recovery_code": ada.recovery_codes[0]}, {"totp_code": "x"}):
        assert_refused(ada.app.redeem(asked.code, handle=asked.handle, **factors), INVALID)
    assert_refused(ada.app.redeem(asked.code, handle=asked.handle), REQUIRED)
    assert_refused(ada.app.redeem("0", handle=asked.handle), UNIFORM)
    stopwatch.reach(560)
    assert_refused(ada.sign_in(totp_code=ada.code()), INVALID)
    stopwatch.reach(660)
    assert ada.sign_in(totp_code=ada.code()).status == 200
    assert ada.sign_in(recovery_code=ada.recovery_codes[0]).status == 200
    assert ada.audit() == ["totp_enrolled", "second_factor_locked", "recovery_code_used"]


def test_a_passkey_is_the_way_in_meanwhile(realm):
    """The lock is of the second factor beside a code."""
    one = holder(realm)
    secret, _ = one.app.enrol_totp(one.token)
    asked = one.app.request_code(one.email)
    for _ in range(5):
        assert_refused(one.app.redeem(asked.code, email=one.email, totp_code=totp.wrong(secret)), INVALID)
    assert_refused(one.app.redeem(asked.code, email=one.email, totp_code=totp.code(secret)), INVALID)
    one.app.passkey_sign_in(one.credential)


@pytest.mark.slow
def test_of_48_right_ones_at_once_one_signs_in(world, realm):
    """One pair of codes, over two processes: one session, and every loser gets an invalid_grant."""
    node = world.start_node()
    try:
        for ada in in_parallel(lambda _: Protected(realm), range(4)):
            asked = ada.app.request_code(ada.email)
            raw = token_request(ada.app, ada.app.redeem_form(asked.code, email=ada.email, totp_code=ada.code()))
            parts = in_parallel(lambda n, raw=raw: volley(n.port, [raw] * (WIDTH // 2)), [world.node, node], threads=2)
            answers = [answer for part in parts for answer in part]
            # Two statements each, one after the other for one account: on a busy machine some find no connection in time.
            statuses = collections.Counter(a.status for a in answers)
            assert statuses[200] == 1 and statuses[400] + statuses[503] == WIDTH - 1, statuses
            assert {a.error for a in answers if a.status == 400} == {"invalid_grant"}
    finally:
        node.stop()


@pytest.mark.slow
def test_of_48_guesses_at_once_five_are_compared(realm):
    """All with the right code by mail. The one right guess among them may be one of the five, never more than one signs in."""
    ada = Protected(realm)
    asked = ada.app.request_code(ada.email)
    forms = [ada.app.redeem_form(asked.code, handle=asked.handle, totp_code=totp.wrong(ada.secret, n)) for n in range(WIDTH)]
    answers = volley(realm.world.node.port, [token_request(ada.app, form) for form in forms])
    assert all(a.status == 400 and a.json() == INVALID for a in answers), answers
    assert ada.value("wrong_in_a_row") == "5"
    assert_refused(ada.app.redeem(asked.code, handle=asked.handle, totp_code=ada.code()), INVALID)


# -- operators ---------------------------------------------------------------------------------------------------


def test_an_administrator_helps_whoever_lost_everything(world, ada):
    """admin.reset_totp; the view of users says who has one."""
    admin = world.admin
    row = f"FROM admin.users WHERE realm = {literal(ada.realm.slug)} AND email = {literal(ada.email)};"
    assert admin.run(f"SELECT has_totp {row}")[0][0] == "t"
    assert admin.call("reset_totp", ada.realm.slug, ada.email) == "t"
    assert admin.call("reset_totp", ada.realm.slug, ada.email) == "f"
    assert admin.run(f"SELECT has_totp {row}")[0][0] == "f"
    assert ada.sign_in().status == 200
    assert ada.audit() == ["totp_enrolled", "totp_removed"]


def test_neither_seed_nor_recovery_code_is_in_the_database(world, ada):
    """Sealed and hashed under keys the database does not hold."""
    assert ada.sign_in(totp_code=ada.code()).status == 200
    assert ada.sign_in(recovery_code=ada.recovery_codes[0]).status == 200
    dump = world.cluster.dump().decode(errors="replace").lower()
    seed = totp.seed(ada.secret)
    secrets = [ada.secret, seed.hex(), *ada.recovery_codes, *(code.replace("-", "") for code in ada.recovery_codes)]
    assert not [secret for secret in secrets if secret.lower() in dump]
    logs = "".join(path.read_text(errors="replace") for path in (world.node.stdout, world.node.stderr)).lower()
    assert not [secret for secret in secrets if secret.lower() in logs]


def test_a_new_server_key_opens_what_the_old_one_sealed(world, ada):
    """The key file with a new line on top: seed and recovery codes are as good as before."""
    both = world.cluster.root / "rotated.key"

    write_key_file(both)
    with open(both, "a", encoding="ascii") as file:
        file.write(world.key_file.read_text(encoding="ascii"))
    node = world.start_node(POSTERN_SECRET_KEY_FILE=str(both))
    try:
        app = ada.realm.app(node=node)
        for factors in ({"totp_code": ada.code()}, {"recovery_code": ada.recovery_codes[0]}):
            asked = ada.app.request_code(ada.email)
            assert app.redeem(asked.code, email=ada.email, **factors).status == 200
    finally:
        node.stop()
        # Sessions stand on the new line now, and no other node of this world has it.
        line = line_id(both.read_text(encoding="ascii").splitlines()[0])
        world.admin.call("forget_key_line", line)


def test_try_otp_takes_a_totp_code(dev):
    """`postern try otp --totp`: refused without, signed in with."""
    token = dev.sign_in()

    def post(path, document=None, method="POST"):
        fields = {"Host": f"localhost:{dev.port}", "Content-Type": "application/json", **bearer(token)}
        return wire.exchange(dev.port, method, path, fields, None if document is None else json.dumps(document).encode())

    begun = post("/connect/totp/enroll/begin", {}).json()
    totp.settle()
    body = {"ceremonyId": begun["ceremonyId"], "code": totp.code(begun["secret"], -1)}
    assert post("/connect/totp/enroll", body).status == 200
    try:
        arguments = ["try", "otp", "--url", dev.origin, "--client", dev.client_id, "--email", dev.email]
        without = run_postern(*arguments)
        assert without.returncode == 1 and "supply totp_code" in without.stdout, without
        totp.settle(15)  # the command takes some seconds on a busy machine
        given = run_postern(*arguments, "--totp", totp.code(begun["secret"]))
        assert given.returncode == 0, given
    finally:
        assert post("/connect/totp", method="DELETE").status == 204
