"""The order of checks at the token endpoint (docs/wire.md): every row, with its exact status and body, and that the earlier row wins."""

import itertools
import json
import re

import pytest

from harness import wire
from harness.realm import OTP

TOKEN = "/connect/token"
UNIFORM = {"error": "invalid_grant", "error_description": "Invalid or expired code."}
UNIFORM_REFRESH = {"error": "invalid_grant", "error_description": "The refresh token is invalid."}
DESCRIPTION = re.compile(r"^[\x20-\x21\x23-\x5b\x5d-\x7e]+$")


def assert_error(answer, status, error):
    """An OAuth error: status, JSON, no-store, nothing but the members RFC 6749 allows."""
    assert answer.status == status, answer
    document = answer.json()
    assert document["error"] == error, answer
    assert set(document) <= {"error", "error_description", "error_uri"}, answer
    assert DESCRIPTION.match(document.get("error_description", "x")), answer
    assert answer.header("content-type").startswith("application/json"), answer
    assert "no-store" in answer.header("cache-control"), answer
    assert answer.header("set-cookie") is None and answer.header("location") is None, answer


@pytest.fixture
def good(app, email):
    """A redemption that would succeed, as a dict to spoil."""
    asked = app.request_code(email)
    return app.redeem_form(asked.code, email=email)


def still_good(app, form):
    """Whatever was refused before the factor has left the code alive."""
    assert app.token(form).status == 200


# -- 1: the form ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD"])
def test_only_post_is_a_token_request(app, good, method):
    """Row 1: 405 with Allow: POST, and no redemption."""
    target = TOKEN + "?" + wire.form_body(good).decode()
    body = wire.form_body(good) if method in ("PUT", "PATCH", "DELETE") else None
    answer = wire.exchange(app.node.port, method, target, {"Host": app.host, "Content-Type": wire.FORM}, body)
    assert answer.status == 405, answer
    assert answer.header("allow") == "POST", answer
    still_good(app, good)


@pytest.mark.parametrize("content_type", [None, "application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_another_content_type_is_an_invalid_request(app, good, content_type):
    """Row 1."""
    answer = wire.exchange(
        app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": content_type}, wire.form_body(good)
    )
    assert_error(answer, 400, "invalid_request")
    still_good(app, good)


@pytest.mark.parametrize("content_type", [
    "application/x-www-form-urlencoded; charset=utf-8", "APPLICATION/X-WWW-FORM-URLENCODED", "application/x-www-form-urlencoded ;charset=UTF-8",
    "application/x-www-form-urlencoded; boundary=x; charset=utf-8", "application/x-www-form-urlencoded; version=1",
])
def test_the_form_content_type_may_be_written_otherwise(app, good, content_type):
    """Row 1, the other side: case and a UTF-8 charset are fine, and parameters that mean nothing."""
    assert app.token(good, {"Content-Type": content_type}).status == 200


@pytest.mark.parametrize("name", ["grant_type", "client_id", "username", "otp_code", "scope", "unheard_of"])
def test_a_repeated_parameter_is_an_invalid_request(app, good, name):
    """Row 1: even with the same value, even a parameter nobody reads."""
    form = {"unheard_of": "x", **{k: v for k, v in good.items() if v is not None}}
    pairs = [*form.items(), (name, form[name])]
    answer = wire.exchange(
        app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body(pairs)
    )
    assert_error(answer, 400, "invalid_request")
    still_good(app, good)


def test_the_resource_parameter_may_be_repeated(app, realm, email):
    """Row 1, the one exception."""
    asked = app.request_code(email)
    form = [(k, v) for k, v in app.redeem_form(asked.code, email=email, scope=f"openid {realm.granted_scope}").items() if v]
    form += [("resource", realm.granted_resource)] * 2
    answer = wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body(form))
    assert answer.status == 200, answer


def test_two_client_credentials_are_an_invalid_request(realm, email):
    """Row 1: Basic and client_secret together, both right."""
    api = realm.app("api")
    form = api.redeem_form("123456", email=email)
    assert_error(api.token(form, {"Authorization": api.basic}), 400, "invalid_request")


@pytest.mark.parametrize("bytes_", [b"%00", b"%ff%fe", b"%c0%af", b"%ed%a0%80", b"\xff"])
def test_bad_utf8_and_nul_are_an_invalid_request(app, good, bytes_):
    """Row 1: never cut, never replaced."""
    body = wire.form_body({**good, "username": None}) + b"&username=" + bytes_
    answer = wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, body)
    assert_error(answer, 400, "invalid_request")
    still_good(app, good)


