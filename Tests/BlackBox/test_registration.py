"""Registration: every row of posture x account x endpoint, and what a registration leaves behind."""

import itertools
import json

import pytest

from harness.volley import in_parallel, token_request, volley

REQUEST, REGISTER = "/api/account/native/otp/request", "/api/account/native/register"
MESSAGE = {
    REQUEST: "If your email is registered, you will receive a verification code.",
    REGISTER: "If registration is available, you will receive a verification code.",
}
POSTURES = [None, "Off", "JitOnOtp", "ExplicitEndpoint"]  # None: the realm's own host
ACCOUNTS = {
    "unknown": None,
    "confirmed": {},
    "unconfirmed": {"email_verified": False},
    "disabled": {"enabled": False},
    "disabled unconfirmed": {"enabled": False, "email_verified": False},
}


def outcome(posture, account, path):
    """The matrix: what an address gets, "code" to sign in, "registers" a new user, "confirms" one, or nothing."""
    if account == "confirmed":
        return "code" if path == REQUEST else None
    if (posture, path) not in (("JitOnOtp", REQUEST), ("ExplicitEndpoint", REGISTER)):
        return None
    return {"unknown": "registers", "unconfirmed": "confirms"}.get(account)


@pytest.fixture(scope="module")
def realm(world):
    """A realm with an App of each posture."""
    made = world.realm()
    made.hosts = {None: made.host}
    for posture in POSTURES[1:]:
        made.hosts[posture] = made.put_app(posture.lower(), registration=posture, display_name=f"App {posture}")
    return made


def user(realm, email):
    """The row of admin.users, or None."""
    rows = [json.loads(row) for row in realm.world.admin.rows_of("users", email)]
    return next((row for row in rows if row["email"].lower() == email.lower() and row["realm"] == realm.slug), None)


def account(realm, state):
    """An address in one of the states."""
    return realm.new_email() if ACCOUNTS[state] is None else realm.user(**ACCOUNTS[state])


def ask(app, path, email, **members):
    """The handle of the uniform answer."""
    answer = app.post_json(path, {"Email": email, **members})
    assert answer.status == 200, answer
    return answer.json()["AuthSession"]


def mailed(app, path, email, **members):
    """Asks and waits for the mail; returns the code and the handle."""
    before = len(app.mailbox.to(email))
    handle = ask(app, path, email, **members)
    return app.mailbox.wait(email, before + 1).code, handle


def workers_are_past(realm):
    """Whatever was asked for before has been decided, and its mail delivered."""
    for _ in range(2):
        realm.app().request_code(realm.user())


@pytest.mark.parametrize(
    "posture, state, path", itertools.product(POSTURES, ACCOUNTS, (REQUEST, REGISTER)),
    ids=lambda value: str(value).rpartition("/")[2],
)
def test_the_matrix(realm, posture, state, path):
    """Who is mailed a code, and what redeeming it does. Nobody has a row before the mailbox is proven."""
    app = realm.app_on(realm.hosts[posture])
    email = account(realm, state)
    before = user(realm, email)
    expected = outcome(posture, state, path)
    if expected is None:
        handle = ask(app, path, email)
        workers_are_past(realm)
        assert app.mailbox.to(email) == [], "a mail that should not be"
        assert app.redeem("123456", handle=handle).error == "invalid_grant"
        assert user(realm, email) == before
        return
    code, handle = mailed(app, path, email)
    assert user(realm, email) == before, "a row before the mailbox was proven"
    assert app.redeem(code, handle=handle).status == 200
    after = user(realm, email)
    assert (after["email_verified"], after["enabled"]) == (True, True)
    if before is not None:
        assert after == {**before, "email_verified": True, "sessions": 1, "last_sign_in_at": after["last_sign_in_at"]}
    assert after["last_sign_in_at"]
    assert len(app.mailbox.to(email)) == 1


def test_an_apps_posture_is_jit_on_otp_unless_said_otherwise(realm):
    """The default of put_app."""
    host = realm.put_app("plain")
    code, _ = mailed(realm.app_on(host), REQUEST, email := realm.new_email())
    assert realm.app_on(host).redeem(code, email=email).status == 200


