"""Debian's nginx before a server, on ports of its own."""

import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .certificate import certificate
from .ports import free_port
from .settings import REPOSITORY

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


class ShippedNginx(Nginx):
    """The configuration of deploy/nginx before one or two servers; `tls` and `plain` are its ports."""

    def __init__(self, *nodes):
        self.tls, self.plain = free_port(), free_port()
        self._certificate = Path(tempfile.mkdtemp(prefix="postern-certificate-"))
        certificate(self._certificate)
        text = (REPOSITORY / "deploy" / "nginx" / "postern.conf").read_text(encoding="utf-8")
        servers = [f"server 127.0.0.1:{node.port} max_fails=0;" for node in nodes] + [""]
        for pattern, replacement in [
            (r"server 127\.0\.0\.1:8080 max_fails=0;", servers[0]), (r"server 127\.0\.0\.1:8081 max_fails=0;", servers[1]),
            (r"listen 443 ssl http2;", f"listen 127.0.0.1:{self.tls} ssl http2;"), (r"listen \[::\]:443 ssl http2;", ""),
            (r"listen 80;", f"listen 127.0.0.1:{self.plain};"), (r"listen \[::\]:80;", ""),
            (r"access_log /var/log/nginx/postern\.log", f"access_log {self._certificate}/access.log"),
            (r"error_log /var/log/nginx/postern\.error\.log", f"error_log {self._certificate}/error.log"),
            (r"ssl_certificate .*;", f"ssl_certificate {self._certificate}/cert.pem;"),
            (r"ssl_certificate_key .*;", f"ssl_certificate_key {self._certificate}/key.pem;"),
        ]:
            text, count = re.subn(pattern, replacement, text)
            assert count == 1, pattern
        super().__init__(text, [self.tls, self.plain])

    def log(self):
        """What it logged."""
        return (self._certificate / "access.log").read_text(encoding="utf-8")

    def close(self):
        """Ends it."""
        super().close()
        shutil.rmtree(self._certificate, ignore_errors=True)
