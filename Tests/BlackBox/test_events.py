"""Events: signed tokens to webhooks, at least once, in order per user."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid

import pytest

from harness import jose, report, settings, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted
from harness.node import run_postern
from harness.postgres import literal
from harness.receiver import DELIVERED, Receiver
from harness.sign_in_pages import signed_in
from harness.volley import in_parallel
from harness.world import World

CAEP = "https://schemas.openid.net/secevent/caep/event-type/"
RISC = "https://schemas.openid.net/secevent/risc/event-type/"


@pytest.fixture
def receiver():
    """A receiver that takes everything."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def realm(world):
    """A realm of its own; its webhooks go with the test."""
    made = world.realm("ev")
    yield made
    for (name,) in world.admin.run(f"SELECT name FROM admin.webhooks WHERE realm = '{made.slug}';"):
        world.admin.call("delete_webhook", made.slug, name)


def hook(realm, receiver, name="crm", **options):
    """Registers the receiver."""
    realm.world.admin.call("put_webhook", realm.slug, name, receiver.url if receiver else None, **options)


def audit(realm, event="sign_in", user=None, detail=None, count=1):
    """Rows of the audit log, as one transaction of a server writes them; returns their ids."""
    rows = realm.world.cluster.sql(
        "INSERT INTO postern.audit_event (realm_id, event, user_id, detail) "
        f"SELECT r.id, {literal(event)}, {literal(user)}::uuid, {literal(json.dumps(detail) if detail else None)}::jsonb "
        f"FROM postern.realm AS r, generate_series(1, {count}) WHERE r.slug = '{realm.slug}' RETURNING id")
    return [int(row[0]) for row in rows]


def end_leases(world):
    """As if half a minute had passed for what a lost server had in hand."""
    world.cluster.sql("UPDATE postern.webhook_subject SET due_at = due_at - interval '1 minute'")


def state(realm, name="crm", columns="pending, set_aside, coalesce(last_error, '')"):
    """A webhook as the administrator sees it."""
    return realm.world.admin.run(f"SELECT {columns} FROM admin.webhooks WHERE realm = '{realm.slug}' AND name = '{name}';")[0]


def await_state(realm, wanted, columns="pending, set_aside", name="crm", timeout=20):
    """Waits for what the administrator should see."""
    deadline = time.monotonic() + timeout
    while (seen := state(realm, name, columns)) != wanted:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def published(realm):
    """joserfc, and the keys that the realm publishes."""
    if not (settings.CLIENTS / "joserfc").exists():
        report.say("events: joserfc is absent: scripts/test installs it to .build/clients, or set POSTERN_CLIENTS")
        pytest.skip("joserfc is absent")
    sys.path.insert(0, str(settings.CLIENTS))
    try:
        from joserfc import jws
        from joserfc.jwk import KeySet
    finally:
        sys.path.remove(str(settings.CLIENTS))
    answer = wire.exchange(realm.world.node.port, "GET", "/.well-known/jwks", {"Host": realm.host})
    return jws, KeySet.import_key_set(answer.json())


def verified(realm, event):
    """The claims of a token, verified by joserfc."""
    jws, keys = published(realm)
    signed = jws.deserialize_compact(event.token, keys)
    assert signed.headers()["typ"] == "secevent+jwt"
    return json.loads(signed.payload)


def test_a_sign_in_is_a_token_that_the_published_keys_verify(realm, receiver):
    """RFC 8417 in the profile of SSF: no `sub`, no `exp`; nothing takes it for an ID token."""
    hook(realm, receiver, audience="urn:crm")
    email = realm.user()
    tokens = realm.app("jwt").sign_in(email)
    (event,) = receiver.count(1)
    assert event.content_type == "application/secevent+jwt" and event.authorization is None
    claims = verified(realm, event)
    access = realm.app("jwt").userinfo(tokens["access_token"]).json()
    assert set(claims) == {"iss", "aud", "iat", "toe", "jti", "txn", "sub_id", "events"}
    assert (claims["iss"], claims["aud"]) == (realm.issuer, "urn:crm")
    assert claims["sub_id"] == {"format": "iss_sub", "iss": realm.issuer, "sub": access["sub"]}
    assert abs(claims["iat"] - time.time()) < 60 and claims["toe"] <= claims["iat"]
    assert list(claims["events"]) == [CAEP + "session-established"]
    session = claims["events"][CAEP + "session-established"]
    assert session["amr"] == ["otp"] and session["acr"] == "urn:postern:acr:1" and uuid.UUID(session["ext_id"])
    assert session["client_id"] == realm.client("jwt") and "test_identity" not in session
    assert email not in event.token and email not in json.dumps(claims)


