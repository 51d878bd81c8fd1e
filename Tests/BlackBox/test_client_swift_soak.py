"""A phone with an app and its extension, in bad weather: no session ends but by the user.

Two processes of the Swift client share one store. Every tenth answer is lost, writes fail, processes are killed and stopped, the clock
is set, and a node of the server restarts. POSTERN_SOAK says how many refreshes there are.
"""

import itertools
import random
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import report, settings
from harness.proxy import _Proxy
from harness.swift_client import SwiftClient

#: How many refreshes a process makes between two events.
ROUND = 25


class TenthAnswerLost(_Proxy):
    """Before two nodes, which take turns."""

    def __init__(self, ports):
        self._ports = itertools.cycle(ports)
        self._numbers = itertools.count(1)
        self.dropped = 0
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        super().__init__(listener, lambda: socket.create_connection(("127.0.0.1", next(self._ports))))

    def _is_doomed(self, data):
        return data.startswith(b"POST /connect/token") and next(self._numbers) % 10 == 0

    def _rest(self, data):
        self.dropped += 1
        # The body is cut. An answer without any bytes URLSession awaits for 15 s on Linux, and one that ends in its head is a fatal
        # error of FoundationNetworking.
        return data[:data.find(b"\r\n\r\n") + 14] if b"\r\n\r\n" in data else b""


class Phone:
    """Two processes with one store, and what befell them."""

    def __init__(self, **where):
        self._where = where
        self._dice = random.Random(1)
        self._pool = ThreadPoolExecutor(2)
        self._clocks = itertools.cycle([0, 600, -600])
        self.done = self.killed = self.stopped = self.unavailable = self.unstored = 0
        self.processes = [SwiftClient(**where, failing=60) for _ in range(2)]

    def weather(self):
        """Both refresh, while one of them is killed or stopped, or nothing happens."""
        for process in self.processes:
            process.forget_events()
        number = self._dice.randrange(2)
        victim, other = self.processes[number], self.processes[1 - number]
        event = self._dice.random()
        if event < 0.15:
            victim.call("dieAtWrite", after=self._dice.randrange(ROUND))
        rounds = [self._pool.submit(self._round, process) for process in self.processes]
        if 0.15 <= event < 0.25:
            victim.wait_event("request", self._dice.randrange(1, ROUND), rounds[number])
            victim.kill()
        elif event >= 0.97 or not self.stopped:
            victim.wait_event("request", self._dice.randrange(1, 5), rounds[number])
            victim.process.send_signal(signal.SIGSTOP)
            # The other one waits for the lock, if it was that of the stopped one, and then goes on without.
            other.wait_event("refresh", 1, rounds[1 - number])
            victim.process.send_signal(signal.SIGCONT)
            self.stopped += 1
        for number, outcome in enumerate(rounds):
            self._count(number, outcome)
        if self._dice.random() < 0.3:
            ahead = next(self._clocks)
            for process in self.processes:
                process.call("setClock", ahead=ahead)

    @staticmethod
    def _round(process):
        """Refreshes with pauses of a few hundredths of a second, in which the other one gets the lock."""
        counted = Counter()
        for _ in range(ROUND):
            counted.update(process.call("soak", timeout=120, count=1))
            time.sleep(random.random() * 0.05)
        return counted

    def _count(self, number, outcome):
        try:
            result = outcome.result()
        except EOFError:
            self.killed += 1
            self.processes[number].close()
            self.processes[number] = SwiftClient(**self._where, failing=60, clock=next(self._clocks))
            return
        self.done += int(result["done"])
        self.unavailable += int(result["unavailable"])
        self.unstored += int(result["unstored"])

    def close(self):
        """Ends both."""
        for process in self.processes:
            process.close()


@pytest.mark.slow
def test_no_session_ends_but_by_the_user(fragile_world, tmp_path):
    realm = fragile_world.realm()
    restarted = fragile_world.start_node()
    proxy = TenthAnswerLost([fragile_world.node.port, restarted.port])
    app = realm.app()
    where = dict(host=realm.host, client_id=realm.client("app"), port=proxy.port)
    # Tokens end at once, so that each call refreshes. Pauses are short; deadlines are as ever.
    phone = Phone(**where, directory=str(tmp_path / "state"), life=1e-6, haste=20)
    phone.processes[0].call("adopt", refreshToken=app.sign_in(realm.user())["refresh_token"])
    session = phone.processes[0].call("state")["user"]["sessionID"]
    restarting = threading.Thread(target=lambda: (restarted.stop(), restarted.start()))
    began = time.monotonic()
    try:
        while phone.done < settings.SOAK:
            phone.weather()
            if phone.done > settings.SOAK / 3 and not restarting.ident:
                restarting.start()
        restarting.join()
        for process in phone.processes:
            process.call("soak", count=1)
            state = process.call("state")
            assert state["case"] == "signedIn" and state["user"]["sessionID"] == session
    finally:
        phone.close()
        proxy.close()
    assert phone.unstored == 0
    assert not fragile_world.admin.rows_of("audit_log", "refresh_token_reuse")
    assert len(list(tmp_path.glob("state/*.new"))) <= 2
    report.LINES.append(
        f"Swift client: {phone.done} refreshes in {time.monotonic() - began:.0f} s, {proxy.dropped} answers lost, {phone.killed} kills, "
        f"{phone.stopped} stops, {phone.unavailable} times unavailable; 0 sign-outs, 0 tokens handed out that were not stored"
    )
