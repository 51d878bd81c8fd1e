"""Every secret the suite has been given, for the search at the end of a world."""

import threading


class Ledger:
    """A set of (kind, value) pairs."""

    def __init__(self):
        self._lock = threading.Lock()
        self._secrets = set()

    def add(self, kind, value):
        """Remembers a secret and returns it."""
        if value:
            with self._lock:
                self._secrets.add((kind, value))
        return value

    def tokens(self, answer):
        """Remembers what a token answer carries."""
        for member in ("access_token", "refresh_token", "id_token"):
            self.add(member, answer.get(member))

    def of(self, *kinds):
        """The values of some kinds."""
        with self._lock:
            return {value for kind, value in self._secrets if kind in kinds}

    def long_secrets(self):
        """Everything except codes, whose six digits occur by chance."""
        with self._lock:
            return {(kind, value) for kind, value in self._secrets if kind != "code"}


#: One ledger for each process of the run.
LEDGER = Ledger()