def test_a_body_over_64_kib_is_413_and_one_of_64_kib_is_read(app, good):
    """Row 1: the limit to the byte."""
    body = wire.form_body(good) + b"&padding="
    fields = {"Host": app.host, "Content-Type": wire.FORM}
    answer = wire.exchange(app.node.port, "POST", TOKEN, fields, body + b"x" * (65537 - len(body)))
    assert answer.status == 413, answer
    answer = wire.exchange(app.node.port, "POST", TOKEN, fields, body + b"x" * (65536 - len(body)))
    assert answer.status == 200, answer


# -- 2 to 6: the request ------------------------------------------------------------------------


def test_ten_thousand_parameters_cost_little(world, app, good):
    """Those that nobody knows are ignored, one of them twice is refused; neither takes 50 ms of the processor."""
    many = [(f"{number:04}", "") for number in range(10_000)]
    body = wire.form_body(many)
    assert len(body) <= 65_536, len(body)
    before = world.node.processor_seconds()
    for _ in range(20):
        answer = wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, body)
        assert (answer.status, answer.json()["error"]) == (400, "invalid_request"), answer
    assert world.node.processor_seconds() - before < 20 * 0.05
    answer = wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body([*many[:9000], *good.items(), many[0]]))
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request"), answer
    still_good(app, good)


@pytest.mark.parametrize("grant_type, error", [
    (None, "invalid_request"), ("", "invalid_request"), ("password", "unsupported_grant_type"),
    ("urn:cocoar:OTP", "unsupported_grant_type"), ("urn:cocoar:otp ", "unsupported_grant_type"),
])
def test_the_grant_type_must_be_there_and_known(app, good, grant_type, error):
    """Row 2."""
    assert_error(app.token({**good, "grant_type": grant_type}), 400, error)
    still_good(app, good)


@pytest.mark.parametrize("who", ["missing", "empty", "unknown", "disabled", "other realm", "wrong case"])
def test_an_unknown_client_is_401(app, good, realm, world, who):
    """Row 3."""
    if who == "disabled":
        world.admin.call("put_client", realm.slug, realm.client("disabled"), enabled=False)
        world.settle()
    client = {
        "missing": None, "empty": "", "unknown": "no-such-client", "disabled": realm.client("disabled"),
        "other realm": "somewhere-app", "wrong case": app.client_id.upper(),
    }[who]
    assert_error(app.token({**good, "client_id": client}), 401, "invalid_client")
    still_good(app, good)


@pytest.mark.parametrize("secret", [None, "wrong"])
def test_a_confidential_client_needs_its_secret(realm, email, secret):
    """Row 3: missing or wrong in the form."""
    api = realm.app("api")
    asked = api.request_code(email)
    form = api.redeem_form(asked.code, email=email)
    assert_error(api.token({**form, "client_secret": secret}), 401, "invalid_client")
    still_good(api, form)


def test_a_wrong_basic_secret_is_answered_with_a_challenge(realm, email):
    """Row 3: WWW-Authenticate when Basic was used; the right one works."""
    api = realm.app("api")
    asked = api.request_code(email)
    form = {**api.redeem_form(asked.code, email=email), "client_secret": None, "client_id": None}
    right, api.secret = api.secret, "wrong"
    answer = api.token(form, {"Authorization": api.basic})
    assert_error(answer, 401, "invalid_client")
    assert answer.header("www-authenticate").startswith("Basic")
    api.secret = right
    assert api.token(form, {"Authorization": api.basic}).status == 200


def test_a_secret_from_a_public_client_is_refused(app, good):
    """Row 3."""
    assert_error(app.token({**good, "client_secret": "anything"}), 401, "invalid_client")
    still_good(app, good)


def test_a_client_without_the_grant_permission_is_unauthorized(realm, app, good):
    """Row 4, for codes and for refresh."""
    client = realm.client("no-grants")
    assert_error(app.token({**good, "client_id": client}), 400, "unauthorized_client")
    refresh = {"grant_type": "refresh_token", "client_id": realm.client("no-refresh"), "refresh_token": "x"}
    assert_error(app.token(refresh), 400, "unauthorized_client")
    still_good(app, good)


