"""Debian's PgBouncer before a cluster."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .nginx import Nginx
from .ports import free_port
from .postgres import clean_environment
from .settings import PGBOUNCER


class PgBouncer:
    """Runs one with a mode of pooling until `close`."""

    def __init__(self, cluster, mode, ignored):
        self.folder = Path(tempfile.mkdtemp(prefix="postern-pgbouncer-"))
        self.port = free_port()
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n{cluster.database} = host={cluster.root}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {self.folder}/users\npool_mode = {mode}\nignore_startup_parameters = {ignored}\n", encoding="ascii")
        (self.folder / "users").write_text('"bb_serve" ""\n"postgres" ""\n', encoding="ascii")
        command = [PGBOUNCER, str(file)]
        if os.geteuid() == 0:
            self.folder.chmod(0o755)
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment())
        deadline = time.monotonic() + 10
        while not Nginx.listens(self.port):
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def url(self, role, database="postern"):
        """The libpq URI of a role through it."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def close(self):
        """Ends it."""
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
