"""How strong a sign-in was: `acr_values` at the native grants, `acr` wherever it is said, and the challenges that ask for more (RFC 9470)."""

import pytest

from harness import authenticator, jose, totp
from harness.app import bearer
from harness.holder import holder, signed_in
from harness.links import Links

ONE, TWO, KEY = "urn:postern:acr:1", "urn:postern:acr:2", "phr"
UNMET = {"error": "unmet_authentication_requirements", "error_description": "The requested authentication context cannot be met."}
UNIFORM = {"error": "invalid_grant", "error_description": "Invalid or expired code."}
REQUIRED = {"error": "invalid_grant", "error_description": "Two-factor authentication is required; supply totp_code."}


def assert_unmet(answer):
    """400, whatever else."""
    assert answer.status == 400 and answer.json() == UNMET and "no-store" in answer.header("cache-control"), answer


def acr(realm, tokens):
    """What ID token and introspection say; they agree."""
    said = realm.app("api").introspect(tokens["access_token"]).json()["acr"]
    assert jose.parts(tokens["id_token"])[1]["acr"] == said
    return said


def tried_with(realm, answer):
    """`acr` of a success, or the error."""
    return acr(realm, answer.json()) if answer.status == 200 else answer.json()["error"]


@pytest.mark.parametrize("asked", [KEY, "x", "phrh", "x phr y", " ".join(["phr"] * 50), "urn:postern:acr:3"])
def test_what_a_code_can_never_meet_is_said_before_it_is_looked_at(realm, app, email, asked):
    code = app.request_code(email)
    for wrong in range(7):
        assert_unmet(app.redeem("000000" if wrong else code.code, handle=code.handle, acr_values=asked))
    assert app.redeem(code.code, handle=code.handle).status == 200, "the code and all of its tries are left"


@pytest.mark.parametrize("asked,said", [
    (None, ONE), (" ", ONE), ("", ONE), (ONE, ONE), (f"phr {ONE}", ONE), (f"{TWO} {ONE}", ONE), (f"x {ONE} " * 40, ONE)])
def test_a_code_says_the_first_value_it_meets(realm, app, email, asked, said):
    assert tried_with(realm, app.redeem(app.request_code(email).code, email=email, acr_values=asked)) == said


def test_a_parameter_that_is_sent_twice_is_refused(app, email):
    code = app.request_code(email)
    form = [*app.redeem_form(code.code, email=email).items(), ("acr_values", ONE), ("acr_values", TWO)]
    answer = app.token(form)
    assert answer.status == 400 and answer.error == "invalid_request", answer
    assert app.redeem(code.code, email=email).status == 200


def test_an_account_without_a_second_factor_keeps_its_code(realm, app, email):
    """After the right code alone: a wrong one is a wrong one."""
    code = app.request_code(email)
    answer = app.redeem("x" + code.code, handle=code.handle, acr_values=TWO)
    assert answer.status == 400 and answer.json() == UNIFORM
    for _ in range(7):
        assert_unmet(app.redeem(code.code, handle=code.handle, acr_values=TWO))
    assert_unmet(app.redeem(code.code, email=email, acr_values=TWO))
    assert_unmet(app.redeem(code.code, email=email, acr_values=TWO, totp_code="000000"))
    assert tried_with(realm, app.redeem(code.code, handle=code.handle)) == ONE


def test_a_registration_keeps_its_code_too(world):
    realm = world.realm("jit")
    app = realm.app_on(realm.put_app("jit", ["app"], registration="JitOnOtp"))
    email = realm.new_email()
    code = app.request_code(email)
    assert_unmet(app.redeem(code.code, handle=code.handle, acr_values=TWO))
    answer = app.redeem(code.code, handle=code.handle)
    assert answer.status == 200 and jose.parts(answer.json()["id_token"])[1]["acr"] == ONE, answer


def test_an_account_with_a_second_factor_signs_in_with_it(realm):
    who = signed_in(realm)
    secret, _ = who.app.enrol_totp(who.token)
    code = who.app.request_code(who.email)
    answer = who.app.redeem(code.code, email=who.email, acr_values=TWO)
    assert answer.status == 400 and answer.json() == REQUIRED
    answer = who.app.redeem(code.code, email=who.email, acr_values=TWO, totp_code=totp.code(secret))
    assert tried_with(realm, answer) == TWO
    assert jose.parts(answer.json()["id_token"])[1]["amr"] == ["otp", "mfa"]


@pytest.mark.parametrize("how", ["opened", "polled"])
def test_a_link_is_kept_like_a_code(realm, app, email, how):
    links = Links(app)
    link = links.link(email)
    if how == "opened":
        def attempt(**more):
            return links.redeem(link, **more)
    else:
        answer = app.token({**links.poll_form(link.handle), "acr_values": KEY})
        assert_unmet(answer)
        assert links.choose(link, link.number).status == 200

        def attempt(**more):
            return app.token({**links.poll_form(link.handle), **more})
    for asked in (TWO, KEY, f"{TWO} phr"):
        assert_unmet(attempt(acr_values=asked))
    assert tried_with(realm, attempt(acr_values=f"{TWO} {ONE}")) == ONE


