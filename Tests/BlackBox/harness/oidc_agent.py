"""Debian's oidc-agent: a native client in C, whose answers come to a private-use scheme."""

import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from .module_site import until

AGENT = shutil.which("oidc-agent")
REDIRECT = "edu.kit.data.oidc-agent:/redirect"
ACCOUNT = "account"


class OIDCAgent:
    """One agent with a folder of its own, until the block ends. `settings` and `environment` come from a provider."""

    def __init__(self, settings, environment):
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="postern-oidc-agent-"))
        self._environment = {**environment, "OIDC_CONFIG_DIR": str(self._folder), "OIDC_ENCRYPTION_PW": "only for this test"}

    def __enter__(self):
        started = self._run("oidc-agent", "--no-autoload")
        self._environment |= dict(re.findall(r"^(\w+)=([^;]+);", started, re.MULTILINE))
        # The agent goes to the background before it listens.
        until(self._listens, "the socket of oidc-agent")
        return self

    def __exit__(self, *_):
        self._run("oidc-agent", "--kill")
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self, authority):
        """Begins to add an account; the URL for the browser. `authority`: the certificate that is trusted."""
        said = self._run(
            "oidc-gen", "--manual", "--issuer", self._settings["issuer"], "--client-id", self._settings["client_id"], "--client-secret", "",
            "--redirect-uri", self._settings["redirect_uri"], "--scope", "openid email offline_access", "--flow=code", "--no-url-call",
            "--no-webserver", "--confirm-default", "--prompt=none", "--pw-env", "--cert-path", str(authority), ACCOUNT)
        return re.search(r"^https://\S+$", said, re.MULTILINE).group()

    def finish(self, arrived):
        """Hands over the URL that the browser was sent to."""
        said = self._run("oidc-gen", f"--codeExchange={arrived}", "--pw-env")
        assert "success" in said, said

    def token(self, valid_for=0):
        """An access token with that many seconds left; for more than the agent's token has, it refreshes."""
        return self._run("oidc-token", f"--time={valid_for}", ACCOUNT).split()[-1]

    def delete(self):
        """Removes the account, which revokes its refresh token."""
        return self._run("oidc-gen", "--delete", "--pw-env", "--confirm-yes", ACCOUNT)

    def _listens(self):
        with socket.socket(socket.AF_UNIX) as agent:
            return agent.connect_ex(self._environment["OIDC_SOCK"]) == 0

    def _run(self, *command):
        done = subprocess.run(
            command, env=self._environment, text=True, timeout=30, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout
