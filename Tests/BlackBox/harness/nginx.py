"""Debian's nginx before a server, on ports of its own."""

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")


class Nginx:
    """Runs one nginx with `http` as the contents of its http block, until `close`."""

    def __init__(self, http, ports):
        self.folder = Path(tempfile.mkdtemp(prefix="postern-nginx-"))
        self.folder.chmod(0o755)
        (self.folder / "nginx.conf").write_text(
            f"daemon off;\nworker_processes 1;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\n"
            "events { worker_connections 512; }\n"
            f"http {{\naccess_log off;\nclient_body_temp_path {self.folder}/body;\nproxy_temp_path {self.folder}/proxy;\n"
            f"fastcgi_temp_path {self.folder}/fastcgi;\nuwsgi_temp_path {self.folder}/uwsgi;\nscgi_temp_path {self.folder}/scgi;\n{http}\n}}\n",
            encoding="utf-8")
        self._process = subprocess.Popen(
            [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        for port in ports:
            while not self.listens(port):
                assert self._process.poll() is None and time.monotonic() < deadline, self.log()
                time.sleep(0.02)

    def log(self):
        """What nginx complained of."""
        path = self.folder / "error.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self):
        """Ends it."""
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def listens(port):
        """Whether something accepts connections there."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0
