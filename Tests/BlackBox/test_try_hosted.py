"""`postern try hosted`, and what `postern dev` has for pages, phones and Cotter's wire."""

import os
import re
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from harness import wire
from harness.codeflow import challenge_of
from harness.node import run_postern
from harness.pages_client import PageBrowser
from harness.postgres import clean_environment
from harness.settings import BINARY


class DevBrowser(PageBrowser):
    """A browser at the demo realm."""

    def __init__(self, dev):
        super().__init__(dev, f"localhost:{dev.port}")
        self.dev = dev
        self.before = len(self.messages())

    def messages(self):
        """The codes in the outbox, newest first."""
        return [mail for mail in self.dev.get("/dev/outbox.json").json() if mail.get("code")]

    def code(self, to):
        """The code that was sent to somebody since."""
        deadline = time.monotonic() + 10
        while True:
            found = self.messages()
            if len(found) > self.before and found[0]["to"] == to:
                return found[0]["code"]
            assert time.monotonic() < deadline, f"no code came for {to}"
            time.sleep(0.05)


def test_the_headless_browser_signs_in_on_the_pages(dev):
    """Every request, page and answer is printed, to the claims of the user."""
    run = run_postern("try", "hosted", "--url", dev.origin, "--client", dev.client_id, "--email", dev.email)
    assert run.returncode == 0, run.stdout + run.stderr
    rest = run.stdout
    for line in ("> GET /connect/authorize?response_type=code&client_id=demo-app", '< the page "address"', "> POST /sign-in", "address=ada%40example.com",
                 '< the page "code"', "the dev outbox has the code", "< Location: http://127.0.0.1:", "> POST /connect/token",
                 '"token_type":"Bearer"', "> GET /connect/userinfo", '"sub":"'):
        assert line in rest, f"{line}\n{run.stdout}"
        rest = rest.partition(line)[2]


@pytest.mark.parametrize("typed", ["+14155550123", "(415) 555-0123"])
def test_the_headless_browser_types_a_number_as_people_do(dev, typed):
    """Its code is found in the outbox, which has the number in its full form."""
    run = run_postern("try", "hosted", "--url", dev.origin, "--client", dev.client_id, "--phone", typed)
    assert run.returncode == 0 and "the dev outbox has the code" in run.stdout and '"sub":"' in run.stdout, run.stdout + run.stderr


def test_a_browser_of_the_users_own_comes_back_to_the_listener(dev):
    """It prints the address, waits on 127.0.0.1, and goes on with the code."""
    with subprocess.Popen(
            [str(BINARY), "try", "hosted", "--url", dev.origin, "--client", dev.client_id], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env={**os.environ, **clean_environment()}) as process:
        try:
            text = ""
            while not (found := re.search(r"^  (http://localhost:\d+/connect/authorize\S+)\n", text, re.M)):
                line = process.stdout.readline()
                assert line, text
                text += line
            browser = DevBrowser(dev)
            browser.open(found[1][len(dev.origin):])
            browser.submit("continue", address=dev.email)
            browser.submit("continue", code=browser.code(dev.email))
            if browser.page is not None:
                browser.submit("skip")
            assert browser.left_for.startswith("http://127.0.0.1:")
            parts = urllib.parse.urlsplit(browser.left_for)
            assert b"close this window" in urllib.request.urlopen(f"http://{parts.netloc}/?{parts.query}", timeout=10).read()
            rest, _ = process.communicate(timeout=20)
            assert process.returncode == 0 and '"sub":"' in rest, text + rest
        finally:
            if process.poll() is None:
                process.kill()


def test_what_cannot_be_done_is_said(dev):
    """An unknown client ends with the page's error, two addresses with the usage."""
    run = run_postern("try", "hosted", "--url", dev.origin, "--client", "nobody", "--email", dev.email)
    assert run.returncode == 1 and "invalid_client" in run.stdout and "the server answered 400" in run.stderr
    run = run_postern("try", "hosted", "--url", dev.origin, "--client", "x", "--email", "a@b.example", "--phone", "+14155550123")
    assert run.returncode == 64 and "not both" in run.stderr


@pytest.mark.parametrize("said", ["demo-cotter", "demo-web", "http://localhost:8081/callback", "+14155550123", "postern try hosted"])
def test_the_greeting_names_what_there_is(dev, said):
    """Clients, redirects and people."""
    assert said in dev.text()


def test_phones_of_three_countries_get_messages_into_the_outbox(dev):
    """The channel is said; other countries are not supported."""
    browser = DevBrowser(dev)
    assert dev.post_json("/api/account/native/otp/request", {"Phone": "+14155550123", "ClientId": dev.client_id}).status == 200
    assert browser.code("+14155550123")
    (message, *_) = [mail for mail in dev.get("/dev/outbox.json").json() if mail["to"] == "+14155550123"]
    assert message["channel"] == "sms"
    answer = dev.post_json("/api/account/native/otp/request", {"Phone": "+33612345678", "ClientId": dev.client_id})
    assert answer.json() == {"error": "Phone is not supported."}


def test_the_client_of_cotters_wire_signs_in(dev):
    """With the scheme of Cotter's sample."""
    browser, verifier = DevBrowser(dev), "v" * 43
    query = {
        "api_key": "demo-cotter", "redirect_url": "yourapp://", "type": "EMAIL", "code_challenge": challenge_of(verifier), "state": "s"}
    browser.open("/app?" + wire.form_body(query).decode())
    browser.submit("continue", address="new@example.com")
    browser.submit("continue", code=browser.code("new@example.com"))
    members = browser.members
    answer = wire.exchange(dev.port, "POST", "/api/v0/verify/get_identity", {
        "Host": f"localhost:{dev.port}", "Content-Type": "application/json", "API_KEY_ID": "demo-cotter"},
        ('{"code_verifier":"%s","authorization_code":"%s","challenge_id":%s,"redirect_url":"yourapp://"}' % (
            verifier, members["code"], members["challenge_id"])).encode())
    assert answer.status == 200 and answer.json()["identifier"]["identifier"] == "new@example.com", answer
