"""The quick start leads from `postern dev` to what each of its blocks prints."""

import os
import re
import shutil
import subprocess
import time

import pytest

from harness import settings, swift_pages
from harness.pages import Psql, Shell, blocks, check, to_run
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
    return Shell(tmp_path, {**clean_environment(), "PYTHONPATH": str(settings.CLIENTS)}, [("localhost:8080", f"localhost:{dev.port}")])


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


def test_no_block_is_long():
    for block in blocks(PAGE):
        assert block.text.count("\n") <= LINES, block
