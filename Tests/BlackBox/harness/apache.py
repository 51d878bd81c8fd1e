"""Debian's Apache on a port of its own, as a relying party or as a resource server: mod_auth_openidc, or mod_oauth2 for bound tokens."""

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
NEEDED = ("mpm_event", "authn_core", "authz_core", "authz_user", "dir", "mime")


def missing(module="auth_openidc"):
    """Why it cannot run with a module, or None."""
    if APACHE is None or not (MODULES / f"mod_{module}.so").exists():
        return f"apt-get install apache2-bin libapache2-mod-{module.replace('_', '-')}"
    return None


class Server:
    """Everything below /private/ wants a user; how one is known, `directives` say."""

    module = "auth_openidc"

    def __init__(self, port, authority, directives):
        self.folder = Path(tempfile.mkdtemp(prefix="postern-apache-"))
        self.folder.chmod(0o755)
        (self.folder / "private").mkdir()
        (self.folder / "private" / "index.html").write_text("<p>private</p>\n", encoding="utf-8")
        (self.folder / "goodbye").write_text("goodbye\n", encoding="utf-8")
        shutil.copyfile(authority, self.folder / "authority.crt")
        owner = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        (self.folder / "apache.conf").write_text(
            "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in (*NEEDED, self.module)) +
            f"ServerName localhost:{port}\nListen 127.0.0.1:{port}\n{owner}DocumentRoot {self.folder}\nDirectoryIndex index.html\n"
            f"DefaultRuntimeDir {self.folder}\nPidFile {self.folder}/pid\nErrorLog {self.folder}/error.log\nLogLevel info\n"
            "TypesConfig /etc/mime.types\nStartServers 1\nThreadsPerChild 8\nMaxRequestWorkers 16\nThreadLimit 8\n"
            + self._common() + directives, encoding="utf-8")
        self._process = subprocess.Popen(
            [APACHE, "-DFOREGROUND", "-d", str(self.folder), "-f", str(self.folder / "apache.conf")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self._listens(port):
            assert self._process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def _common(self):
        return f"OIDCCryptoPassphrase only-for-this-test\nOIDCCABundlePath {self.folder}/authority.crt\n"

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


class BoundResourceServer(Server):
    """An API that takes tokens bound to a key, with a proof of it. It takes any certificate of the server whose keys it reads."""

    module = "oauth2"

    def __init__(self, authority, jwks_uri):
        self.port = free_port()
        super().__init__(
            self.port, authority,
            f"OAuth2TokenVerify jwks_uri {jwks_uri} jwks_uri.ssl_verify=false&type=dpop\n"
            'OAuth2AcceptTokenIn header "name=Authorization&type=DPoP"\n'
            "<Location /private/>\nAuthType oauth2\nRequire valid-user\n</Location>\n")

    def _common(self):
        return "OAuth2CryptoPassphrase only-for-this-test\n"

    def get(self, token, proof, scheme="DPoP"):
        """The raw answer to a request with a token and a proof."""
        fields = {"Host": f"localhost:{self.port}", "Authorization": f"{scheme} {token}", "DPoP": proof}
        return wire.exchange(self.port, "GET", "/private/", fields)
