"""Bad input, table-driven: every case of the shared negative-cases.json that today's server can be asked."""

import collections
import re
import threading
import time

import pytest

from harness import cases, report, wire
from harness.case_fixtures import CaseWorld, Fixtures

DOCUMENT = cases.load()
DEFAULTS = DOCUMENT["meta"]["defaults"] if DOCUMENT else {}
COUNTS = collections.Counter()
NO_STORE_PATHS = re.compile(
    r"^/(connect/(token|introspect|revoke|passkey)|api/account/(native/|magic-link/)|magic-login)(?![a-z0-9-])"
)

pytestmark = pytest.mark.skipif(DOCUMENT is None, reason="negative-cases.json is absent (set POSTERN_SHARED)")
if DOCUMENT is None:
    report.say("negative cases: the shared file is absent, none were run (set POSTERN_SHARED)")


def runnable():
    """Splits the file into what runs now and what waits for a feature."""
    now, deferred = [], collections.Counter()
    for data in DOCUMENT["cases"] if DOCUMENT else []:
        case = cases.Case(data)
        feature = case.feature()
        if feature is None:
            now.append(case)
        else:
            deferred[feature] += 1
    return now, deferred


NOW, DEFERRED = runnable()


@pytest.fixture(scope="module")
def shared(world):
    """The realms of the placeholders, and the books that are checked at the end."""
    made = CaseWorld(world)
    made.pid = world.node.process.pid
    made.answers = collections.defaultdict(list)
    yield made
    waiting = ", ".join(f"{name} {count}" for name, count in sorted(DEFERRED.items()))
    report.say(
        f"negative cases: {COUNTS['run']} run, {COUNTS['control']} positive controls, "
        f"{sum(DEFERRED.values())} deferred ({waiting}), {len(DOCUMENT['cases'])} in the file"
    )


def send(case, fixtures):
    """The request of a case, as written."""
    target = cases.fill(case.path, fixtures)
    headers = {k: cases.fill(v, fixtures) for k, v in case.headers.items() if v is not None}
    raw = wire.request_bytes(case.method, target, headers, cases.body_of(case.body, fixtures))
    started = time.monotonic()
    with wire.Connection(fixtures.node.port, timeout=10) as connection:
        connection.send(raw)
        answer = connection.receive(case.method)
    answer.seconds = time.monotonic() - started
    return answer, target, headers


def send_repeated(case, fixtures):
    """All answers of a repeated case."""
    plan = case.repeat or {"n": 1}
    text = cases.fill(str(plan["n"]), fixtures)
    count = sum(int(part) for part in text.split("+"))
    width = int(plan.get("concurrency", 1))
    if width == 1:
        return [send(case, fixtures) for _ in range(count)]
    results = [None] * count
    threads = [
        threading.Thread(target=lambda i=i: results.__setitem__(i, send(case, fixtures))) for i in range(count)
    ]
    for start in range(0, count, width):
        for thread in threads[start:start + width]:
            thread.start()
        for thread in threads[start:start + width]:
            thread.join()
    return results


def check_defaults(case, answer, path):
    """What holds for every answer; a case may allow a status by naming it."""
    assert answer.status not in set(DEFAULTS["never_status"]) - set(case.expect["status"]), answer
    for text in DEFAULTS["never_body"]:
        assert text.encode() not in answer.body, f"{text!r} in the body: {answer}"
    for name in DEFAULTS["never_header"]:
        assert answer.header(name) is None, f"{name}: {answer}"
    if NO_STORE_PATHS.match(path) and answer.status not in (404, 421):
        assert "no-store" in (answer.header("cache-control") or ""), f"cache-control: {answer}"
    if answer.status >= 400 and answer.body:
        kind = answer.header("content-type") or ""
        assert kind.startswith(("application/json", "application/problem+json")), f"content-type: {answer}"
    assert answer.seconds <= DEFAULTS["max_seconds"], f"{answer.seconds:.2f} s: {answer}"


def check_echo(case, answer, target, headers, fixtures):
    """Nothing of the request comes back, except in `scope`."""
    body = answer.body
    known = b""
    if target.startswith("/.well-known/") and answer.status == 200:
        plain = wire.exchange(fixtures.node.port, "GET", target.partition("?")[0], {"Host": headers["Host"]})
        known = plain.body
    body = re.sub(rb'"scope":"[^"]*"', b"", body)
    for value in cases.sent_values(case, headers, target, fixtures):
        assert value.encode("utf-8", "surrogatepass") not in body or value.encode() in known, f"echo of {value!r}: {answer}"
        assert all(value not in v for _, v in answer.headers), f"echo of {value!r} in a header: {answer}"


def check_expected(case, answer, fixtures):
    """The case's own expectations."""
    expect = case.expect
    assert answer.status in expect["status"], f"expected {expect['status']}: {answer}"
    if "error" in expect and answer.status in (400, 401, 403) and case.method != "HEAD":
        assert answer.error in expect["error"], f"expected {expect['error']}: {answer}"
    for text in expect.get("body_excludes", []):
        assert cases.fill(text, fixtures).encode() not in answer.body, f"{text!r} in the body: {answer}"
    only_on = {"allow": (405,), "www-authenticate": (401,), "retry-after": (429, 503)}
    for name, wanted in expect.get("headers", {}).items():
        if answer.status not in only_on.get(name, (answer.status,)):
            continue
        value = answer.header(name)
        if wanted is None:
            assert value is None, f"{name}: {answer}"
        else:
            assert value is not None, f"{name} is missing: {answer}"
            assert re.search(wanted, value) if wanted.startswith("^") else wanted in value, f"{name}: {answer}"


