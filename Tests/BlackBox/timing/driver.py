"""Sends pairs of requests over keep-alive connections and takes the time of each answer.

One thread, one epoll: no lock of the interpreter is ever waited for. Requests are built beforehand, so that nothing that depends on a
class is done while the clock runs, and the garbage collector rests.
"""

import contextlib
import gc
import heapq
import random
import select
import socket
import time
from dataclasses import dataclass, field


@dataclass
class Times:
    """The times of one comparison in nanoseconds, pair by pair, and every answer as it came."""

    first: tuple = field(default_factory=lambda: ([], []))
    last: tuple = field(default_factory=lambda: ([], []))
    answers: tuple = field(default_factory=lambda: ([], []))
    #: The shortest time from before the last byte was written to the first byte read: never less than what the server waited.
    quickest: float = float("inf")

    def extend(self, other):
        """Adds the pairs of a further run."""
        for mine, more in ((self.first, other.first), (self.last, other.last), (self.answers, other.answers)):
            for index in (0, 1):
                mine[index].extend(more[index])
        self.quickest = min(self.quickest, other.quickest)
        return self


class _Line:
    """One connection with the pair it is busy with."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pair = None
        self.order = (0, 1)
        self.step = 0
        self.tail = None
        self.received = b""
        self.expected = None
        self.begun_at = self.sent_at = self.first_at = 0
        self.result = None


def run(port, pairs, connections=8, seed=1, pause=0.004, late=0.0):
    """Measures pairs `(x, y)` of request bytes; the order inside a pair is a coin's, and a random pause keeps the lines apart.

    Time runs from the last byte written to the first (and to the last) byte read, by the monotonic clock. The last byte of each
    request is written `late` seconds after the others: an attacker may choose when a request is complete.
    """
    coin = random.Random(seed)
    results = [None] * len(pairs)
    lines = [_Line(port) for _ in range(min(connections, len(pairs)))]
    poll = select.epoll()
    by_descriptor = {line.socket.fileno(): line for line in lines}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    upcoming = iter(range(len(pairs)))
    resting = [(time.monotonic() + coin.random() * 0.05, index) for index in range(len(lines))]
    heapq.heapify(resting)
    busy = 0
    with _without_collector(), contextlib.closing(poll):
        while resting or busy:
            now = time.monotonic()
            while resting and resting[0][0] <= now:
                _, index = heapq.heappop(resting)
                line = lines[index]
                if line.tail is None and not _next(line, pairs, upcoming, coin):
                    continue
                if late and len(line.tail) > 1:
                    line.socket.sendall(line.tail[:-1])
                    line.tail = line.tail[-1:]
                    heapq.heappush(resting, (time.monotonic() + late, index))
                    continue
                line.begun_at = time.perf_counter_ns()
                line.socket.sendall(line.tail)
                line.sent_at = time.perf_counter_ns()
                line.tail = None
                busy += 1
            if not resting and not busy:
                break
            patience = max(0.0, resting[0][0] - time.monotonic()) if resting else 20
            events = poll.poll(patience)
            arrived = time.perf_counter_ns()
            assert events or resting, "no answer for 20 seconds"
            for descriptor, _ in events:
                line = by_descriptor[descriptor]
                if _receive(line, arrived):
                    busy -= 1
                    _finish(line, results)
                    heapq.heappush(resting, (time.monotonic() + coin.random() * pause, lines.index(line)))
    for line in lines:
        line.socket.close()
    times = Times()
    for result in results:
        for index in (0, 1):
            begun_at, sent_at, first_at, last_at, answer = result[index]
            times.quickest = min(times.quickest, first_at - begun_at)
            times.first[index].append(first_at - sent_at)
            times.last[index].append(last_at - sent_at)
            times.answers[index].append(answer)
    return times


def _next(line, pairs, upcoming, coin):
    """Makes ready the other half of the pair, or the first of the next one; False when there is none left."""
    if line.step == 0:
        line.pair = next(upcoming, None)
        if line.pair is None:
            return False
        line.order = (0, 1) if coin.random() < 0.5 else (1, 0)
        line.result = [None, None]
    line.received, line.expected = b"", None
    line.tail = pairs[line.pair][line.order[line.step]]
    return True


def _receive(line, arrived):
    """Takes what is there; True when the answer is complete."""
    if not line.received:
        line.first_at = arrived
    data = line.socket.recv(65536)
    assert data, f"the server closed the connection after {line.received[:300]!r}"
    line.received += data
    if line.expected is None:
        head = line.received.find(b"\r\n\r\n")
        if head < 0:
            return False
        line.expected = head + 4 + _content_length(line.received[:head])
    if len(line.received) < line.expected:
        return False
    line.last_at = arrived
    return True


def _content_length(head):
    for field_line in head.split(b"\r\n")[1:]:
        name, _, value = field_line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    assert head.split(b" ", 2)[1] in (b"204", b"304"), f"an answer without a length: {head!r}"
    return 0


def _finish(line, results):
    line.result[line.order[line.step]] = (line.begun_at, line.sent_at, line.first_at, line.last_at, line.received)
    line.step = 1 - line.step
    if line.step == 0:
        results[line.pair] = line.result


@contextlib.contextmanager
def _without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
