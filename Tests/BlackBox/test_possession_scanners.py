"""Mail and message scanners at links that prove a number: visits, with scripts or without, pass, deny and use up nothing. And where a link leads."""

import http.server
import threading
import urllib.parse

import pytest

from harness import wire
from harness.module_site import LINK, Visitor, until
from harness.phones import new_number
from harness.realm import call
from harness.settings import FULL
from test_browser_possession import backend, fresh, phone  # noqa: F401  pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow
TIMES = 50


class Target(http.server.BaseHTTPRequestHandler):
    """The site that a link leads to; /app leads on to an app."""

    got = []

    def do_GET(self):  # pylint: disable=invalid-name
        """Keeps path and referrer."""
        if "authId" in self.path:
            Target.got.append((self.path, self.headers.get("Referer")))
        onward = self.path.startswith("/app")
        self.send_response(302 if onward else 200)
        if onward:
            self.send_header("Location", "com.example.shop://done")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0" if onward else "22")
        self.end_headers()
        if not onward:
            self.wfile.write(b"<!doctype html><p>Done")

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def target(backend):  # noqa: F811
    """Its origin."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://localhost:{server.server_port}"
    backend.world.admin.run(call("put_web_origin", "browser", "prove", origin))
    backend.world.settle()
    yield origin
    server.shutdown()
    server.server_close()


class Linked:
    """A transaction whose link is on a phone."""

    def __init__(self, backend, fresh, kind, target, path="/done"):  # noqa: F811  pylint: disable=redefined-outer-name,too-many-arguments,too-many-positional-arguments
        self.kind, self.number = kind, new_number()
        token, self.status = backend.unify(kind, self.number, finalTargetUrl=target + path)
        self.page = Visitor(fresh).visit(backend.site)
        self.page.begin(LINK, token)
        self.page.answer("start", None)
        self.link = backend.link(self.number)

    @property
    def path(self):
        """Of the link."""
        return urllib.parse.urlsplit(self.link).path

    def answer(self, visitor):
        """What a person does on the phone."""
        visitor.open(self.link)
        if self.kind == "desktop":
            visitor.type("input[name=number]", self.page.shown("number")[-1])
        visitor.click("button.primary")


def state(world):
    """All that a visit must not change."""
    tables = ("device_request", "device_key", "phone_identity", "code_guard", "session", "message_outbox", "user_account")
    query = "SELECT coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') FROM postern.{} t"
    audit = world.cluster.value("SELECT count(*) FROM postern.audit_event WHERE event LIKE 'possession%'")
    return {**{name: world.cluster.value(query.format(name)) for name in tables}, "audit": audit}


@pytest.fixture
def links(backend, fresh, target):  # noqa: F811  pylint: disable=redefined-outer-name
    """A link to continue on the phone, and one that asks for the number of a desktop."""
    return [Linked(backend, fresh, kind, target) for kind in ("mobile", "desktop")]


def test_fifty_visits_of_a_link_change_nothing(backend, links, phone):  # noqa: F811
    """GET and HEAD; live and unknown ones. Afterwards the live ones pass."""
    before, sent = state(backend.world), len(backend.phones.messages)
    host = urllib.parse.urlsplit(links[0].link).netloc
    unknown = "/p/" + links[0].path[3] + "x" * 23
    for path in (*(one.path for one in links), unknown):
        for number in range(TIMES):
            answer = wire.exchange(backend.node.port, ("GET", "HEAD")[number % 2], path, {"Host": host})
            assert answer.status == 200 and answer.header("set-cookie") is None, answer
    assert state(backend.world) == before and len(backend.phones.messages) == sent
    assert [one.status()["success"] for one in links] == ["pending", "pending"]
    links[1].answer(Visitor(phone))
    assert links[1].page.outcome()["value"]["state"] == "passed" and links[1].status()["success"] == "true"


def test_a_browser_that_runs_scripts_changes_nothing_either(backend, links, phone):  # noqa: F811
    """A scanner with Chromium opens each link, lets its scripts run and reads the page."""
    scanner = Visitor(phone)
    before, sent = state(backend.world), len(backend.phones.messages)
    for one in links:
        for _ in range(TIMES if FULL else TIMES // 5):
            scanner.open(one.link)
            assert scanner.evaluate("document.querySelectorAll('form, button').length") >= 2
            assert scanner.evaluate("document.querySelector('main').dataset.step").endswith("possession")
    assert state(backend.world) == before and len(backend.phones.messages) == sent
    assert [one.status()["success"] for one in links] == ["pending", "pending"]
    links[1].answer(scanner)
    assert links[1].page.outcome()["value"]["state"] == "passed" and links[1].status()["success"] == "true"


@pytest.mark.parametrize("path", ["/done", "/app"])
def test_a_link_leads_to_another_origin_and_on_to_an_app(backend, fresh, phone, target, path):  # noqa: F811  pylint: disable=too-many-arguments,too-many-positional-arguments
    """The policy of the page stops neither; the other origin is told no path of ours."""
    Target.got.clear()
    one = Linked(backend, fresh, "desktop", target, path)
    visitor = Visitor(phone)
    one.answer(visitor)
    assert one.page.outcome()["value"]["state"] == "passed"
    # The page knows of the answer before the browser that gave it is at the other origin.
    (came, referrer), = until(lambda: Target.got, "nothing came to the other origin")
    assert came.startswith(f"{path}?asc=true&authId=") and referrer in (None, "", urllib.parse.urlsplit(one.link)._replace(path="/").geturl())
    assert not [entry for entry in visitor.complaints() if "form-action" in str(entry) or "Content Security Policy" in str(entry)]
