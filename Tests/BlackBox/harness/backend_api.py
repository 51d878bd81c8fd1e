"""The API behind examples/bff."""

import contextlib
import http.server
import json
import threading


class API:
    """The API behind the site. `/me` says who the token is for; `/orders` shows what came, or does what its query says."""

    def __init__(self, backend):
        self.asked, api = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def _answer(self):
                api.asked.append(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path, _, wish = self.path.partition("?")
                about = backend.introspect(self.headers.get("Authorization", "").removeprefix("Bearer "))
                status, fields = 200 if about["active"] else 401, []
                said = {"sub": about.get("sub")} if path == "/me" else {
                    "fields": list(self.headers.items()), "body": body[:100].decode(), "scope": about.get("scope")}
                if wish == "redirect":
                    status, fields = 302, [("Location", "/me")]
                elif wish == "cookie":
                    fields = [("Set-Cookie", "planted=1"), ("Location", "https://evil.example/")]
                elif wish == "big":
                    said = "x" * (2 << 20)
                elif wish == "short":
                    fields = [("Content-Length", "5000")]
                text = json.dumps(said).encode()
                if wish == "slow":
                    api.released.wait(30)
                self.send_response(status)
                for name, value in fields or [("Content-Length", str(len(text)))]:
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                with contextlib.suppress(OSError):  # nobody waits any more
                    while wish == "drip" and not api.released.wait(0.2):
                        self.wfile.write(b" ")
                    self.wfile.write(text)

            do_GET = do_POST = _answer  # pylint: disable=invalid-name

            def log_message(self, *_):
                """Quiet."""

        self.released = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """Answers no more."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