@pytest.mark.parametrize("posture, path", [("JitOnOtp", REQUEST), ("ExplicitEndpoint", REGISTER)])
def test_who_registers_is_a_user_like_any_other(realm, posture, path):
    """Names of the request, tokens, userinfo, the audit log; the next sign-in is an ordinary one, on any host of the realm."""
    app = realm.app_on(realm.hosts[posture])
    email = realm.new_email()
    code, handle = mailed(app, path, email, FirstName=" Ada ", LastName="Lovelace")
    answer = app.redeem(code, handle=handle)
    info = app.userinfo(answer.json()["access_token"]).json()
    assert (info["email"], info["email_verified"], info["given_name"], info["family_name"]) == (email, True, "Ada", "Lovelace")
    row = user(realm, email)
    assert (row["first_name"], row["last_name"], row["id"]) == ("Ada", "Lovelace", info["sub"])
    events = [json.loads(e)["event"] for e in realm.world.admin.rows_of("audit_log", row["id"])]
    assert sorted(events) == ["sign_in", "user_registered"]
    assert realm.app().userinfo(realm.app().sign_in(email)["access_token"]).json()["sub"] == info["sub"]
    assert f"App {posture}" in app.mailbox.to(email)[0].text


def test_a_registration_code_is_redeemed_by_address_too(realm):
    """And mailed to the address as it was typed, which becomes the account's."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    typed = realm.new_email().replace("mike", "Mike")
    code, _ = mailed(app, REQUEST, typed)
    assert app.redeem(code, email=typed.lower()).status == 200
    assert user(realm, typed)["email"] == typed


def test_names_never_change_a_confirmed_user_and_fill_an_unconfirmed_one(realm):
    """Decision 13: anybody can ask with any names."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    confirmed = realm.user(first_name=None)
    code, handle = mailed(app, REQUEST, confirmed, FirstName="Eve", LastName="Eve")
    assert app.redeem(code, handle=handle).status == 200
    assert (user(realm, confirmed)["first_name"], user(realm, confirmed)["last_name"]) == (None, None)
    unconfirmed = realm.user(first_name="Mike", email_verified=False)
    code, handle = mailed(app, REQUEST, unconfirmed, FirstName="Eve", LastName="Miller")
    assert app.redeem(code, handle=handle).status == 200
    assert (user(realm, unconfirmed)["first_name"], user(realm, unconfirmed)["last_name"]) == ("Mike", "Miller")


def test_a_handle_inherits_nobodys_names(world):
    """A stranger asked for the same address with names; the owner's handle has the owner's, or none."""
    realm = world.realm(cooldown="60 seconds")
    app = realm.app_on(realm.put_app("shop"))
    for names, wanted in (({"FirstName": "Ada"}, "Ada"), ({}, None)):
        email = realm.new_email()
        mailed(app, REQUEST, email, FirstName="Eve", LastName="Eve")
        code, handle = mailed(app, REQUEST, email, **names)
        assert app.redeem(code, handle=handle).status == 200
        assert (user(realm, email)["first_name"], user(realm, email)["last_name"]) == (wanted, None)


@pytest.mark.parametrize("name", [" \u0301x", "\u00a0\u0301x", "\t\u0301", "\u0903a"])
def test_a_name_that_cannot_be_stored_is_refused_when_it_is_sent(realm, name):
    """Trimmed by code point: what begins with a combining mark then is no name. Whoever sends it stops nobody's registration."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    for member, label in (("FirstName", "Firstname"), ("LastName", "Lastname")):
        email = realm.new_email()
        answer = app.post_json(REQUEST, {"Email": email, member: name})
        assert (answer.status, answer.json()) == (400, {"error": f"{label} is invalid."}), answer
        code, handle = mailed(app, REQUEST, email)
        assert app.redeem(code, handle=handle).status == 200


@pytest.mark.parametrize("name, stored", [
    ("\u00a0\u3000Ada\u2003\n", "Ada"), ("e\u0301mile", "e\u0301mile"), ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
])
def test_a_name_is_trimmed_of_white_space_of_any_script(realm, name, stored):
    """And holds what names hold: marks and joiners after the first code point."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email, FirstName=name)
    assert app.redeem(code, handle=handle).status == 200
    assert user(realm, email)["first_name"] == stored


