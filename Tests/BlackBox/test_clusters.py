"""Realms spread over two PostgreSQL clusters: moving one under load, and a cluster that is down."""

import threading
import time

import pytest

from harness import settings
from harness.clusters import TwoClusters
from harness.load import Load, is_unavailable
from harness.node import run_postern
from harness.postgres import SQLError
from harness.realm import Admin
from harness.report import say
from harness.volley import in_parallel

FAMILIES = 8
CODES = 40


@pytest.fixture(scope="module")
def world():
    made = TwoClusters("clusters")
    try:
        yield made.open()
    finally:
        made.close()


class SignIns:
    """New sign-ins one after another, each with a code that is asked for and redeemed; every mail is counted."""

    def __init__(self, app, emails):
        self._app, self._emails = app, list(emails)
        self.done, self.problems = [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(30)

    def _run(self):
        for email in self._emails:
            if self._stop.is_set():
                return
            try:
                self._app.sign_in(email)
                self.done.append(email)
            except AssertionError as problem:
                self.problems.append(f"{email}: {problem}")


def stored(cluster, realm):
    """Number and checksum of a realm's rows in every table."""
    rows = cluster.sql(
        "SELECT t, c.* FROM postern.tables_of_realms() AS t, "
        f"LATERAL postern.realm_checksum((SELECT id FROM postern.realm WHERE slug = '{realm.slug}'), t) AS c")
    return {row[0]: row[1:] for row in rows}


def test_a_realm_moves_under_load(world):
    realm, other = world.realm(), world.realm()
    app = realm.app()
    families = in_parallel(app.sign_in, realm.users(FAMILIES))
    codes = in_parallel(app.request_code, realm.users(CODES))
    loads = [
        Load(realm.app(node=node), realm.app("api", node=node), families[index::2], codes[index::2]).start()
        for index, node in enumerate((world.node, world.second_node))
    ]
    newcomers = SignIns(realm.app(node=world.second_node), realm.users(400)).start()
    neighbours = SignIns(other.app(), other.users(400)).start()
    try:
        text = world.move(realm)
        closed = stored(world.north, realm)
        moved = time.monotonic()
        for load in loads:
            load.first_success_after(moved)
        time.sleep(1)  # of traffic in the other cluster
    finally:
        for load in (*loads, newcomers, neighbours):
            load.stop()
    say(f"realm move under load: {text.splitlines()[-2]}; slowest request {max(load.slowest for load in loads):.2f} s; "
        f"{sum(len(load.successes) for load in loads)} answers, {len(newcomers.done)} new sign-ins")
    assert "rows are equal" in text
    assert [load.unavailable for load in loads] == [0, 0], "a request was refused during the move"
    for load in loads:
        load.audit()
    assert not newcomers.problems and not neighbours.problems, (newcomers.problems[:3], neighbours.problems[:3])
    assert newcomers.done and neighbours.done
    assert all(len(world.mailbox.to(email, "code")) == 1 for email in newcomers.done), "a mail was sent by both clusters"
    assert stored(world.north, realm) == closed, "the old rows were written"
    assert int(stored(world.south, realm)["session"][0]) >= int(closed["session"][0])
    assert world.listed(realm) == {"north": "left for south", "south": "here"}
    with pytest.raises(SQLError, match="served by another cluster"):
        world.north.sql(f"UPDATE postern.realm SET display_name = 'x' WHERE slug = '{realm.slug}'")


def test_the_old_rows_are_removed_by_a_command_and_only_then(world):
    realm, other = world.realm(), world.realm()
    family = realm.app().sign_in(realm.user())
    early = world.postern("clear", realm.slug, "--at", "north")
    assert early.returncode == 1 and "no closed rows" in early.stderr
    world.move(realm)
    cleared = world.postern("clear", realm.slug, "--at", "north")
    assert cleared.returncode == 0, cleared.stderr
    assert world.listed(realm) == {"south": "here"}
    left = world.north.value(
        f"SELECT count(*) FROM postern.user_account WHERE email LIKE '%.{realm.slug}@mail.example'")
    assert left == "0"
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'postern_move_%' AND tgrelid = 'postern.session'::regclass"
    assert world.north.value(triggers) == world.north.value("SELECT 2 * count(*) FROM postern.realm_move")
    assert realm.app().refresh(family["refresh_token"]).status == 200
    assert other.app().sign_in(other.user())


def test_a_realm_moves_back(world):
    realm, user = world.realm_in_south()
    family = realm.app().sign_in(user)
    refused = world.postern("move", realm.slug, "--to", "north")
    assert refused.returncode == 1 and "realm clear" in refused.stderr
    assert world.postern("clear", realm.slug, "--at", "north").returncode == 0
    world.move(realm, to="north")
    assert realm.app().refresh(family["refresh_token"]).status == 200
    assert world.listed(realm) == {"north": "here", "south": "left for north"}


def test_administrators_change_a_realm_where_it_is(world):
    realm, _ = world.realm_in_south()
    with pytest.raises(SQLError, match="served by another cluster"):
        world.admin.call("put_user", realm.slug, realm.new_email())
    email = realm.new_email()
    Admin(world.south).call("put_user", realm.slug, email, first_name="Mike", email_verified=True)
    Admin(world.south).call("set_native_grants", realm.slug, enabled=False)
    world.settle()
    assert realm.app().ask(email).status == 400
    Admin(world.south).call("set_native_grants", realm.slug, enabled=True)
    world.settle()
    assert realm.app().sign_in(email)


def test_a_cluster_that_is_down_stops_only_its_own_realms(world):
    (there, user), here = world.realm_in_south(), world.realm()
    family = there.app().sign_in(user)
    world.south.stop("immediate")
    try:
        assert is_unavailable(there.app().refresh(family["refresh_token"], timeout=20))
        assert here.app().sign_in(here.user())
        assert world.node.ops("/readyz").status == 200
    finally:
        world.south.start()
    deadline = time.monotonic() + 15
    while (answer := there.app().refresh(family["refresh_token"], timeout=20)).status == 503:
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    assert answer.status == 200, answer


@pytest.mark.skipif(not settings.FULL, reason="only with POSTERN_FULL=1")
def test_ten_moves_to_and_fro_lose_nothing(world):
    realm = world.realm()
    families = in_parallel(realm.app().sign_in, realm.users(FAMILIES))
    load = Load(realm.app(), realm.app("api"), families, []).start()
    try:
        for number in range(10):
            there, back = ("south", "north") if number % 2 == 0 else ("north", "south")
            world.move(realm, to=there)
            assert world.postern("clear", realm.slug, "--at", back).returncode == 0
    finally:
        load.stop()
    assert load.unavailable == 0
    load.audit()


def test_a_host_of_two_clusters_is_served_by_neither(world):
    """Whoever may make a realm in one cluster gets no host of another; a restart changes nothing."""
    realm = world.realm()
    user = realm.user()
    assert realm.app().sign_in(user)
    south = Admin(world.south)
    south.call("put_realm", "impostor", display_name="Impostor", primary_domain=realm.host)
    world.settle()
    try:
        assert is_unavailable(realm.app().ask(user))
        third = world.start_node()
        try:
            assert is_unavailable(realm.app(node=third).ask(user))
            said = f"host {realm.host} is of realm {realm.slug} of north and impostor of south: neither is served"
            assert said in third.log()
        finally:
            world.nodes.remove(third)
            third.stop()
        doctor = run_postern("doctor", environment=world.node.environment)
        assert doctor.returncode == 1 and f"FAIL  hosts of all clusters: {said}" in doctor.stdout, doctor.stdout
        assert "two clusters have a realm with the same host" in world.node.log()
        world.admin.call("put_realm", realm.slug, enabled=False)
        world.settle()
        assert is_unavailable(realm.app().ask(user)), "a realm that is disabled keeps its host"
        doctor = run_postern("doctor", environment=world.node.environment)
        said = f"host {realm.host} is of realm impostor of south and a disabled or deleted one of north: neither is served"
        assert doctor.returncode == 1 and f"FAIL  hosts of all clusters: {said}" in doctor.stdout, doctor.stdout
    finally:
        world.admin.call("put_realm", realm.slug, enabled=True)
        south.call("put_realm", "impostor", enabled=False)
    world.settle()
    assert realm.app().sign_in(user)
    doctor = run_postern("doctor", environment=world.node.environment)
    assert "ok    hosts of all clusters" in doctor.stdout


def test_a_host_whose_cluster_is_down_is_served_by_no_other(world):
    (there, user), _ = world.realm_in_south(), world.realm()
    assert world.postern("clear", there.slug, "--at", "north").returncode == 0
    assert there.app().sign_in(user)
    world.south.stop("immediate")
    try:
        world.admin.call("put_realm", "usurper", display_name="Usurper", primary_domain=there.host)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert is_unavailable(there.app().ask(user))
            time.sleep(0.1)
    finally:
        world.admin.call("put_realm", "usurper", enabled=False)
        world.south.start()
    deadline = time.monotonic() + 15
    while is_unavailable(there.app().ask(user)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