def check_after(case, fixtures, shared):
    """The state the request has left behind."""
    for after in case.after:
        if after.endswith("_usable"):
            answer = fixtures.usable(after.removesuffix("_usable"))
            assert answer.status == 200, f"{after}: {answer}"
        elif after.endswith("_dead"):
            answer = fixtures.usable(after.removesuffix("_dead"))
            assert answer.status == 400 and answer.error == "invalid_grant", f"{after}: {answer}"
        elif after == "no_mail":
            for name in ("email", "email_2", "email_unknown"):
                if name in case.names():
                    shared.silent[fixtures(name)] = case.id
        elif after == "mail_link_host_is_realm_https" or after.startswith("mail_excludes:"):
            email = fixtures("email")
            fixtures.expect_mail(email)
            mail = fixtures.world.mailbox.wait(email, shared.expected_mails[email])
            assert mail.link.startswith(fixtures.a.issuer + "/magic-login?"), after
            assert after.partition(":")[2] not in mail.text or ":" not in after, f"{after}: {mail.text}"
        elif after in ("no_credential_row", "passkeys_unchanged"):
            assert fixtures.passkeys() == fixtures.before, after
        elif after == "passkey_still_there":
            assert [row for row in fixtures.passkeys() if row[0] == fixtures("passkey_id")], after
        elif after in ("no_user", "no_row"):
            email = fixtures("email_unknown")
            assert not fixtures.world.admin.rows_of("users", email), f"{after}: {email}"
        else:
            pytest.fail(f"the runner does not know the assertion {after!r}")


def check_same_bytes(case, answer, shared):
    """Equal to the answer of the named case; cases that name the same absent case are compared with each other."""
    for reference in {case.id, case.expect.get("same_bytes_as")} - {None}:
        group = shared.answers[reference]
        if group:
            other_id, other = group[0]
            assert answer.same_bytes() == other.same_bytes(), f"differs from {other_id}: {answer} / {other}"
        group.append((case.id, answer))


def positive_control(shared):
    """A fresh user signs in by code, refreshes, and enrols, uses and deletes a passkey: otherwise the batch shows nothing."""
    email = shared.a.user()
    shared.expected_mails[email] = 3
    app = shared.a.app()
    tokens = app.sign_in(email)
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert app.userinfo(tokens["access_token"]).status == 200
    passkey, credential = app.enroll(tokens["access_token"])
    app.passkey_sign_in(credential)
    assert app.delete_passkey(tokens["access_token"], passkey).status == 204
    COUNTS["control"] += 1


@pytest.mark.parametrize("case", NOW, ids=[case.id for case in NOW])
def test_negative_case(shared, case):
    """One case: the request, what every answer owes, what this one owes, and the state afterwards."""
    fixtures = Fixtures(shared, case)
    unknown = fixtures.prepare(case.names())
    if unknown:
        DEFERRED["fixture " + unknown[0]] += 1
        pytest.skip(f"deferred: no fixture for {unknown}")
    COUNTS["run"] += 1
    sent = send_repeated(case, fixtures)
    for answer, target, headers in sent:
        check_defaults(case, answer, target)
        check_echo(case, answer, target, headers, fixtures)
    if (case.repeat or {}).get("assert_on") == "last":
        early = [answer.status for answer, _, _ in sent[:-1]]
        assert not set(early) & {429, 503}, f"limited too early: {early}"
        sent = sent[-1:]
    for answer, _, _ in sent:
        check_expected(case, answer, fixtures)
    check_after(case, fixtures, shared)
    if len(sent) == 1:
        check_same_bytes(case, sent[0][0], shared)
    if COUNTS["run"] % DEFAULTS["positive_control_every"] == 0:
        positive_control(shared)


def test_after_all_cases_a_sign_in_still_works(shared):
    """The last positive control."""
    positive_control(shared)


def test_after_all_cases_the_same_process_is_alive(shared, world):
    """It neither exited nor was restarted, and both listeners answer."""
    assert world.node.alive() and world.node.process.pid == shared.pid
    assert world.node.ops("/healthz").status == 200
    assert world.node.ops("/readyz").status == 200


def test_no_case_made_a_mail_it_should_not_have(shared, world):
    """Addresses of `no_mail` cases got what their fixtures asked for and nothing else; nobody else got anything."""
    positive_control(shared)  # whatever was queued before it has been sent
    time.sleep(0.5)
    for email, case in shared.silent.items():
        assert len(world.mailbox.to(email)) == shared.expected_mails.get(email, 0), f"{case} sent a mail to {email}"
    for mail in world.mailbox.mails[shared.mails_before:]:
        assert len(mail.recipients) == 1, mail.recipients
        assert mail.recipients[0].lower().endswith("@mail.example"), f"a mail went to {mail.recipients}"


def test_the_servers_log_tells_of_no_crash(shared, world):
    """No trap, no stack trace, no SQL error text."""
    assert shared
    text = world.node.log()
    for sign in ("Fatal error", "Crash:", "SIGILL", "SIGSEGV"):
        assert sign not in text
