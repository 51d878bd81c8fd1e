"""The key file: three rounds of rotation, what is left on a line, and what a missing line means."""

import base64
import json
import subprocess
import uuid

import pytest

from harness import jose, report, totp
from harness.keyfile import Fleet, Refreshing, line_id, new_line
from harness.postgres import clean_environment
from harness.settings import BINARY
from harness.volley import in_parallel

CODE = "41830572"


@pytest.fixture
def fleet(request):
    """Two nodes and a key file of one line, of this test's own."""
    made = Fleet(request.node.name[5:30])
    try:
        yield made
    finally:
        made.close()


class Person:
    """Somebody with TOTP, recovery codes and an idle session."""

    def __init__(self, app, email, tokens=None):
        tokens = tokens or app.sign_in(email)
        self.app, self.email = app, email
        self.refresh_token = tokens["refresh_token"]
        self.secret, self.recovery_codes = app.enrol_totp(tokens["access_token"])

    def sign_in(self, node, **factors):
        """A code by mail and these factors."""
        asked = self.app.request_code(self.email)
        app = type(self.app)(node, self.app.mailbox, self.app.host, self.app.client_id)
        return app.redeem(asked.code, email=self.email, **factors)

    def proves(self, fleet, node):
        """A code of the app, and a recovery code, sign in at this node."""
        fleet.cluster.sql("UPDATE postern.totp_factor SET last_step_at = last_step_at - interval '3 minutes'")
        answer = self.sign_in(node, totp_code=totp.code(self.secret))
        assert answer.status == 200, answer
        answer = self.sign_in(node, recovery_code=self.recovery_codes.pop())
        assert answer.status == 200, answer


def session_of(refresh_token):
    """The id of its session, which the token itself names."""
    text = refresh_token.removeprefix("prt_")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[4:20])


def put_test_identity(fleet, realm):
    """One, keyed."""
    email = realm.new_email()
    fleet.admin.call("put_test_identity", realm.slug, email, realm.client("app"), CODE)
    fleet.wait_until(
        lambda: fleet.admin.run(f"SELECT state FROM admin.test_identities WHERE email = '{email}';") == [["live"]], "a server keys the code")
    fleet.settle()
    return email


def assert_all_good(fleet, realm, people, review):
    """Every factor that outlives a line works at every node, and JWTs verify."""
    for node, person in zip(fleet.nodes, people):
        person.proves(fleet, node)
        app = realm.app(node=node)
        assert app.redeem(CODE, email=review).status == 200
        signed = realm.app("jwt", node=node).sign_in(realm.user())
        jose.verify(signed["id_token"], app.get("/.well-known/jwks").json())


def test_three_rounds_of_rotation_break_nothing_and_the_first_line_can_be_shredded(fleet):
    """With TOTP users, recovery codes, a test identity, JWTs, sessions that refresh all the time and one that does not."""
    old, new = new_line(), new_line()
    fleet.open([old])
    realm = fleet.realm()
    app = realm.app()
    people = [Person(app, realm.user()) for _ in range(2)]
    review = put_test_identity(fleet, realm)
    busy = Refreshing(fleet, app, [app.sign_in(realm.user()) for _ in range(8)])
    assert_all_good(fleet, realm, people, review)

    fleet.roll([old, new])  # 1: every node can read what the new line will make
    assert_all_good(fleet, realm, people, review)
    fleet.roll([new, old])  # 2: everything new is made with it
    assert_all_good(fleet, realm, people, review)
    before = fleet.key_lines()
    assert before[line_id(old), "data-key"] == 4 and before[line_id(old), "totp-seed"] == 2, before

    resealed = fleet.command("keys", "reseal")
    assert resealed.returncode == 0, resealed
    assert f"Sealed by line {line_id(new)}: 4 data keys." in resealed.stdout
    left = fleet.key_lines()
    assert not [kind for line, kind in left if line == line_id(old) and kind != "session"], left
    assert left[line_id(new), "totp-seed"] == 2 and left[line_id(new), "test-code"] == 1, left
    assert fleet.command("keys", "reseal").stdout.startswith(f"Every data key is sealed by line {line_id(new)}.")
    assert_all_good(fleet, realm, people, review)

    # Two idle sessions keep the old line, and everybody says so. Other sign-ins of this test that never refreshed are ended.
    kept = ", ".join(f"'{session_of(person.refresh_token)}'" for person in people)
    fleet.cluster.sql(f"UPDATE postern.session SET revoked_at = now() WHERE generation = 0 AND id NOT IN ({kept})")
    fleet.wait_until(lambda: fleet.key_lines()[line_id(old), "session"] == len(people), "busy sessions leave the line")
    doctor = fleet.command("doctor")
    assert doctor.returncode == 0, doctor
    assert f"line {line_id(old)} (older): 2 live sessions; each leaves with its next refresh or its end" in doctor.stdout
    fleet.write([new])
    refused = fleet.refusal()
    assert refused.returncode == 1 and f"lacks line {line_id(old)}, which still protects 2 live sessions" in refused.stderr, refused
    assert fleet.command("doctor").returncode == 1
    fleet.write([new, old])

    for person in people:
        person.refresh_token = app.refreshed(person.refresh_token)["refresh_token"]
    doctor = fleet.command("doctor")
    assert f"line {line_id(old)} (older): nothing stands on it, it may be removed" in doctor.stdout, doctor
    fleet.roll([new])  # 3: the old line is gone for good
    assert f"line {line_id(new)} (newest)" in fleet.nodes[0].log()
    assert_all_good(fleet, realm, people, review)
    for person in people:
        app.refreshed(person.refresh_token)
    rate = busy.stop()
    report.LINES.append(f"key file: three rounds beside {busy.count} refreshes ({rate:.0f} per second), nothing refused")


