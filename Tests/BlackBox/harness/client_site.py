"""A web site that carries the client modules itself, as one that took them from the package does."""

import json

from .browser import Page
from .settings import REPOSITORY
from .web_site import WebSite

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


class ClientSite(WebSite):
    """A site that serves the modules itself."""

    def page(self, path):
        """The same page under every path that names nothing else."""
        if path in _SCRIPTS:
            return "text/javascript", (_SCRIPTS[path] % json.dumps(self.server_origin)).encode()
        if path == "/empty":
            return "text/html", b"<!doctype html><title>Empty</title>"
        if path.startswith("/sdk/"):
            return "text/javascript", (MODULES / path.rpartition("/")[2]).read_bytes()
        return "text/html", b"""<!doctype html><title>App</title><input autocomplete="username webauthn">
            <script type="module" src="/app.js"></script>"""


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
