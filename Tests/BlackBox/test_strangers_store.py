"""What one request of a stranger leaves behind, at every endpoint: the table of docs/security.md, measured with the largest input that is taken.

A stranger has no credential, or the `client_id` of a public client alone. The endpoints are those of the source, so that a new one fails until
it has a row. Each name of a parameter that the source or docs/openapi.yaml knows is sent to each endpoint with 5,000 bytes that nothing
compresses, so that a parameter which is stored without a bound shows as a row that is too large.
"""

import functools
import re
import secrets

import pytest

from harness.meter import Meter
from harness.settings import REPOSITORY
from harness.strangers import Strangers, long_text, realm_for_strangers
from test_routes import SOURCES, declared_callers

#: More than any request may leave, and the sizes that are tried of what is not taken at that size.
HUGE, SIZES = 5000, (5000, 2000, 1000, 500, 400, 250, 120, 60)
#: Bytes of parameters in one request: a body has 64 KiB, a query 8 KiB.
ROOM = {"form": 60_000, "json": 60_000, "query": 5000}
#: Kinds of endpoints that refuse a stranger before they read anything.
CLOSED = {"account", "accountOrDevice", "apiKeys", "claims", "possession", "resourceServer", "service"}
CALLERS = {endpoint: caller for endpoint, caller in declared_callers().items() if caller != "operations"}


class Row:
    """One row of the table."""

    def __init__(self, cells):
        self.what, size, self.life, year, self.messages, self.calls = cells
        self.bytes, self.year = int(size.replace(",", "")), int(year)
        self.messages, self.calls = int(self.messages), int(self.calls)


@functools.cache
def rows():
    """The rows by endpoint, `(method, path)`, and by the kind of its callers."""
    text = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
    part = text.split("\n## What strangers can make the server store, send and fetch\n", 1)[1].split("\n## ", 1)[0]
    found = {}
    for line in re.findall(r"^\| (.*) \|$", part, re.MULTILINE):
        cells = [cell.strip() for cell in line.split(" | ")]
        if not re.fullmatch(r"[0-9,]+", cells[1]):
            continue
        keys = re.findall(r"`([A-Za-z]+)(?: (/[^`]*))?`", cells[0])
        assert keys, line
        for name, path in keys:
            key = (name.lower(), path) if path else name
            assert key not in found, f"{key} has two rows"
            found[key] = Row(cells)
    return found


def row_of(endpoint):
    """The row of an endpoint; None: there is none."""
    return rows().get(CALLERS[endpoint] if CALLERS[endpoint] in CLOSED else endpoint)


@functools.cache
def names_of_parameters(every):
    """What the source and docs/openapi.yaml call parameters; `every`: each literal of the source that could be a name."""
    literal = r'"([A-Za-z][A-Za-z0-9_]{1,40}(?:\[\])?)"' if every else r'[\[(]"([A-Za-z][A-Za-z0-9_]{1,40}(?:\[\])?)"'
    found = set()
    for module in (*SOURCES, REPOSITORY / "Sources" / "Grants"):
        for file in module.rglob("*.swift"):
            found |= set(re.findall(literal, file.read_text(encoding="utf-8")))
    if every:
        found |= set(re.findall(r"^ +([A-Za-z_]{3,40}): ?(?:\{|$)", (REPOSITORY / "docs" / "openapi.yaml").read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(found)


def styles(name):
    """What a parameter of this name may look like, by its size."""
    made = [long_text]
    if re.search(r"mail|user|address|hint", name, re.IGNORECASE):
        made.append(lambda size: f"{long_text(60).strip('_-')}@" + ".".join(["a" * 60] * min(3, size // 60)) + ".example"[:max(0, size)])
    if re.search(r"ur[il]|resource|redirect", name, re.IGNORECASE):
        made.append(lambda size: "https://x.example/" + long_text(size - 18))
    if re.search(r"scope|prompt|values|locales", name, re.IGNORECASE):
        made.append(lambda size: " ".join(long_text(8) for _ in range(size // 9)))
    if re.search(r"name|message", name, re.IGNORECASE):
        made.insert(0, lambda size: "".join(chr(0x20000 + secrets.randbelow(40_000)) for _ in range(size // 4)))
    return made


def taken(request, expected, values, kept):
    """Adds to `kept` those of the values with which the request has the outcome that it has without them."""
    if not values:
        return
    if request.outcome({**kept, **values}) == expected:
        kept.update(values)
    elif len(values) > 1:
        items = list(values.items())
        for half in (items[:len(items) // 2], items[len(items) // 2:]):
            taken(request, expected, dict(half), kept)


def unbounded(request, expected, names):
    """Sends every name with a huge value, as many as fit at once; those that are not taken so."""
    room, refused = ROOM[request.form] // HUGE, []
    for at in range(0, len(names), room):
        kept = {}
        taken(request, expected, {name: long_text(HUGE) for name in names[at:at + room]}, kept)
        refused += [name for name in names[at:at + room] if name not in kept]
    return refused


def widest(request, expected, names):
    """The largest values of these names that are taken together."""
    can = {}
    for name in names:
        for style in styles(name):
            if request.outcome({name: style(SIZES[-1])}) == expected:
                can[name] = style
                break
    kept, room = {}, ROOM[request.form]
    for size in SIZES:
        left = [name for name in can if name not in kept]
        fit = left[:max(0, room - sum(map(len, kept.values()))) // size]
        taken(request, expected, {name: can[name](size) for name in fit}, kept)
    return kept


@pytest.fixture(scope="module", name="realm")
def _realm(world, proxied_node):
    realm = realm_for_strangers(world, proxied_node)
    realm.strangers, realm.meter = Strangers(realm), Meter(realm, realm.phones)
    yield realm
    realm.phones.close()


def test_every_endpoint_has_a_row():
    """And each row an endpoint."""
    missing = [endpoint for endpoint in CALLERS if row_of(endpoint) is None]
    assert not missing, f"docs/security.md does not say what a stranger leaves at {missing}"
    known = {caller if caller in CLOSED else endpoint for endpoint, caller in CALLERS.items()}
    assert set(rows()) <= known, set(rows()) - known


@pytest.mark.parametrize("method, path", sorted(CALLERS))
def test_what_a_request_of_a_stranger_leaves_is_bounded(realm, method, path):
    """By the row of its endpoint; where the row says more than 4 KiB, it says why."""
    row, meter = row_of((method, path)), realm.meter
    assert row is not None, "no row"
    for count, request in enumerate(realm.strangers.of(method, path)):
        expected, values = request.outcome(), {}
        if CALLERS[method, path] not in CLOSED and realm.strangers.requests.get((method, path)):
            base = request.make()[1]
            names = [name for name in names_of_parameters(count == 0 and request.form != "query") if name not in base]
            meter.begin()
            refused = unbounded(request, expected, names)
            assert meter.growth().largest <= row.bytes, (request.name, "a parameter is stored without a bound", meter.growth().tables)
            values = widest(request, expected, [*base, *refused])
        made = request.make()
        meter.begin()
        told = request.outcome(values, made)
        grown = meter.growth(row.life)
        where = (request.name, sorted(values), grown)
        assert told == expected, where
        assert grown.total <= row.bytes, where
        assert grown.messages <= row.messages and grown.calls <= row.calls, where
        assert set(grown.lasting) <= {"audit_event"} and sum(grown.lasting.values()) <= row.year, where
        print(method, path, request.name, told, {n: len(v) for n, v in values.items()}, grown)
