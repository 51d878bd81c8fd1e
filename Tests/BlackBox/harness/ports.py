"""Free TCP ports."""

import itertools
import os
import socket

#: Below the ports that the system gives to outgoing connections, and for each process a part of its own.
_CANDIDATES = itertools.cycle(range(start := 10_240 + os.getpid() % 220 * 100, start + 100))


def free_port():
    """A port of 127.0.0.1 nobody listens on right now."""
    for port in itertools.islice(_CANDIDATES, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")
