"""`postern try`: the flows that have no file of their own, and what it says when something cannot be done."""

import http.server
import json
import re
import threading

import pytest

from harness.node import run_postern
from harness.ports import free_port
from harness.settings import REPOSITORY


@pytest.fixture(name="attempt")
def _attempt(dev):
    """Runs a flow as the user of `dev`."""
    def run(flow, *arguments, url=dev.origin, email=dev.email):
        return run_postern("try", flow, "--url", url, "--client", dev.client_id, "--email", email, *arguments)
    return run


def steps(text):
    """The numbers of the steps, in the order in which they were printed."""
    return [int(number) for number in re.findall(r"^(\d)\. ", text, re.M)]


def test_a_device_is_added_approves_signs_in_and_is_removed(attempt, dev):
    run = attempt("approval")
    assert run.returncode == 0, run.stdout + run.stderr
    assert steps(run.stdout) == [1, 2, 3, 4, 5, 6, 7, 8]
    asked, rest = run.stdout.partition("4. ")[::2]
    assert asked.rstrip().endswith("}") and '"error":"authorization_pending"' in asked.partition("3. ")[2]
    assert '"decision"' not in rest  # What is signed is one text.
    for line in ("> GET /connect/approvals", "> POST /connect/approvals/", "> POST /connect/token", "> GET /connect/userinfo",
                 "grant_type=urn%3Apostern%3Adevice", "> POST /connect/revoke", "> DELETE /connect/devices/", "< 204"):
        assert line in rest, f"{line}\n{run.stdout}"
        rest = rest.partition(line)[2]
    assert json.loads(dev.get("/connect/devices", Authorization=f"Bearer {dev.sign_in()}").body) == []


@pytest.mark.parametrize("phone, otp", [("2001004014", ["--otp", "123406"]), ("+14155550123", [])])
def test_a_number_is_proved_by_the_code_of_the_test_number_and_by_one_from_the_outbox(dev, phone, otp):
    secret = dev.data / "demo-prove.secret"
    run = run_postern("try", "possession", "--url", dev.origin, "--client", "demo-prove", "--secret-file", str(secret), "--phone", phone, *otp)
    assert run.returncode == 0, run.stdout + run.stderr
    assert steps(run.stdout) == [1, 2, 3, 4, 5, 6] and '"success":"true"' in run.stdout
    assert ("the dev outbox has the code" in run.stdout) == (not otp)


def test_a_refresh_whose_answer_was_lost_is_sent_again_and_gets_the_same_successor(attempt):
    run = attempt("refresh")
    assert run.returncode == 0, run.stdout + run.stderr
    before, after = run.stdout.split("this answer is lost on its way")
    sent = re.findall(r"^> .*refresh_token=([^&\s]+)", run.stdout, re.M)
    assert len(sent) == 2 and sent[0] == sent[1]
    given = [json.loads(line[2:])["refresh_token"] for text in (before, after) for line in text.splitlines()
             if line.startswith('< {"access_token"')]
    assert len(given) == 3 and given[1] == given[2] != given[0]
    assert "does not sign the user out" in after and '"sub":"' in after


def test_the_pause_between_two_polls_is_printed(attempt):
    run = attempt("magic")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^  \d+ seconds later$", run.stdout, re.M), run.stdout


@pytest.mark.parametrize("flow", ["otp", "magic", "passkey", "refresh", "approval", "hosted"])
def test_a_server_that_does_not_answer_is_said_in_one_line(attempt, flow):
    run = attempt(flow, url=f"http://localhost:{free_port()}")
    assert run.returncode == 1 and "does not answer" in run.stderr and len(run.stderr.splitlines()) == 1, run


@pytest.mark.parametrize("flow, arguments, url, said", [
    ("otp", [], "http://id.example.com", "http is for loopback hosts only"),
    ("otp", [], "localhost:8080", "--url must be an origin such as http://localhost:8080"),
    ("otp", ["--scope", "profile"], None, "scopes must have openid"),
    ("refresh", ["--scope", "openid"], None, "ask for scope offline_access with --scope"),
    ("otp", ["--code", "000000"], None, "the server answered 400: the code is wrong"),
])
def test_what_cannot_be_done_is_said_with_its_reason(attempt, dev, flow, arguments, url, said):
    # An address of no account: a mail that comes late would be the next test's.
    run = attempt(flow, *arguments, url=url or dev.origin, email="unknown@example.com")
    assert run.returncode == 1 and said in run.stderr, run


def test_the_manifest_has_no_http_client_beside_the_library_and_libcurl():
    for name in ("Package.swift", "Package.pins"):
        assert "async-http-client" not in (REPOSITORY / name).read_text(encoding="utf-8")


def test_what_a_server_says_cannot_command_the_terminal():
    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = '{"error":"\\u001b[2J","error_description":"\x1b]0;owned\x07\x9b31m\r"}'.encode()
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = run_postern("try", "otp", "--url", f"http://127.0.0.1:{server.server_port}", "--client", "x", "--email", "a@mail.example")
        server.shutdown()
    assert run.returncode != 0 and "owned" in run.stdout
    assert not set("\x1b\x07\x9b\r") & set(run.stdout + run.stderr)
