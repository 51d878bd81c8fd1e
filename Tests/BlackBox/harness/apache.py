"""Debian's Apache with mod_auth_openidc on a port of its own, as a relying party or as a resource server."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from . import wire
from .ports import free_port

APACHE = shutil.which("apache2", path="/usr/sbin:/usr/bin:/sbin:/bin")
MODULES = Path("/usr/lib/apache2/modules")
NEEDED = ("mpm_event", "authn_core", "authz_core", "authz_user", "dir", "mime", "auth_openidc")


def missing():
    """Why it cannot run, or None."""
    if APACHE is None or not (MODULES / "mod_auth_openidc.so").exists():
        return "apt-get install apache2-bin libapache2-mod-auth-openidc"
    return None


class Server:
    """Everything below /private/ wants a user; how one is known, `directives` say."""

    def __init__(self, port, authority, directives):
        self.folder = Path(tempfile.mkdtemp(prefix="postern-apache-"))
        self.folder.chmod(0o755)
        (self.folder / "private").mkdir()
        (self.folder / "private" / "index.html").write_text("<p>private</p>\n", encoding="utf-8")
        (self.folder / "goodbye").write_text("goodbye\n", encoding="utf-8")
        shutil.copyfile(authority, self.folder / "authority.crt")
        owner = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        (self.folder / "apache.conf").write_text(
            "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in NEEDED) +
            f"ServerName localhost:{port}\nListen 127.0.0.1:{port}\n{owner}DocumentRoot {self.folder}\nDirectoryIndex index.html\n"
            f"DefaultRuntimeDir {self.folder}\nPidFile {self.folder}/pid\nErrorLog {self.folder}/error.log\nLogLevel info\n"
            "TypesConfig /etc/mime.types\nStartServers 1\nThreadsPerChild 8\nMaxRequestWorkers 16\nThreadLimit 8\n"
            f"OIDCCryptoPassphrase only-for-this-test\nOIDCCABundlePath {self.folder}/authority.crt\n{directives}", encoding="utf-8")
        self._process = subprocess.Popen(
            [APACHE, "-DFOREGROUND", "-d", str(self.folder), "-f", str(self.folder / "apache.conf")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self._listens(port):
            assert self._process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def log(self):
        """What Apache complained of."""
        path = self.folder / "error.log"
        return path.read_text(errors="replace")[-6000:] if path.exists() else ""

    def close(self):
        """Ends it."""
        self._process.terminate()
        self._process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _listens(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0


class Apache(Server):
    """A relying party. `settings` is what a provider's `client` returns."""

    def __init__(self, settings, authority):
        port = urllib.parse.urlsplit(settings["redirect_uri"]).port
        super().__init__(
            port, authority,
            f"OIDCProviderMetadataURL {settings['issuer']}/.well-known/openid-configuration\n"
            f"OIDCClientID {settings['client_id']}\nOIDCClientSecret {settings['client_secret']}\n"
            f"OIDCRedirectURI {settings['redirect_uri']}\nOIDCPKCEMethod S256\nOIDCResponseMode form_post\n"
            'OIDCScope "openid email offline_access"\nOIDCIDTokenSignedResponseAlg ES256\nOIDCRemoteUserClaim email\n'
            "OIDCInfoHook access_token id_token userinfo refresh_token session\n"
            "<Location />\nAuthType openid-connect\nRequire valid-user\n</Location>\n"
            '<LocationMatch "^/(goodbye)?$">\nRequire all granted\n</LocationMatch>\n')


class ResourceServer(Server):
    """An API that takes bearer tokens. `directives` say how it checks them."""

    def __init__(self, authority, directives):
        self.port = free_port()
        super().__init__(
            self.port, authority,
            directives + "OIDCOAuthRemoteUserClaim sub\n"
            "<Location /private/>\nAuthType oauth20\nRequire valid-user\n</Location>\n")

    def status(self, token):
        """Of a request with a bearer token."""
        fields = {"Host": f"localhost:{self.port}", **({"Authorization": f"Bearer {token}"} if token else {})}
        return wire.exchange(self.port, "GET", "/private/", fields).status