def test_one_source_causes_thirty_mails_to_unknown_addresses(world):
    """Limit registrations: over it the answers are the same, and no mail is sent; who has an account is not concerned."""
    realm = world.realm()
    world.admin.call("set_rate_limit", realm.slug, "native-otp", "registrations", permits=120, per="1 hour", burst=30)
    app = realm.app_on(realm.put_app("shop"))
    unknown, known = [realm.new_email() for _ in range(40)], realm.user()
    answers = [app.post_json(REQUEST, {"Email": email}) for email in unknown]
    assert {answer.status for answer in answers} == {200}
    assert len({tuple(name for name, _ in answer.headers) for answer in answers}) == 1
    assert app.redeem(app.request_code(known).code, email=known).status == 200
    workers_are_past(realm)
    assert [len(app.mailbox.to(email)) for email in unknown] == [1] * 30 + [0] * 10


def test_required_names_are_asked_for_before_anything_is_looked_up(world):
    """400 with the documented text on both endpoints, whoever asks; Off ignores a name, whatever it holds; the App's rule wins."""
    realm = world.realm()
    host = realm.put_app("shop")
    world.admin.call("set_registration_fields", realm.slug, firstname="Required", lastname="Off")
    world.admin.call("set_registration_fields", realm.slug, lastname="Required", app="shop")
    world.settle()
    for path, email in itertools.product((REQUEST, REGISTER), (realm.user(), realm.new_email())):
        for spoiled in ({}, {"FirstName": None}, {"FirstName": "  "}):
            answer = realm.app().post_json(path, {"Email": email, **spoiled})
            assert (answer.status, answer.json()) == (400, {"error": "Firstname is required."}), answer
        answer = realm.app_on(host).post_json(path, {"Email": email, "FirstName": "Ada"})
        assert (answer.status, answer.json()) == (400, {"error": "Lastname is required."}), answer
        answer = realm.app().post_json(path, {"Email": email, "FirstName": "Ada", "LastName": ["ignored"]})
        assert answer.status == 200, answer
    assert realm.app().post_json(REQUEST, {"Email": "nobody"}).json() == {"error": "Email is invalid."}


@pytest.mark.parametrize("name", ["x" * 101, "a\rb", "a\nBcc: x", "a\u0000b", "\u202eevil", "\u200d"])
def test_a_name_that_would_hide_or_break_something_is_refused(realm, name):
    answer = realm.app_on(realm.hosts["JitOnOtp"]).post_json(REQUEST, {"Email": realm.new_email(), "FirstName": name})
    assert answer.status == 400, answer


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://x}", "\u5f20\u4f1f", "\U0001f600", "x" * 100, "O'Brien"])
def test_a_name_is_stored_as_it_was_typed(realm, name):
    """Nothing interprets it."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email, FirstName=name)
    assert app.redeem(code, handle=handle).status == 200
    assert user(realm, email)["first_name"] == name


def test_other_members_of_a_request_mean_nothing(realm):
    """No mass assignment."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    evil = {"Id": "0", "Verified": True, "Roles": ["admin"], "Realm": "other", "Tenant": "x", "Confirmed": True, "enabled": False, "App": "off"}
    code, handle = mailed(app, REQUEST, email, **evil)
    assert user(realm, email) is None
    assert app.redeem(code, handle=handle).status == 200
    assert user(realm, email)["enabled"] is True


