"""One scenario: HTTP, the one without proofs, our own statement, the floor and the static route take turns, so that noise falls on all of them."""

import statistics

import load
import peer
from paths import say
from server import StaticServer, fetch


class Bench:
    """Everything one invocation works on."""

    def __init__(self, database, server, realm, directory, seconds, rounds, connections, peer=None, pgbench=(1, 4, 16, 64)):
        self.database, self.server, self.realm, self.directory = database, server, realm, directory
        self.peer = peer
        self.seconds, self.rounds, self.connections, self.pgbench = seconds, rounds, connections, pgbench
        self._run = 1000
        #: Which number of connections a script was fastest with, once it is known.
        self._best = {}
        #: How much of its material a script needs, as a multiple of what is enough on most machines.
        self._enough = {}

    def measure(self, scenario, bearer=None):
        """All rounds of a scenario, with its static route beside it where it has one. `bearer`: the scenario without proofs."""
        if not scenario.static:
            return self._measure(scenario, bearer=bearer)
        static = StaticServer(fetch(self.server.port, scenario.request(self.realm)), self.directory)
        try:
            return self._measure(scenario, static)
        finally:
            static.stop()

    def _measure(self, scenario, beside=None, bearer=None):
        """All rounds of a scenario: {"http": {connections: run}, "bearer": {…}, "beside_bearer": {connections: {figure: ratio}}, "own": {…},
        "floor": {name: {…}}, "static": {…}, "half": run}."""
        values, bearer_values = self._kept(scenario), bearer and self._kept(bearer)
        # Once and not before each run: else every run would log whole pages again, and whoever touches more pages more of them.
        self.database.sql("CHECKPOINT")
        http, plain, static, statements, peers = {}, {}, {}, {}, {}
        with_peer = self.peer and scenario.name in peer.SCENARIOS
        peer_values = self.peer.values(scenario.name) if with_peer else None
        scripts = {"own": scenario.own} if scenario.own else {}
        scripts.update({name: s for name, s in scenario.floors.items() if self.database.has_floor})
        for number in range(self.rounds):
            for connections in self.connections:
                turns = [(http, scenario, values)] + ([(plain, bearer, bearer_values)] if bearer else [])
                # The one that was second begins the next round, so that a machine that becomes slower slows both.
                for runs, which, kept in turns if number % 2 == 0 else reversed(turns):
                    runs.setdefault(connections, []).append(self._http(which, connections, kept))
                if beside:
                    static.setdefault(connections, []).append(self._static(beside, scenario, connections, values))
                if with_peer:
                    peers.setdefault(connections, []).append(self._peer(scenario, connections, peer_values))
            for name, statement in scripts.items():
                best = self._best.get(statement.script)
                for connections in [best] if best else self.pgbench:
                    statements.setdefault(name, {}).setdefault(connections, []).append(self._statement(name, statement, connections))
                if not best:
                    self._best[statement.script] = max(statements[name], key=lambda c: statements[name][c][0]["rate"])
        result = {"http": _medians(http), "bearer": _medians(plain), "beside_bearer": _beside(http, plain), "static": _medians(static), "floor": {}, "own": {}, "peer": _medians(peers)}
        for name, runs in statements.items():
            if name == "own":
                result["own"] = _medians(runs)
            else:
                result["floor"][name] = _medians(runs)
        peak = max(run["rate"] for run in result["http"].values())
        result["half"] = self._http(scenario, max(self.connections), values, "--rate", round(peak / 2))
        return result

    def _kept(self, scenario):
        """The values of all runs of a scenario; None where each run has its own. Two scenarios may fill one file."""
        if not scenario.reusable:
            return None
        return scenario.material(self.realm, self.seconds).rename(self.directory / f"{scenario.name}.kept")

    def _http(self, scenario, connections, values, *options):
        self.realm.port = self.server.port
        if values is None:
            values = scenario.material(self.realm, self.seconds)
        self.database.settle()
        options = [*scenario.options, *options]
        if "--rotate" in options:
            options += ["--keep", values]
        if scenario.proofs:
            options += ["--proofs", scenario.proofs(self.realm, values, self.seconds)]
        try:
            run = load.http(self.database, self.server.pid, self.server.port, self.directory, scenario.request(self.realm), values,
                            connections, self.seconds, *options)
        except load.BadRun as error:
            raise load.BadRun(f"{error}\nThe end of the server's log:\n{self.server.log.read_text(errors='replace')[-3000:]}") from None
        paced = " at half of that" if "--rate" in options else ""
        say(f"{scenario.name:18} http  {connections:3}{paced}: {run['rate']:8.0f}/s  p50 {run['p50']:6.0f}  p99 {run['p99']:6.0f} µs  CPU µs: "
            f"server {run['server_us']:.0f}, PostgreSQL {run['postgres_us']:.0f}, generator {run['generator_us']:.1f}")
        return run

    def _static(self, static, scenario, connections, values):
        run = load.http(self.database, static.pid, static.port, self.directory, scenario.request(self.realm), values, connections,
                        self.seconds, *scenario.options)
        say(f"{'static route':18} http  {connections:3}: {run['rate']:8.0f}/s  p50 {run['p50']:6.0f}  p99 {run['p99']:6.0f} µs  CPU µs: "
            f"server {run['server_us']:.0f}")
        return run

    def _peer(self, scenario, connections, values):
        options = self.peer.options(scenario.name)
        if "--rotate" in options:
            options += ["--keep", values]
        run = load.http(self.database, self.peer.pid, self.peer.port, self.directory, self.peer.request(scenario.name), values, connections,
                        self.seconds, *options)
        say(f"{scenario.name:18} peer  {connections:3}: {run['rate']:8.0f}/s  p50 {run['p50']:6.0f}  p99 {run['p99']:6.0f} µs  CPU µs: "
            f"server {run['server_us']:.0f}, PostgreSQL {run['postgres_us']:.0f}")
        return run

    def _statement(self, name, statement, connections):
        self._run += 1
        database, role = ("floor", "postgres") if statement.floor else (self.database.database, "bench_app")
        times = self._enough.get(statement.script, 1)
        if statement.seed:
            self.database.sql(statement.seed(self._run, connections, self.seconds * times), database=database)
        self.database.settle()
        try:
            run = load.pgbench(self.database, statement.script, database, role, connections, self.seconds, statement.check, run=self._run)
        except load.UsedUp as error:
            # Each of 100,000 people has one code: more than that there is not.
            if not statement.seed or times >= 4:
                raise
            say(f"{error}: once more with twice as many")
            self._enough[statement.script] = times * 2
            return self._statement(name, statement, connections)
        say(f"{statement.script.stem:18} {'floor' if statement.floor else 'own':5} {connections:3}: {run['rate']:8.0f}/s  CPU µs: "
            f"PostgreSQL {run['postgres_us']:.0f}  WAL {run['wal_bytes']:.0f}")
        return run


def _medians(runs):
    """For each number of connections the run with the median rate, and the rates of all."""
    result = {}
    for connections, several in runs.items():
        middle = statistics.median_low([run["rate"] for run in several])
        result[str(connections)] = {**next(run for run in several if run["rate"] == middle), "rates": [run["rate"] for run in several]}
    return result


def _beside(runs, others):
    """For each number of connections: the median of the rounds' ratios of rate and PostgreSQL's CPU, and all of them. Two runs of one round
    met the same machine; two medians may be of different rounds."""
    result = {}
    for connections in others:
        pairs = list(zip(runs[connections], others[connections]))
        result[str(connections)] = {}
        for figure in ("rate", "postgres_us"):
            of_rounds = [run[figure] / other[figure] for run, other in pairs]
            result[str(connections)][figure] = statistics.median(of_rounds)
            result[str(connections)][f"{figure}_of_rounds"] = sorted(round(one, 3) for one in of_rounds)
    return result
