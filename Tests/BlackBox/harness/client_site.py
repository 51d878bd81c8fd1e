"""A web site that carries the client modules itself, as one that took them from the package does."""

import http.server
import json
import threading

from .browser import Page
from .settings import REPOSITORY

MODULES = REPOSITORY / "clients/js"
_APP = """
import { Postern, stepUpChallenge } from "/sdk/client.js";
import * as pages from "/sdk/pages.js";
import * as passkeys from "/sdk/passkeys.js";
const settings = { origin: %s, clientId: "web-app", redirectUri: `${location.origin}/signed-in` };
Object.assign(window, { Postern, pages, passkeys, settings, stepUpChallenge, logged: [], told: [] });
new BroadcastChannel(`postern:${settings.origin}:web-app`).onmessage = ({ data }) => { told.push(data); };
window.open_ = options => new Postern({ ...settings, onLog: event => { logged.push(event); }, ...options });
// What a call gave, or the code of its error.
window.outcome = async call => {
  try {
    return { value: await call };
  } catch (error) {
    return { code: error.code, status: error.status, details: error.details, name: error.name };
  }
};
// The access tokens of the document are gone.
window.expire = () => new Promise(resolve => {
  const opening = indexedDB.open("postern");
  opening.onsuccess = () => {
    const transaction = opening.result.transaction("documents", "readwrite"), store = transaction.objectStore("documents");
    const name = `postern:${settings.origin}:web-app`;
    store.get(name).onsuccess = ({ target }) => {
      store.put(JSON.stringify({ ...JSON.parse(target.result), tokens: [] }), name);
    };
    transaction.oncomplete = () => { opening.result.close(); resolve(true); };
  };
});
window.client = open_();
"""


_WORKER = """
import { Postern } from "/sdk/client.js";
const client = new Postern({ origin: %s, clientId: "web-app" });
onmessage = async ({ data: [name, ...call] }) => {
  try {
    postMessage({ value: await client[name](...call), document: typeof document });
  } catch (error) {
    postMessage({ code: error.code });
  }
};
postMessage({ value: await client.ready });
"""

_SERVICE = """
import { Postern } from "/sdk/client.js";
const client = new Postern({ origin: %s, clientId: "web-app" });
onmessage = event => {
  const { data: [name, ...call], ports: [port] } = event;
  event.waitUntil(client[name](...call).then(
    value => port.postMessage({ value, document: typeof document }), ({ code }) => port.postMessage({ code })));
};
"""
_SCRIPTS = {"/app.js": _APP, "/worker.js": _WORKER, "/service.js": _SERVICE}


class ClientSite:
    """A site on an origin of its own, with no more in its policy than the modules need."""

    def __init__(self, server_origin):
        class Handler(http.server.BaseHTTPRequestHandler):
            """Serves one page, its script and the modules."""

            def do_GET(self):  # pylint: disable=invalid-name
                """The same page under every other path."""
                name = self.path.rpartition("/")[2]
                kind = "text/javascript"
                if self.path in _SCRIPTS:
                    body = (_SCRIPTS[self.path] % json.dumps(server_origin)).encode()
                elif self.path == "/empty":
                    kind, body = "text/html", b"<!doctype html><title>Empty</title>"
                elif self.path.startswith("/sdk/"):
                    body = (MODULES / name).read_bytes()
                else:
                    kind, body = "text/html", b"""<!doctype html><title>App</title><input autocomplete="username webauthn">
                        <script type="module" src="/app.js"></script>"""
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header(
                    "Content-Security-Policy",
                    f"default-src 'none'; script-src 'self' {server_origin}; connect-src {server_origin}; require-trusted-types-for 'script'")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """The site is gone."""
        self._server.shutdown()
        self._server.server_close()


class ClientTab(Page):
    """A tab of such a site."""

    def visit(self, site, path="/"):
        """Opens a page of the site and waits for the client."""
        self.open(site.origin + path)
        self.wait("window.client !== undefined")
        self.evaluate("client.ready.then(() => true)")
        return self

    def outcome(self, call):
        """What a call of `client` gave: its value, or its error."""
        return self.evaluate(f"outcome({call})")

    def value(self, call):
        """The value of a call that succeeds."""
        outcome = self.outcome(call)
        assert "code" not in outcome, outcome
        return outcome.get("value")

    def stored(self):
        """The documents that the site's database has, by name."""
        return self.evaluate("""new Promise(resolve => {
            const opening = indexedDB.open("postern");
            opening.onsuccess = () => {
                const cursor = opening.result.transaction("documents").objectStore("documents").openCursor(), found = {};
                cursor.onsuccess = ({ target: { result } }) => {
                    if (!result) { opening.result.close(); return resolve(found); }
                    found[result.key] = JSON.parse(result.value);
                    result.continue();
                };
            };
        })""")

    def expire(self):
        """The access tokens of the document are gone."""
        self.evaluate("expire()")
