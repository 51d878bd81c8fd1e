"""Where everything is."""

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: The throw-away cluster of the black-box tests serves here too.
sys.path.insert(0, str(REPOSITORY / "Tests" / "BlackBox"))

BINARIES = Path(os.environ.get("POSTERN_BENCH_BIN", REPOSITORY / ".build" / "release"))
LOADGEN = REPOSITORY / ".build-bench" / "loadgen"
SQL = REPOSITORY / "sql" / "bench"
FLOOR = Path(os.environ.get("POSTERN_FLOOR", REPOSITORY.parent / "shared" / "floor"))
POSTGRES_BIN = Path(os.environ.get("POSTERN_PG_BIN", "/usr/lib/postgresql/15/bin"))


def say(text):
    """One line of progress, on stderr: stdout is for the tables."""
    print(text, file=sys.stderr, flush=True)