@pytest.mark.parametrize("asked,said", [
    (ONE, ONE), (TWO, TWO), (KEY, KEY), (None, KEY), (f"{ONE} phr", ONE), (f"x {TWO}", TWO), ("phrh", UNMET["error"])])
def test_a_passkey_meets_every_level_and_never_claims_hardware(realm, asked, said):
    who = holder(realm)
    ceremony = who.app.ceremony()
    document = authenticator.assertion(ceremony["options"], who.credential)
    answer = who.app.redeem_passkey(ceremony, document, acr_values=asked)
    assert tried_with(realm, answer) == said
    if answer.status == 400:
        assert who.app.redeem_passkey(ceremony, document).status == 200, "the ceremony is alive"


@pytest.mark.parametrize("client", ["app", "jwt"])
@pytest.mark.parametrize("asked,said", [(None, ONE), (f"{TWO} {ONE}", ONE)])
def test_tokens_introspection_and_the_list_of_sessions_say_the_same(realm, client, asked, said):
    app = realm.app(client)
    email = realm.user()
    tokens = app.sign_in(email, **({"acr_values": asked} if asked else {}))
    assert acr(realm, tokens) == said
    if client == "jwt":
        assert jose.parts(tokens["access_token"])[1]["acr"] == said
    introspected = realm.app("api").introspect(tokens["access_token"]).json()
    assert introspected["amr"] == jose.parts(tokens["id_token"])[1]["amr"] == ["otp"], "whatever was asked for"
    assert realm.app("api").introspect(tokens["refresh_token"]).json()["acr"] == said
    assert [item["Acr"] for item in app.get("/connect/sessions", bearer(tokens["access_token"])).json()] == [said]


def test_a_session_keeps_what_its_sign_in_said(realm):
    """The row says it, to whoever looks; its methods do not change."""
    who = holder(realm)
    ceremony = who.app.ceremony()
    answer = who.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], who.credential), acr_values=TWO)
    tokens = answer.json()
    assert realm.app("api").introspect(tokens["refresh_token"]).json()["acr"] == TWO
    listed = who.app.get("/connect/sessions", bearer(tokens["access_token"])).json()
    assert [item["Acr"] for item in listed if item["Current"]] == [TWO]
    rows = realm.world.admin.run(
        f"SELECT acr, amr FROM admin.sessions WHERE id = '{jose.parts(tokens['id_token'])[1]['sid']}';")
    assert rows == [[TWO, "{swk,user,mfa}"]] or rows == [[TWO, "{hwk,user,mfa}"]], rows


@pytest.mark.parametrize("age", ["0", "x"])
def test_a_sign_in_ignores_max_age(realm, app, age):
    """It is never old."""
    assert app.sign_in(realm.user(), max_age=age)["access_token"]


def test_discovery_lists_the_values(realm, app):
    document = app.get("/.well-known/openid-configuration").json()
    assert document["acr_values_supported"] == [ONE, TWO, KEY] and "acr" in document["claims_supported"]


def challenge(answer):
    """The members of the RFC 9470 challenge."""
    assert answer.status == 401 and answer.json() == {"error": "insufficient_user_authentication"}, answer
    scheme, _, rest = answer.header("www-authenticate").partition(" ")
    assert scheme == "Bearer"
    return {name: value.strip('"') for name, _, value in (part.strip().partition("=") for part in rest.split(","))}


def test_a_challenge_names_the_age_and_the_context_that_will_be_needed(realm):
    plain, both, key = signed_in(realm), signed_in(realm), holder(realm)
    both.app.enrol_totp(both.token)
    secret = both.app.enrol_totp(both.token)[0]
    realm.world.cluster.sql("UPDATE postern.totp_factor SET last_step_at = last_step_at - interval '2 minutes'")
    with_both = both.app.sign_in(both.email, totp_code=totp.code(secret))["access_token"]
    with_key = key.app.passkey_sign_in(key.credential)["access_token"]
    realm.world.cluster.sql("UPDATE postern.session SET auth_time = auth_time - interval '601 seconds'")
    for token, context in ((plain.token, None), (with_both, TWO), (with_key, None)):
        for answer in (plain.app.enroll_begin(token), plain.app.totp_begin(token)):
            said = challenge(answer)
            assert said["max_age"] == "600" and said.get("acr_values") == context, said


def test_a_session_that_proved_one_factor_is_told_to_prove_two(realm):
    """It may not replace the second factor of its account."""
    who = signed_in(realm)
    who.app.enrol_totp(who.token)
    other = realm.world.cluster.sql  # the session that enrolled counts as proven: take one from before
    other("UPDATE postern.totp_factor SET enrolled_by = gen_random_uuid()")
    begun = who.app.totp_begin(who.token)
    assert begun.status == 200, begun
    answer = who.app.totp_enroll(who.token, begun.json(), totp.code(begun.json()["secret"]))
    said = challenge(answer)
    assert (said["max_age"], said["acr_values"]) == ("600", TWO)
