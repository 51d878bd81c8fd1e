"""What requests leave behind: bytes of rows, how long they stay, messages, and calls to other servers."""

import time
from dataclasses import dataclass, field

from .postgres import literal


#: What the server writes on its own account: how far it has come, which keys it has.
HOUSEKEEPING = ["sweep_cursor", "webhook_cursor", "webhook_subject", "realm", "signing_key", "data_key"]


#: Which rows are messages, and which become a call to a webhook that wants all events.
FRESH = {"mail_outbox": "created_at >= '{began}'", "audit_event": "event IN (SELECT event FROM postern.event_type)"}


@dataclass
class Growth:
    """Of one request, or of the requests since `Meter.begin`."""

    #: Rows that are new or were written again: (table, rows, bytes of all, bytes of the largest).
    tables: list = field(default_factory=list)
    #: Bytes by table of rows that are there longer than asked for.
    lasting: dict = field(default_factory=dict)
    messages: int = 0
    calls: int = 0

    @property
    def total(self):
        """Bytes of all rows, with their headers."""
        return sum(size for _, _, size, _ in self.tables)

    @property
    def largest(self):
        """Bytes of the largest row."""
        return max((largest for *_, largest in self.tables), default=0)


class Meter:
    """Measures one realm. `phones`: where its messages to phones go, and its hook."""

    def __init__(self, realm, phones):
        self.realm, self.phones = realm, phones
        sql = realm.world.cluster.sql
        self._id = sql(f"SELECT id FROM postern.realm WHERE slug = {literal(realm.slug)}")[0][0]
        #: Which rows of a table are deleted when. A table without a rule keeps its rows, but those of used proofs take turns and are emptied.
        self._tables = sql(
            "SELECT c.relname, CASE WHEN c.relname LIKE 'used_proof%' THEN 'true' ELSE coalesce(r.condition, 'false') END, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid"
            " AND a.attname = 'realm_id' AND NOT a.attisdropped) FROM pg_class AS c LEFT JOIN postern.sweep_rule AS r"
            " ON r.table_name = c.relname WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r'"
            " AND c.relname <> ALL (" + literal(HOUSEKEEPING) + ") ORDER BY 1")
        self._since = self._called = self._began = None

    def begin(self):
        """From here on."""
        self.settle()
        self._since, self._began = self.realm.world.cluster.sql(
            "SELECT pg_snapshot_xmax(pg_current_snapshot()), clock_timestamp()")[0]
        self._called = len(self.phones.messages)

    def settle(self, timeout=10.0):
        """Waits until everything that was asked for is decided, and what was queued has left."""
        deadline = time.monotonic() + timeout
        while self.realm.world.cluster.value(
                f"SELECT EXISTS (SELECT FROM postern.auth_session WHERE realm_id = '{self._id}' AND pending)"
                f" OR EXISTS (SELECT FROM postern.transaction WHERE realm_id = '{self._id}' AND kind = 'approval' AND resolved_at IS NULL)"
                f" OR EXISTS (SELECT FROM postern.mail_outbox WHERE realm_id = '{self._id}' AND state = 'queued')") == "t":
            assert time.monotonic() < deadline, "the worker does not come to an end"
            time.sleep(0.005)

    def growth(self, life="1000 years"):
        """What has grown since `begin`. `life`: after so long no row that came may be there."""
        self.settle()
        later = f"(now() + interval {literal(life)} + interval '1 second')"
        query = " UNION ALL ".join(
            f"SELECT '{name}', count(*), coalesce(sum(pg_column_size(t)), 0), coalesce(max(pg_column_size(t)), 0),"
            f" coalesce(sum(pg_column_size(t)) FILTER (WHERE ({condition.replace('now()', later)}) IS NOT TRUE), 0), count(*) FILTER (WHERE {fresh})"
            f" FROM postern.{name} AS t WHERE t.xmin::text::bigint >= {self._since}" + (f" AND realm_id = '{self._id}'" if is_realms == "t" else "")
            for name, condition, is_realms in self._tables
            for fresh in [FRESH.get(name, "false").format(began=self._began)])
        grown = Growth()
        for name, count, size, largest, lasting, fresh in self.realm.world.cluster.sql(query):
            if int(count):
                grown.tables.append((name, int(count), int(size), int(largest)))
            if int(lasting):
                grown.lasting[name] = int(lasting)
            grown.messages += int(fresh) if name == "mail_outbox" else 0
            grown.calls += int(fresh) if name == "audit_event" else 0
        grown.calls += len(self.phones.messages) - self._called
        return grown
