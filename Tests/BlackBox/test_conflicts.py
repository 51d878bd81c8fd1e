"""Transactions that PostgreSQL gives up for another's sake (40001, 40P01): tried again a few times, and each has one effect."""

import pytest

from harness.app import bearer
from harness.volley import in_parallel

TIMES = 500
#: Of one in ten, four in a row are one in ten thousand.
FAILURE = """
CREATE FUNCTION public.gives_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < 0.1 THEN
        RAISE EXCEPTION 'another transaction came first' USING ERRCODE = '{}';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER gives_up BEFORE {} ON postern.session FOR EACH ROW EXECUTE FUNCTION public.gives_up();"""


@pytest.fixture(params=["40001", "40P01"])
def giving_up(request, fragile_world):
    """Makes one in ten writes of sessions fail."""
    def begin(when):
        fragile_world.cluster.sql(FAILURE.format(request.param, when))
    yield begin
    fragile_world.cluster.sql("DROP TRIGGER IF EXISTS gives_up ON postern.session; DROP FUNCTION IF EXISTS public.gives_up();")


def test_refreshes_go_on(fragile_world, giving_up):
    """One after the other and many at once: next to none fails, and each success is one generation."""
    realm = fragile_world.realm("conflicts")
    app = realm.app()
    families = [app.sign_in(realm.user())["refresh_token"] for _ in range(20)]
    giving_up("UPDATE")

    def turn(token):
        done = failed = 0
        for _ in range(TIMES // len(families)):
            answer = app.refresh(token)
            assert answer.status in (200, 503), answer
            if answer.status == 200:
                token, done = answer.json()["refresh_token"], done + 1
            else:
                failed += 1
        return token, done, failed

    first = turn(families[0])
    results = [first, *in_parallel(turn, families[1:], threads=8)]
    assert sum(failed for _, _, failed in results) <= 2, results
    for token, done, _ in results:
        answer = app.refresh(token)
        while answer.status == 503:
            answer = app.refresh(token)
        assert answer.status == 200
        assert app.get("/connect/userinfo", bearer(answer.json()["access_token"])).status == 200
        session = next(one for one in app.get("/connect/sessions", bearer(answer.json()["access_token"])).json() if one.get("Current", True))
        generation = fragile_world.cluster.value(f"SELECT generation FROM postern.session WHERE id = '{session['Id']}'")
        assert int(generation) == done + 1, (generation, done)


def test_sign_ins_go_on(fragile_world, giving_up):
    """A code opens one session, or none and can be tried again."""
    realm = fragile_world.realm("conflicts")
    app = realm.app()
    giving_up("INSERT")
    failed = 0
    for email in realm.users(60):
        asked = app.request_code(email)
        answer = app.redeem(asked.code, handle=asked.handle)
        while answer.status == 503:
            failed += 1
            answer = app.redeem(asked.code, handle=asked.handle)
        assert answer.status == 200, answer
        assert fragile_world.cluster.value("SELECT count(*) FROM postern.session s JOIN postern.user_account u ON u.id = s.user_id AND u.realm_id = s.realm_id "
                                           f"WHERE u.address_key = lower('{email}')") == "1"
    assert failed <= 1, failed
