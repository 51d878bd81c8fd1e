"""Where `postern dev` listens, who may reach its pages, and where it does not run."""

import os
import socket
import subprocess

import pytest

from harness import settings, wire
from harness.dev import DevServer
from harness.postgres import clean_environment
from harness.settings import BINARY


def run(folder, *arguments):
    """The command, which ends by itself."""
    return subprocess.run(
        [str(BINARY), "dev", *arguments], cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def test_the_greeting_begins_with_the_index_page(dev):
    lines = [line for line in dev.text().splitlines() if line and not line.endswith("…")]
    assert f"Open {dev.origin}/ in a browser" in next(line for line in lines if "http" in line), lines[:4]


def test_a_busy_port_is_one_line_and_nothing_has_begun(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(tmp_path, "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert not os.listdir(tmp_path)


def test_another_address_is_warned_of_before_anything_else(tmp_path):
    dev = DevServer("--listen", "0.0.0.0")
    try:
        dev.start()
        first = dev.text().splitlines()[0]
        assert "warning" in first and f"all who reach 0.0.0.0:{dev.port} read every mail" in first
        assert dev.get("/dev/outbox.json").status == 200
        assert wire.exchange(dev.port, "GET", "/dev/outbox.json", {"Host": f"192.0.2.7:{dev.port}"}).json()["error"] == "unknown_host"
    finally:
        dev.stop()


def test_this_machine_alone_is_not_warned_of(dev):
    assert "all who reach" not in dev.text()


@pytest.mark.parametrize("address", ["all", "0.0.0.0:80", "localhost"])
def test_an_address_is_checked(tmp_path, address):
    done = run(tmp_path, "--listen", address)
    assert done.returncode == 64 and "--listen is an address such as 0.0.0.0" in done.stderr


PAGES = ["/", "/dev", "/dev/index.json", "/dev/outbox", "/dev/outbox.json", "/dev/passkey"]


def post(dev, path, **fields):
    """A POST as a browser sends it."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return wire.exchange(dev.port, "POST", path, {"Host": f"localhost:{dev.port}", **named}, b"")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("site", ["cross-site", "same-site", "cross-site, same-origin", ""])
def test_a_page_of_another_site_posts_nothing(dev, path, site):
    assert post(dev, path, Sec_Fetch_Site=site).status == 403
    assert post(dev, path, Origin="http://evil.example").status == 403
    assert post(dev, path, Origin="null").status == 403


@pytest.mark.parametrize("path", PAGES)
def test_no_page_of_another_origin_reads_an_answer(dev, path):
    answer = dev.get(path, Origin="http://localhost:3000")
    assert answer.status in (200, 303) and not [name for name, _ in answer.headers if name.lower().startswith("access-control-")]
    if path != "/dev":
        assert "no-store" in answer.header("cache-control")


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/dev/outbox"])
def test_there_is_nothing_to_post_but_to_the_outbox(dev, path):
    answer = post(dev, path, Sec_Fetch_Site="same-origin")
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize("fields", [{}, {"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}], ids=str)
def test_the_outbox_can_be_emptied(dev, fields):
    dev.sign_in()
    assert "<button>Empty the outbox</button>" in dev.get("/dev/outbox").body.decode()
    answer = post(dev, "/dev/outbox", **fields)
    assert (answer.status, answer.header("location")) == (303, "/dev/outbox")
    assert dev.get("/dev/outbox.json").json() == []


def test_on_macos_the_script_names_the_container(tmp_path):
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "uname").chmod(0o755)
    done = subprocess.run(
        [settings.REPOSITORY / "scripts/dev"], env={**clean_environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "on macOS in a container: deploy/container/compose.dev.yaml" in done.stderr
    assert "on macOS it runs in a container" in (settings.REPOSITORY / "README.md").read_text(encoding="utf-8")[:3000]
