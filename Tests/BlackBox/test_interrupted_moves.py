"""`postern realm move` and `clear` that are killed at each of their steps, and run again."""

import threading

import pytest

from harness.clusters import TwoClusters
from harness.load import is_unavailable
from harness.volley import in_parallel


@pytest.fixture(scope="module")
def world():
    made = TwoClusters("interrupted")
    try:
        yield made.open()
    finally:
        made.close()


def id_of(realm):
    """The realm's id as SQL."""
    return f"(SELECT id FROM postern.realm WHERE slug = '{realm.slug}')"


def assert_no_traces(world, realm_id):
    """Neither cluster has triggers, slots, publications, subscriptions or notes of a move."""
    name = "postern_move_" + realm_id.replace("-", "")
    for cluster in (world.north, world.south):
        assert cluster.sql(
            f"SELECT tgname FROM pg_trigger WHERE tgname LIKE '{name}%' UNION ALL SELECT slot_name FROM pg_replication_slots "
            f"UNION ALL SELECT pubname FROM pg_publication WHERE pubname = '{name}' "
            f"UNION ALL SELECT subname FROM pg_subscription WHERE subname = '{name}' "
            f"UNION ALL SELECT state FROM postern.realm_move WHERE realm_id = '{realm_id}' "
            f"UNION ALL SELECT 'mark' FROM postern.realm_move_mark WHERE realm_id = '{realm_id}'") == []


@pytest.mark.parametrize("line", [
    pytest.param("guarding the tables", marks=pytest.mark.full), "copying",
    pytest.param("all tables are copied", marks=pytest.mark.full), "changing over"])
def test_a_move_that_is_killed_goes_on(world, line):
    realm = world.realm()
    families = in_parallel(realm.app().sign_in, realm.users(3))
    world.killed_at(realm, line)
    if line != "changing over":  # what that one leaves is a matter of milliseconds
        assert world.listed(realm) == {"north": "leaving for south"}
        families = [realm.app().refreshed(family["refresh_token"]) for family in families]
    said = world.move(realm)
    assert "rows are equal" in said
    assert world.listed(realm) == {"north": "left for south", "south": "here"}
    for family in families:
        assert realm.app().refresh(family["refresh_token"]).status == 200


@pytest.mark.parametrize("line", [
    "is served by south; writes waited", pytest.param("comparing the rows", marks=pytest.mark.full)])
def test_a_move_that_is_killed_after_the_opening_is_ended_and_says_what_was_not_compared(world, line):
    realm = world.realm()
    realm_id = world.north.value(f"SELECT {id_of(realm)}")
    family = realm.app().sign_in(realm.user())
    world.killed_at(realm, line)
    assert world.listed(realm) == {"north": "left for south", "south": "here"}
    family = realm.app().refreshed(family["refresh_token"])
    said = world.move(realm)
    assert "is served by south already" in said
    cleared = world.postern("clear", realm.slug, "--at", "north")
    if "were not compared" in said:  # the killed run may have got as far as that
        assert cleared.returncode == 1 and "not found to be equal" in cleared.stderr
        cleared = world.postern("clear", realm.slug, "--at", "north", "--unverified")
    assert cleared.returncode == 0, cleared.stderr
    assert_no_traces(world, realm_id)
    assert realm.app().refresh(family["refresh_token"]).status == 200


