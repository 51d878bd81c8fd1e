"""The rules of codes, one by one (docs/wire.md)."""

import pytest

from harness.volley import in_parallel


def another(code, step=1):
    """As many digits that are not the code."""
    return f"{(int(code) + step) % 10 ** len(code):0{len(code)}}"


def miss(app, asked, times, **who):
    """Wrong tries."""
    for step in range(times):
        answer = app.redeem(another(asked.code, step + 1), **who)
        assert answer.status == 400 and answer.error == "invalid_grant", answer


@pytest.fixture(scope="module")
def patient(world):
    """A realm whose failure budget is never used up, to show the other limits alone."""
    made = world.realm()
    made.limit("token", "failures", 1_000_000, per="1 minute")
    return made


def test_every_request_has_a_code_of_its_own(app, email):
    """Of four, each is good by its own handle, and the three newest by address; none of them by another's handle."""
    for wanted in range(4):
        codes = [app.request_code(email) for _ in range(4)]
        assert app.redeem(codes[wanted].code, handle=codes[wanted - 1].handle).error == "invalid_grant"
        assert app.redeem(codes[wanted].code, handle=codes[wanted].handle).status == 200
    codes = [app.request_code(email) for _ in range(4)]
    assert app.redeem(codes[0].code, email=email).error == "invalid_grant"
    assert app.redeem(codes[1].code, email=email).status == 200


def test_a_success_kills_all_codes_of_the_address(app, email):
    """By address and by handle; its own request alone is answered again until the session is used."""
    codes = [app.request_code(email) for _ in range(3)]
    answer = app.redeem(codes[1].code, handle=codes[1].handle)
    assert answer.status == 200 and app.refresh(answer.json()["refresh_token"]).status == 200
    for asked in codes:
        assert app.redeem(asked.code, handle=asked.handle).error == "invalid_grant"
        assert app.redeem(asked.code, email=email).error == "invalid_grant"


def test_a_handle_has_five_tries_of_its_own(app, email):
    """After five wrong ones the right code is refused by that handle, and works by another."""
    first, second = app.request_code(email), app.request_code(email)
    miss(app, first, 5, handle=first.handle)
    assert app.redeem(first.code, handle=first.handle).error == "invalid_grant"
    assert app.redeem(second.code, handle=second.handle).status == 200


def test_four_wrong_tries_leave_the_handle_alive(app, email):
    """The fifth may be the right one."""
    asked = app.request_code(email)
    miss(app, asked, 4, handle=asked.handle)
    assert app.redeem(asked.code, handle=asked.handle).status == 200


def test_the_number_of_tries_is_a_setting(world):
    """otp_attempts."""
    realm = world.realm()
    realm.policy(otp_attempts=2)
    app = realm.app()
    asked = app.request_code(realm.user())
    miss(app, asked, 2, handle=asked.handle)
    assert app.redeem(asked.code, handle=asked.handle).error == "invalid_grant"


def test_a_stranger_cannot_burn_the_owners_handle(app, email):
    """Somebody else's requests and wrong tries, by address and by his own handle, leave the owner's handle untouched."""
    owner = app.request_code(email)
    stranger = app.request_code(email)
    miss(app, owner, 6, email=email)
    miss(app, owner, 6, handle=stranger.handle)
    assert app.redeem(owner.code, handle=owner.handle).status == 200


def test_wrong_tries_by_address_use_up_the_accounts_budget_for_the_address_alone(world, app, email):
    """Five in ten minutes; then the address alone is refused with the right code (never 429), the handle is not."""
    asked = app.request_code(email)
    miss(app, asked, 5, email=email)
    refused = app.redeem(asked.code, email=email)
    assert refused.json() == {"error": "invalid_grant", "error_description": "Invalid or expired code."}
    assert app.redeem(asked.code, handle=asked.handle).status == 200
    world.time_travel(601)
    assert app.redeem(app.request_code(email).code, email=email).status == 200


def test_wrong_tries_by_address_never_kill_a_code(patient):
    """With the budget out of the way, twenty wrong tries and the right one still works."""
    app = patient.app()
    asked = app.request_code(patient.user())
    miss(app, asked, 20, email=asked.email)
    assert app.redeem(asked.code, email=asked.email).status == 200


