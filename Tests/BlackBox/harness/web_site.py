"""A web site that a browser opens at an origin of its own."""

import http.server
import threading


class WebSite:
    """Serves what `page` gives for a path, with no more in its policy than a site needs that calls `server_origin`."""

    def __init__(self, server_origin):
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Serves one file."""

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers with a page or a script."""
                kind, body = site.page(self.path)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header(
                    "Content-Security-Policy",
                    f"default-src 'none'; script-src 'self' {server_origin}; connect-src {server_origin}; require-trusted-types-for 'script'")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Quiet."""

        self.server_origin = server_origin
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def page(self, path):
        """The media type and the bytes of a path."""
        raise NotImplementedError

    def close(self):
        """The site is gone."""
        self._server.shutdown()
        self._server.server_close()
