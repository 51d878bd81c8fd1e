"""A realm moves between two clusters that Patroni looks after, and one of them loses its primary in the middle."""

import time

import pytest

from harness import settings
from harness.clusters import TwoClusters
from harness.patroni import AVAILABLE, MISSING, PatroniCluster
from harness.populated import populate
from harness.report import say
from harness.steady import Steady, prepare
from harness.volley import in_parallel

pytestmark = [
    pytest.mark.full, pytest.mark.skipif(settings.FULL and not AVAILABLE, reason=MISSING),
]
RATE = 40
#: More than a copy needs without faults, so that a fault in the middle of it is in the middle.
USERS = 10_000


class TwoPatroniClusters(TwoClusters):
    """Both clusters as deploy/patroni has them."""

    def __init__(self, name):
        super().__init__(name)
        for cluster in (self.north, self.south):
            cluster.remove()
        self.north = self.cluster = self.admin.cluster = PatroniCluster(f"{name}-north")
        self.south = PatroniCluster(f"{name}-south")
        self.postgres = ""

    def heal(self):
        """Both have a primary and a standby again."""
        for cluster in (self.north, self.south):
            cluster.ensure_up()
        for cluster in (self.north, self.south):
            cluster.wait_healthy()

    def slots(self):
        """Slots of moves at any member of either cluster."""
        return [
            (member.name, row[0]) for cluster in (self.north, self.south) for member in cluster.members
            for row in cluster.at(member, "SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'logical'")
        ]


@pytest.fixture(scope="module")
def world():
    made = TwoPatroniClusters("patroni-moves")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture
def loaded(world):
    """A realm with people, under load."""
    world.heal()
    realm = prepare(world.realm())
    populate(world.north, realm, realm.client("app"), USERS, USERS // 3, USERS // 10)
    families = in_parallel(realm.app().sign_in, realm.users(Steady.families_for(RATE)))
    load = Steady(realm, [world.node, world.second_node], families, None, RATE).start()
    yield realm, load
    if not load.fleet.stopped:
        load.stop()


def test_a_realm_moves_between_clusters_of_patroni(world, loaded):
    """Without faults no request fails."""
    realm, load = loaded
    said = world.move(realm)
    time.sleep(1)  # of traffic in the other cluster
    load.stop()
    load.audit()
    say(f"move between clusters of Patroni: {said.splitlines()[-2]}")
    assert load.unavailable == 0 and "rows are equal" in said
    assert world.slots() == []


@pytest.mark.parametrize("line", ["copying", "all tables are copied", "changing over", "comparing the rows"])
@pytest.mark.parametrize("where", ["north", "south"])
def test_a_primary_is_lost_while_a_realm_moves(world, loaded, where, line):
    """The move completes, or says what to do; nothing that was acknowledged is lost and one cluster serves the realm."""
    realm, load = loaded
    cluster = getattr(world, where)
    former, said = None, []
    with world.started("move", realm.slug, "--to", "south") as process:
        for text in process.stdout:
            said.append(text)
            if line in text and former is None:
                former = cluster.primary()
                former.kill()
    assert former is not None, said
    completed = process.returncode == 0
    if not completed:
        assert f"postern realm move {realm.slug} --to south again" in said[-1], said
    cluster.wait_primary_other_than(former)
    tries, done = 0, None
    while not completed:
        tries += 1
        done = world.postern("move", realm.slug, "--to", "south")
        said.append(done.stdout + done.stderr)
        completed = done.returncode == 0
        assert completed or tries < 20, "".join(said[-1:])
        if not completed:
            time.sleep(1)  # as an operator waits for the cluster
    world.heal()
    load.back()
    load.stop()
    load.audit()
    placements = []
    for one in (world.north, world.south):
        placements.append(one.value(f"SELECT postern.placement(id) FROM postern.realm WHERE slug = '{realm.slug}'"))
    assert placements == ["left", "here"], placements
    assert world.slots() == [], "a slot that is never read keeps write-ahead log for ever"
    say(f"{where} fails over at \"{line}\": {'completed' if tries == 0 else f'{tries} more runs'}")
