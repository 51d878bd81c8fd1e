"""What many ask at the same moment goes to the database together, and nobody gets another's answer or another's trouble."""

import subprocess
import time

from harness import wire
from harness.postgres import clean_environment
from harness.report import say
from harness.settings import POSTGRES_BIN
from harness.volley import in_parallel, token_request, volley

MANY = 60


def refresh_request(app, token):
    """The bytes of a refresh."""
    return token_request(app, {"grant_type": "refresh_token", **app.credentials(), "refresh_token": token})


def introspect_request(api, token):
    """The bytes of an introspection."""
    fields = {"Host": api.host, "Content-Type": wire.FORM, "Authorization": api.basic}
    return wire.request_bytes("POST", "/connect/introspect", fields, wire.form_body({"token": token}))


def warm(app, tokens):
    """One refresh of each, so that permits are on lease and the volley's own need none."""
    return in_parallel(lambda one: app.refreshed(one["refresh_token"]), tokens)


def transactions(world):
    """Transactions of the database so far; sessions report theirs after a second."""
    time.sleep(1.5)
    return int(world.cluster.value("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database();"))


def test_introspections_of_many_at_once_are_answered_one_by_one(world, realm, app, api):
    """Live tokens say whose they are; revoked, altered and foreign ones among them are inactive."""
    emails = realm.users(MANY)
    tokens = in_parallel(app.sign_in, emails)
    subjects = [app.userinfo(t["access_token"]).json()["sub"] for t in tokens]
    dead = {3: "revoked", 17: "altered", 29: "a stranger's"}
    app.post("/connect/revoke", {"token": tokens[3]["refresh_token"], "client_id": app.client_id})
    texts = [t["access_token"] for t in tokens]
    texts[17] = texts[17][:-2] + ("AA" if texts[17][-2:] != "AA" else "BB")
    other = world.realm()
    texts[29] = other.app().sign_in(other.user())["access_token"]
    before = transactions(world)
    for _ in range(5):
        answers = volley(world.node.port, [introspect_request(api, text) for text in texts])
        for index, answer in enumerate(answers):
            body = answer.json()
            assert answer.status == 200, answer
            if index in dead:
                assert body == {"active": False}, dead[index]
            else:
                assert (body["active"], body["sub"]) == (True, subjects[index]), index
    asked = transactions(world) - before
    say(f"together: {5 * MANY} introspections in {asked} transactions of the whole server, its heartbeats included")
    assert asked < 5 * MANY


def test_refreshes_of_many_at_once_are_answered_one_by_one(world, realm, app):
    """Each gets its own successor; a used, a revoked and an unknown token among them are refused alone."""
    emails = realm.users(MANY)
    tokens = warm(app, in_parallel(app.sign_in, emails))
    used = tokens[5]["refresh_token"]
    newer = app.refreshed(used)["refresh_token"]
    app.refreshed(newer)  # closes the window: the next use of the first is reuse
    app.post("/connect/revoke", {"token": tokens[11]["refresh_token"], "client_id": app.client_id})
    for number in range(5):
        answers = volley(world.node.port, [refresh_request(app, t["refresh_token"]) for t in tokens])
        for index, answer in enumerate(answers):
            if index in (5, 11):
                assert (answer.status, answer.error) == (400, "invalid_grant"), (number, index, answer)
                continue
            assert answer.status == 200, (number, index, answer)
            fresh = answer.json()
            assert fresh["refresh_token"] != tokens[index]["refresh_token"]
            tokens[index] = fresh
    for index in (0, 4, 6, MANY - 1):
        assert app.userinfo(tokens[index]["access_token"]).json()["email"] == emails[index]


def test_a_family_whose_row_is_locked_holds_up_no_other(world, realm, app):
    """Somebody's open transaction on one session: that one is told to come back, all others refresh."""
    emails = realm.users(MANY)
    tokens = warm(app, in_parallel(app.sign_in, emails))
    lock = (
        "BEGIN; SELECT FROM postern.session AS s JOIN postern.user_account AS u ON u.realm_id = s.realm_id AND u.id = s.user_id"
        f" WHERE u.email = '{emails[7]}' FOR UPDATE OF s; SELECT 'held'; SELECT pg_sleep(60);"
    )
    holder = subprocess.Popen(
        [str(POSTGRES_BIN / "psql"), "-X", "-q", "-A", "-t", "-h", str(world.cluster.root), "-U", "postgres", "-d", "postern", "-c", lock],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment(),
    )
    try:
        while world.cluster.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep';") == "0":
            time.sleep(0.05)
        answers = volley(world.node.port, [refresh_request(app, t["refresh_token"]) for t in tokens])
    finally:
        holder.kill()
        holder.wait()
        world.cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep';")
    statuses = [answer.status for answer in answers]
    assert statuses[7] == 503, answers[7]
    assert statuses[:7] + statuses[8:] == [200] * (MANY - 1), statuses
    assert app.refresh(tokens[7]["refresh_token"]).status == 200
