"""An administrator's psql with a transaction left open."""

import subprocess

from .postgres import clean_environment
from .settings import POSTGRES_BIN


class OpenTransaction:
    """Runs statements in a transaction and leaves it open until the block ends, which rolls it back."""

    def __init__(self, world, *statements, role=None):
        self._world = world
        self._statements = statements
        self._role = role or world.admin.role

    def __enter__(self):
        cluster = self._world.cluster
        self._psql = subprocess.Popen(
            [str(POSTGRES_BIN / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
             "-h", str(cluster.root), "-U", self._role, "-d", cluster.database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(),
        )
        self._psql.stdin.write("BEGIN;\n" + "\n".join(self._statements) + "\n\\echo held\n")
        self._psql.stdin.flush()
        while (line := self._psql.stdout.readline()).strip() != "held":
            assert line, "psql ended"
        return self

    def __exit__(self, *_):
        self._psql.stdin.write("ROLLBACK;\n\\q\n")
        self._psql.stdin.close()
        self._psql.wait(30)
