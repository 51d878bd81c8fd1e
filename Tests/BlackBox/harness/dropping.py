"""Stands between clients and a server, and drops some of the answers: done, but nobody was told."""

import random
import socket
import threading


class DroppingProxy:
    """Forwards TCP to a port. Each connection's answer is dropped with a probability: whole, or after some of its bytes."""

    def __init__(self, target, probability, seed):
        self._target, self._probability, self._dice = target, probability, random.Random(seed)
        self._lock = threading.Lock()
        self.dropped = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Takes no more connections."""
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with self._lock:
            doomed, kept = self._dice.random() < self._probability, self._dice.choice([0, 1, 40])
        server = socket.create_connection(("127.0.0.1", self._target))
        threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
        try:
            while data := server.recv(65536):
                if doomed:
                    client.sendall(data[:kept])
                    with self._lock:
                        self.dropped += 1
                    break
                client.sendall(data)
        except OSError:
            pass
        self._shut(client, server)

    def _requests(self, client, server):
        try:
            while data := client.recv(65536):
                server.sendall(data)
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