@pytest.mark.parametrize("path", [REQUEST, REGISTER], ids=["request", "register"])
@pytest.mark.parametrize("posture", POSTURES, ids=str)
def test_everybody_is_answered_with_the_same_bytes(realm, posture, path):
    """Status, header fields in their order, body and length are equal for every account; only the handle differs."""
    app = realm.app_on(realm.hosts[posture])
    seen = set()
    for state in ACCOUNTS:
        email = account(realm, state)
        for _ in range(2):  # the second time a pending registration exists
            answer = app.post_json(path, {"Email": email})
            document = answer.json()
            assert answer.status == 200 and list(document) == ["Message", "AuthSession", "ExpiresIn", "ResendAfter"], answer
            assert (document["Message"], document["ExpiresIn"], document["ResendAfter"]) == (MESSAGE[path], 600, 0)
            handle = document["AuthSession"]
            # A handle seals the address and is as long as it; nothing else may differ.
            headers = [h for h in answer.headers if h[0].lower() not in ("date", "content-length")]
            seen.add((json.dumps(headers), answer.body.replace(handle.encode(), b"H")))
    assert len(seen) == 1, seen


def test_equally_long_addresses_have_equally_long_answers(realm):
    """Also the length says nothing but the length of what was asked."""
    app = realm.app_on(realm.hosts["ExplicitEndpoint"])
    known, unknown = realm.user(), realm.new_email()
    while len(known) != len(unknown):
        unknown = "x" + unknown if len(unknown) < len(known) else unknown[1:]
    answers = [app.post_json(REGISTER, {"Email": email}) for email in (known, unknown)]
    assert len(answers[0].body) == len(answers[1].body)
    assert answers[0].header("content-length") == answers[1].header("content-length")


def test_a_wrong_code_tells_nothing_of_a_pending_registration(realm):
    """Pending, confirmed, unknown: the same refusal."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    pending = realm.new_email()
    code, handle = mailed(app, REQUEST, pending)
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    answers = [
        app.redeem(wrong, email=pending), app.redeem(wrong, handle=handle), app.redeem(wrong, email=realm.new_email()),
        app.redeem(wrong, email=app.request_code(realm.user()).email),
    ]
    assert len({json.dumps(a.same_bytes(), default=str) for a in answers}) == 1, answers
    assert user(realm, pending) is None
    assert app.redeem(code, handle=handle).status == 200


@pytest.mark.parametrize("posture, path", [("JitOnOtp", REQUEST), ("ExplicitEndpoint", REGISTER)])
def test_a_handle_of_a_registration_has_five_tries(realm, posture, path):
    """As any other; then the right code is refused, and nobody is registered."""
    app = realm.app_on(realm.hosts[posture])
    email = realm.new_email()
    code, handle = mailed(app, path, email)
    for step in range(5):
        assert app.redeem(f"{(int(code) + 1 + step) % 1_000_000:06}", handle=handle).error == "invalid_grant"
    assert app.redeem(code, handle=handle).error == "invalid_grant"
    assert user(realm, email) is None


def test_a_resend_keeps_its_handle_and_the_way_it_was_asked(realm):
    """AuthSession of a registration at register; at otp/request it is another matter and gets another handle."""
    app = realm.app_on(realm.hosts["ExplicitEndpoint"])
    email = realm.new_email()
    _, handle = mailed(app, REGISTER, email)
    code, again = mailed(app, REGISTER, email, AuthSession=handle)
    other = ask(app, REQUEST, email, AuthSession=handle)
    assert app.redeem(code, handle=other).error == "invalid_grant"
    assert app.redeem(code, handle=again).status == 200


def test_a_registration_asked_for_with_a_client_id_belongs_to_that_client(realm):
    """Like any code."""
    app, other = (realm.app_on(realm.hosts["JitOnOtp"], name) for name in ("app", "app-2"))
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email, ClientId=app.client_id)
    assert other.redeem(code, handle=handle).error == "invalid_grant"
    assert user(realm, email) is None
    assert app.redeem(code, handle=handle).status == 200


def change_posture(realm, email):  # pylint: disable=unused-argument
    """Registration ends."""
    realm.put_app("shop", registration="Off")


def switch_off(realm, email):  # pylint: disable=unused-argument
    """The App's native grants end; redeemed on the realm's own host."""
    realm.put_app("shop", native_grants_enabled=False)


def delete_app(realm, email):  # pylint: disable=unused-argument
    """The App is gone."""
    realm.world.admin.call("delete_app", realm.slug, "shop")


def put_disabled(realm, email):
    """An administrator was faster, and disabled the user."""
    realm.put_user(email, enabled=False)


@pytest.mark.parametrize("event", [change_posture, switch_off, delete_app, put_disabled])
def test_what_ends_registration_ends_pending_ones_too(world, event):
    """Asked again at redemption; nobody is registered."""
    realm = world.realm()
    app = realm.app_on(realm.put_app("shop"))
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email)
    event(realm, email)
    before = user(realm, email)
    world.pause()
    assert realm.app().redeem(code, handle=handle).error == "invalid_grant"
    assert realm.app().redeem(code, email=email).error == "invalid_grant"
    assert user(realm, email) == before


def test_an_administrator_who_was_faster_made_the_user(realm):
    """The code proves the mailbox and signs in; the row is the administrator's."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email, FirstName="Eve")
    identity = realm.put_user(email, first_name="Mike")
    assert app.redeem(code, handle=handle).status == 200
    assert (user(realm, email)["id"], user(realm, email)["first_name"]) == (identity, "Mike")


