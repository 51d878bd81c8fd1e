"""The injected clock: time is moved by moving everything the database remembers into the past.

Real seconds go on meanwhile, and a busy machine takes some for each request. What must still be good is asked for at least fifteen
seconds before its end; what must be early follows `AT_ONCE`; what must be over may be as late as it likes.
"""

import time

from .postgres import SQLError

#: Half a minute back: what was done last is half a minute ahead, so that the next request is early however long it takes.
AT_ONCE = -30

_SHIFT = """
SET session_replication_role = replica;
SET lock_timeout = '5s';
DO $shift$
DECLARE
  target record;
BEGIN
  FOR target IN
    SELECT c.table_name,
           string_agg(format('%I = %I - make_interval(secs => {seconds})', c.column_name, c.column_name), ', ') AS assignments
      FROM information_schema.columns c
      JOIN pg_class t ON t.relname = c.table_name AND t.relnamespace = 'postern'::regnamespace
     WHERE c.table_schema = 'postern' AND c.data_type = 'timestamp with time zone'
       AND c.is_generated = 'NEVER' AND t.relkind IN ('r', 'p') AND NOT t.relispartition
     GROUP BY c.table_name
     ORDER BY c.table_name
  LOOP
    EXECUTE format('UPDATE postern.%I SET %s', target.table_name, target.assignments);
  END LOOP;
END
$shift$;
"""


def time_travel(cluster, seconds):
    """Makes every stored instant `seconds` older, so that for the server this much time has passed."""
    for attempt in range(5):
        try:
            cluster.sql(_SHIFT.format(seconds=float(seconds)))
            cluster.travelled += seconds
            return
        except SQLError as problem:  # a worker may hold a row, or we may have met it head-on
            if attempt == 4 or not ("deadlock" in str(problem) or "lock timeout" in str(problem)):
                raise


class Stopwatch:
    """Reaches an age counted from its creation, real seconds included."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._started = self._now()

    def _now(self):
        return time.monotonic() + self._cluster.travelled

    def age(self):
        """Seconds that have passed for the server."""
        return self._now() - self._started

    def reach(self, age):
        """Travels to `age` seconds after the start."""
        missing = age - self.age()
        assert missing > 0, f"already {self.age():.1f} s old"
        time_travel(self._cluster, missing)