def test_a_realm_without_native_grants_does_not_support_them(world):
    """Row 5, after row 4."""
    off = world.realm(native=False)
    app = off.app()
    form = app.redeem_form("123456", email="somebody@mail.example")
    assert_error(app.token(form), 400, "unsupported_grant_type")
    assert_error(app.token({**form, "client_id": off.client("no-grants")}), 400, "unauthorized_client")
    assert_error(app.token({**form, "scope": "no.such.scope"}), 400, "unsupported_grant_type")


@pytest.mark.parametrize("scope", ["no.such.scope", "openid no.such.scope", "switched.off", "OPENID", 'openid "', "openid\\"])
def test_an_unknown_or_disabled_scope_is_invalid(app, good, scope):
    """Row 6."""
    assert_error(app.token({**good, "scope": scope}), 400, "invalid_scope")
    still_good(app, good)


def test_a_scope_the_client_may_not_ask_for_is_an_invalid_request(app, good, realm):
    """Row 6: scp: missing, or offline_access without gt:refresh_token."""
    assert_error(app.token({**good, "scope": f"openid {realm.forbidden_scope}"}), 400, "invalid_request")
    assert_error(app.token({**good, "client_id": realm.client("no-refresh")}), 400, "invalid_request")
    still_good(app, good)


@pytest.mark.parametrize("resource", ["forbidden", "https://nobody.example/", "relative", "https://orders.example/api#f"])
def test_a_resource_that_no_granted_scope_has_is_an_invalid_target(app, good, realm, resource):
    """Row 6."""
    target = realm.forbidden_resource if resource == "forbidden" else resource
    assert_error(app.token({**good, "resource": target}), 400, "invalid_target")
    still_good(app, good)


@pytest.mark.parametrize("missing", [["otp_code"], ["username"], ["otp_code", "username"]])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_or_empty_grant_parameter_is_an_invalid_request(app, good, missing, value):
    """Row 6, for codes."""
    assert_error(app.token({**good, **{name: value for name in missing}}), 400, "invalid_request")
    still_good(app, good)


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_or_empty_refresh_token_is_an_invalid_request(app, value):
    """Row 6, for refresh."""
    assert_error(app.refresh(value), 400, "invalid_request")


# -- the order ------------------------------------------------------------------------------------


SPOIL = {
    "1 repeated": (lambda realm, pairs: [*pairs, ("otp_code", "1")], 400, "invalid_request"),
    "2 grant": (lambda realm, pairs: replace(pairs, "grant_type", "password"), 400, "unsupported_grant_type"),
    "3 client": (lambda realm, pairs: replace(pairs, "client_id", "nobody"), 401, "invalid_client"),
    "4 permission": (lambda realm, pairs: replace(pairs, "client_id", realm.client("no-grants")), 400, "unauthorized_client"),
    "6 scope": (lambda realm, pairs: replace(pairs, "scope", "no.such.scope"), 400, "invalid_scope"),
    "7 factor": (lambda realm, pairs: replace(pairs, "username", "nobody@mail.example"), 400, "invalid_grant"),
}


def replace(pairs, name, value):
    """The form with one value changed."""
    return [(k, value if k == name else v) for k, v in pairs]


@pytest.mark.parametrize("first, second", [
    pair for pair in itertools.combinations(SPOIL, 2) if pair != ("3 client", "4 permission")
])
def test_of_two_faults_the_earlier_row_answers(app, realm, first, second):
    """Two rows violated at once."""
    pairs = list({k: v for k, v in app.redeem_form("123456", email="somebody@mail.example").items() if v is not None}.items())
    for fault in (second, first):
        pairs = SPOIL[fault][0](realm, pairs)
    answer = wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body(pairs))
    assert_error(answer, *SPOIL[first][1:])


@pytest.mark.parametrize("fault", [name for name in SPOIL if name != "7 factor"])
def test_rows_1_to_6_do_not_depend_on_the_account(app, realm, email, fault):
    """The same bytes for a known, a disabled and an unknown address."""
    disabled = realm.user(enabled=False)
    answers = []
    for address in (email, disabled, "nobody@mail.example"):
        pairs = list({k: v for k, v in app.redeem_form("123456", email=address).items() if v is not None}.items())
        body = wire.form_body(SPOIL[fault][0](realm, pairs))
        answers.append(wire.exchange(app.node.port, "POST", TOKEN, {"Host": app.host, "Content-Type": wire.FORM}, body))
    assert len({json.dumps(a.same_bytes(), default=str) for a in answers}) == 1, answers


