"""Measures every pair, and the controls without which a run says nothing; prints a table and gives the verdict."""

import argparse
import json
import os
import random
import re
import secrets
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass

from harness.postgres import literal
from harness.settings import BINARY
from harness.world import World

from . import driver, figures, sink
from .accounts import Accounts
from .pairs import PAIRS
from .registry import Pair

#: Half the width of the band around 0.5 in which the whole interval must lie, by the number of pairs measured.
BANDS = ((50_000, 0.01), (10_000, 0.02), (0, 0.04))
#: A pair whose interval sticks out of the band is measured this often in all before it has failed; all its times count together.
ROUNDS = 4
#: An attacker's 100 requests per account may not tell accounts apart better than this; judged from 100 accounts per class on.
ATTACKER = 0.60


@dataclass
class Verdict:
    """What a comparison showed."""

    pair: str
    pairs: int
    band: float
    area: figures.Area
    last_byte: figures.Area
    p: float
    deciles: list
    minimum: float
    mean: float
    accounts: int
    median: float
    difference: str
    passed: bool

    def document(self):
        """As JSON; times in milliseconds."""
        return {
            "pair": self.pair, "pairs": self.pairs, "band": self.band, "passed": self.passed,
            "auc": [self.area.value, self.area.low, self.area.high],
            "auc_last_byte": [self.last_byte.value, self.last_byte.low, self.last_byte.high],
            "wilcoxon_p": self.p, "decile_differences_ms": self.deciles, "median_ms": self.median,
            "attacker": {"requests_per_account": 100, "accounts": self.accounts, "min_auc": self.minimum, "mean_auc": self.mean},
            "static_difference": self.difference,
        }

    def line(self):
        """One row of the table."""
        widest = max(self.deciles, key=abs)
        return (
            f"{'pass' if self.passed else 'FAIL'}  {self.pair:<68} {self.pairs:>6} {self.area.value:.3f} "
            f"[{self.area.low:.3f}, {self.area.high:.3f}] {self.p:>6.3f} {widest * 1000:>+8.0f} {self.median:>8.2f}  "
            f"{self.minimum:.2f}/{self.mean:.2f}{'  ' + self.difference if self.difference else ''}"
        )


HEADING = (
    f"{'':<6}{'pair':<68} {'pairs':>6} {'AUC':<5} {'[95 %]':<14} {'Wilc.p':>6} {'Δdec µs':>8} {'med. ms':>8}  min/mean of 100"
)


def judge(name, times):
    """The figures of a comparison and whether it passes: the interval inside the band, for the first byte and for the last."""
    count = len(times.first[0])
    band = next(width for least, width in BANDS if count >= least)
    first = [[t / 1e6 for t in side] for side in times.first]
    area = figures.area(*first)
    last = figures.area(*times.last)
    minimum, accounts = figures.attacker(*first, "min")
    mean, _ = figures.attacker(*first, "mean")
    difference = static_difference(times)
    caught = accounts >= 100 and max(minimum, mean) > ATTACKER
    return Verdict(
        name, count, band, area, last, figures.wilcoxon(*first), figures.decile_differences(*first), minimum, mean, accounts,
        figures.quantile(sorted(first[0]), 0.5), difference,
        area.within(band) and last.within(band) and not difference and not caught,
    )


_VOLATILE = (
    (re.compile(rb"(?im)^date: [^\r]*"), b"date"), (re.compile(rb"(?im)^dpop-nonce: [^\r]*"), b"nonce"), (re.compile(rb'"pas_[A-Za-z0-9_-]*"'), b"pas"),
    (re.compile(rb'"(pcm_|challenge":")[A-Za-z0-9_-]*"'), b"pcm"),
    # The number beside a request, and what the forms of a link's page send on.
    (re.compile(rb'"(MatchNumber|match_number)":"[0-9]{2}"'), b"number"), (re.compile(rb'"pbr_[A-Za-z0-9_-]*"'), b"pbr"),
    (re.compile(rb'value="([0-9a-f]{32}|[0-9a-f]{64})"'), b"form"),
    # The sealed state of a sign-in, and the address that was typed into it.
    (re.compile(rb'(tx=|name="tx" value=")[A-Za-z0-9_-]+'), b"tx"), (re.compile(rb"[0-9a-f]{16}@mail\.example"), b"address"),
)