def test_a_statement_of_a_killed_command_that_still_runs_is_waited_for(world):
    """Otherwise the next run would open the realm where it was, and that statement would open it elsewhere."""
    realm = world.realm()
    family = realm.app().sign_in(realm.user())
    world.killed_at(realm, "all tables are copied")
    # The session that the killed command leaves in south, in the middle of the change.
    last = world.north.value(
        f"BEGIN; SELECT postern.close_realm({id_of(realm)}); COMMIT; "
        f"SELECT postern.end_writes({id_of(realm)}, '5 seconds', '3')").splitlines()[-1]
    realm_id = world.north.value(f"SELECT {id_of(realm)}")
    opening = world.south.hold(f"SELECT pg_advisory_lock(postern.lock_of_move('{realm_id}'))")
    try:
        with world.started("move", realm.slug, "--to", "south") as process:
            said = [process.stdout.readline()]
            assert "waiting for another" in said[0], said
            assert world.north.value(f"SELECT postern.placement('{realm_id}')") == "left"
            opening.run(f"SELECT postern.open_realm('{realm_id}', '{last.replace(chr(39), chr(39) * 2)}')")
            opening.end()
            said += list(process.stdout)
        assert process.returncode == 0 and "is served by south already" in "".join(said), said
    finally:
        opening.end()
    assert world.listed(realm) == {"north": "left for south", "south": "here"}
    assert realm.app().refresh(family["refresh_token"]).status == 200


def test_a_move_that_is_killed_between_the_clusters_lets_requests_wait_and_goes_on(world):
    realm = world.realm()
    family = realm.app().sign_in(realm.user())
    world.killed_at(realm, "all tables are copied")
    # What a command leaves that dies after it has closed the realm.
    world.north.sql(f"SELECT postern.close_realm(id) FROM postern.realm WHERE slug = '{realm.slug}'")
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(realm.app().refresh(family["refresh_token"], timeout=30)), daemon=True)
    waiting.start()
    assert realm.app().get("/.well-known/openid-configuration").status == 200, "what reads goes on"
    waiting.join(20)
    assert is_unavailable(answers[0]), "neither cluster serves the realm, and the client may try again"
    world.move(realm)
    assert realm.app().refresh(family["refresh_token"]).status == 200


def test_a_move_is_abandoned(world):
    realm = world.realm()
    family = realm.app().sign_in(realm.user())
    world.killed_at(realm, "copying")
    done = world.postern("move", realm.slug, "--to", "south", "--abandon")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert world.listed(realm) == {"north": "here"}
    assert world.south.value("SELECT count(*) FROM postern.user_account AS u WHERE NOT EXISTS "
                             "(SELECT FROM postern.realm AS r WHERE r.id = u.realm_id)") == "0"
    assert realm.app().refresh(family["refresh_token"]).status == 200
    assert "rows are equal" in world.move(realm)


def test_an_end_of_a_move_that_is_killed_is_ended(world):
    realm = world.realm()
    realm_id = world.north.value(f"SELECT {id_of(realm)}")
    family = realm.app().sign_in(realm.user())
    world.killed_at(realm, "all tables are copied")
    world.killed_when("removing what was copied", "move", realm.slug, "--to", "south", "--abandon")
    assert world.listed(realm) == {"north": "leaving for south"}
    done = world.postern("move", realm.slug, "--to", "south", "--abandon")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert_no_traces(world, realm_id)
    assert realm.app().refresh(family["refresh_token"]).status == 200


@pytest.mark.parametrize("line", [
    pytest.param("address_verification is clear", marks=pytest.mark.full), "session is clear",
    pytest.param("realm_move_mark is clear", marks=pytest.mark.full)])
def test_a_removal_that_is_killed_goes_on_and_the_realm_can_come_back(world, line):
    realm = world.realm()
    realm_id = world.north.value(f"SELECT {id_of(realm)}")
    family = realm.app().sign_in(realm.user())
    world.move(realm)
    world.killed_when(line, "clear", realm.slug, "--at", "north")
    assert world.listed(realm) == {"north": "left for south", "south": "here"}
    refused = world.postern("move", realm.slug, "--to", "north")
    assert refused.returncode == 1 and "realm clear" in refused.stderr
    cleared = world.postern("clear", realm.slug, "--at", "north")
    assert cleared.returncode == 0, cleared.stderr
    assert_no_traces(world, realm_id)
    world.move(realm, to="north")
    assert realm.app().refresh(family["refresh_token"]).status == 200
