"""Debian's HAProxy before servers, with the configuration of deploy/haproxy on ports of its own."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .certificate import certificate
from .nginx import Nginx
from .ports import free_port
from .settings import REPOSITORY

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")


class HAProxy:
    """Runs the shipped configuration before the two nodes until `close`; `tls` and `plain` are its ports."""

    def __init__(self, one, two, connections=500):
        self.folder = Path(tempfile.mkdtemp(prefix="postern-haproxy-"))
        self.tls, self.plain = free_port(), free_port()
        text = (REPOSITORY / "deploy" / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8")
        both = certificate(self.folder)
        for pattern, replacement in [
            (r"bind :80\n", f"bind 127.0.0.1:{self.plain}\n"), (r" *bind :::80 v6only\n", ""),
            (r"bind :443 ssl crt /etc/ssl/postern/both.pem", f"bind 127.0.0.1:{self.tls} ssl crt {both}"),
            (r" *bind :::443 v6only .*\n", ""), (r" *log /dev/log .*\n", ""), (r"maxconn 20000", f"maxconn {connections}"),
            (r"127\.0\.0\.1:8080 port 9090", f"127.0.0.1:{one.port} port {one.ops_port}"),
            (r"127\.0\.0\.1:8081 port 9091", f"127.0.0.1:{two.port} port {two.ops_port}"),
        ]:
            text, count = re.subn(pattern, replacement, text)
            assert count == 1, pattern
        path = self.folder / "haproxy.cfg"
        path.write_text(text, encoding="utf-8")
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen([HAPROXY, "-db", "-f", str(path)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while not Nginx.listens(self.tls):
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def close(self):
        """Ends it."""
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
