"""A compose file without a container engine: each service's command with its environment as a process of this machine, in order."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from .mailbox import Mailbox
from .ports import free_port
from .postgres import clean_environment
from .settings import BINARY, OUTPUT, POSTGRES_BIN


class Composition:
    """The services of one file. They run in `folder`; `secrets` is the folder with the files of the same names as beside the compose file.
    `program` is what runs the server. Paths and addresses that exist in containers only are replaced by those of this machine."""

    def __init__(self, file, folder, secrets=None, program=(str(BINARY),)):
        self.file = Path(file)
        document = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        self.services, self.secrets = document["services"], document.get("secrets", {})
        self.port, self.mail_port = free_port(), free_port()
        self._database_port = free_port()
        self._folder = Path(folder)
        self._secrets = secrets
        self._program = list(program)
        self._cluster = Path(tempfile.mkdtemp(prefix="postern-compose-"))
        self._stack = contextlib.ExitStack()
        self._stack.callback(shutil.rmtree, self._cluster, ignore_errors=True)
        self._mailbox = None

    def in_order(self):
        """The names of the services, each after those that it depends on."""
        done = []

        def add(name):
            for needed in self.services[name].get("depends_on", {}):
                add(needed)
            if name not in done:
                done.append(name)

        for name in self.services:
            add(name)
        return done

    def up(self):
        """Starts every service, as the file says; those that end must end well."""
        for name in self.in_order():
            service = self.services[name]
            image = service["image"].rsplit("/", 1)[1].split(":")[0]
            if image == "mailpit":
                self._start_mail()
            elif image == "postgres" and "command" not in service:
                self._start_database(service)
            elif image == "postgres":
                self._run(self._command(service), service)
            else:
                assert image == "postern", image
                self._postern(name, service)
        return self

    def run_again(self, name):
        """Runs a service that ends once more."""
        self._run(self._command(self.services[name]), self.services[name])

    def down(self):
        """Ends everything."""
        self._stack.close()

    def here(self, text):
        """A text with this machine's addresses and paths."""
        for old, new in [
            ("@database/", f"@127.0.0.1:{self._database_port}/"), ("--host=database", f"--host=127.0.0.1 --port={self._database_port}"),
            ("--host=127.0.0.1 --user", f"--host=127.0.0.1 --port={self._database_port} --user"),
            ("mail:1025", f"127.0.0.1:{self._mailbox.port if self._mailbox else 0}"), ("localhost:8080", f"localhost:{self.port}"),
            ("localhost:8025", f"localhost:{self.mail_port}"), ("/setup/", f"{self._folder}/setup/"),
        ]:
            text = text.replace(old, new)
        for name, secret in self.secrets.items():
            text = text.replace(f"/run/secrets/{name}", str(Path(self._secrets) / Path(secret["file"]).name))
        return text

    def _environment(self, service):
        given = {name: self.here(str(value)) for name, value in service.get("environment", {}).items()}
        return {**clean_environment(), "SWIFT_BACKTRACE": "enable=no", **given}

    def _command(self, service):
        return [part for word in service["command"] for part in (self.here(word).split() if word.startswith("--host") else [self.here(word)])]

    def _run(self, command, service):
        """To its end. What it mounts from beside the file is there in a copy with this machine's paths."""
        for volume in service.get("volumes", []):
            source = self.file.parent / volume.split(":")[0]
            target = self._folder / Path(source).name
            if source.is_dir() and not target.exists():
                target.mkdir(parents=True)
                for script in source.iterdir():
                    (target / script.name).write_text(self.here(script.read_text(encoding="utf-8")), encoding="utf-8")
        done = subprocess.run(
            command, env=self._environment(service), cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def _start_mail(self):
        """An SMTP server, and the address at which the catcher shows the newest mail as text; it waits until there is one."""
        self._mailbox = mailbox = Mailbox()
        self._stack.callback(mailbox.down)

        class Handler(BaseHTTPRequestHandler):
            """`/view/latest.txt`."""

            def do_GET(self):  # pylint: disable=invalid-name
                """The text of the newest mail."""
                assert self.path == "/view/latest.txt", self.path
                text = mailbox.wait("ada@example.com").text
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Silent."""

        server = ThreadingHTTPServer(("127.0.0.1", self.mail_port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._stack.callback(server.shutdown)

    def _start_database(self, service):
        """As the image's entry point does: a cluster with this superuser and password, and a database; passwords are asked for by TCP."""
        settings = service["environment"]
        user, trusted = settings.get("POSTGRES_USER", "postgres"), settings.get("POSTGRES_HOST_AUTH_METHOD") == "trust"
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        password = self._cluster / "password"
        password.write_text("unused" if trusted else Path(self.here(settings["POSTGRES_PASSWORD_FILE"])).read_text(encoding="ascii"), encoding="ascii")
        if as_postgres:
            shutil.chown(self._cluster, "postgres", "postgres")
        self._cluster.chmod(0o755)
        log = self._cluster / "log"
        subprocess.run(
            [*as_postgres, POSTGRES_BIN / "initdb", "-D", self._cluster / "data", "-U", user, "--pwfile", password, "--auth-local=trust",
             f"--auth-host={'trust' if trusted else 'scram-sha-256'}", "-E", "UTF8", "--locale=C.UTF-8"],
            check=True, capture_output=True, cwd="/", env=clean_environment())
        with open(log, "wb") as output:
            postmaster = subprocess.Popen(
                [*as_postgres, POSTGRES_BIN / "postgres", "-D", self._cluster / "data", "-k", self._cluster, "-p", str(self._database_port),
                 "-c", "listen_addresses=127.0.0.1", "-F"], stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd="/", env=clean_environment())
        self._stack.callback(self._end, postmaster, signal.SIGQUIT)
        look = self.here(" ".join(service["healthcheck"]["test"][1:])).split()
        self._until(postmaster, log, lambda: subprocess.run(look, capture_output=True, check=False).returncode == 0)
        subprocess.run(
            ["createdb", "-h", self._cluster, "-p", str(self._database_port), "-U", user, settings["POSTGRES_DB"]], check=True, env=clean_environment())

    def _postern(self, name, service):
        """A command that ends, or one replica of a server, which answers before this returns."""
        command = [*self._program, *self._command(service)]
        if service["command"] == ["migrate"]:
            self._run(command, service)
            return
        environment = self._environment(service)
        if service["command"][0] == "dev":
            command += ["--port", str(self.port)]
        else:
            environment |= {"POSTERN_LISTEN": f"0.0.0.0:{self.port}", "POSTERN_OPS_LISTEN": f"0.0.0.0:{free_port()}"}
        OUTPUT.mkdir(parents=True, exist_ok=True)
        log = OUTPUT / f"compose-{name}-{os.getpid()}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(command, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._stack.callback(self._end, process, signal.SIGTERM)
        look = ["curl", "-sf", "-o", os.devnull, f"http://localhost:{self.port}/.well-known/openid-configuration"]
        self._until(process, log, lambda: subprocess.run(look, check=False).returncode == 0)

    @staticmethod
    def _until(process, log, holds):
        deadline = time.monotonic() + 120
        while not holds():
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.05)

    @staticmethod
    def _end(process, number):
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