def test_a_file_that_lacks_a_line_is_refused_and_a_lost_line_can_be_forgotten(fleet):
    """`serve` and `doctor` say which line, what and how many; `admin.forget_key_line` is the way on when it is lost."""
    old, new = new_line(), new_line()
    fleet.open([old], nodes=1)
    realm = fleet.realm()
    app = realm.app()
    person = Person(app, realm.user())
    fleet.nodes[0].stop()
    fleet.write([new])
    for ended in (fleet.refusal(), fleet.command("doctor")):
        said = ended.stdout + ended.stderr
        assert ended.returncode == 1 and f"lacks line {line_id(old)}" in said, ended
        assert "3 data keys (1 signing key, 1 TOTP seed, 10 recovery codes), 1 live session" in said, ended
        assert f"admin.forget_key_line('{line_id(old)}')" in said, ended
    resealed = fleet.command("keys", "reseal")
    assert resealed.returncode == 1 and "Not every data key could be opened." in resealed.stdout, resealed
    forgotten = json.loads(fleet.admin.call("forget_key_line", line_id(old)))
    assert forgotten == {"sessions": 1, "totp_seeds": 1, "signing_keys": 1, "recovery_codes": 10, "test_identities": 0, "test_numbers": 0}
    fleet.nodes[0].start()
    assert app.refresh(person.refresh_token).status == 400
    assert app.sign_in(person.email)["id_token"]


def test_two_nodes_at_once_make_one_data_key_of_each_kind(fleet):
    """Enrolments at both nodes at the same moment; each is good at the other node."""
    fleet.open()
    realm = fleet.realm()
    apps = [realm.app(node=node) for node in fleet.nodes]
    emails = realm.users(8)
    signed = [apps[n % 2].sign_in(email) for n, email in enumerate(emails)]
    people = in_parallel(lambda n: Person(apps[n % 2], emails[n], signed[n]), range(8), threads=8)
    assert fleet.key_lines()[line_id(fleet.lines[0]), "data-key"] == 3  # seeds, recovery codes, the signing key
    for number, person in enumerate(people):
        person.proves(fleet, fleet.nodes[1 - number % 2])


def test_resealing_twice_at_the_same_time_is_as_good_as_once(fleet):
    """Many realms, two commands at once, while a server enrols."""
    old, new = new_line(), new_line()
    fleet.open([old], nodes=1)
    realms = [fleet.realm(limits=False) for _ in range(5)]
    people = [Person(realm.app(), realm.user()) for realm in realms]
    fleet.roll([new, old])
    both = [
        subprocess.Popen(
            [str(BINARY), "keys", "reseal"], stdout=subprocess.PIPE, text=True,
            env={**clean_environment(), "POSTERN_DATABASE_URL": fleet.cluster.url("bb_serve"),
                 "POSTERN_SECRET_KEY_FILE": str(fleet.key_file)})
        for _ in range(2)
    ]
    late = Person(realms[0].app(), realms[0].user())
    assert [process.wait(60) for process in both] == [0, 0]
    assert not [kind for line, kind in fleet.key_lines() if line == line_id(old) and kind != "session"]
    for person in [*people, late]:
        person.proves(fleet, fleet.nodes[0])


def test_metrics_count_what_stands_on_each_line(fleet):
    """For an alert that waits for zero."""
    old, new = new_line(), new_line()
    fleet.open([old], nodes=1)
    realm = fleet.realm()
    Person(realm.app(), realm.user())
    fleet.roll([new, old])

    def shown(line, kind):
        return f'postern_key_line_in_use{{line="{line_id(line)}",kind="{kind}"}}'

    def metrics():
        return dict(row.rsplit(" ", 1) for row in fleet.nodes[0].ops("/metrics").body.decode().splitlines() if row.startswith("postern_key"))

    fleet.wait_until(lambda: shown(old, "totp-seed") in metrics(), "lines are counted")
    assert metrics()[shown(old, "totp-seed")] == "1" and metrics()[shown(new, "totp-seed")] == "0"


# -- secrets in logs -----------------------------------------------------------------------------------------------


def test_a_log_at_level_trace_holds_no_key_material_and_no_password(fleet):
    """ServiceLifecycle prints the reflection of every service at this level."""
    fleet.open(nodes=0)
    fleet.node = fleet.start_node(
        POSTERN_LOG_LEVEL="trace", POSTERN_DATABASE_URL=fleet.cluster.url("bb_serve") + "&password=Tr0ub4dor",
        POSTERN_SMTP_URL=f"smtp://mailer:S3cretWord@127.0.0.1:{fleet.mailbox.port}?starttls=off")
    realm = fleet.realm()
    realm.app().get("/.well-known/jwks")
    fleet.node.stop()
    log = fleet.node.log()
    assert "Keyring(redacted)" in log or "OutboxSender" in log, log[:2000]
    key = base64.b64decode(fleet.lines[0])
    decimal = ", ".join(str(byte) for byte in key[:4])
    for secret in (fleet.lines[0], key.hex(), decimal, "Tr0ub4dor", "S3cretWord", "ServerKey(id", "SymmetricKey"):
        assert secret not in log, secret
