"""`postern audit export`: every event once, in an order that can be resumed, also while it is written to."""

import json
import subprocess
import time

from harness.node import run_postern
from harness.postgres import clean_environment
from harness.settings import BINARY


def wait_for(condition, timeout=60):
    """Until it holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def export(world, realm, *arguments):
    """Runs the command and returns its lines."""
    done = run_postern("audit", "export", "--realm", realm.slug, *arguments,
                       environment={"POSTERN_DATABASE_URL": world.cluster.url("bb_serve")})
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_export_is_the_audit_log(world):
    """The members and the rows of admin.audit_log, and nothing of another realm."""
    realm = world.realm()
    realm.app().sign_in(realm.user())
    lines = export(world, realm)
    rows = [json.loads(row) for row, in world.admin.run(f"SELECT row_to_json(a)::text FROM admin.audit_log AS a WHERE realm = '{realm.slug}';")]
    without_time = [{name: value for name, value in line.items() if name != "at"} for line in lines]
    assert sorted(without_time, key=lambda line: line["id"]) == sorted(
        ({name: value for name, value in row.items() if name != "at"} for row in rows), key=lambda row: row["id"])
    assert any(line["event"] == "sign_in" for line in lines)


def test_it_is_resumed_behind_an_event(world):
    """--after ID continues where the line of that id ended, --since leaves out what is older; refusals say why."""
    realm = world.realm()
    for _ in range(3):
        realm.app().sign_in(realm.user())
    lines = export(world, realm)
    for place in (0, len(lines) // 2, len(lines) - 1):
        assert export(world, realm, "--after", str(lines[place]["id"])) == lines[place + 1:]
    assert export(world, realm, "--since", "2999-01-01T00:00:00Z") == []
    assert export(world, realm, "--since", lines[0]["at"]) == [line for line in lines if line["at"] >= lines[0]["at"]]
    environment = {"POSTERN_DATABASE_URL": world.cluster.url("bb_serve")}
    for arguments, text in (
        (("--realm", realm.slug, "--after", "9000000000"), "is not in the audit log"),
        (("--realm", "no-such-realm"), "does not exist"),
        (("--realm", realm.slug, "--since", "yesterday"), "must be a moment"),
    ):
        done = run_postern("audit", "export", *arguments, environment=environment)
        assert done.returncode != 0 and text in done.stderr, done


def test_following_misses_no_event_of_a_late_transaction(world):
    """An event that was written first and committed last is neither lost nor overtaken."""
    realm = world.realm()
    last = export(world, realm)[-1]["id"]
    process = subprocess.Popen(
        [str(BINARY), "audit", "export", "--realm", realm.slug, "--after", str(last), "--follow"], stdout=subprocess.PIPE,
        env={**clean_environment(), "POSTERN_DATABASE_URL": world.cluster.url("bb_serve")}, text=True)
    try:
        put = f"INSERT INTO postern.audit_event (realm_id, event) SELECT id, '{{}}' FROM postern.realm WHERE slug = '{realm.slug}';"
        late = subprocess.Popen(world.cluster._psql("postgres", "postern"), stdin=subprocess.PIPE, text=True, env=clean_environment())
        late.stdin.write(f"BEGIN;\n{put.format('late')}\n")
        late.stdin.flush()
        wait_for(lambda: world.cluster.value("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%''late''%'") != "0")
        world.cluster.sql(put.format("early"))
        late.stdin.write("COMMIT;\n")
        late.stdin.close()
        assert late.wait(20) == 0
        events = [json.loads(process.stdout.readline())["event"] for _ in range(2)]
        assert events == ["late", "early"], events
        # A reader that is gone ends it.
        process.stdout.close()
        world.cluster.sql(put.format("after"))
        assert process.wait(20) == 1
    finally:
        process.kill()
