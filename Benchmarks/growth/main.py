"""scripts/bench growth: see --help."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "Tests" / "BlackBox"), str(REPOSITORY / "sql" / "bench")]

from harness.postgres import Cluster, clean_environment  # noqa: E402  pylint: disable=wrong-import-position
from harness.settings import POSTGRES_BIN  # noqa: E402  pylint: disable=wrong-import-position
from read_plans import entries, frames  # noqa: E402  pylint: disable=wrong-import-position

#: The clients of the tests do not wait for a disk, and statistics appear when this program wants them.
SETTINGS = ("fsync = off\nautovacuum = off\nshared_buffers = '1GB'\nmaintenance_work_mem = '512MB'\nmax_wal_size = '16GB'\n"
            "log_line_prefix = '@%p '\nlog_min_messages = fatal\nmax_connections = 120\n")
EXPLAIN = {"session_preload_libraries": "auto_explain", "log_min_messages": "log", "auto_explain.log_min_duration": "0",
           "auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on", "auto_explain.log_timing": "off",
           "auto_explain.log_nested_statements": "on", "auto_explain.log_format": "json", "client_min_messages": "warning"}
#: Tests that read the whole catalogue or whole tables by themselves, and those of operators' functions.
WITHOUT = re.compile(r"growth\.sql$|/(0_base|placement|realm|upgrade)/|outbox/turns\.sql$")
#: An index of a million rows has up to two levels more than one of a thousand.
LEVELS = 2


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench growth",
        description="Runs the SQL tests among a few and among many rows of strangers in every table that grows, without statistics and "
                    "with them, and compares what each statement of each function that a request calls reads and takes. Exits 1 if one "
                    "reads more pages than by higher indexes and 1.2 times; sql/tests/plans/reads_many.txt names those that may.")
    parser.add_argument("--few", type=int, default=1_000, help="rows of each table (default %(default)s)")
    parser.add_argument("--many", type=int, default=1_000_000,
                        help="rows of each table (default %(default)s: some 20 GB, half an hour)")
    parser.add_argument("--statistics", choices=("absent", "present", "both"), default="both", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="of each side, in turns (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where everything goes as JSON as well")
    return parser.parse_args()


def say(text):
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Crowds(Cluster):
    """A cluster with a database for each number of rows."""

    def open(self):
        """Makes it, with the roles that the tests log in as."""
        self.create(SETTINGS)
        for file in self._files():
            self.script(file, self.database)
        self.sql("CREATE ROLE app_login LOGIN IN ROLE postern_app; CREATE ROLE admin_login LOGIN IN ROLE postern_admin")
        self.sql("CREATE EXTENSION pgtap")
        return self

    def fill(self, name, rows):
        """Makes a database with so many rows in every table that grows."""
        self.sql(f"CREATE DATABASE {name} TEMPLATE {self.database}", database="postgres")
        self.script("sql/bench/crowd.sql", name, rows=rows)

    def analyse(self, name):
        """Makes statistics."""
        self._rows(self.psql("postgres", name), "ANALYZE", timeout=3600)

    def script(self, file, database, **variables):
        """Runs an SQL file."""
        command = [str(POSTGRES_BIN / "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-h", str(self.root), "-U", "postgres",
                   "-d", database, "-f", file, *(f"--set={name}={value}" for name, value in variables.items())]
        done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), cwd=REPOSITORY, check=False)
        if done.returncode:
            raise SystemExit(f"{file}: {done.stderr}")

    def plans(self, database):
        """What auto_explain writes while the tests run there. Whether a test passes does not matter."""
        options = " ".join(f"-c {name}={value}" for name, value in EXPLAIN.items())
        session = {"PGHOST": str(self.root), "PGUSER": "postgres", "PGDATABASE": database, "PGTZ": "UTC"}
        before = self.log.stat().st_size
        for file in sorted((REPOSITORY / "sql" / "tests").glob("*/*.sql")):
            if not WITHOUT.search(str(file)):
                subprocess.run([str(POSTGRES_BIN / "psql"), "-Xq", "-o", os.devnull, "-f", str(file)], cwd=REPOSITORY,
                               env={**clean_environment(), **session, "PGOPTIONS": options}, capture_output=True, check=False)
        kept = self.root / "plans"
        with open(self.log, "rb") as log, open(kept, "wb") as out:
            log.seek(before)
            out.write(log.read())
        return kept

    def _files(self):
        functions = subprocess.run(["scripts/sql-functions"], capture_output=True, text=True, cwd=REPOSITORY, check=True)
        return [*sorted(str(f) for f in (REPOSITORY / "sql" / "schema").glob("*.sql")), *functions.stdout.split()]


def costs(plans, functions):
    """{(function, statement): (calls, pages of a call, microseconds of a call)} of statements inside Postern's functions,
    without what statements of the functions that they call read and take."""
    found, open_calls = {}, {}
    for entry in entries(plans):
        start, end = entry.find("{\n"), entry.rfind("\n\t}")
        took = re.search(r"duration: ([0-9.]+) ms", entry)
        if start < 0 or end < 0 or took is None:
            continue
        stack = list(frames(entry[end:]))
        plan = json.loads(entry[start:end + 3])
        top = plan["Plan"]
        pages, spent = top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0), 1000 * float(took[1])
        # A statement is logged after those that ran within it, by the same process.
        below = open_calls.setdefault(entry.split(" ", 1)[0], [])
        inner = [call for call in below if call[0] > len(stack)]
        below[:] = [call for call in below if call[0] <= len(stack)] + [(len(stack), pages, spent)]
        if not stack or stack[0][1] or stack[0][0] not in functions:
            continue
        direct = [call for call in inner if call[0] == min(call[0] for call in inner)]
        found.setdefault((stack[0][0], " ".join(plan["Query Text"].split())), []).append(
            (max(pages - sum(call[1] for call in direct), 0), max(spent - sum(call[2] for call in direct), 0)))
    return {key: (len(runs), statistics.fmean(pages for pages, _ in runs), statistics.median(spent for _, spent in runs))
            for key, runs in found.items()}


def called():
    """The functions that the server calls."""
    text = "".join(file.read_text() for file in (REPOSITORY / "Sources").rglob("*.swift"))
    return set(re.findall(r'FunctionCall(?:<[^{}]*?>)?\(\s*"([a-z0-9_]+)"', text))


def allowance(cluster):
    """Of a statement: how many pages more higher indexes may cost."""
    indexes = {name: int(many) for name, many in cluster.sql(
        "SELECT c.relname, count(*) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid "
        "WHERE c.relnamespace = 'postern'::regnamespace GROUP BY 1")}

    def of(statement):
        tables = set(re.findall(r"[a-z_]+", statement)) & set(indexes)
        return LEVELS * max(sum(indexes[table] for table in tables), 3)
    return of


def excepted():
    """Functions that may read more, each with a reason there."""
    lines = (REPOSITORY / "sql" / "tests" / "plans" / "reads_many.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in lines if line.startswith("reads ")}


def main():
    options = arguments()
    cluster = Crowds("growth")
    report, bad = {}, []
    try:
        cluster.open()
        functions = {name for name, in cluster.sql(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'postern'::regnamespace")}
        may = allowance(cluster)
        for name, rows in (("few", options.few), ("many", options.many)):
            say(f"filling tables with {rows} rows each …")
            cluster.fill(name, rows)
        for state in ("absent", "present") if options.statistics == "both" else (options.statistics,):
            if state == "present":
                say("analysing …")
                for name in ("few", "many"):
                    cluster.analyse(name)
            sides = {"few": [], "many": []}
            for turn in range(options.rounds):
                for name, of in sides.items():
                    say(f"statistics {state}, round {turn + 1}, among {name} …")
                    of.append(costs(cluster.plans(name), functions))
            report[state] = compare(sides, may, bad, state)
    finally:
        cluster.remove()
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    if bad:
        print(f"\n{len(bad)} statements read more than their work:")
        for line in bad:
            print("  " + line)
        raise SystemExit(1)
    print("\nNo statement of a function that was called reads more among many rows than among few.")


def compare(sides, may, bad, state):
    """Prints what each function that the server calls costs among many beside few, and remembers statements that grew."""
    few, many = ({key: tuple(statistics.median(run[key][i] for run in runs if key in run) for i in range(3))
                  for key in set().union(*runs)} for runs in sides.values())
    totals, excused = {}, excepted()
    for key in sorted(few.keys() & many.keys()):
        calls, pages, spent = few[key]
        _, more_pages, more_spent = many[key]
        total = totals.setdefault(key[0], [0, 0.0, 0.0, 0.0, 0.0])
        for i, value in enumerate((calls, calls * pages, calls * more_pages, calls * spent, calls * more_spent)):
            total[i] += value
        if key[0] not in excused and more_pages > 1.2 * pages + may(key[1]):
            bad.append(f"statistics {state}: {key[0]}: {pages:.0f} -> {more_pages:.0f} pages, "
                       f"{spent:.0f} -> {more_spent:.0f} µs: {key[1][:160]}")
    print(f"\nstatistics {state}: of the statements of a function")
    print(f"  {'':34}{'calls':>7}{'pages':>9}{'among many':>12}{'µs':>9}{'among many':>12}{'ratio':>7}")
    wanted = called()
    for name, (calls, pages, more_pages, spent, more_spent) in sorted(totals.items()):
        if name in wanted:
            print(f"  {name:34}{calls:7.0f}{pages / calls:9.1f}{more_pages / calls:12.1f}"
                  f"{spent / calls:9.0f}{more_spent / calls:12.0f}{more_spent / spent:7.2f}")
    ratio = sum(t[4] for t in totals.values()) / sum(t[3] for t in totals.values())
    print(f"  all statements: time among many / few {ratio:.2f}")
    return {"functions": totals, "ratio": ratio}


if __name__ == "__main__":
    main()