def test_a_new_code_does_not_renew_the_budget(app, email):
    """The budget is the account's, not the code's."""
    miss(app, app.request_code(email), 5, email=email)
    assert app.redeem(app.request_code(email).code, email=email).error == "invalid_grant"


def hundred_wrong_codes(app, email):
    """Half by handles, five each; the rest by address, where up to three codes are compared each time."""
    for _ in range(10):
        asked = app.request_code(email)
        miss(app, asked, 5, handle=asked.handle)
    in_parallel(lambda step: app.redeem(another(asked.code, step + 10), email=email), range(17))


@pytest.mark.slow
def test_a_hundred_wrong_codes_in_a_row_close_codes_for_a_day(patient):
    """In both forms, without mail, until 24 hours have passed; sessions that exist go on."""
    app = patient.app()
    email = patient.user()
    session = app.sign_in(email)
    last = app.request_code(email)
    hundred_wrong_codes(app, email)
    assert app.redeem(last.code, handle=last.handle).error == "invalid_grant"
    assert app.redeem(last.code, email=email).error == "invalid_grant"
    assert app.refresh(session["refresh_token"]).status == 200
    mails = len(app.mailbox.to(email))
    assert app.ask(email).status == 200
    app.request_code(patient.user())  # the worker is past it
    assert len(app.mailbox.to(email)) == mails
    patient.world.time_travel(23 * 3600)
    assert app.ask(email).status == 200
    app.request_code(patient.user())
    assert len(app.mailbox.to(email)) == mails
    patient.world.time_travel(3600 + 60)
    again = app.request_code(email)
    assert app.redeem(again.code, handle=again.handle).status == 200


@pytest.mark.slow
def test_a_success_starts_the_hundred_anew(patient):
    """90 wrong, a success, 90 wrong: the account still signs in by code."""
    app = patient.app()
    email = patient.user()
    for _ in range(2):
        asked = app.request_code(email)
        in_parallel(lambda step, asked=asked: app.redeem(another(asked.code, step + 1), email=email), range(30))
        in_parallel(lambda step, asked=asked: app.redeem(another(asked.code, step + 40), email=email), range(60))
        assert app.redeem(asked.code, email=email).status == 200


def test_address_and_handle_must_agree(app, realm, email):
    """Both given and belonging together: fine. Otherwise refused, and the code stays alive."""
    asked, other = app.request_code(email), app.request_code(realm.user())
    assert app.redeem(asked.code, email=other.email, handle=asked.handle).error == "invalid_grant"
    assert app.redeem(asked.code, email=email, handle=other.handle).error == "invalid_grant"
    assert app.redeem(asked.code, email=email, handle="unknown").error == "invalid_grant"
    assert app.redeem(asked.code, email=email, handle=asked.handle).status == 200


def test_a_code_asked_for_with_a_client_id_belongs_to_that_client(realm, email):
    """Another client is refused in both forms; the client itself is not."""
    app, other = realm.app(), realm.app("app-2")
    asked = app.request_code(email, ClientId=app.client_id)
    assert other.redeem(asked.code, handle=asked.handle).error == "invalid_grant"
    assert other.redeem(asked.code, email=email).error == "invalid_grant"
    assert app.redeem(asked.code, email=email).status == 200


def test_a_code_asked_for_without_a_client_id_serves_any_client(realm, email):
    """A code belongs to its address and realm."""
    asked = realm.app().request_code(email)
    assert realm.app("app-2").redeem(asked.code, email=email).status == 200


def test_inside_the_cooldown_a_resend_sends_no_mail(world):
    """The handle is the same and its code good; the answer is the same as any other. A request without the handle sends a mail."""
    realm = world.realm(cooldown="60 seconds")
    app, email = realm.app(), realm.user()
    asked = app.request_code(email)
    answer = app.ask(email, AuthSession=asked.handle)
    assert answer.status == 200
    assert answer.json()["ResendAfter"] == 60
    app.request_code(realm.user())  # the worker is past it
    assert len(world.mailbox.to(email)) == 1
    other = app.request_code(email)
    miss(app, asked, 4, handle=asked.handle)
    assert app.redeem(asked.code, handle=answer.json()["AuthSession"]).status == 200
    assert app.redeem(other.code, handle=other.handle).error == "invalid_grant"


