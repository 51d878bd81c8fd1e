"""Web sites that use the browser module, and people at their pages: each profile of Chromium is a device."""

import http.server
import json
import threading
import time

from . import wire
from .browser import Page
from .web_site import WebSite

_APP = """
import * as postern from "%s/sdk/v1/postern.js";
Object.assign(window, { postern, log: [], waiting: {} });
// A step that waits for the person: the test.
window.step = name => (...told) => {
  log.push([name, ...told]);
  return new Promise((resolve, reject) => { waiting[name] = { resolve, reject }; });
};
window.authenticate = (build, authToken) => {
  window.outcome = undefined;
  const builder = new postern.AuthenticatorBuilder().withAuthFinishStep(input => { log.push(["finish", input]); });
  build(builder).withMobileAuthImplementation("fetch").withDeviceContext({}).build().authenticate(authToken)
    .then(value => { outcome = { value }; }, error => { outcome = { error: error?.code ?? String(error) }; });
};
"""
#: Steps as functions and as objects, as the field's samples have them.
OTP = "builder => builder.withOtpFallback(step('start'), { execute: step('code') })"
LINK = """builder => builder.withInstantLinkFallback({ execute: step('start') }, step('retry'))
    .withMatchNumber(({ matchNumber }) => { log.push(['number', matchNumber]); }).withRole('secondary')"""


class ModuleSite(WebSite):
    """A site that takes the module from the server."""

    def page(self, path):
        """The script, or the same page under every other path."""
        if path == "/app.js":
            return "text/javascript", (_APP % self.server_origin).encode()
        return "text/html", b'<!doctype html><title>App</title><script type="module" src="/app.js"></script>'


class Visitor(Page):
    """A tab of a site, and the person before it."""

    def visit(self, site, path="/"):
        """Opens a page of the site and waits for the module."""
        self.open(site.origin + path)
        self.wait("window.postern !== undefined")
        return self

    def begin(self, build, auth_token):
        """Starts a transaction's steps."""
        self.evaluate(f"authenticate({build}, {json.dumps(auth_token)})")

    def asked(self, step):
        """Waits until a step asks; returns what the step was told."""
        self.wait(f"{json.dumps(step)} in waiting")
        return self.evaluate(f"log.filter(([name]) => name === {json.dumps(step)}).at(-1).slice(1)")

    def answer(self, step, value, how="resolve"):
        """Answers a step that asks."""
        self.asked(step)
        name = json.dumps(step)
        self.evaluate(f"(() => {{ const asked = waiting[{name}]; delete waiting[{name}]; asked.{how}({json.dumps(value)}); }})()")

    def type_code(self, code):
        """Answers the finish step of a code."""
        self.answer("code", {"input": {"otp": code}, "resultType": 0})

    def outcome(self):
        """What came of `begin`."""
        self.wait("window.outcome !== undefined", timeout=40)
        return self.evaluate("outcome")

    def shown(self, name):
        """What a step was told, each time."""
        return self.evaluate(f"log.filter(([name]) => name === {json.dumps(name)}).map(entry => entry[1])")

    def device(self, client_id, expression):
        """Runs an expression over `device`; a failure is its code."""
        return self.evaluate(
            f"(async device => {expression})(new postern.TrustedDevice({{ clientId: {json.dumps(client_id)} }}))"
            ".catch(error => ({ error: error.code }))")


class CuttingProxy:
    """Forwards to a node, one request per connection. It can drop the answers to chosen paths after the node gave them, or give
    answers of its own."""

    def __init__(self, target):
        self.requests, self._dropped, self._lossy = [], {}, {}
        #: The header fields of each request, with its path.
        self.fields = []
        #: Answers in place of the node's: path to status, fields (name and value), body.
        self.given = {}
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Forwards one request."""

            def _forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                proxy.fields.append((path, self.headers))
                if path in proxy.given and self.command != "OPTIONS":
                    status, fields, given = proxy.given[path]
                    answer = wire.Answer(status, "", [*fields, ("Content-Length", str(len(given)))], given)
                else:
                    answer = wire.exchange(target, self.command, self.path, list(self.headers.items()), body, timeout=40)
                proxy.requests.append((self.command, path, answer.status))
                if self.command != "OPTIONS" and proxy.is_lost(path):
                    self.connection.shutdown(2)
                    return
                self.send_response_only(answer.status)
                for name, value in answer.headers:
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_DELETE = do_PATCH = do_OPTIONS = _forward  # pylint: disable=invalid-name

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def drop_every(self, path, number):
        """Drops each so many-th answer to a path; 0 for none."""
        self._lossy[path] = number

    def is_lost(self, path):
        """Whether the answer that was just given to a path is dropped."""
        every = self._lossy.get(path, 0)
        if every and len(self.calls(path)) % every == 0:
            return True
        is_lost = self._dropped.get(path, 0) > 0
        if is_lost:
            self._dropped[path] -= 1
        return is_lost

    def drop(self, path, count=1):
        """Drops the next answers to a path."""
        self._dropped[path] = count

    def calls(self, path):
        """The statuses of the answers to a path, dropped ones too, without those of preflights."""
        return [status for method, asked, status in self.requests if asked == path and method != "OPTIONS"]

    def close(self):
        """Forwards no more."""
        self._server.shutdown()
        self._server.server_close()


def until(condition, what, timeout=10.0):
    """Waits until a condition gives something."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found
