"""One `postern serve` process."""

import base64
import os
import signal
import subprocess
import time

from pathlib import Path

from . import wire
from .ports import free_port
from .postgres import clean_environment
from .settings import BINARY, OUTPUT, UNIFORM_DEADLINE_MS

_COUNT = iter(range(1, 10_000))


def run_postern(*arguments, environment=None, timeout=120, binary=BINARY):
    """Runs a subcommand to its end."""
    assert binary.exists(), f"{binary} is missing: build it, or set POSTERN_BIN"
    return subprocess.run(
        [str(binary), *arguments], env={**clean_environment(), **(environment or {})},
        capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
    )


def write_key_file(path):
    """A secret key file as the server wants it: base64 of 32 random bytes, mode 0600."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(base64.b64encode(os.urandom(32)).decode() + "\n")
    return path


class Node:
    """Starts, watches and ends one server; its stdout and stderr go to files. `wrapper` is a command that runs it, `binary` what starts next."""

    #: It is asked without TLS.
    context = None

    def __init__(self, database_url, key_file, smtp_port, wrapper=(), binary=BINARY, **environment):
        self.binary = binary
        self.port = free_port()
        self.ops_port = free_port()
        OUTPUT.mkdir(parents=True, exist_ok=True)
        number = next(_COUNT)
        self.stdout = OUTPUT / f"serve-{os.getpid()}-{number}.out"
        self.stderr = OUTPUT / f"serve-{os.getpid()}-{number}.err"
        self.process = None
        self._wrapper = list(wrapper)
        self.environment = {
            "POSTERN_DATABASE_URL": database_url,
            "POSTERN_LISTEN": f"127.0.0.1:{self.port}",
            "POSTERN_OPS_LISTEN": f"127.0.0.1:{self.ops_port}",
            "POSTERN_SECRET_KEY_FILE": str(key_file),
            "POSTERN_SMTP_URL": f"smtp://127.0.0.1:{smtp_port}?starttls=off",
            "POSTERN_SMTP_RATE": "10000",  # tests ask for many codes at once
            "POSTERN_MAIL_FROM": "Postern <no-reply@mail.example>",
            "POSTERN_SHUTDOWN_DELAY": "0",  # no proxy has to notice
            "POSTERN_UNIFORM_DEADLINE_MS": str(UNIFORM_DEADLINE_MS),
            "POSTERN_LOG_LEVEL": "debug",
            "SWIFT_BACKTRACE": os.environ.get("POSTERN_BACKTRACE", "enable=no"),
            **environment,
        }

    def start(self):
        """Starts and waits until /readyz says so."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self):
        """Starts."""
        assert self.binary.exists(), f"{self.binary} is missing: build it, or set POSTERN_BIN"
        with open(self.stdout, "ab") as out, open(self.stderr, "ab") as err:
            self.process = subprocess.Popen(
                [*self._wrapper, str(self.binary), "serve"], env={**clean_environment(), **self.environment},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )

    def wait_ready(self, timeout=60.0):
        """Waits for /readyz."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"serve ended with {self.process.returncode}: {self.log()[-2000:]}"
            if self.is_ready():
                return
            time.sleep(0.05)
        raise AssertionError(f"/readyz not 200 within {timeout} s: {self.log()[-2000:]}")

    def start_until_ready(self, timeout=60.0):
        """As a service manager does: starts it again whenever it ends, until it is ready."""
        deadline = time.monotonic() + timeout
        while not (self.alive() and self.is_ready()):
            assert time.monotonic() < deadline, f"/readyz not 200 within {timeout} s: {self.log()[-2000:]}"
            if not self.alive():
                self.launch()
            time.sleep(0.05)

    def is_ready(self):
        """Whether /readyz says 200."""
        try:
            return self.ops("/readyz").status == 200
        except (OSError, wire.WireError):
            return False

    def ops(self, path):
        """GET on the ops listener."""
        return wire.exchange(self.ops_port, "GET", path, {"Host": f"127.0.0.1:{self.ops_port}", "Connection": "close"}, timeout=5)

    def metric(self, name):
        """The value of a series of /metrics, 0 when there is none yet."""
        for line in self.ops("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def configuration(self):
        """The configuration this node serves, as `postern.config_stamp()` writes it."""
        return f"{self.metric('postern_configuration_realms'):.0f}:{self.metric('postern_configuration_version'):.0f}"

    def resident(self):
        """Resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) * 1024

    def processor_seconds(self):
        """Processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self):
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def terminate(self, timeout=20.0):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self.process.wait(10)

    def stop(self):
        """Ends the process if it still runs."""
        if self.alive():
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
        assert "malformedResult" not in self.log(), f"a function answered in another shape than the server reads: {self.stdout}"

    def log(self):
        """stdout and stderr so far."""
        return "".join(f.read_text(errors="replace") for f in (self.stdout, self.stderr) if f.exists())
