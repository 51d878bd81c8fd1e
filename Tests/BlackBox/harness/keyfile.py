"""Key files of several lines, and a world whose nodes are restarted with changed ones."""

import base64
import hashlib
import itertools
import os
import threading
import time

from . import wire
from .node import Node, run_postern
from .realm import Admin
from .world import World


def new_line():
    """A line: 32 random bytes."""
    return base64.b64encode(os.urandom(32)).decode()


def line_id(line):
    """A line's id as commands print it, computed apart from the server."""
    return hashlib.sha256(b"postern key id" + base64.b64decode(line)).hexdigest()[:8]


class Fleet(World):
    """Two nodes on one key file, which starts with one line; no node runs before the file is written."""

    def open(self, lines=None, nodes=2):
        """Brings up the database, and the nodes unless there are to be none."""
        self.cluster.create(self.postgres)
        migrated = run_postern("migrate", environment={
            "POSTERN_MIGRATE_DATABASE_URL": self.cluster.url("postgres"), "POSTERN_DATABASE_URL": self.cluster.url("postgres"),
        })
        assert migrated.returncode == 0, migrated
        self.cluster.create_login("bb_serve", "postern_app")
        self.cluster.create_login(Admin.role, "postern_admin")
        self.key_file = self.cluster.root / "secret.key"
        self.write(lines or [new_line()])
        for _ in range(nodes):
            self.start_node()
        self.node = self.nodes[0] if nodes else None
        return self

    def write(self, lines):
        """Writes the key file; running nodes keep what they read."""
        self.lines = list(lines)
        self.key_file.unlink(missing_ok=True)
        descriptor = os.open(self.key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in self.lines))

    def roll(self, lines):
        """One round: the file is changed and every node restarted, one after the other."""
        self.write(lines)
        for node in self.nodes:
            node.stop()
            node.start()

    def command(self, *arguments, **environment):
        """A subcommand with this world's configuration."""
        return run_postern(*arguments, environment={
            "POSTERN_DATABASE_URL": self.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(self.key_file),
            "POSTERN_SMTP_URL": f"smtp://127.0.0.1:{self.mailbox.port}?starttls=off", "POSTERN_MAIL_FROM": "no-reply@mail.example",
            **environment,
        })

    def refusal(self):
        """How `serve` with the file as it is now ends, when it does."""
        node = Node(self.cluster.url("bb_serve"), self.key_file, self.mailbox.port)
        return self.command("serve", **{name: value for name, value in node.environment.items() if name.startswith("POSTERN_")})

    def key_lines(self):
        """What stands on each line: {(line, kind): count}."""
        rows = self.admin.run("SELECT line, kind, count FROM admin.key_lines;")
        return {(line, kind): int(count) for line, kind, count in rows}

    def wait_until(self, condition, what, timeout=30.0):
        """Waits for an event that a server brings about."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.key_lines()}"
            time.sleep(0.1)


class Refreshing:
    """Threads that refresh a family each, at whichever node answers, until they are told to stop."""

    def __init__(self, fleet, app, tokens):
        self._fleet, self._app = fleet, app
        self._stop = threading.Event()
        self._nodes = itertools.cycle(fleet.nodes)
        self.tokens = [each["refresh_token"] for each in tokens]
        self.count = 0
        self.problems = []
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(len(tokens))]
        for thread in self._threads:
            thread.start()

    def _post(self, node, token):
        form = {"grant_type": "refresh_token", "client_id": self._app.client_id, "refresh_token": token}
        return wire.exchange(
            node.port, "POST", "/connect/token", {"Host": self._app.host, "Content-Type": wire.FORM}, wire.form_body(form), 10)

    def _run(self, number):
        node = next(self._nodes)
        while not self._stop.is_set():
            try:
                answer = self._post(node, self.tokens[number])
            except (OSError, wire.WireError):  # it is being restarted
                with self._lock:
                    node = next(self._nodes)
                continue
            if answer.status == 503:
                time.sleep(0.02)
            elif answer.status != 200:
                self.problems.append(answer)
                return
            else:
                self.tokens[number] = answer.json()["refresh_token"]
                with self._lock:
                    self.count += 1

    def stop(self):
        """Ends; nothing but success and 503 was seen. Returns refreshes per second."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        assert not self.problems, self.problems
        return self.count / (time.monotonic() - self._began)
