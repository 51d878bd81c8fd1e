"""What was asked and answered, as lines of JSON, and what must not have happened twice."""

import hashlib
import json
import threading
import time


def digest(data):
    """Names a text without telling it."""
    return hashlib.sha256(data).hexdigest()[:16]


class History:
    """Writes a line for every request: when, what, of which process, and how it ended. Tokens and codes are in it as digests only."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.count = 0
        self.doubled = []
        self._once = {}
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._file = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def add(self, name, port, began, request, outcome, body):
        """One request, answered or not. A kind that ends with `once` is a proof that is good for one session."""
        body_of_request = request.partition(b"\r\n\r\n")[2]
        key = digest(body_of_request)
        line = {
            "at": round(began - self._began, 4), "took": round(time.monotonic() - began, 4), "kind": name, "port": port,
            "request": key, "outcome": outcome, "answer": digest(body),
        }
        with self._lock:
            self.count += 1
            self._file.write(json.dumps(line) + "\n")
            if name.endswith("once") and outcome == 200:
                if self._once.setdefault(key, session_of(body)) != session_of(body):
                    self.doubled.append(line)

    def note(self, text):
        """What was done to the system."""
        with self._lock:
            self._file.write(json.dumps({"at": round(time.monotonic() - self._began, 4), "fault": text}) + "\n")

    def close(self):
        """Writes what is buffered."""
        self._file.close()


def session_of(body):
    """The session that an answer is of: by its refresh token, or by the whole of what has none."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    try:
        return json.loads(text).get("refresh_token", text)
    except (ValueError, AttributeError):
        return text
