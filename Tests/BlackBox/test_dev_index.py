"""`postern dev` for newcomers: the index page, its commands, and hosts that no realm has."""

import http.server
import json
import re
import subprocess
import threading
import time

import pytest

from harness import settings, wire
from harness.browser import Page, chromium
from harness.demo_app import FOLDER, policy
from harness.node import run_postern
from harness.pages import blocks
from harness.postgres import clean_environment
from test_pages_browser import look

LOGS = settings.REPOSITORY / ".test-output" / "pages"


@pytest.fixture(scope="module")
def browser():
    """One Chromium."""
    with chromium(LOGS / "dev-chromium.log") as made:
        yield made


def at(dev, host, path="/", method="GET", **headers):
    """A request to one host of the server."""
    return wire.exchange(dev.port, method, path, {"Host": f"{host}:{dev.port}", **headers})


def index(dev):
    """The facts of the index page."""
    return dev.get("/dev/index.json").json()


def example(dev, name):
    """What is to be pasted."""
    return next(example["text"] for example in index(dev)["examples"] if example["name"] == name)


def codes(dev):
    """Of the mails to the user, the newest first."""
    return [mail["code"] for mail in dev.get("/dev/outbox.json").json() if mail["to"] == dev.email and mail.get("code")]


def until(condition, otherwise):
    """Waits for the server."""
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


@pytest.mark.parametrize("host", ["localhost", "garden.localhost", "127.0.0.1"])
def test_the_index_page_is_at_every_host_of_a_realm_and_at_the_address(dev, host):
    answer = at(dev, host)
    assert answer.status == 200 and answer.header("content-type") == "text/html; charset=utf-8"
    text = answer.body.decode()
    for part in (dev.origin, f"http://garden.localhost:{dev.port}", f"http://app.localhost:{dev.port}/", "/dev/outbox", "/dev/passkey", dev.email,
                 "bob@example.com", "demo-spa", "psql "):
        assert part in text, part
    assert ("No realm has the host 127.0.0.1" in text) == (host == "127.0.0.1")
    assert "<script" not in text and "script-src" not in answer.header("content-security-policy")
    assert "default-src 'none'" in answer.header("content-security-policy")


@pytest.mark.parametrize("host", ["localhost", "garden.localhost", "127.0.0.1"])
def test_dev_leads_to_the_index_page(dev, host):
    answer = at(dev, host, "/dev")
    assert (answer.status, answer.header("location"), answer.body) == (303, "/", b"")


def test_the_facts_are_there_as_json_too(dev):
    facts = index(dev)
    demo, garden = (next(realm for realm in facts["realms"] if realm["realm"] == name) for name in ("demo", "garden"))
    assert (demo["origin"], demo["hosts"], garden["hosts"]) == (dev.origin, ["localhost"], ["garden.localhost"])
    assert "demo-app" in [c["client_id"] for c in demo["clients"]] and "demo-app" in [c["client_id"] for c in garden["clients"]]
    assert ([u["email"] for u in demo["users"]], [u["email"] for u in garden["users"]]) == (["ada@example.com"], ["bob@example.com"])
    assert facts["links"]["demo_app"] == f"http://app.localhost:{dev.port}/"
    secret = next(c["secret_file"] for c in demo["clients"] if c["client_id"] == "demo-api")
    assert secret == ".postern/demo-api.secret"


def test_no_secret_is_in_a_byte_of_the_pages(dev):
    shown = b"".join(at(dev, host, path).body for host in ("localhost", "127.0.0.1") for path in ("/", "/dev/index.json"))
    secrets = [file.read_bytes().strip() for file in (*dev.data.glob("*.secret"), dev.data / "secret.key")]
    assert len(secrets) == 4
    for secret in secrets:
        assert secret not in shown


def test_the_demo_app_is_at_a_host_of_its_own(dev):
    answer = at(dev, "app.localhost")
    assert (answer.status, answer.body) == (200, (FOLDER / "index.html").read_bytes())
    assert answer.header("content-security-policy") == policy(dev.origin)
    module = at(dev, "app.localhost", "/app.js")
    assert (module.status, module.header("content-type")) == (200, "text/javascript; charset=utf-8")
    assert at(dev, "app.localhost", "/app.js", "HEAD").body == b""
    for path in ("/README.md", "/dev/outbox.json", "/dev", "/.well-known/openid-configuration"):
        assert at(dev, "app.localhost", path).status == 404, path


