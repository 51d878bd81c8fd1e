"""Proxies that lose answers: done, but nobody was told."""

import pathlib
import random
import socket
import tempfile
import threading


class _Proxy:
    """Forwards connections of a listener. The answer of a doomed connection is lost, and the connection is cut."""

    def __init__(self, listener, connect):
        self._listener, self._connect = listener, connect
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Takes no more connections."""
        self._listener.close()

    def _is_doomed(self, data):
        """Whether a connection whose client sends this loses its answer; asked once more with each part of a request."""
        raise NotImplementedError

    def _rest(self, data):
        """What still reaches the client of a lost answer."""
        raise NotImplementedError

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                # Nothing listens: the client is refused, and the next one may be served.
                client.close()
                continue
            doomed = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, doomed), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server, doomed), daemon=True).start()

    def _requests(self, client, server, doomed):
        try:
            while data := client.recv(65536):
                with self._lock:
                    if not doomed.is_set() and self._is_doomed(data):
                        doomed.set()
                server.sendall(data)
        except OSError:
            pass
        if not doomed.is_set():
            self._shut(client, server)

    def _answers(self, client, server, doomed):
        try:
            while data := server.recv(65536):
                if doomed.is_set():
                    with self._lock:
                        rest = self._rest(data)
                    client.sendall(rest)
                    break
                client.sendall(data)
        except OSError:
            pass
        self._shut(client, server)

    @staticmethod
    def _shut(*ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class DroppingProxy(_Proxy):
    """Stands between clients and a server's port. An answer is dropped with a probability: whole, or after some of its bytes. Clients
    make a connection for each request."""

    def __init__(self, target, probability, seed):
        self._probability, self._dice = probability, random.Random(seed)
        self.dropped = 0
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        super().__init__(listener, lambda: socket.create_connection(("127.0.0.1", target)))

    def _is_doomed(self, data):
        return self._dice.random() < self._probability

    def _rest(self, data):
        self.dropped += 1
        return data[:self._dice.choice([0, 1, 40])]


class LosingProxy(_Proxy):
    """Stands between a server and its PostgreSQL. Armed with a text: the connection whose client sends it loses its answer."""

    def __init__(self, cluster):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="proxy-", dir=cluster.root))
        self.directory.chmod(0o755)
        self._upstream = str(cluster.root / ".s.PGSQL.5432")
        self._trigger = None
        self._remaining = 0
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.directory / ".s.PGSQL.5432"))
        (self.directory / ".s.PGSQL.5432").chmod(0o777)
        listener.listen(64)
        super().__init__(listener, self._to_database)

    def url(self, cluster, role):
        """The libpq URI of a role, through the proxy."""
        return f"postgresql://{role}@/{cluster.database}?host={str(self.directory).replace('/', '%2F')}"

    def lose(self, trigger, times=1):
        """Arms it with text or bytes."""
        with self._lock:
            self._trigger, self._remaining = trigger if isinstance(trigger, bytes) else trigger.encode(), times

    @property
    def armed(self):
        """How many answers are still to be lost."""
        return self._remaining

    def _to_database(self):
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._upstream)
        return server

    def _is_doomed(self, data):
        if not self._remaining or self._trigger not in data:
            return False
        self._remaining -= 1
        return True

    def _rest(self, data):
        return b""
