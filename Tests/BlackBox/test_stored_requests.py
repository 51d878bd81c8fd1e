"""Authorization requests that the server stores for strangers: how long they may be, how many, and when they go."""

import pytest

from harness import wire
from harness.clock import time_travel
from harness.codeflow import Flow, hosted, page_error, refused
from harness.volley import in_parallel
from test_known_devices import anywhere

LISTS = ["acr_values", "ui_locales", "scope", "resource"]


@pytest.fixture(name="realm")
def _realm(world, proxied_node):
    made = hosted(world.realm(), offer_passkey=False)
    made.through = proxied_node
    world.settle()
    return made


def stored(realm):
    """Rows and bytes that the realm has stored, whoever pushed them."""
    rows, size = realm.world.cluster.value(
        "SELECT count(*) || ' ' || coalesce(sum(pg_column_size(p)), 0) FROM postern.pushed_request AS p"
        f" JOIN postern.realm AS r ON r.id = p.realm_id WHERE r.slug = '{realm.slug}'").split()
    return int(rows), int(size)


def sweep(realm, seconds):
    """So much time passes, and the sweeper comes."""
    time_travel(realm.world.cluster, seconds)
    while int(realm.world.cluster.value("SELECT postern.sweep(1000)")) > 0:
        pass


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("client", ["app", "api"])
def test_a_list_of_a_pushed_request_has_a_kibibyte(realm, client, name):
    """Whoever pushes it."""
    flow = Flow(realm, client)
    for size in (1025, 60_000):
        assert flow.push(**{name: "x" * size}).status == 400, size
    if name in ("acr_values", "ui_locales"):
        assert flow.push(**{name: "x" * 1000}).status == 201
        assert flow.push(**{name: "x" * 1025}).json()["error"] == "invalid_request"
    assert flow.push().status == 201


def test_all_parameters_of_a_pushed_request_have_four_kibibytes(realm):
    """Each within its own bound."""
    flow = Flow(realm, redirect_uri="https://client.example/" + "p" * 1900)
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("app"), flow.redirect_uri)
    realm.world.settle()
    assert flow.push(state="s" * 1500).status == 201
    answer = flow.push(state="s" * 2048, nonce="n" * 512, acr_values="a" * 1000)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request"), answer
    assert stored(realm)[1] <= 4600


def test_a_long_request_of_a_page_is_bounded_alike(realm):
    """By POST, and by a query."""
    flow = Flow(realm)
    form = flow.request(acr_values="a" * 1025)
    answer = flow.app.post("/connect/authorize", {**form, "ui_locales": "x" * 9000}, {"Host": realm.host})
    assert refused(answer) == "invalid_request"
    assert refused(flow.authorize(acr_values="a" * 1025, state="s" * 1500)) == "invalid_request"
    assert stored(realm) == (0, 0)


def test_one_source_keeps_sixty_four_kibibytes_unopened(realm):
    """Of one client: 429 as a limit answers; another source, another client and one that opened its request go on."""
    flow, other = Flow(realm, node=realm.through), Flow(realm, "app-2", node=realm.through)
    source = anywhere()
    answers = in_parallel(lambda _: flow.push(headers=source, state="s" * 2000, acr_values="a" * 1000), range(40))
    kept = [answer for answer in answers if answer.status == 201]
    assert 15 <= len(kept) <= 21 and stored(realm)[1] <= 70_000, (len(kept), stored(realm))
    over = next(answer for answer in answers if answer.status != 201)
    assert over.status == 429 and 1 <= int(over.header("retry-after")) <= 120, over
    assert {**over.json(), "retryAfterSeconds": 0} == {
        "error": "rate_limited", "policy": "par", "dimension": "source", "retryAfterSeconds": 0}, over
    big = {"state": "s" * 2000, "acr_values": "a" * 1000}
    assert flow.push(headers=anywhere(), **big).status == 201 and other.push(headers=source, **big).status == 201
    query = wire.form_body({"client_id": flow.app.client_id, "request_uri": kept[0].json()["request_uri"]}).decode()
    assert flow.authorize(query=query).status == 200
    assert flow.push(headers=source, **big).status == 201


def test_what_was_not_opened_goes_with_its_time(realm):
    """Two minutes, and the sweeper's next round; what was opened stays as long as a sign-in may take."""
    flow = Flow(realm)
    opened, left = flow.push().json()["request_uri"], flow.push().json()["request_uri"]

    def page(uri):
        query = wire.form_body({"client_id": flow.app.client_id, "request_uri": uri}).decode()
        return flow.authorize(query=query)

    assert page(opened).status == 200
    sweep(realm, 121)
    assert stored(realm)[0] == 1
    assert page_error(page(left)) == "invalid_request_uri"
    sweep(realm, 30 * 60)
    assert stored(realm) == (0, 0)
