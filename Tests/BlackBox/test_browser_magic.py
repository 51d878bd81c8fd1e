"""The page of a link in a real browser: what a scanner, an owner and somebody in doubt do with it."""

import json

import pytest

from harness.app import NativeApp
from harness.browser import Page, chromium
from harness.links import MAGIC, Links
from harness.realm import call
from harness.settings import REPOSITORY

PICTURES = REPOSITORY / ".test-output" / "browser"
HOST = "localhost"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    """One Chromium."""
    with chromium(PICTURES / "chromium-magic.log") as made:
        yield made


@pytest.fixture(scope="module")
def served(browser_world):
    """A node whose realm of localhost is served to the browser at its own port: the links lead there."""
    node = browser_world.start_node()
    origin = f"http://{HOST}:{node.port}"
    realm = "browser"  # a domain belongs to one realm: test_browser_serve uses the same one
    browser_world.admin.run(
        call("put_realm", realm, primary_domain=HOST, public_origin=origin, display_name="Café Öresund & <Co>"),
        call("set_native_grants", realm, enabled=True), call("set_code_policy", realm, resend_cooldown="0"),
        call("put_client", realm, "doorway-app"), call("grant_permission", realm, "doorway-app", variadic=["gt:" + MAGIC, "gt:refresh_token"]),
    )
    browser_world.settle()
    app = NativeApp(node, browser_world.mailbox, HOST, "doorway-app")
    numbers = iter(range(1000))

    def link():
        email = f"grace{next(numbers)}@mail.example"
        browser_world.admin.call("put_user", realm, email, email_verified=True)
        return Links(app).link(email)

    yield Links(app), link
    node.stop()


def choose(page, number):
    """Types a number, submits, and waits for what the page says then."""
    page.evaluate("document.querySelector('input.number').focus()")
    page.send("Input.insertText", {"text": number})
    page.click("form:first-of-type button")
    return result(page)


def result(page):
    """The heading of the page that answers."""
    page.wait("document.querySelector('form') === null && document.readyState === 'complete'")
    return page.text("h1")


def test_a_scanner_with_scripts_opens_a_link_fifty_times_and_it_lives(browser, served):
    """Fifty page loads and fetches by GET and HEAD, scripts running, whatever they find submitted to nobody."""
    links, link = served
    one = link()
    page = Page(browser)
    page.open(one.url)
    seen = page.evaluate("""(async (url) => {
        const seen = new Set();
        for (let n = 0; n < 25; n++) {
            const frame = await fetch(url, {method: n % 2 ? 'HEAD' : 'GET', credentials: 'include'}).catch(() => null);
            seen.add(frame === null ? 'blocked' : frame.status);
        }
        return [...seen];
    })(""" + json.dumps(one.url) + ")")
    assert seen == [200], "a script of the page's own origin may ask, and changes nothing"
    for _ in range(50):
        page.open(one.url)
        assert page.evaluate("document.querySelectorAll('input.number').length") == 1
    assert page.evaluate("document.cookie") == ""
    answer = links.poll(one.handle)
    assert answer.json()["error"] == "authorization_pending"
    assert links.redeem(one).status == 200


def test_typing_the_number_signs_in_the_other_device(browser, served):
    """From the mail to the tokens; the pages are looked at in light and dark, on a phone."""
    links, link = served
    one = link()
    assert links.poll(one.handle).json()["error"] == "authorization_pending"
    page = Page(browser, width=390, height=844)
    page.open(one.url)
    assert page.text(".brand") == "Café Öresund & <Co>"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing to scroll sideways"
    assert page.evaluate("Math.min(...[...document.querySelectorAll('button,input.number')].map(b => b.getBoundingClientRect().height)) >= 44")
    assert page.evaluate("document.querySelector('dl').innerText.includes('UTC') && document.querySelector('dl').innerText.includes('127.0.x.x')")
    page.screenshot(PICTURES / "magic-question.png")
    assert choose(page, one.number) == "Confirmed"
    assert "app" in page.text("[role=status]")
    page.screenshot(PICTURES / "magic-confirmed.png")
    assert links.poll(one.handle).status == 200
    assert not [c for c in page.complaints() if "400" not in str(c)]