@pytest.mark.parametrize("host", ["auth.acme.example", "shop.localhost", "[::1]", "127.0.0.2"])
def test_an_unknown_host_is_told_which_hosts_there_are(dev, host):
    answer = at(dev, host, "/.well-known/openid-configuration")
    assert answer.status == 404
    assert answer.json() == {"error": "unknown_host", "hosts": ["localhost", "garden.localhost"]}
    page = at(dev, host, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.status == 404 and page.header("content-type") == "text/html; charset=utf-8"
    assert f'<a href="http://garden.localhost:{dev.port}/">' in page.body.decode()
    assert f"No realm has the host {host}:{dev.port}" in page.body.decode()


def test_a_host_is_shown_as_text(dev):
    page = wire.exchange(dev.port, "GET", "/", {"Host": "<b>" + "x" * 200, "Accept": "text/html"})
    assert page.status == 404 and b"&lt;b&gt;" + b"x" * 61 + b"<" in page.body


def test_try_at_a_host_that_no_realm_has_names_those_that_there_are(dev):
    run = run_postern("try", "otp", "--url", f"http://127.0.0.1:{dev.port}", "--client", dev.client_id, "--email", dev.email)
    assert run.returncode == 1
    assert run.stderr == "Error: no realm has the host 127.0.0.1: --url takes one of localhost, garden.localhost\n"
    run = run_postern("try", "hosted", "--url", f"http://127.0.0.1:{dev.port}", "--client", dev.client_id, "--email", dev.email)
    assert '{"error":"unknown_host","hosts":["localhost","garden.localhost"]}' in run.stdout
    assert (run.returncode, run.stderr) == (1, "Error: no realm has this host: the answer names those that there are\n")


@pytest.mark.parametrize("path", ["/", "/dev", "/dev/index.json", "/dev/outbox", "/dev/outbox.json", "/dev/passkey"])
def test_serve_has_none_of_it(realm, path):
    answer = realm.app().get(path)
    assert (answer.status, answer.body) == (404, b"")


def test_the_pages_look_good_and_need_no_script(browser, dev):
    problems = []
    for name, path in (("index", f"{dev.origin}/"), ("address", f"http://127.0.0.1:{dev.port}/"), ("unknown", f"http://shop.localhost:{dev.port}/")):
        page = Page(browser)
        page.send("Emulation.setScriptExecutionDisabled", {"value": True})
        page.send("Page.setBypassCSP", {"enabled": True})
        page.open(path)
        assert "garden.localhost" in page.text("main")
        page.send("Emulation.setScriptExecutionDisabled", {"value": False})
        look(page, f"dev-{name}", problems)
    assert problems == []


def test_the_curl_and_swift_of_the_page_are_those_of_the_quick_start(dev):
    shown = [example(dev, name).replace(f"localhost:{dev.port}", "localhost:8080") + "\n" for name in ("curl", "Swift")]
    written = [block.text for block in blocks(settings.REPOSITORY / "docs/quickstart.md")]
    assert [text in written for text in shown] == [True, True]


def test_the_commands_for_another_realm_print_its_document(dev, tmp_path):
    done = subprocess.run(["bash", "-euc", example(dev, "Another realm")], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=60)
    first, second = done.stdout.split("}{")
    assert json.loads(first + "}") == json.loads("{" + second)
    assert json.loads(first + "}")["issuer"] == f"http://garden.localhost:{dev.port}"


def test_the_python_of_the_page_signs_in(dev, tmp_path):
    before = codes(dev)
    program = subprocess.Popen(
        ["bash", "-euc", example(dev, "Python")], cwd=tmp_path, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until(lambda: codes(dev) != before, "no mail came")
    printed, _ = program.communicate(codes(dev)[0] + "\n", timeout=60)
    assert (program.returncode, printed) == (0, "Code of the mail: Ada Lovelace is signed in\n")


def test_the_javascript_of_the_page_signs_in_and_keeps_the_session(browser, dev, tmp_path):
    command, serving = example(dev, "JavaScript").rsplit("\n", 1)
    assert re.fullmatch(r"python3 -m http\.server 3000 --directory hello", serving)
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True, timeout=60)
    with Site(tmp_path / "hello") as site:
        page = Page(browser)
        before = codes(dev)
        page.open(site.origin)
        until(lambda: codes(dev) != before, "no mail came")
        page.wait("document.querySelector('form').onsubmit !== null")
        page.type("input", codes(dev)[0])
        page.click("button")
        page.expect("p", "Ada is signed in")
        page.open(site.origin)
        page.expect("p", "Ada is signed in")
        assert page.complaints() == []


class Site:
    """A folder on a port of localhost."""

    def __init__(self, folder):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                """A browser asks for an icon by itself."""
                if self.path == "/favicon.ico":
                    self.send_response(204)
                    self.end_headers()
                else:
                    super().do_GET()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self._server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
