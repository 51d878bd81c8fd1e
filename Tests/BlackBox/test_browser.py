"""Passkeys in a real browser: the page of `postern dev`, headless Chromium, a virtual authenticator."""

import base64
import hashlib

import pytest

from harness.browser import Page, chromium
from harness.settings import REPOSITORY

PICTURES = REPOSITORY / ".test-output" / "browser"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    """One Chromium."""
    with chromium(PICTURES / "chromium.log") as made:
        yield made


def sign_in_by_code(page, dev):
    """Steps through the first card."""
    page.click("#ask button")
    page.expect("#code-result", "The dev outbox has the code")
    page.click("#redeem-code")
    page.expect("#code-result", "Signed in (amr otp).")
    assert page.text("#session") == f"Signed in as {dev.email} (amr otp)."


def test_a_browser_enrols_a_passkey_and_signs_in_with_it(browser, dev):
    """Code, create, sign out, get, list, delete: what the page says and what the server knows."""
    page = Page(browser)
    page.open(dev.origin + "/dev/passkey")
    assert page.text("#origin") == dev.origin
    assert page.evaluate("document.querySelector('#enrol-passkey').disabled"), "nobody has signed in yet"
    page.screenshot(PICTURES / "1-start.png")

    sign_in_by_code(page, dev)
    page.expect("#list-result", "None yet.")
    page.type("#name", "Chromium")
    page.click("#enrol-passkey")
    page.expect("#enrol-result", "Passkey enrolled.")
    page.wait("document.querySelectorAll('#passkeys li').length === 1")
    page.screenshot(PICTURES / "2-enrolled.png")
    held = page.credentials()
    assert [(c["rpId"], c["isResidentCredential"]) for c in held] == [("localhost", True)]

    page.click("#sign-out")
    page.expect("#session", "Not signed in.")
    page.click("#sign-in")
    page.expect("#sign-in-result", "Signed in (amr hwk, user, mfa).")
    page.expect("#passkeys li", "Chromium")
    assert page.text("#session") == f"Signed in as {dev.email} (amr hwk, user, mfa)."
    page.screenshot(PICTURES / "3-signed-in.png")

    (passkey,) = dev.passkeys(dev.sign_in())
    assert (passkey["DisplayName"], passkey["RpId"]) == ("Chromium", "localhost")
    assert passkey["LastUsedAt"], "the sign-in was recorded"

    page.click("#enrol-passkey")
    page.expect("#enrol-result", "This authenticator holds a passkey of yours already.")
    page.click("#passkeys li button")
    page.expect("#list-result", "Deleted Chromium.")
    page.screenshot(PICTURES / "4-deleted.png")
    assert dev.passkeys(dev.sign_in()) == []
    page.click("#sign-in")
    page.expect("#sign-in-result", "Passkey verification failed.")
    page.screenshot(PICTURES / "5-refused.png")

    # The refused sign-in is a 400, which the console reports; nothing else may be there.
    assert [c for c in page.complaints() if "400" not in str(c)] == []


def test_the_page_is_pleasant_in_the_dark_and_on_a_phone(browser, dev):
    """Nothing is wider than the screen; the pictures are for people."""
    page = Page(browser, width=390, height=1500, dark=True)
    page.open(dev.origin + "/dev/passkey")
    sign_in_by_code(page, dev)
    page.evaluate("document.querySelector('#wire details').open = true")
    page.screenshot(PICTURES / "6-phone-dark.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.open(dev.origin + "/dev/outbox")
    page.screenshot(PICTURES / "7-outbox-dark.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_pages_of_every_port_may_read_the_answers_of_dev(dev):
    """A page in development has whatever port its tool chose; no other host has it."""
    for origin, may in (("http://localhost:5173", True), ("http://localhost:3000", True), ("http://app.example:3000", False)):
        assert (dev.get("/api/app-info", Origin=origin).header("access-control-allow-origin") == origin) == may, origin


def test_the_page_loads_nothing_and_lets_nothing_in(dev):
    """One document; style and script are named by hash."""
    answer = dev.get("/dev/passkey")
    assert answer.status == 200, answer
    policy = dict(part.strip().split(" ", 1) for part in answer.header("content-security-policy").split(";"))
    assert policy["default-src"] == "'none'"
    body = answer.body.decode()
    for directive, element in (("style-src", "style"), ("script-src", "script")):
        content = body.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert policy["connect-src"] == "'self'" and policy["frame-ancestors"] == "'none'"
    assert "{{" not in body
    assert "http://" not in body and "https://" not in body and "src=" not in body
    assert '<a href="/dev/passkey">' in dev.get("/dev/outbox").body.decode()
    assert f"{dev.origin}/dev/passkey" in dev.text(), "the greeting names the page"


def test_serve_has_no_dev_page(world, realm, app):
    """Only under `postern dev`."""
    for path in ("/dev/passkey", "/dev/outbox", "/dev/outbox.json"):
        assert app.get(path).status == 404