# -- 7 and 8: the factor --------------------------------------------------------------------------


def test_every_wrong_code_answer_is_the_same_bytes(world, realm, app):
    """Row 7 and 8 for codes: wrong, malformed, used, expired, superseded, somebody else's, no account, disabled, deleted, exhausted."""
    answers = {}

    def refused(name, answer):
        assert answer.json() == UNIFORM, f"{name}: {answer}"
        assert_error(answer, 400, "invalid_grant")
        answers[name] = answer

    expired = app.request_code(realm.user())
    expired_handle = app.request_code(realm.user())
    world.time_travel(601)
    refused("expired", app.redeem(expired.code, email=expired.email))
    refused("expired by handle", app.redeem(expired_handle.code, handle=expired_handle.handle))

    email = realm.user()
    asked = app.request_code(email)
    wrong = f"{(int(asked.code) + 1) % 1_000_000:06}"
    refused("wrong", app.redeem(wrong, email=email))
    refused("wrong by handle", app.redeem(wrong, handle=asked.handle))
    for malformed in ("12345", "1234567", "abcdef", "１２３４５６", "123 456"):
        refused(f"malformed {malformed}", app.redeem(malformed, handle=app.request_code(realm.user()).handle))
    refused("unknown address", app.redeem(asked.code, email="nobody@mail.example"))
    refused("malformed address", app.redeem(asked.code, email="not an address"))
    refused("unknown handle", app.redeem(asked.code, handle="no-such-handle"))
    refused("somebody else's", app.redeem(asked.code, email=realm.user()))
    other = app.request_code(realm.user())
    refused("address and handle disagree", app.redeem(asked.code, email=email, handle=other.handle))
    refused("never requested", app.redeem("123456", email=realm.user()))

    four = realm.user()
    first, *_ = [app.request_code(four) for _ in range(4)]
    refused("superseded", app.redeem(first.code, email=four))

    bound = app.request_code(realm.user(), ClientId=app.client_id)
    refused("another client's", realm.app("app-2").redeem(bound.code, handle=bound.handle))

    assert app.redeem(asked.code, email=email).status == 200
    refused("used", app.redeem(asked.code, email=email))
    refused("used by handle", app.redeem(asked.code, handle=asked.handle))

    for event in ("disabled", "deleted"):
        gone = app.request_code(realm.user())
        if event == "disabled":
            world.admin.call("set_user_enabled", realm.slug, gone.email, False)
        else:
            world.admin.call("delete_user", realm.slug, gone.email)
        refused(event, app.redeem(gone.code, email=gone.email))
        refused(event + " by handle", app.redeem(gone.code, handle=gone.handle))

    worn = app.request_code(realm.user())
    for _ in range(5):
        app.redeem("000000" if worn.code != "000000" else "000001", email=worn.email)
    refused("budget used up", app.redeem(worn.code, email=worn.email))

    assert len({json.dumps(a.same_bytes(), default=str) for a in answers.values()}) == 1, answers


def test_every_bad_refresh_token_answer_is_the_same_bytes(world, realm, app):
    """Row 7 and 8 for refresh: garbage, another client's, expired, revoked, reused, disabled, signed out."""
    answers = {}

    def refused(name, answer):
        assert answer.json() == UNIFORM_REFRESH, f"{name}: {answer}"
        assert_error(answer, 400, "invalid_grant")
        answers[name] = answer

    expired = app.sign_in(realm.user())["refresh_token"]
    reused = app.sign_in(realm.user())["refresh_token"]
    world.time_travel(14 * 86400 - 60)
    successor = app.refreshed(reused)["refresh_token"]
    world.time_travel(121)
    refused("expired", app.refresh(expired))
    refused("reused", app.refresh(reused))
    refused("successor of a reused one", app.refresh(successor))

    tokens = app.sign_in(realm.user())
    refused("garbage", app.refresh("garbage"))
    refused("an access token", app.refresh(tokens["access_token"]))
    refused("another client's", realm.app("app-2").refresh(tokens["refresh_token"]))
    middle = len(tokens["refresh_token"]) // 2
    flipped = tokens["refresh_token"]
    flipped = flipped[:middle] + ("A" if flipped[middle] != "A" else "B") + flipped[middle + 1:]
    refused("one character changed", app.refresh(flipped))
    assert app.revoke(tokens["refresh_token"]).status == 200
    refused("revoked", app.refresh(tokens["refresh_token"]))

    for event in ("disabled", "deleted", "signed out"):
        email = realm.user()
        token = app.sign_in(email)["refresh_token"]
        function, more = {
            "disabled": ("set_user_enabled", [False]), "deleted": ("delete_user", []), "signed out": ("sign_out_everywhere", []),
        }[event]
        world.admin.call(function, realm.slug, email, *more)
        refused(event, app.refresh(token))

    assert len({json.dumps(a.same_bytes(), default=str) for a in answers.values()}) == 1, answers


