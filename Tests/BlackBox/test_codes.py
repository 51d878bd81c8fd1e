"""Contract 4.1, "Codes", rule by rule."""

import pytest

from harness.volley import in_parallel


def another(code, step=1):
    """Six digits that are not the code."""
    return f"{(int(code) + step) % 1_000_000:06}"


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


def test_the_three_newest_codes_live(app, email):
    """Of four, the first is dead by address and by its handle; each of the others works."""
    for wanted in (1, 2, 3):
        codes = [app.request_code(email) for _ in range(4)]
        assert app.redeem(codes[0].code, email=email).error == "invalid_grant"
        assert app.redeem(codes[0].code, handle=codes[0].handle).error == "invalid_grant"
        assert app.redeem(codes[wanted].code, email=email).status == 200


def test_a_success_kills_all_codes_of_the_address(app, email):
    """By address and by handle."""
    codes = [app.request_code(email) for _ in range(3)]
    assert app.redeem(codes[1].code, handle=codes[1].handle).status == 200
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


def hundred_wrong_tries(app, asked):
    """Half by address and half by handles, as many handles as it takes."""
    in_parallel(lambda step: app.redeem(another(asked.code, step + 1), email=asked.email), range(50))
    for _ in range(10):
        handle = app.request_code(asked.email).handle
        miss(app, asked, 5, handle=handle)


@pytest.mark.slow
def test_a_hundred_refusals_in_a_row_close_codes_for_a_day(patient):
    """In both forms, even with a new code, until 24 hours have passed; sessions that exist go on."""
    app = patient.app()
    email = patient.user()
    session = app.sign_in(email)
    hundred_wrong_tries(app, app.request_code(email))
    last = app.request_code(email)
    assert app.redeem(last.code, handle=last.handle).error == "invalid_grant"
    assert app.redeem(last.code, email=email).error == "invalid_grant"
    assert app.refresh(session["refresh_token"]).status == 200
    patient.world.time_travel(23 * 3600)
    assert app.redeem(app.request_code(email).code, email=email).error == "invalid_grant"
    patient.world.time_travel(25 * 3600)
    again = app.request_code(email)
    assert app.redeem(again.code, handle=again.handle).status == 200


@pytest.mark.slow
def test_a_success_starts_the_hundred_anew(patient):
    """90 wrong, a success, 90 wrong: the account still signs in by code."""
    app = patient.app()
    email = patient.user()
    for _ in range(2):
        asked = app.request_code(email)
        in_parallel(lambda step, asked=asked: app.redeem(another(asked.code, step + 1), email=email), range(90))
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


def test_inside_the_cooldown_no_mail_is_sent_and_the_new_handle_opens_the_old_code(world):
    """Tries of its own included; the answer is the same as any other."""
    realm = world.realm(cooldown="60 seconds")
    app = realm.app()
    email = realm.user()
    asked = app.request_code(email)
    answer = app.ask(email)
    assert answer.status == 200
    assert answer.json()["ResendAfter"] == 60
    second = answer.json()["AuthSession"]
    assert second != asked.handle
    app.request_code(realm.user())  # the worker is past it
    assert len(world.mailbox.to(email)) == 1
    miss(app, asked, 5, handle=asked.handle)
    assert app.redeem(asked.code, handle=second).status == 200


def test_the_cooldown_ends_by_time_and_by_success(world):
    """After 60 seconds, or once no code of the address is live, the next request sends a mail again."""
    realm = world.realm(cooldown="60 seconds")
    app = realm.app()
    email = realm.user()
    first = app.request_code(email)
    world.time_travel(61)
    second = app.request_code(email)
    assert first.handle != second.handle
    assert app.redeem(second.code, handle=second.handle).status == 200
    third = app.request_code(email)  # at once: no code was live
    assert app.redeem(third.code, email=email).status == 200


def test_a_request_inside_the_cooldown_counts_against_the_limits(world):
    """Five requests for one address in an hour, sent or not."""
    realm = world.realm(cooldown="60 seconds", limits=False)
    app, email = realm.app(), realm.user()
    assert [app.ask(email).status for _ in range(6)] == [200] * 5 + [429]


def test_a_resend_names_its_handle(app, email):
    """AuthSession in the request: a new code, opened by the handle of the answer."""
    asked = app.request_code(email)
    again = app.request_code(email, AuthSession=asked.handle)
    assert app.redeem(again.code, handle=again.handle).status == 200


def test_a_code_lives_ten_minutes(world, app, realm):
    """590 seconds: fine. 601 seconds: refused. The clock is the database's."""
    early, late = app.request_code(realm.user()), app.request_code(realm.user())
    watch = world.stopwatch()
    watch.reach(590)
    assert app.redeem(early.code, email=early.email).status == 200
    watch.reach(601)
    assert app.redeem(late.code, email=late.email).error == "invalid_grant"
    assert app.redeem(late.code, handle=late.handle).error == "invalid_grant"


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