def test_the_receiver_of_the_documentation_ends_sessions(realm, receiver):
    """The Python of docs/events.md, with tokens as they arrive."""
    page = (settings.REPOSITORY / "docs/events.md").read_text(encoding="utf-8")
    hook(realm, receiver, audience="urn:crm")
    email = realm.user()
    realm.app().sign_in(email)
    realm.world.admin.call("sign_out_everywhere", realm.slug, email)
    realm.world.admin.call("delete_user", realm.slug, email)
    events = receiver.count(3)
    jws, keys = published(realm)
    ended, seen = [], set()
    program = {"jws": jws, "json": json, "ISSUER": realm.issuer, "AUDIENCE": "urn:crm", "end_sessions": lambda *of: ended.append(of)}
    exec(page.split("```python\n")[1].split("```")[0], program)  # pylint: disable=exec-used
    assert [program["receive"](event.token, seen, keys) for event in events + events] == [(202, None)] * 6
    assert ended == [(events[0].subject, None, None)] * 2
    program["AUDIENCE"] = "urn:other"
    assert program["receive"](events[0].token, set(), keys)[0] == 400


def test_what_users_and_administrators_do_is_told(realm, receiver):
    """In the order in which it happened."""
    hook(realm, receiver)
    app, email = realm.app(), realm.user()
    tokens = app.sign_in(email)
    app.enroll(tokens["access_token"])
    newer = app.refreshed(app.refreshed(tokens["refresh_token"])["refresh_token"])
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant", newer.keys()
    realm.world.admin.run(f"SELECT admin.set_user_enabled('{realm.slug}', '{email}', false);")
    realm.world.admin.run(f"SELECT admin.put_user('{realm.slug}', '{email}', enabled => true);")
    realm.world.admin.run(f"SELECT admin.put_user('{realm.slug}', '{email}', new_email => 'new-{email}');")
    realm.world.admin.run(f"SELECT admin.sign_out_everywhere('{realm.slug}', 'new-{email}');")
    realm.world.admin.run(f"SELECT admin.delete_user('{realm.slug}', 'new-{email}');")
    events = receiver.count(9)
    assert [event.name for event in events] == [
        "session-established", "credential-change", "session-revoked", "account-disabled", "account-enabled", "identifier-changed",
        "session-revoked", "session-revoked", "account-purged"]
    assert len({event.subject for event in events}) == 1 and len({event.jti for event in events}) == 9
    added, reuse, changed, stamped, everywhere = events[1], events[2], *events[5:8]
    assert added.object["change_type"] == "create" and added.object["credential_type"].startswith("fido2-")
    assert reuse.object["reason_admin"] == {"en": "refresh_token_reuse"}
    assert reuse.object["ext_id"] == events[0].object["ext_id"] and reuse.object["initiating_entity"] == "policy"
    for event, reason in ((stamped, "address_changed"), (everywhere, "user_signed_out")):
        assert event.object["reason_admin"] == {"en": reason} and event.object["initiating_entity"] == "admin"
        assert not {"ext_id", "client_id"} & set(event.object), "all sessions of the user"
    assert changed.object["change"] == "changed" and changed.object["identifier_type"] == "email"
    assert not any(email in json.dumps(event.claims) for event in events if event is not changed), "addresses appear there only"


def test_signing_out_elsewhere_names_the_sessions_that_ended(realm, receiver):
    """One event for each of them, and none about all while the present one goes on."""
    hook(realm, receiver)
    app, email = realm.app(), realm.user()
    kept = app.sign_in(email)
    realm.app("app-2").sign_in(email)
    app.sign_in(email)
    begun = receiver.count(3)
    app.delete("/connect/sessions", bearer(kept["access_token"]))
    ended = receiver.count(5)[3:]
    assert {event.name for event in ended} == {"session-revoked"}
    assert sorted((event.object["ext_id"], event.object["client_id"]) for event in ended) == sorted(
        (event.object["ext_id"], event.object["client_id"]) for event in begun[1:])
    assert all(event.object["reason_admin"] == {"en": "signed_out"} for event in ended)
    assert app.userinfo(kept["access_token"]).status == 200
    app.delete("/connect/sessions?current=true", bearer(kept["access_token"]))
    last = receiver.count(6)[5]
    assert last.name == "session-revoked" and not {"ext_id", "client_id"} & set(last.object), last.object
    await_state(realm, ["0", "0"])
    assert len(receiver.events) == 6


