"""Stands between a server and its PostgreSQL, and loses an answer on demand."""

import pathlib
import socket
import tempfile
import threading


class LosingProxy:
    """Forwards a unix socket. Armed with a text: the connection whose client sends it loses its answer and is cut, once the server
    has answered: done, but nobody was told."""

    def __init__(self, cluster):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="proxy-", dir=cluster.root))
        self.directory.chmod(0o755)
        self._upstream = str(cluster.root / ".s.PGSQL.5432")
        self._trigger = None
        self._remaining = 0
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.directory / ".s.PGSQL.5432"))
        (self.directory / ".s.PGSQL.5432").chmod(0o777)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

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

    def close(self):
        """Takes no more connections."""
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._upstream)
            struck = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, struck), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server, struck), daemon=True).start()

    def _requests(self, client, server, struck):
        try:
            while data := client.recv(65536):
                with self._lock:
                    if self._remaining and self._trigger in data:
                        self._remaining -= 1
                        struck.set()
                server.sendall(data)
        except OSError:
            pass
        if not struck.is_set():
            self._shut(client, server)

    def _answers(self, client, server, struck):
        try:
            while data := server.recv(65536):
                if struck.is_set():
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
