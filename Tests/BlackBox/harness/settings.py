"""Everything the suite reads from its environment."""

import os
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
#: The binary as `scripts/dev` builds it: an optimised build behaves differently from a debug build where threads are concerned.
BINARY = Path(os.environ.get("POSTERN_BIN", REPOSITORY / ".build/release/postern"))
#: A release binary of an older commit, for rolling upgrades from it. Absent: the test that wants one is skipped and says so.
OLD_BINARY = Path(os.environ["POSTERN_OLD_BIN"]).resolve() if os.environ.get("POSTERN_OLD_BIN") else None
SHARED = Path(os.environ.get("POSTERN_SHARED", REPOSITORY.parent / "shared"))
OUTPUT = REPOSITORY / ".test-output" / "blackbox"
#: Clients of PyPI with their dependencies; absent: the tests that want one are skipped and say so.
CLIENTS = Path(os.environ.get("POSTERN_CLIENTS", REPOSITORY / ".build/clients"))
PEERS = Path(os.environ["POSTERN_PEERS"]) if os.environ.get("POSTERN_PEERS") else None
#: Prometheus' reader of rules, if it is installed.
PROMTOOL = os.environ.get("POSTERN_PROMTOOL") or shutil.which("promtool")
#: Debian's Patroni and etcd, for failovers, and PgBouncer. Absent: the tests that want them are skipped and say so.
PATRONI = shutil.which("patroni", path="/usr/bin")
ETCD = os.environ.get("POSTERN_ETCD") or shutil.which("etcd")
PGBOUNCER = os.environ.get("POSTERN_PGBOUNCER") or shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
#: PyPI's `schemathesis` with its dependencies; absent: the test that wants it is skipped and says so.
SCHEMATHESIS = Path(os.environ.get("POSTERN_SCHEMATHESIS", REPOSITORY / ".build/schemathesis"))
#: Validators of OpenAPI and a generator of clients; absent: the same.
OPENAPI = Path(os.environ.get("POSTERN_OPENAPI", REPOSITORY / ".build/openapi"))
#: PyPI's `cotter` with its dependencies; absent: the same.
COTTER = Path(os.environ.get("POSTERN_COTTER", REPOSITORY / ".build/cotter"))
POSTGRES_BIN = Path(os.environ.get("POSTERN_PG_BIN", "/usr/lib/postgresql/15/bin"))

#: Whether the binary was built with a sanitizer, which takes several times the memory.
SANITIZED = os.environ.get("POSTERN_SANITIZED", "") not in ("", "0")
FULL = os.environ.get("POSTERN_FULL", "") not in ("", "0")
ROUNDS = int(os.environ.get("POSTERN_ROUNDS", "200" if FULL else "10"))
#: Refreshes of the Swift client in bad weather.
SOAK = int(os.environ.get("POSTERN_SOAK", "10000" if FULL else "100"))
FAULT_ROUNDS = int(os.environ.get("POSTERN_FAULT_ROUNDS", "20" if FULL else "1"))
CHAOS_ROUNDS = int(os.environ.get("POSTERN_CHAOS_ROUNDS", "200" if FULL else "3"))
CHAOS_SEED = int(os.environ.get("POSTERN_CHAOS_SEED", "1"))
UPGRADES = int(os.environ.get("POSTERN_UPGRADES", "10" if FULL else "1"))
MOVE_USERS = int(os.environ.get("POSTERN_MOVE_USERS", "1000000"))
MOVE_RATE = int(os.environ.get("POSTERN_MOVE_RATE", "500"))
FAILOVERS = int(os.environ.get("POSTERN_FAILOVERS", "40" if FULL else "1"))

#: Answers that must be uniform leave at this deadline; short, so that the suite stays short.
UNIFORM_DEADLINE_MS = 25