def test_a_sign_out_on_a_page_names_each_session_that_ended(realm, receiver):
    """The browser's, and by its `sid` that of each client without offline_access and that of the hint."""
    flow = signed_in(hosted(realm, offer_passkey=False))
    second = Flow(realm, "app-2")
    second.cookie = flow.cookie
    hook(realm, receiver)
    hint, stays, goes = flow.tokens(scope="openid email"), second.tokens(), second.tokens(scope="openid email")
    hint_sid, stays_sid, goes_sid = (jose.parts(tokens["id_token"])[1]["sid"] for tokens in (hint, stays, goes))
    assert [event.object["ext_id"] for event in receiver.count(3)] == [hint_sid, stays_sid, goes_sid]
    answer = wire.exchange(flow.app.node.port, "GET", "/connect/logout?" + wire.form_body({"id_token_hint": hint["id_token"]}).decode(), {
        "Host": flow.host, **flow.cookies()})
    assert answer.status == 200
    ended = receiver.count(6)[3:]
    assert {event.name for event in ended} == {"session-revoked"}
    assert {(event.object["ext_id"], event.object.get("client_id")) for event in ended} == {
        (hint_sid, realm.client("app")), (goes_sid, realm.client("app-2")), (flow.session, None)}
    assert second.app.userinfo(stays["access_token"]).status == 200


def test_exactly_the_events_of_the_list_are_sent(realm, receiver):
    """Each of them with its type; of every other row of the audit log nothing."""
    hook(realm, receiver)
    types = dict(realm.world.admin.run("SELECT event, type FROM admin.event_types;"))
    assert set(types.values()) == {
        *(CAEP + name for name in ("session-established", "session-revoked", "credential-change")),
        *(RISC + name for name in ("account-disabled", "account-enabled", "account-purged", "identifier-changed")),
        *("urn:postern:event:" + name for name in (
            "refresh_key_mismatch", "code_lockout", "passkey_sign_count_regressed", "key_revoked",
            "user_secured", "realm_deletion_scheduled", "realm_undeleted",
            *(f"device_{what}" for what in ("added", "adopted", "removed")),
            *(f"approval_{what}" for what in ("requested", "hidden", "approved", "denied", "reported", "number_mismatch")),
            *(f"possession_{what}" for what in ("started", "sent", "passed", "failed", "bound", "rebound", "asserted"))))}
    sent = {}
    for event, kind in types.items():
        (number,) = audit(realm, event, str(uuid.uuid4()), {"kind": "passkey", "wrong": 3, "amr": ["otp", "mfa"]})
        sent[number] = kind
    for event in ("otp_requested", "link_requested", "user_created", "names_changed", "mail_dead", "terms_accepted", "service_account_used"):
        audit(realm, event, str(uuid.uuid4()))
    sent[audit(realm, "code_lockout")[0]] = types["code_lockout"]
    arrived = receiver.count(len(sent))
    assert {int(event.jti.split(".")[0]): event.type for event in arrived} == sent
    nobody = next(event for event in arrived if event.claims["sub_id"]["format"] == "opaque")
    assert nobody.type == "urn:postern:event:code_lockout"
    strong = next(event for event in arrived if event.name == "session-established")
    assert strong.object["acr"] == "urn:postern:acr:2"
    assert all(event.object["change_type"] in ("create", "delete") for event in arrived if event.name == "credential-change")
    await_state(realm, ["0", "0"])