def static_difference(times):
    """What the answers of the two classes do not share, apart from dates and handles; empty when they are the same bytes."""
    kinds = []
    for answers in times.answers:
        kinds.append(Counter(_canonical(answer) for answer in answers))
    if len(kinds[0]) == len(kinds[1]) == 1 and kinds[0].keys() == kinds[1].keys():
        return ""
    shown = [", ".join(f"{n} × {kind[:40]!r}" for kind, n in side.most_common(3)) for side in kinds]
    return f"answers differ: {shown[0]} / {shown[1]}"


def _canonical(answer):
    length = str(len(answer)).encode()
    for pattern, name in _VOLATILE:
        answer = pattern.sub(name, answer)
    return length + b" " + answer


class Experiment:
    """One server, one database, one realm with its limits lifted."""

    def __init__(self, deadline_ms, connections, mail, seed):
        self.deadline_ms = deadline_ms
        self.connections = connections
        self.coin = random.Random(seed)
        self.mail = mail
        self.sink = None
        self.world = None
        self.nodes = {}

    def __enter__(self):
        # The last core is this client's, the others the servers': what we start inherits where we are.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:-1] or cores)
        self.sink, port = sink.start() if self.mail == "up" else (None, 1)
        smtp = {"POSTERN_SMTP_URL": f"smtp://127.0.0.1:{port}?starttls=off"}
        self.world = World(
            "timing", POSTERN_UNIFORM_DEADLINE_MS=str(self.deadline_ms), POSTERN_LOG_LEVEL="info", **smtp)
        self.world.open()
        self.nodes["held"] = self.world.node
        self.nodes["free"] = self.world.start_node(POSTERN_UNIFORM_DEADLINE_MS="0", POSTERN_LOG_LEVEL="info", **smtp)
        self.accounts = Accounts(self.world)
        self._plant()
        os.sched_setaffinity(0, cores[-1:])
        return self

    def __exit__(self, *_):
        self.world.close()
        if self.sink:
            self.sink.terminate()
            self.sink.wait()

    def _plant(self):
        """1 ms of work more for addresses that begin with `slow`: in this database only, the server knows nothing of it."""
        self.world.cluster.sql(
            "CREATE FUNCTION postern.planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NEW.address_key LIKE 'slow%' THEN PERFORM pg_sleep(0.001); END IF; RETURN NEW; END $$;"
            "GRANT EXECUTE ON FUNCTION postern.planted() TO postern_app;"
            f"CREATE TRIGGER planted BEFORE INSERT ON postern.sign_in_request FOR EACH ROW WHEN (NEW.realm_id = {literal(self.accounts.id)}) "
            "EXECUTE FUNCTION postern.planted();"
        )

    def measure(self, pair, count, node="held", late=0.0):
        """Measures a pair, and a pair that is not clearly inside the band more often."""
        times = None
        for _ in range(ROUNDS):
            requests = pair.make(self.accounts, count)
            run = driver.run(self.nodes[node].port, requests, self.connections, self.coin.random(), late=late)
            times = times.extend(run) if times else run
            verdict = judge(pair.name, times)
            if verdict.passed or verdict.difference or verdict.area.beyond(verdict.band):
                break
        return verdict, times

    def warm(self):
        """A thousand requests that do not count, on each node."""
        for node in self.nodes.values():
            for pair in (_unknown_twice, PAIRS[0], PAIRS[3]):
                driver.run(node.port, pair.make(self.accounts, 125), 16, 0, pause=0)


def _planted(accounts, count):
    slow = [f"slow{secrets.token_hex(6)}@mail.example" for _ in range(count)]
    return [(accounts.code_request(a), accounts.code_request(b)) for a, b in zip(accounts.addresses(count), slow)]


_unknown_twice = Pair("control A/A, otp/request: unknown / unknown", "control", ("unknown", "unknown"), lambda accounts, count: [
    (accounts.code_request(a), accounts.code_request(b)) for a, b in zip(accounts.addresses(count), accounts.addresses(count))])