def test_a_wrong_number_is_final(browser, served):
    """access_denied for the device; going back is too late: there is no form any more."""
    links, link = served
    one = link()
    page = Page(browser, width=1000, height=800, dark=True)
    page.open(one.url)
    page.screenshot(PICTURES / "magic-question-dark.png")
    assert choose(page, links.wrong(one)) == "Sign-in refused"
    page.screenshot(PICTURES / "magic-refused-dark.png")
    assert links.poll(one.handle).json()["error"] == "access_denied"
    page.open(one.url)
    assert page.evaluate("document.querySelector('form') === null") and result(page) != "Somebody asks to sign in as you"
    assert links.poll(one.handle).json()["error"] == "access_denied"
    assert links.redeem(one).json()["error"] == "invalid_grant"


def test_not_me_is_one_button(browser, served):
    """Its own button: nothing has to be typed, and no number counts as typed."""
    links, link = served
    one = link()
    page = Page(browser)
    page.open(one.url)
    page.click("button[value=deny]")
    assert result(page) == "Nobody was signed in"
    page.screenshot(PICTURES / "magic-not-me.png")
    assert links.poll(one.handle).json()["error"] == "access_denied"


def test_the_browser_itself_asks_for_two_digits(browser, served):
    """An empty or short field is not sent; what a browser lets through is asked for again on the page."""
    links, link = served
    one = link()
    page = Page(browser)
    page.open(one.url)
    page.send("Input.insertText", {"text": ""})
    page.click("form:first-of-type button")
    assert page.text("h1") == "Somebody asks to sign in as you"
    page.evaluate("document.querySelector('form').noValidate = true; document.querySelector('form').submit()")
    page.wait("document.querySelector('.fault') !== null && document.querySelector('.fault').innerText !== '' && document.readyState === 'complete'")
    page.screenshot(PICTURES / "magic-mistake.png")
    assert choose(page, one.number) == "Confirmed"
    assert links.poll(one.handle).status == 200


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_a_small_phone(browser, served, dark):
    """320 px wide, in both colour schemes: nothing to scroll sideways, enough contrast to read."""
    _, link = served
    page = Page(browser, width=320, height=640, dark=dark)
    page.open(link().url)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(PICTURES / f"magic-320-{'dark' if dark else 'light'}.png")


def test_the_page_works_by_keyboard_alone(browser, served):
    """Tab goes to the field, its button and "not me"; Enter in the field submits the number."""
    links, link = served
    one = link()
    page = Page(browser)
    page.open(one.url)
    order = []
    for _ in range(3):
        press(page, "Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
    assert order == ["number", "Sign in", "This was not me"]
    page.evaluate("document.querySelector('input.number').focus()")
    page.send("Input.insertText", {"text": one.number})
    press(page, "Enter", text="\r")
    page.expect("h1", "Confirmed")
    assert links.poll(one.handle).status == 200


def press(page, key, text=None):
    """One key."""
    code = {"Tab": 9, "Enter": 13}[key]
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", {
            "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, **({"text": text} if text and kind == "keyDown" else {})})


def test_the_page_names_its_parts_for_screen_readers(browser, served):
    """A heading, a labelled field, two buttons, a language."""
    _, link = served
    page = Page(browser)
    page.open(link().url)
    page.send("Accessibility.enable")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    assert ("heading", "Somebody asks to sign in as you") in named
    assert ("textbox", "If it was you, type the number that your app shows") in named
    assert [n[1] for n in named if n[0] == "button"] == ["Sign in", "This was not me"]
    assert page.evaluate("document.documentElement.lang") == "en"