ANSWERS = {
    "200": ((200, {}, b""), "done"), "202": (DELIVERED, "done"), "204": ((204, {}, b""), "done"),
    "301": ((301, {"Location": "http://127.0.0.1:1/"}, b""), "HTTP 301"),
    "400 err": ((400, {"Content-Type": "application/json"}, b'{"err":"invalid_key","description":"x"}'), "set aside"),
    "400": ((400, {}, b"<html>"), "HTTP 400"), "401": ((401, {}, b""), "HTTP 401"), "500": ((500, {}, b""), "HTTP 500"),
    "reset": ("reset", ("no answer", "connection")), "10 MiB": ((202, {}, b"x" * 10 * 2**20), "done"),
    "10 MiB of 500": ((500, {}, b"x" * 10 * 2**20), "HTTP 500"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_decides_whether_the_event_is_sent_again(realm, receiver, kind):
    """A second try, with the same jti, is taken."""
    answer, outcome = ANSWERS[kind]
    receiver.answer = lambda event: answer if len(receiver.events) == 1 else DELIVERED
    hook(realm, receiver)
    audit(realm, user=str(uuid.uuid4()))
    if outcome in ("done", "set aside"):
        receiver.count(1)
        await_state(realm, ["0", "1" if outcome == "set aside" else "0"])
        assert len(receiver.events) == 1
        if outcome == "set aside":
            shown = realm.world.admin.run(f"SELECT state, last_error FROM admin.webhook_deliveries WHERE realm = '{realm.slug}';")
            assert shown == [["set aside", "invalid_key"]]
        return
    first, second = receiver.count(2)
    assert first.jti == second.jti and first.claims["txn"] == second.claims["txn"]
    assert any(word in state(realm)[2] for word in ([outcome] if isinstance(outcome, str) else outcome)), state(realm)
    await_state(realm, ["0", "0"])


def test_pauses_between_tries_grow(realm, receiver):
    """One second, two, four: a receiver that fails is not pressed."""
    tries = []

    def answer(event):
        tries.append(time.monotonic())
        return DELIVERED if len(tries) == 4 else (500, {}, b"")

    receiver.answer = answer
    hook(realm, receiver)
    audit(realm, user=str(uuid.uuid4()))
    receiver.count(4, timeout=30)
    pauses = [later - earlier for earlier, later in zip(tries, tries[1:])]
    assert all(pause > wanted - 0.1 for pause, wanted in zip(pauses, (1, 2, 4))), pauses
    await_state(realm, ["0", "0"])


def test_a_receiver_that_never_answers_holds_up_nobody_else(realm, receiver):
    """Other webhooks go on while its calls hang; ten seconds later they are given up and made again."""
    hanging = Receiver(lambda event: "hang")
    hook(realm, hanging, "hanging")
    hook(realm, receiver)
    for _ in range(20):
        audit(realm, user=str(uuid.uuid4()))
    receiver.count(20, timeout=8)
    hanging.wait(lambda events: len(events) >= 16, timeout=8)
    audit(realm, user=str(uuid.uuid4()))
    receiver.count(21, timeout=8)
    assert len(hanging.events) == 16, "one server makes sixteen calls at a time"
    hanging.answer = lambda event: DELIVERED
    hanging.wait(lambda events: len({event.jti for event in events if event.accepted}) >= 21)
    assert len({event.jti for event in hanging.events}) == 21
    await_state(realm, ["0", "0"], name="hanging")
    hanging.close()


def test_a_failing_event_holds_up_its_user_alone(realm, receiver):
    """The third of a hundred fails: what follows waits and keeps its order; other users go on."""
    failing = str(uuid.uuid4())
    hook(realm, receiver)
    healed = threading.Event()
    third = []
    receiver.answer = lambda event: (500, {}, b"") if not healed.is_set() and int(event.jti.split(".")[0]) in third else DELIVERED
    numbers = audit(realm, user=failing, count=2)
    third[:] = audit(realm, user=failing)
    numbers += third + audit(realm, user=failing, count=97)
    others = [str(uuid.uuid4()) for _ in range(20)]
    for other in others:
        audit(realm, user=other)
    receiver.wait(lambda events: {event.subject for event in events if event.accepted} >= {*others, failing}
                  and sum(event.accepted and event.subject == failing for event in events) >= 2)
    assert [int(event.jti.split(".")[0]) for event in receiver.accepted() if event.subject == failing] == numbers[:2]
    healed.set()
    receiver.wait(lambda events: sum(event.accepted and event.subject == failing for event in events) >= 100, timeout=60)
    assert [int(event.jti.split(".")[0]) for event in receiver.accepted() if event.subject == failing] == numbers
    assert not receiver.doubled, "one at a time"


def test_a_transaction_that_commits_late_is_not_skipped(realm, receiver):
    """Its rows have lower ids than those that were committed meanwhile: all wait for it, and the administrator sees why."""
    hook(realm, receiver)
    user, cluster = str(uuid.uuid4()), realm.world.cluster
    session = subprocess.Popen(
        [str(settings.POSTGRES_BIN / "psql"), "-X", "-q", "-A", "-t", "-h", cluster.root, "-U", "postgres", "-d", cluster.database],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        session.stdin.write(
            "BEGIN; INSERT INTO postern.audit_event (realm_id, event, user_id) "
            f"SELECT id, 'passkey_added', '{user}' FROM postern.realm WHERE slug = '{realm.slug}'; SELECT pg_backend_pid();\n")
        session.stdin.flush()
        pid = session.stdout.readline().strip()
        audit(realm, user=user, count=3)
        await_state(realm, [f"process {pid}"], "coalesce(held_by, '-')")
        cluster.sql("UPDATE postern.audit_event SET at = at - interval '10 minutes' WHERE user_id = " + literal(user))
        deadline = time.monotonic() + 20
        while not any("events wait for an open transaction" in line and pid in line for line in realm.world.node.log().splitlines()):
            assert time.monotonic() < deadline, "the log names it"
            time.sleep(0.2)
        assert state(realm, columns="lag > interval '9 minutes'") == ["t"] and not receiver.events
        session.communicate("COMMIT;\n")
    finally:
        session.kill()
    events = receiver.count(4)
    assert [event.name for event in events] == ["credential-change", *["session-established"] * 3], "in the order of transactions"
    await_state(realm, ["0", "0"])
    assert len(receiver.events) == 4, "nothing twice"


def test_what_is_rolled_back_is_no_event(realm, receiver):
    """It did not happen."""
    hook(realm, receiver)
    user = str(uuid.uuid4())
    realm.world.cluster.sql(
        "BEGIN; INSERT INTO postern.audit_event (realm_id, event, user_id) "
        f"SELECT id, 'passkey_added', '{user}' FROM postern.realm WHERE slug = '{realm.slug}'; ROLLBACK;")
    audit(realm, user=user)
    assert [event.name for event in receiver.count(1)] == ["session-established"]


def test_a_replay_sends_the_same_tokens_again(realm, receiver):
    """The same jti; what came before stays as it is."""
    hook(realm, receiver)
    numbers = [audit(realm, user=str(uuid.uuid4()))[0] for _ in range(6)]
    receiver.count(6)
    await_state(realm, ["0", "0"])
    realm.world.admin.call("replay_webhook", realm.slug, "crm", numbers[2])
    events = receiver.count(9)
    assert {event.jti for event in events[6:]} == {event.jti for event in events[:6] if int(event.jti.split(".")[0]) > numbers[2]}
    await_state(realm, ["0", "0"])
    assert len(receiver.events) == 9


def test_events_of_test_identities_say_so(realm, receiver):
    """So that nobody counts a reviewer among the users."""
    hook(realm, receiver)
    audit(realm, user="00000000-0000-8000-8000-000000000001")
    (event,) = receiver.count(1)
    assert event.object["test_identity"] is True


def test_a_key_that_was_rotated_meanwhile_signs_the_next_try(realm, receiver):
    """Each try is signed anew, so the keys published now verify it."""
    accepting = threading.Event()
    receiver.answer = lambda event: DELIVERED if accepting.is_set() else (500, {}, b"")
    hook(realm, receiver)
    audit(realm, user=str(uuid.uuid4()))
    (first,) = receiver.count(1)[:1]
    verified(realm, first)
    done = run_postern("keys", "rotate", "--realm", realm.slug, "--now", environment={
        "POSTERN_DATABASE_URL": realm.world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(realm.world.key_file)})
    assert done.returncode == 0, done.stderr
    realm.world.settle()
    accepting.set()
    events = receiver.wait(lambda events: any(event.accepted for event in events))
    last = next(event for event in events if event.accepted)
    assert verified(realm, last)["jti"] == first.jti
    assert jose.parts(last.token)[0]["kid"] != jose.parts(first.token)[0]["kid"], "the token was not stored"


def test_a_deleted_webhook_gets_nothing_more(realm, receiver):
    """Whatever waited."""
    receiver.answer = lambda event: (500, {}, b"")
    hook(realm, receiver)
    user = str(uuid.uuid4())
    audit(realm, user=user, count=50)
    receiver.count(1)
    realm.world.admin.call("delete_webhook", realm.slug, "crm")
    receiver.wait(lambda _: not any(receiver.in_flight.values()))
    seen, witness = len(receiver.events), Receiver()
    hook(realm, witness, "witness")
    audit(realm, user=user, count=1)
    witness.count(1)
    assert len(receiver.events) == seen
    witness.close()


@pytest.fixture
def secret_world(tmp_path_factory):
    """A world whose servers have a folder of secrets."""
    folder = tmp_path_factory.mktemp("secrets")
    made = World("events-secrets", POSTERN_SECRETS_DIR=str(folder))
    made.secrets = folder
    try:
        yield made.open()
    finally:
        made.close()


def write_secret(path, text):
    """A file that only its owner may read."""
    path.write_text(text)
    os.chmod(path, 0o600)


def test_the_credential_is_the_line_of_a_file(secret_world, receiver):
    """A new line is used at once; while the file is missing nothing is sent, and the administrator sees why."""
    realm = secret_world.realm()
    write_secret(secret_world.secrets / "crm", "Bearer one\n")
    hook(realm, receiver, secret_name="crm")
    audit(realm, user=str(uuid.uuid4()))
    assert receiver.count(1)[0].authorization == "Bearer one"
    write_secret(secret_world.secrets / "crm", "Bearer two\n")
    audit(realm, user=str(uuid.uuid4()))
    assert receiver.count(2)[1].authorization == "Bearer two"
    (secret_world.secrets / "crm").unlink()
    audit(realm, user=str(uuid.uuid4()))
    deadline = time.monotonic() + 20
    while "crm is not a file in POSTERN_SECRETS_DIR" not in state(realm)[2]:
        assert time.monotonic() < deadline, state(realm)
        time.sleep(0.05)
    assert len(receiver.events) == 2
    write_secret(secret_world.secrets / "crm", "Bearer three\n")
    assert receiver.count(3)[2].authorization == "Bearer three"
    assert "Bearer" not in secret_world.node.log() and receiver.events[0].token not in secret_world.node.log()
    assert receiver.events[0].token not in secret_world.cluster.dump().decode(errors="replace")


def test_no_kill_loses_an_event(fragile_world, receiver):
    """Of the server in the middle of a call, and of PostgreSQL: the event comes again, with the same jti."""
    realm = fragile_world.realm()
    receiver.answer = lambda event: "hang"
    hook(realm, receiver)
    audit(realm, user=str(uuid.uuid4()))
    (first,) = receiver.count(1)
    fragile_world.node.kill()
    receiver.answer = lambda event: DELIVERED
    fragile_world.node = fragile_world.start_node()
    end_leases(fragile_world)
    assert receiver.wait(lambda events: any(event.accepted for event in events))[-1].jti == first.jti
    await_state(realm, ["0", "0"])
    for _ in range(30):
        audit(realm, user=str(uuid.uuid4()))
    fragile_world.cluster.kill()
    fragile_world.cluster.ensure_up()
    end_leases(fragile_world)
    receiver.wait(lambda events: len({event.jti for event in events if event.accepted}) >= 31, timeout=60)
    await_state(realm, ["0", "0"], timeout=60)


def flood(realm, users, count):
    """So many sign-ins, each a transaction of its own, by pgbench; returns the ids per user in the order of transactions."""
    cluster = realm.world.cluster
    script = cluster.root / "sign-ins.sql"
    script.write_text(
        f"\\set n random(1, {users})\nBEGIN;\n"
        f"INSERT INTO postern.audit_event (realm_id, event, user_id, detail) SELECT r.id, 'sign_in', md5('u' || :n)::uuid, "
        f"'{{\"amr\": [\"otp\"]}}' FROM postern.realm AS r WHERE r.slug = '{realm.slug}';\nCOMMIT;\n")
    os.chmod(script, 0o644)
    done = subprocess.run(
        [settings.POSTGRES_BIN / "pgbench", "-h", cluster.root, "-U", "postgres", "-n", "-c", "8", "-j", "2", "-t", str(count // 8),
         "-f", script, cluster.database], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = {}
    for user, number in cluster.sql(
            "SELECT a.user_id, a.id FROM postern.audit_event AS a JOIN postern.realm AS r ON r.id = a.realm_id "
            f"WHERE r.slug = '{realm.slug}' AND a.event = 'sign_in' ORDER BY a.xid, a.id"):
        wanted.setdefault(user, []).append(int(number))
    return wanted


def deliver_all(world, receiver, count, users, timeout):
    """Two nodes, and a receiver that is slow, refuses, goes down and comes back: every event arrives, in order per user."""
    realm = world.realm()
    node = world.start_node()
    hook(realm, receiver)
    started = time.monotonic()
    wanted = flood(realm, users, count)
    total = sum(map(len, wanted.values()))

    def spoil():
        while not stopped.wait(1.0):
            step = int(time.monotonic() * 1000) % 4
            receiver.answer = lambda event: (503, {}, b"") if event.claims["iat"] % 3 == 0 else DELIVERED
            if step == 0:
                receiver.down()
                stopped.wait(1.0)
                receiver.up()
            stopped.wait(1.0)
            receiver.answer = lambda event: DELIVERED
            stopped.wait(3.0)

    stopped = threading.Event()
    spoiler = threading.Thread(target=spoil)
    spoiler.start()
    try:
        deadline = time.monotonic() + timeout
        while len(receiver.accepted()) < total:
            assert time.monotonic() < deadline, f"{len(receiver.accepted())} of {total}; {state(realm)}"
            time.sleep(1)
    finally:
        stopped.set()
        spoiler.join()
    seconds = time.monotonic() - started
    await_state(realm, ["0", "0"], timeout=60)
    got = {}
    for event in receiver.accepted():
        got.setdefault(event.subject, []).append(int(event.jti.split(".")[0]))
    assert got == wanted, "every event, in order per user"
    assert not receiver.doubled, "one at a time per user, whichever node sends"
    report.say(f"events: {total} for {len(wanted)} users in {seconds:.0f} s ({total / seconds:.0f}/s), {len(receiver.events)} calls")
    node.stop()


def test_every_event_arrives_in_order_whatever_the_receiver_does(fragile_world, receiver):
    """Some thousands, with two nodes."""
    deliver_all(fragile_world, receiver, 3000, 300, 300)


@pytest.mark.full
def test_a_hundred_thousand_events_arrive_in_order(fragile_world, receiver):
    """The long form."""
    deliver_all(fragile_world, receiver, 100_000, 10_000, 3600)


def test_the_doctor_says_of_each_webhook_whether_its_receiver_can_be_reached(realm, receiver, tmp_path):
    """A missing credential, a receiver that is not there, and the class of the last failure."""
    hook(realm, receiver, secret_name="crm")

    def finding(**changes):
        done = run_postern("doctor", environment={**realm.world.node.environment, **changes})
        (line,) = [line for line in done.stdout.splitlines() if f"webhook crm of {realm.slug}" in line]
        return line

    assert finding().startswith("FAIL") and "POSTERN_SECRETS_DIR is not set" in finding()
    (tmp_path / "crm").write_text("Bearer x")
    (tmp_path / "crm").chmod(0o600)
    known = {"POSTERN_SECRETS_DIR": str(tmp_path)}
    assert finding(**known) == f"ok    webhook crm of {realm.slug}"
    realm.world.cluster.sql("UPDATE postern.webhook SET failures = 1, last_error = 'http_503' WHERE name = 'crm'")
    assert finding(**known).startswith("ok") and finding(**known).endswith("the last events failed: http_503")
    receiver.down()
    assert finding(**known).startswith("FAIL") and "cannot be reached: connection" in finding(**known)
    receiver.up()


def test_two_nodes_send_each_event_once(fragile_world, receiver):
    """A well receiver sees no event twice."""
    realm = fragile_world.realm()
    node = fragile_world.start_node()
    hook(realm, receiver)
    in_parallel(lambda _: audit(realm, user=str(uuid.uuid4()), count=4), range(50))
    receiver.count(200)
    await_state(realm, ["0", "0"])
    assert len(receiver.events) == 200 == len({event.jti for event in receiver.events}) and not receiver.doubled
    node.stop()