def test_who_registered_and_was_deleted_is_gone(realm):
    """With every code of the address; a new request registers anew."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    codes = [mailed(app, REQUEST, email) for _ in range(2)]
    assert app.redeem(codes[0][0], handle=codes[0][1]).status == 200
    late = mailed(app, REQUEST, email)
    first = user(realm, email)["id"]
    realm.world.admin.call("delete_user", realm.slug, email)
    for code, handle in (codes[1], late):
        assert app.redeem(code, handle=handle).error == "invalid_grant"
    assert user(realm, email) is None
    code, handle = mailed(app, REQUEST, email)
    assert app.redeem(code, handle=handle).status == 200
    assert user(realm, email)["id"] != first


def test_a_pending_registration_lives_ten_minutes(world, realm):
    """Then nobody is registered, and nothing is left."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    email = realm.new_email()
    code, handle = mailed(app, REQUEST, email)
    world.time_travel(601)
    assert app.redeem(code, handle=handle).error == "invalid_grant"
    assert user(realm, email) is None


@pytest.mark.slow
def test_of_any_number_of_redemptions_at_once_one_registers(world, realm):
    """Ten rounds of 24 by address and 24 by handle, on two processes: one user, one session, no 5xx."""
    second = world.start_node()
    try:
        for _ in range(10):
            app = realm.app_on(realm.hosts["JitOnOtp"])
            email = realm.new_email()
            code, handle = mailed(app, REQUEST, email)
            forms = [app.redeem_form(code, email=email), app.redeem_form(code, handle=handle)]
            raw = [token_request(app, form) for form in forms for _ in range(12)]
            parts = in_parallel(lambda node, raw=raw: volley(node.port, raw), [world.node, second], threads=2)
            answers = [a for part in parts for a in part]
            assert {getattr(a, "status", repr(a)) for a in answers} == {200, 400}, answers
            assert len({a.json()["refresh_token"] for a in answers if a.status == 200}) == 1
            assert len([r for r in world.admin.rows_of("users", email)]) == 1
    finally:
        second.stop()


@pytest.mark.slow
def test_requests_at_once_for_one_unknown_address_make_one_user(world, realm):
    """Sixteen requests, as many administrators who put the same user, and a redemption: one row, nothing surfaces."""
    app = realm.app_on(realm.hosts["JitOnOtp"])
    for _ in range(5):
        email = realm.new_email()
        handles = in_parallel(lambda _, email=email: ask(app, REQUEST, email), range(16), threads=16)
        code = app.mailbox.wait(email).code

        def work(step, email=email, code=code, handles=handles):
            if step % 2:
                return realm.put_user(email)
            return app.redeem(code, handle=handles[step])

        results = in_parallel(work, range(16), threads=16)
        answers = [r for r in results if not isinstance(r, str)]
        assert {a.status for a in answers} <= {200, 400}, answers
        assert sum(a.status == 200 for a in answers) <= 1
        assert len(world.admin.rows_of("users", email)) == 1
