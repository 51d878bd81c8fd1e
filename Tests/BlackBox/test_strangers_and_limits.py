"""What a stranger may store, and which limits a stranger may use up: two tables that name everything there is."""

import pathlib
import re

import pytest

from harness.approvals import switch_on
from harness.codeflow import Flow, hosted
from harness.phones import Phones, new_number
from test_known_devices import anywhere
from test_routes import routes_of_document

HERE = pathlib.Path(__file__).parent
DEVICE = "test_known_devices.py::test_strangers_cannot_use_up_what_a_known_device_may_ask_for"
FIFTH = "test_known_devices.py::test_known_devices_have_a_fifth_of_the_broad_limits"

#: Each limit: who chooses its key, and the test that shows the owner of an account signing in when strangers have used it up; "own": the key
#: is one that strangers do not have, or the caller's own address; "many": of those behind one address, who share it by intent.
LIMITS = {
    ("native-otp", "target"): DEVICE,
    ("native-otp", "target-total"): DEVICE,
    ("native-otp", "client"): FIFTH, ("native-otp", "app"): FIFTH,
    ("native-otp", "source"): "many", ("native-otp", "registrations"): "many",
    ("magic-link", "target"): DEVICE, ("magic-link", "target-total"): DEVICE,
    ("magic-link", "client"): FIFTH, ("magic-link", "app"): FIFTH, ("magic-link", "source"): "many",
    ("phone-otp", "target"): "test_phone_strangers.py::test_a_fifth_is_kept_for_known_devices_and_proven_numbers",
    ("phone-otp", "target-total"): "test_phone_strangers.py::test_a_fifth_is_kept_for_known_devices_and_proven_numbers",
    **{("phone-otp", dimension): "test_phone_strangers.py::test_a_fifth_is_kept_for_known_devices_and_proven_numbers"
       for dimension in ("client", "app", "prefix", "country", "spend")},
    ("phone-otp", "source"): "many",
    ("approval", "target"): "test_approval_strangers.py::test_the_owner_is_asked_all_the_same",
    ("approval", "target-total"): "test_approval_strangers.py::test_the_owner_is_asked_all_the_same",
    ("approval", "client"): "test_approval_strangers.py::test_the_owner_is_asked_all_the_same",
    ("approval", "source"): "many",
    ("passkey-begin", "source"): "many", ("passkey-begin", "client"): "own", ("passkey-begin", "app"): "own",
    ("token", "source"): "many", ("token", "client"): "own", ("token", "app"): "own",
    ("token", "failures"): "test_known_devices.py::test_a_known_device_signs_in_while_the_account_is_closed_to_strangers",
    ("token", "wrong-codes"): "test_guessing.py::test_the_brake_of_a_realm",
    ("refused", "source"): "many", ("authorize", "source"): "many", ("par", "source"): "many", ("par", "client"): "own",
    ("trusted-device", "source"): "many", ("trusted-device", "target"): "own",
    ("possession", "client"): "own", ("possession", "target"): "own",
}


def test_every_limit_says_what_strangers_do_with_it(world):
    """A new policy or dimension has to say who chooses its key, and which test shows that the owner signs in all the same."""
    there = {tuple(row) for row in world.cluster.sql("SELECT policy, dimension FROM postern.rate_limit_policy")}
    assert there == set(LIMITS), (there - set(LIMITS), set(LIMITS) - there)
    for shown in LIMITS.values():
        if shown in ("own", "many"):
            continue
        file, _, name = shown.partition("::")
        assert f"def {name}" in (HERE / file).read_text(encoding="utf-8"), shown


#: The most bytes that one request of a stranger leaves in the database, row headers included, where it is not 4 KiB.
BOUNDS = {("post", "/connect/par"): 4500}


@pytest.fixture(scope="module", name="realm")
def _realm(world, proxied_node):
    made = hosted(world.realm(), offer_passkey=False)
    made.phones = Phones(made)
    switch_on(made, "app", public_clients=True)
    world.admin.call("put_scope", made.slug, "openid")
    made.through = proxied_node
    world.settle()
    yield made
    made.phones.close()


def sizes(realm):
    """Bytes of the rows of each table."""
    tables = [row[0] for row in realm.world.cluster.sql(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r'")]
    query = " UNION ALL ".join(f"SELECT '{name}', coalesce(sum(pg_column_size(t)), 0) FROM postern.{name} AS t" for name in tables)
    return {name: int(size) for name, size in realm.world.cluster.sql(query)}


def right(realm, path):
    """What a request of a stranger holds where it is accepted: (members, whether they are JSON)."""
    app, flow = realm.app(), Flow(realm)
    return {
        "/connect/par": (flow.request(), False),
        "/connect/authorize": (flow.request(), False),
        "/connect/bc-authorize": ({"client_id": app.client_id, "scope": "openid", "login_hint": realm.new_email()}, False),
        "/api/account/native/otp/request": ({"Email": realm.new_email(), "ClientId": app.client_id}, True),
        "/api/account/native/register": ({"Email": realm.new_email(), "FirstName": "A", "LastName": "B", "ClientId": app.client_id}, True),
        "/api/account/magic-link/request": ({"Email": realm.new_email(), "ClientId": app.client_id}, True),
        "/connect/passkey/begin": ({"client_id": app.client_id}, False),
    }.get(path, ({"client_id": app.client_id, "Phone": new_number()}, False))


def names_of_document():
    """Every name of a parameter or member in docs/openapi.yaml."""
    text = (HERE.parents[1] / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^ +([A-Za-z_]{3,40}): ?(?:\{|$)", text, re.MULTILINE)))


@pytest.mark.parametrize("method, path", sorted(route for route in routes_of_document() if route[0] == "post"))
def test_what_one_request_of_a_stranger_stores_is_bounded(realm, method, path):
    """Each of its members as long as it may be, then each name that the document has, and headers as long as they may be."""
    app = realm.app(node=realm.through)
    members, is_json = right(realm, path)
    stretched = [{}] + [{name: ("x" * size)} for name in {*members, "state", "nonce", "acr_values", "ui_locales", "login_hint", "binding_message"}
                        for size in (200, 1000, 2000, 20_000)]
    stretched += [{name: "x" * 900 for name in names_of_document()[at:at + 60] if name not in members} for at in range(0, 600, 60)]
    for more in stretched:
        headers = {**anywhere(), "User-Agent": "u" * 4000, "Accept-Language": "de-" + "x" * 2000}
        before = sizes(realm)
        send = app.post_json if is_json else app.post
        send(path.replace("{id}", "1"), {**members, **more}, headers)
        grown = {name: size - before.get(name, 0) for name, size in sizes(realm).items() if size > before.get(name, 0)}
        grown.pop("mail_outbox", None)
        assert sum(grown.values()) <= BOUNDS.get((method, path), 4096), (list(more), grown)