def test_after_the_cooldown_a_resend_makes_another_code_for_the_same_handle(world):
    """The one before stays good, for the mail that came late; the tries are kept."""
    realm = world.realm(cooldown="60 seconds")
    app, email = realm.app(), realm.user()
    for late in (False, True):
        first = app.request_code(email)
        miss(app, first, 4, handle=first.handle)
        world.time_travel(61)
        second = app.request_code(email, AuthSession=first.handle)
        assert app.redeem((first if late else second).code, handle=second.handle).status == 200
    first = app.request_code(email)
    miss(app, first, 4, handle=first.handle)
    world.time_travel(61)
    second = app.request_code(email, AuthSession=first.handle)
    miss(app, first, 1, handle=second.handle)
    assert app.redeem(second.code, handle=second.handle).error == "invalid_grant"


@pytest.mark.parametrize("known", [True, False])
def test_a_resend_within_the_cooldown_costs_nothing(world, known):
    """Five requests for one address in an hour, known or not; a resend too soon is none of them."""
    realm = world.realm(cooldown="60 seconds", limits=False)
    app, email = realm.app(), realm.user() if known else realm.new_email()
    handle = app.ask(email).json()["AuthSession"]
    assert [app.ask(email, AuthSession=handle).status for _ in range(7)] == [200] * 7
    assert [app.ask(email).status for _ in range(5)] == [200] * 4 + [429]


def test_a_resend_names_its_handle(app, email):
    """AuthSession in the request: a new code, opened by the handle of the answer."""
    asked = app.request_code(email)
    again = app.request_code(email, AuthSession=asked.handle)
    assert app.redeem(again.code, handle=again.handle).status == 200


def test_a_code_lives_ten_minutes(world, app, realm):
    """570 seconds: fine. 601 seconds: refused. The clock is the database's."""
    early = world.stopwatch()
    first, second = app.request_code(realm.user()), app.request_code(realm.user())
    late = world.stopwatch()
    early.reach(570)
    assert app.redeem(first.code, email=first.email).status == 200
    late.reach(601)
    assert app.redeem(second.code, email=second.email).error == "invalid_grant"
    assert app.redeem(second.code, handle=second.handle).error == "invalid_grant"


def test_leading_zeros_belong_to_the_code(patient):
    """A code that begins with 0 is refused without it and accepted with it."""
    app = patient.app()
    for _ in range(60):
        asked = app.request_code(patient.user())
        if asked.code.startswith("0"):
            assert app.redeem(asked.code.lstrip("0"), email=asked.email).error == "invalid_grant"
            assert app.redeem(asked.code, email=asked.email).status == 200
            return
    pytest.fail("no code in 60 begins with 0: codes are not drawn from all million values")


def test_the_address_is_matched_without_regard_to_ascii_case_only(app, email):
    """MIKE@ is mike@; a Turkish dotless i is somebody else."""
    asked = app.request_code(email)
    assert app.redeem(asked.code, email=email.replace("i", "ı", 1)).error == "invalid_grant"
    assert app.redeem(asked.code, email=email.upper()).status == 200


def test_the_code_is_in_no_answer(app, email):
    """Neither headers nor body of the request and of the redemption carry it."""
    asked = app.request_code(email)
    answers = [app.ask(email), app.redeem(asked.code, email=email)]
    for answer in answers:
        assert asked.code not in str(answer.headers)
    assert asked.code.encode() not in answers[0].body


@pytest.mark.parametrize("digits", [7, 8])
def test_a_realm_may_have_longer_codes(world, digits):
    """otp_digits: as many in the mail, as many wanted."""
    realm = world.realm()
    realm.policy(otp_digits=digits)
    app = realm.app()
    asked = app.request_code(realm.user())
    assert len(asked.code) == digits
    assert app.redeem(asked.code[:6], handle=asked.handle).error == "invalid_grant"
    assert app.redeem(another(asked.code), handle=asked.handle).error == "invalid_grant"
    assert app.redeem(asked.code, handle=asked.handle).status == 200
