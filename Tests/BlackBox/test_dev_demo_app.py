"""The demo app as `postern dev` serves it."""

import pytest

from harness import totp, wire
from harness.browser import chromium
from harness.demo_app import FOLDER, OUTPUT, DemoTab, DevDemoApp, policy

pytestmark = pytest.mark.slow


@pytest.fixture(name="app")
def served(dev):
    """At `app.localhost`."""
    return DevDemoApp(dev)


@pytest.mark.parametrize(("path", "name", "kind"), [
    ("/", "index.html", "text/html"), ("/?code=x&state=y", "index.html", "text/html"), ("/app.js", "app.js", "text/javascript"),
    ("/app.css", "app.css", "text/css"), ("/icon.svg", "icon.svg", "image/svg+xml"),
])
def test_its_files_are_served_at_its_host_under_a_strict_policy(dev, app, path, name, kind):
    answer = wire.exchange(dev.port, "GET", path, {"Host": f"app.localhost:{dev.port}"})
    assert answer.status == 200 and answer.body == (FOLDER / name).read_bytes()
    assert answer.header("Content-Type").partition(";")[0] == kind
    assert answer.header("Content-Security-Policy") == policy(app.server) and answer.header("X-Content-Type-Options") == "nosniff"
    assert "unsafe" not in answer.header("Content-Security-Policy")


def test_its_host_has_no_endpoint_of_the_server_and_the_server_none_of_its_files(dev):
    host = {"Host": f"app.localhost:{dev.port}"}
    for path in ("/dev/outbox", "/dev/outbox.json", "/.well-known/jwks", "/connect/userinfo", "/README.md", "/../app.js", "/index.html"):
        assert wire.exchange(dev.port, "GET", path, host).status == 404, path
    for method in ("POST", "PUT", "DELETE"):
        assert wire.exchange(dev.port, method, "/", host, b"").status in (404, 405), method
    assert dev.get("/app.js").status == 404


def test_every_way_of_the_app_works_there(app):
    email = "ada@example.com"
    with chromium(OUTPUT / "dev-demo-app.log") as browser:
        tab = DemoTab(browser).visit(app)
        tab.sign_in(app, email)
        assert tab.text("#name") == "Hello, Ada"
        tab.press("addPasskey")
        tab.says("The passkey was added.")
        tab.press("trust")
        tab.says("This browser can sign you in by itself.")
        tab.touch(False)
        tab.press("signOut")
        tab.view("out")
        tab.touch(True)
        tab.press("passkey")
        tab.view("in")
        tab.touch(False)
        tab.press("signOutEverywhere")
        tab.view("out")
        tab.press("device")
        tab.view("in")
        tab.press("signOut")
        tab.view("out")
        before = app.mails(email, "link")
        tab.ask(email, "requestLink")
        tab.view("link")
        number = tab.text("#number")
        mail = DemoTab(browser)
        mail.open(app.mail(email, "link", before).link)
        mail.type("input[name=number]", number)
        mail.click("button.primary")
        tab.view("in")
        secret = tab.begin_totp()
        tab.fill("#first", totp.code(secret))
        tab.click("#enroll .primary")
        tab.says("The authenticator app will be asked for.")
        tab.press("endTotp")
        tab.says("not asked for any more")
        tab.press("forget")
        tab.view("out")
        tab.fill("#email", email)
        tab.press("pages")
        tab.wait(f"location.origin === '{app.server}' && document.readyState === 'complete'")
        assert tab.evaluate("document.querySelector('main').dataset.step") is not None
        tab.silent("400", "401")