def test_too_many_token_requests_are_429(world):
    """Row 8: Retry-After and the documented body."""
    realm = world.realm()
    app = realm.app()
    realm.limit("token", "source", 3)
    answers = [app.refresh("x") for _ in range(4)]
    assert [a.status for a in answers] == [400, 400, 400, 429], answers
    assert_rate_limited(answers[-1], "token", "source")


def test_too_many_code_requests_for_one_address_are_429_known_or_not(world):
    """Row 8 on otp/request: five in an hour for one address from one source, whoever it is."""
    realm = world.realm(limits=False)
    app = realm.app()
    last = []
    for address in (realm.user(), realm.new_email()):
        answers = [app.ask(address) for _ in range(6)]
        assert [a.status for a in answers] == [200] * 5 + [429], answers
        assert_rate_limited(answers[-1], "native-otp", "target")
        last.append(answers[-1])
    assert last[0].json().keys() == last[1].json().keys()


def assert_rate_limited(answer, policy, dimension):
    """429 as docs/wire.md writes it."""
    assert re.fullmatch(r"[1-9][0-9]*", answer.header("retry-after")), answer
    document = answer.json()
    assert (document["error"], document["policy"], document["dimension"]) == ("rate_limited", policy, dimension), answer
    assert document["retryAfterSeconds"] == int(answer.header("retry-after")), answer


# -- otp/request ------------------------------------------------------------------------------------


def test_asking_for_a_code_answers_everybody_with_the_same_bytes(app, realm, email):
    """Known, unknown, disabled: the same but for the handle."""
    answers = [app.ask(a) for a in (email, realm.new_email(), realm.user(enabled=False))]
    bodies = []
    for answer in answers:
        assert answer.status == 200, answer
        document = answer.json()
        assert document["Message"] == "If your email is registered, you will receive a verification code."
        assert (document["ExpiresIn"], document["ResendAfter"]) == (600, 0)
        bodies.append(answer.body.replace(document["AuthSession"].encode(), b"H"))
        assert len(document["AuthSession"]) == len(answers[0].json()["AuthSession"])
    assert len(set(bodies)) == 1, bodies
    assert len({json.dumps(a.same_bytes()[1]) for a in answers}) == 1, answers


def test_a_malformed_address_is_refused_before_anything_else(app):
    """400 {"error":"Email is invalid."}."""
    for address in ("", "nobody", "a@b@c.example", "a b@c.example"):
        answer = app.ask(address)
        assert (answer.status, answer.json()) == (400, {"error": "Email is invalid."}), answer


def test_a_realm_without_native_grants_sends_no_codes(world):
    """400 problem NativeGrants.Disabled."""
    answer = world.realm(native=False).app().ask("somebody@mail.example")
    assert answer.status == 400, answer
    assert answer.header("content-type").startswith("application/problem+json")
    assert answer.json()["title"] == "NativeGrants.Disabled"


def test_only_confirmed_enabled_users_get_a_mail(app, realm, email):
    """Posture Off: nothing for unknown, unconfirmed and disabled addresses, and no user row appears."""
    silent = [realm.new_email(), realm.user(email_verified=False), realm.user(enabled=False)]
    for address in silent:
        assert app.ask(address).status == 200
    app.request_code(email)  # asked last, delivered: the workers are past the others
    app.request_code(realm.user())
    assert [len(realm.world.mailbox.to(address)) for address in silent] == [0, 0, 0]
    assert not realm.world.admin.rows_of("users", silent[0])
