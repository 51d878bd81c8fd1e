"""Test identities: an administrator makes an account for app-store review; a fixed code signs it in, and every token says what it is."""

import time

import pytest

from harness.jose import parts
from harness.ledger import LEDGER
from harness.postgres import SQLError
from harness.volley import in_parallel

CODE = "41830572"


def claims_of(token):
    """The payload of a JWT."""
    return parts(token)[1]


def put(realm, email, client="app", code=CODE, **more):
    """Puts one and waits until a server has keyed its code."""
    drawn = realm.world.admin.call("put_test_identity", realm.slug, email, realm.client(client), code, **more)
    deadline = time.monotonic() + 5
    while realm.world.admin.run(f"SELECT state FROM admin.test_identities WHERE email = '{email}';") != [["live"]]:
        assert time.monotonic() < deadline, "no server has keyed the code"
        time.sleep(0.05)
    return drawn or code


@pytest.fixture
def review(realm):
    """The address of a new test identity."""
    email = realm.new_email()
    put(realm, email)
    return email


def test_the_fixed_code_signs_in_any_number_of_times_and_no_mail_is_sent(realm, app, review):
    """Asked for as an app asks, redeemed by handle and by address, again and again."""
    for _ in range(3):
        asked, stranger = app.ask(review), app.ask(realm.new_email())
        assert asked.status == 200
        assert asked.json().keys() == stranger.json().keys() and asked.json()["Message"] == stranger.json()["Message"]
        handle = asked.json()["AuthSession"]
        deadline = time.monotonic() + 3
        while (answer := app.redeem(CODE, handle=handle)).status != 200:  # the worker has not decided yet
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        assert app.redeem(CODE, email=review).status == 200
    app.request_code(realm.user())  # asked last, delivered: the workers are past the others
    assert not realm.world.mailbox.to(review)
    assert not realm.world.admin.rows_of("outbox", review)


def test_every_token_says_what_it_is(realm, review, email):
    """id_token, at+jwt, introspection and userinfo, also after a refresh; an ordinary user's say nothing."""
    api, jwt = realm.app("api"), realm.app("jwt")
    other = realm.new_email()
    put(realm, other, client="jwt")
    for app, address in ((realm.app(), review), (jwt, other)):
        tokens = app.redeem(CODE, email=address).json()
        for answer in (tokens, app.refreshed(tokens["refresh_token"])):
            assert claims_of(answer["id_token"])["test_identity"] is True
            assert claims_of(answer["id_token"])["amr"] == ["otp"]
            assert api.introspect(answer["access_token"]).json()["test_identity"] is True
            assert app.userinfo(answer["access_token"]).json()["test_identity"] is True
            assert app.userinfo(answer["access_token"]).json()["email_verified"] is False
            if app is jwt:
                assert claims_of(answer["access_token"])["test_identity"] is True
        assert api.introspect(answer["refresh_token"]).json()["test_identity"] is True
    ordinary = realm.app().sign_in(email)
    assert "test_identity" not in claims_of(ordinary["id_token"])
    assert "test_identity" not in api.introspect(ordinary["access_token"]).json()
    assert "test_identity" not in realm.app().userinfo(ordinary["access_token"]).json()


def test_it_belongs_to_one_client(realm, review):
    """Another client gets the answer of a wrong code."""
    wrong, other = realm.app().redeem("00000000", email=review), realm.app("jwt").redeem(CODE, email=review)
    assert (other.status, other.error) == (400, "invalid_grant")
    assert other.same_bytes() == wrong.same_bytes()


def test_wrong_tries_use_up_the_budget_like_anybodys(realm, app, review):
    """Five wrong tries by address, then the right code is refused; by handle it still works."""
    for guess in range(5):
        assert app.redeem(f"90000{guess}", email=review).status == 400
    answer = app.redeem(CODE, email=review)
    assert (answer.status, answer.error) == (400, "invalid_grant")


def test_concurrent_redemptions_all_succeed(realm, review):
    """The code comes back whenever it is spent: nobody meets the moment without it."""
    answers = in_parallel(lambda _: realm.app().redeem(CODE, email=review), list(range(20)))
    assert {a.status for a in answers} == {200}


def test_its_end_ends_everything(world):
    """Code and tokens are dead, the answer of otp/request is the same; a new put revives the same subject with a new code."""
    realm = world.realm()
    app, api, email = realm.app(), realm.app("api"), realm.new_email()
    put(realm, email)
    tokens = app.redeem(CODE, email=email).json()
    assert api.active(tokens["access_token"])
    world.cluster.sql(
        f"UPDATE postern.test_identity SET expires_at = now() WHERE realm_id = (SELECT id FROM postern.realm WHERE slug = '{realm.slug}'); "
        f"UPDATE postern.login_code SET expires_at = now() WHERE is_test AND address_key = '{email}';"
    )
    answer = app.redeem(CODE, email=email)
    assert (answer.status, answer.error) == (400, "invalid_grant")
    deadline = time.monotonic() + 12
    while api.active(tokens["access_token"]):
        assert time.monotonic() < deadline, "the sweeper ended no session"
        time.sleep(0.2)
    assert app.refresh(tokens["refresh_token"]).status == 400
    assert app.ask(email).status == 200
    drawn = LEDGER.add("code", put(realm, email, code=None))
    again = app.redeem(drawn, email=email).json()
    assert claims_of(again["id_token"])["sub"] == claims_of(tokens["id_token"])["sub"]


def test_a_passkey_enrolled_by_it_stays_flagged_and_mails_nobody(realm, app, api, review):
    """The flag is the user's, not the code's."""
    tokens = app.redeem(CODE, email=review).json()
    _, credential = app.enroll(tokens["access_token"])
    answer = app.passkey_sign_in(credential)
    assert claims_of(answer["id_token"])["test_identity"] is True
    assert api.introspect(answer["access_token"]).json()["test_identity"] is True
    assert not realm.world.admin.rows_of("outbox", review)


def test_an_ordinary_user_never_becomes_one(realm, email):
    """Refused by SQL, with the way out."""
    with pytest.raises(SQLError, match="is an ordinary user"):
        realm.world.admin.call("put_test_identity", realm.slug, email, realm.client("app"), CODE)


def test_the_code_is_nowhere_once_it_is_keyed(realm, review):
    """Not in any row, and not in any log."""
    rows = realm.world.cluster.sql("SELECT t::text FROM postern.test_identity AS t UNION ALL SELECT c::text FROM postern.login_code AS c;")
    assert rows and CODE not in str(rows)
    assert CODE not in realm.world.node.log()
    assert realm.world.admin.rows_of("audit_log", "test_identity_created")