_hidden = Pair("control 1 ms of work more, before the deadline: must pass", "control", ("unknown", "slow"), _planted)
_late = Pair("control 1 ms of work more, requests completed late: must pass", "control", ("unknown", "slow"), _planted)
_shown = Pair("control 1 ms of work more, no deadline: must fail", "control", ("unknown", "slow"), _planted)


def controls(experiment, count):
    """Yields each control's verdict and whether it came out as it must."""
    verdict, times = experiment.measure(_unknown_twice, count)
    yield verdict, verdict.passed
    for side in (times.first, times.last):
        side[1][:] = [t + 1_000_000 for t in side[1]]
    verdict = judge("control 1 ms added after the release: must fail", times)
    yield verdict, verdict.area.beyond(verdict.band)
    verdict, _ = experiment.measure(_hidden, count)
    yield verdict, verdict.passed
    # Complete just before the deadline of whoever counts from a request's first byte: a millisecond would become a whole deadline.
    verdict, _ = experiment.measure(_late, count, late=0.9 * experiment.deadline_ms / 1000)
    yield verdict, verdict.passed
    verdict, _ = experiment.measure(_shown, count, node="free")
    yield verdict, verdict.area.beyond(verdict.band)


def main(arguments=None):
    """0: every pair passed and every control came out as it must; 1: not; 64: wrong usage."""
    parser = argparse.ArgumentParser(
        prog="scripts/timing", description="Can a stranger with a clock tell known from unknown? Measures every pair of request classes.")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs per comparison (2000; 10000 and 50000 narrow the band)")
    parser.add_argument("--pair", action="append", default=[], metavar="NAME", help="only pairs whose name contains NAME; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--deadline", type=int, default=25, metavar="MS", help="POSTERN_UNIFORM_DEADLINE_MS of the server under test (25)")
    parser.add_argument("--connections", type=int, default=8, help="keep-alive connections at once (8)")
    parser.add_argument("--mail", choices=("up", "down"), default="up", help="whether the mail server answers")
    parser.add_argument("--seed", type=int, default=None, help="of the coins; random, and printed")
    parser.add_argument("--no-controls", action="store_true", help="leave the controls out: for a part of a run whose other part had them")
    parser.add_argument("--list", action="store_true", help="print the names of the pairs and end")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:
        return 64 if end.code else 0
    wanted = [p for p in PAIRS if not options.pair or any(text.lower() in p.name.lower() for text in options.pair)]
    if options.list:
        print("\n".join(pair.name for pair in wanted))
        return 0
    if not wanted or options.pairs < 200 or not BINARY.exists():
        print("No such pair." if not wanted else "At least 200 pairs are wanted." if options.pairs < 200 else
              f"{BINARY} is missing: build it with `swift build --product postern`, or name another in POSTERN_BIN.", file=sys.stderr)
        return 64
    # So that a run that is ended takes its servers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{BINARY}, deadline {options.deadline} ms, {options.connections} connections, mail {options.mail}, seed {seed}", flush=True)
    return _report(options, wanted, seed)


def _report(options, wanted, seed):
    started, results, sound, passed = time.monotonic(), [], True, True
    with Experiment(options.deadline, options.connections, options.mail, seed) as experiment:
        experiment.warm()
        print(HEADING, flush=True)
        for verdict, as_it_must in () if options.no_controls else controls(experiment, options.pairs):
            sound = sound and as_it_must
            results.append({**verdict.document(), "control": True, "as_it_must": as_it_must})
            print(f"{verdict.line()}{'' if as_it_must else '  THE RUN IS VOID'}", flush=True)
        for pair in wanted:
            verdict, _ = experiment.measure(pair, options.pairs)
            passed = passed and verdict.passed
            results.append({**verdict.document(), "case": pair.case, "held": pair.held})
            print(verdict.line(), flush=True)
    seconds = time.monotonic() - started
    outcome = "void: a control did not come out as it must" if not sound else "pass" if passed else "FAIL"
    print(f"{outcome} ({len(wanted)} pairs of classes, {seconds:.0f} s)")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"outcome": outcome, "seed": seed, "deadline_ms": options.deadline, "binary": str(BINARY), "mail": options.mail,
                       "connections": options.connections, "seconds": round(seconds, 1), "results": results}, file, indent=1)
    return 0 if sound and passed else 1
