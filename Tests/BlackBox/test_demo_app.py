"""The demo app in Chromium: every button."""

import json
import re

import pytest

from harness import settings, totp
from harness.demo_app import FOLDER, DemoTab, demo_app, own_browser, own_user  # pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow


def test_a_code_signs_in_and_a_reload_is_signed_in(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    assert tab.text("#name") == "Hello, Ada"
    assert tab.text("#facts") == "Signed in by otp, bound to a key of this browser."
    tab.visit(app)
    tab.view("in")
    tab.press("signOut")
    tab.view("out")
    tab.says("You are signed out.")
    tab.silent()


def test_a_link_with_its_number_signs_in(app, browser, email):
    tab, mail = DemoTab(browser).visit(app), DemoTab(browser)
    tab.ask(email, "requestLink")
    tab.view("link")
    number = tab.text("#number")
    mail.open(app.mail(email, "link").link)
    mail.type("input[name=number]", number)
    mail.click("button.primary")
    tab.view("in")
    tab.silent("400")  # the polls before


def test_a_double_click_sends_one_mail(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.fill("#email", email)
    before = len(app.proxy.calls("/api/account/native/otp/request"))
    tab.evaluate("for (let at = 0; at < 3; at++) document.querySelector('#ask .primary').click()")
    tab.view("code")
    assert app.proxy.calls("/api/account/native/otp/request")[before:] == [200]


def test_what_was_asked_for_outlives_a_reload_and_can_be_given_up(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.ask(email)
    tab.view("code")
    tab.visit(app)
    tab.view("code")
    assert tab.text("#address") == email
    tab.press("resend")
    tab.says("mail is on its way")
    tab.redeem("000000")
    tab.says("This code is wrong or too old.")
    tab.press("back")
    tab.view("out")
    tab.visit(app)
    tab.view("out")
    tab.silent("400")


def test_a_passkey_is_added_and_signs_in_by_button_and_by_the_form(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("addPasskey")
    tab.says("The passkey was added.")
    tab.press("addPasskey")
    tab.says("This device has a passkey of yours.")
    tab.touch(False)
    tab.press("signOut")
    tab.view("out")
    tab.touch(True)
    tab.visit(app)
    tab.view("in")
    assert "Signed in by" in tab.text("#facts")
    tab.touch(False)
    tab.press("signOut")
    tab.view("out")
    tab.touch(True)
    tab.press("passkey")
    tab.view("in")
    tab.click("#passkey button")
    tab.says("Removed.")
    assert tab.text("#passkey") == ""
    tab.silent()


def test_a_passkey_that_is_not_chosen_is_said_once_and_asked_for_again(app, browser, email):
    """Where the browser has no passkeys in its lists, the button still works."""
    tab = DemoTab(browser)
    tab.send("Page.addScriptToEvaluateOnNewDocument", {"source": "PublicKeyCredential.isConditionalMediationAvailable = async () => false"})
    tab.visit(app)
    tab.sign_in(app, email)
    tab.press("addPasskey")
    tab.says("The passkey was added.")
    tab.press("signOut")
    tab.view("out")
    tab.send("WebAuthn.setUserVerified", {"authenticatorId": tab.authenticator, "isUserVerified": False})
    tab.press("passkey")
    tab.says("Nothing was chosen.")
    tab.send("WebAuthn.setUserVerified", {"authenticatorId": tab.authenticator, "isUserVerified": True})
    tab.press("passkey")
    tab.view("in")
    tab.silent()


def test_an_authenticator_app_is_set_up_asked_for_and_turned_off(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    secret = tab.begin_totp()
    assert tab.evaluate("document.querySelector('#uri').href").startswith("otpauth://totp/")
    tab.fill("#first", totp.wrong(secret))
    tab.click("#enroll .primary")
    tab.says("That failed: ")
    tab.fill("#first", totp.code(secret))
    tab.click("#enroll .primary")
    tab.says("The authenticator app will be asked for.")
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    tab.press("signOut")
    tab.view("out")
    before = app.mails(email, "code")
    tab.ask(email)
    tab.redeem(app.mail(email, "code", before).code)
    tab.view("factor")
    tab.fill("#second", totp.wrong(secret))
    tab.click("#confirm .primary")
    tab.says("This code is wrong or used.")
    tab.fill("#second", recovery)
    tab.click("#confirm .primary")
    tab.view("in")
    assert tab.text("#recovery") == "" and tab.evaluate("document.querySelector('#secret').textContent") == ""
    tab.press("endTotp")
    tab.says("not asked for any more")
    tab.silent("400")


def test_a_link_asks_for_the_second_factor_too(app, browser, email):
    tab, mail = DemoTab(browser).visit(app), DemoTab(browser)
    tab.sign_in(app, email)
    secret = tab.begin_totp()
    tab.fill("#first", totp.code(secret))
    tab.click("#enroll .primary")
    tab.says("The authenticator app will be asked for.")
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    tab.press("signOut")
    tab.view("out")
    tab.ask(email, "requestLink")
    tab.view("link")
    number = tab.text("#number")
    mail.open(app.mail(email, "link").link)
    mail.type("input[name=number]", number)
    mail.click("button.primary")
    tab.view("factor", timeout=20)
    tab.fill("#second", recovery)
    tab.click("#confirm .primary")
    tab.view("in")


def test_the_sign_in_page_signs_in_and_out(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in_by_pages(app, email)
    tab.press("signOutPages")
    tab.wait(f"location.href === {json.dumps(app.origin + '/')}")
    tab.view("out")
    tab.press("pages")
    tab.wait(f"location.origin === {json.dumps(app.server)} && document.querySelector('input') !== null")
    tab.silent()


def test_a_trusted_browser_signs_in_by_itself_until_it_is_forgotten(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("trust")
    tab.says("This browser can sign you in by itself.")
    tab.press("signOut")
    tab.view("out")
    tab.press("device")
    tab.view("in")
    tab.press("forget")
    tab.view("out")
    assert tab.evaluate("document.querySelector('#device').hidden")
    tab.visit(app)
    assert tab.evaluate("document.querySelector('#device').hidden")
    tab.silent("400", "401")  # the first answers of the server have the nonce


def test_after_ten_minutes_a_new_code_is_asked_for_and_the_work_goes_on(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    for button, says in (("addPasskey", "The passkey was added."), ("trust", "This browser can sign you in by itself.")):
        app.world.cluster.sql("UPDATE postern.session SET auth_time = auth_time - interval '11 minutes'")
        before = app.mails(email, "code")
        tab.press(button)
        tab.view("code")
        tab.says("This needs a sign-in of the last ten minutes.")
        tab.redeem(app.mail(email, "code", before).code)
        tab.says(says)
        tab.view("in")
    app.world.cluster.sql("UPDATE postern.session SET auth_time = auth_time - interval '11 minutes'")
    tab.press("beginTotp")
    tab.view("code")
    tab.press("back")
    tab.view("in")
    tab.silent("400", "401")


def test_each_code_of_an_error_has_a_text():
    """But for the one that is answered by asking for the second factor."""
    declared = (settings.REPOSITORY / "clients/js/client.d.ts").read_text(encoding="utf-8")
    codes = set(re.findall(r'"(\w+)"', declared.split("type ErrorCode =")[1].split(";")[0]))
    reasons = set(re.findall(r'"(\w+)"', declared.split("signedIn: false; reason:")[1].split("}")[0]))
    assert len(codes) > 10 and len(reasons) > 2
    texts = (FOLDER / "app.js").read_text(encoding="utf-8").split("const TEXTS = {")[1].split("};")[0]
    said = set(re.findall(r"(\w+): \"", texts))
    assert codes - {"second_factor_needed", "signed_out"} <= said and reasons - {"never"} <= said
