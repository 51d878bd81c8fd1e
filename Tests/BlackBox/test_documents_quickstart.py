"""The quick start leads from `postern dev` to what each of its blocks prints."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from harness import settings, swift_pages
from harness.browser import Page, chromium
from harness.pages import Psql, Shell, blocks, check, to_run
from harness.ports import free_port
from harness.postgres import clean_environment

PAGE = settings.REPOSITORY / "docs/quickstart.md"
LINES = 15
#: Is refused for its code once the server knows the client and the scope.
SHOP = {
    "grant_type": "urn:cocoar:otp", "client_id": "shop-app", "username": "unknown@example.com", "otp_code": "000000", "scope": "orders:read"}


@pytest.fixture
def shell(dev, tmp_path):
    """Bash in the folder where the server's data is."""
    os.symlink(dev.data, tmp_path / ".postern")
    os.symlink(settings.REPOSITORY / "examples", tmp_path / "examples")
    site, api = free_port(), free_port()
    return Shell(tmp_path, {**clean_environment(), "PYTHONPATH": str(settings.CLIENTS), "PYTHONDONTWRITEBYTECODE": "1"}, [
        ("localhost:8080", f"localhost:{dev.port}"), ("localhost:5000", f"localhost:{site}"), ("--port 5000", f"--port {site}"),
        ("localhost:9000", f"localhost:{api}"), ('("localhost", 9000)', f'("localhost", {api})')])


class DevPsql(Psql):
    """The psql command that `postern dev` prints."""

    def __init__(self, dev):
        folder = re.search(r"psql .*-h (\S+) -U postgres postern", dev.text()).group(1)
        self._command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "postgres", "-d", "postern"]


@pytest.mark.skipif(not (settings.CLIENTS / "joserfc").exists(), reason="no joserfc")
def test_curl_signs_in_and_an_api_checks_the_tokens(dev, shell):
    for block in to_run(PAGE):
        if block.language == "sql":
            DevPsql(dev).run(block)
        if block.language == "sql" and "shop-app" in block.text:
            until(lambda: dev.post("/connect/token", SHOP).json()["error"] == "invalid_grant", "the server does not know shop-app")
        elif block.language == "sh":
            check(block, shell.run(block))


@pytest.mark.skipif(shutil.which("swiftc") is None, reason="no swiftc")
def test_swift_signs_in_and_is_still_signed_in_the_next_time(dev, tmp_path):
    block, = [block for block in to_run(PAGE) if block.language == "swift" and "import SwiftUI" not in block.text]
    source = tmp_path / "main.swift"
    source.write_text(block.text.replace("localhost:8080", f"localhost:{dev.port}"))
    program = swift_pages.program(tmp_path / "hello", [source])
    before = codes(dev)
    first = start(program, tmp_path)
    until(lambda: codes(dev) != before, "no mail came")
    check(block, first.communicate(codes(dev)[0] + "\n", timeout=60)[0])
    printed, _ = start(program, tmp_path).communicate(timeout=60)
    assert printed == block.expected.text.splitlines(keepends=True)[-1]


def start(program, folder):
    """The program, with a home of its own."""
    environment = {**clean_environment(), "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def codes(dev):
    """Of the mails to the user, the newest first."""
    return [mail["code"] for mail in dev.get("/dev/outbox.json").json() if mail["to"] == dev.email and mail.get("code")]


def until(condition, otherwise):
    """Waits for the server."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing about each request."""

    def log_message(self, *_):
        """Quiet."""


class Site:
    """A folder at a port of `localhost`, as `python3 -m http.server` serves it."""

    def __init__(self, folder, block, dev):
        (folder / "index.html").write_text(block.text.replace("localhost:8080", f"localhost:{dev.port}"))
        handler = functools.partial(Quiet, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """The site is gone."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def tab(dev, tmp_path, request):
    """A tab with the page of the section that the test names."""
    begin = PAGE.read_text().split(f"## {request.param}\n")[0].count("\n")
    part = [block for block in blocks(PAGE) if block.line > begin]
    at = [block.language for block in part].index("html")
    page, said = part[at:at + 2]
    site = Site(tmp_path, page, dev)
    for block in part[:at]:
        block.text = block.text.replace("http://localhost:3000", site.origin)
        DevPsql(dev).run(block)
        block.text = block.text.replace(site.origin, "https://known.example")
        DevPsql(dev).run(block)
        known = {"Origin": "https://known.example"}
        until(lambda: dev.get("/api/app-info", **known).header("Access-Control-Allow-Origin"), "the server does not know the site")
    with chromium(tmp_path / "chromium.log") as browser:
        tab = Page(browser)
        # What a person types into the dialog is the newest code of the outbox, which the test reads.
        tab.send("Page.addScriptToEvaluateOnNewDocument", {"source": "window.prompt = () => window.typed ?? ''"})
        tab.site, tab.said = site.origin, said.text.strip()
        yield tab
    site.close()


@pytest.mark.parametrize("tab", ["A web page by code and passkey"], indirect=True)
def test_a_web_page_signs_in_by_code_and_by_passkey(dev, tab):
    before = codes(dev)
    tab.open(tab.site)
    tab.wait("code.onclick !== null && add.onclick !== null")
    tab.evaluate("""void (window.ask = window.fetch, window.answered = [], window.fetch = async (url, call) => {
        const answer = await ask(url, call), { pathname } = new URL(url);
        answered.push(pathname);
        if (pathname.endsWith("/otp/request")) await new Promise(resolve => { window.goOn = resolve; });
        return answer;
    })""")
    tab.click("#code")
    tab.wait("window.goOn !== undefined")
    until(lambda: codes(dev) != before, "no mail came")
    tab.evaluate(f"void (window.typed = '{codes(dev)[0]}', goOn())")
    tab.expect("#who", tab.said)
    tab.click("#add")
    tab.wait("answered.includes('/connect/passkey/enroll')")
    # In a browser that has nothing but the passkey.
    tab.send("Storage.clearDataForOrigin", {"origin": tab.site, "storageTypes": "all"})
    tab.open(tab.site)
    tab.expect("#who", "Not signed in")
    tab.wait("passkey.onclick !== null")
    tab.click("#passkey")
    tab.expect("#who", tab.said)
    assert [one for one in tab.complaints() if "404" not in str(one)] == [], "the folder has no favicon.ico"


@pytest.mark.parametrize("tab", ["A web page by redirect"], indirect=True)
def test_a_web_page_signs_in_by_redirect(dev, tab):
    before = codes(dev)
    tab.open(tab.site)
    tab.wait(f"location.origin === '{dev.origin}' && document.querySelector('main') !== null")
    if tab.evaluate("document.querySelector('#code') === null"):
        tab.click("button[value=continue]")
        tab.wait("document.querySelector('#code') !== null")
    until(lambda: codes(dev) != before, "no mail came")
    tab.type("#code", codes(dev)[0])
    tab.click("button[value=continue]")
    # A passkey is offered to one who has none: the block before may have made one.
    tab.wait("/Not now|Continue to/.test(document.body?.innerText)")
    tab.evaluate("void [...document.querySelectorAll('button')].find(one => one.innerText === 'Not now')?.click()")
    tab.wait("document.body?.innerText.includes('Continue to')")
    tab.click("button.primary")
    tab.expect("#who", tab.said)
    assert "code=" not in tab.evaluate("location.href")
    assert [one for one in tab.complaints() if "404" not in str(one)] == [], "the folder has no favicon.ico"


def test_no_block_is_long():
    for block in blocks(PAGE):
        assert block.text.count("\n") <= LINES, block
