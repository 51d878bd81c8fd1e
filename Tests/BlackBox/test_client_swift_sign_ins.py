"""The Swift client library against a server: everything that signs in."""

import urllib.parse

import pytest

from harness import authenticator, totp, wire
from harness.approvals import Device, switch_on
from harness.codeflow import REDIRECT, hosted
from harness.links import Link, Links
from harness.pages_client import PageBrowser
from harness.possession import furnished, possession, signs_in
from harness.phones import new_number
from harness.swift_client import SwiftClient
from harness.swift_people import link_of, mailed, sign_in, walk, with_authenticator
from harness.trusted import with_devices


@pytest.fixture(name="where", scope="module")
def _where(realm):
    return realm.host, realm.client("app"), realm.world.node.port


@pytest.fixture(name="client")
def _client(where):
    """A client with a store in memory, signed out."""
    with SwiftClient(*where) as made:
        yield made


# -- codes ------------------------------------------------------------------------------------


def test_a_code_signs_in_and_binds_the_session(client, realm, email):
    user = sign_in(client, realm, email)
    assert user["methods"] == ["otp"] and user["level"] == "urn:postern:acr:1"
    assert client.wait_state("signedIn")["user"]["id"] == user["id"]
    assert client.call("accessToken")["type"] == "DPoP"
    assert [session["isBound"] for session in client.call("sessions")] == [True]


def test_a_code_is_sent_as_it_was_typed(client, realm, email):
    asked = client.call("requestCode", email=email)
    code = mailed(realm, email)
    assert client.fails("signIn", "misuse", request=asked, code="  ")
    assert client.fails("signIn", "wrongCode", request=asked, code=code[:5])
    full_width = "".join(chr(0xFF10 + int(digit)) for digit in code)
    assert client.call("signIn", request=asked, code=f" {full_width[:3]}-{full_width[3:]} ")["methods"] == ["otp"]
    asked = client.call("requestCode", email=email)
    assert client.requests("/connect/token") == 2
    assert client.call("pending") == [{"code": asked}]


def test_the_sixth_try_is_refused_like_the_first(client, realm, email):
    asked = client.call("requestCode", email=email)
    code = mailed(realm, email)
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    for _ in range(5):
        client.fails("signIn", "wrongCode", request=asked, code=wrong)
    client.fails("signIn", "wrongCode", request=asked, code=code)
    assert client.call("state")["case"] == "signedOut"


def test_a_second_factor_is_asked_for_and_the_code_stays_good(client, realm, app, email):
    secret, recovery = app.enrol_totp(app.sign_in(email)["access_token"])
    asked = client.call("requestCode", email=email)
    code = mailed(realm, email, 2)
    client.fails("signIn", "secondFactorNeeded", request=asked, code=code)
    client.fails("signIn", "secondFactorWrong", request=asked, code=code, totp=totp.wrong(secret))
    user = client.call("signIn", request=asked, code=code, totp=totp.code(secret))
    assert (user["methods"], user["level"]) == (["otp", "mfa"], "urn:postern:acr:2")
    assert sign_in(client, realm, email, recoveryCode=recovery[0])["level"] == "urn:postern:acr:2"


def test_a_code_is_typed_after_the_app_was_ended(where, realm, email, tmp_path):
    store = {"directory": str(tmp_path / "state")}
    with SwiftClient(*where, **store) as client:
        asked = client.call("requestCode", email=email)
        client.kill()
    with SwiftClient(*where, **store) as client:
        assert client.call("pending") == [{"code": asked}]
        client.call("signIn", request=asked, code=mailed(realm, email))
        assert client.call("pending") == []
        client.fails("signIn", "wrongCode", request=asked, code="123456")


def test_a_resend_keeps_the_request(client, realm, email):
    asked = client.call("requestCode", email=email)
    mailed(realm, email)
    again = client.call("resendCode", request=asked)
    assert again["id"] == asked["id"] and again["address"] == asked["address"]
    assert client.call("signIn", request=asked, code=mailed(realm, email, 2))["methods"] == ["otp"]


def test_inside_the_cooldown_the_same_request_comes_back_and_no_mail(world):
    realm = world.realm("cooldown", cooldown="60 seconds")
    email = realm.user()
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port) as client:
        asked = client.call("requestCode", email=email)
        code = mailed(realm, email)
        assert client.call("resendCode", request=asked) == asked
        assert len(realm.world.mailbox.to(email, "code")) == 1
        assert client.call("signIn", request=asked, code=code)["methods"] == ["otp"]


def test_what_is_no_address_is_refused_once(client):
    assert client.fails("requestCode", "refused", email="no-at")["code"] == "Email is invalid."
    assert client.fails("requestCode", "refused", phone="123")["code"] == "Phone is invalid."
    assert client.requests("/api/account/native/otp/request") == 2
    assert client.call("pending") == []


def test_a_limit_says_how_long(world):
    realm = world.realm("limited")
    realm.limit("native-otp", "target", 1, per="1 hour")
    email = realm.user()
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port) as client:
        client.call("requestCode", email=email)
        assert 3000 < client.fails("requestCode", "rateLimited", email=email)["retryAfter"] <= 3600


def test_a_registration_asks_for_names_and_stores_them(realm):
    host = realm.put_app("swift-shop", ("app",), registration="JitOnOtp")
    realm.world.admin.call("set_registration_fields", realm.slug, firstname="Required", lastname="Optional", app="swift-shop")
    realm.world.settle()
    email = realm.new_email()
    try:
        with SwiftClient(host, realm.client("app"), realm.world.node.port) as client:
            info = client.call("appInfo")
            assert (info["registration"], info["firstName"], info["lastName"]) == ("JitOnOtp", "Required", "Optional")
            assert client.fails("requestCode", "namesNeeded", email=email)["names"] == ["Firstname"]
            asked = client.call("requestCode", email=email, first="Nora", last="Noor")
            user = client.call("signIn", request=asked, code=mailed(realm, email))
            account = client.call("account")
            assert (account["id"], account["firstName"], account["lastName"]) == (user["id"], "Nora", "Noor")
    finally:
        realm.world.admin.call("delete_app", realm.slug, "swift-shop")
        realm.world.settle()


def test_a_person_registers_where_it_is_asked_for(realm):
    host = realm.put_app("swift-club", ("app",), registration="ExplicitEndpoint")
    email = realm.new_email()
    try:
        with SwiftClient(host, realm.client("app"), realm.world.node.port) as client:
            assert client.call("appInfo")["registration"] == "ExplicitEndpoint"
            assert client.fails("register", "refused", email="no-at")["code"] == "Email is invalid."
            asked = client.call("register", email=email, first="Nora")
            mailed(realm, email)
            assert client.call("resendCode", request=asked)["id"] == asked["id"]
            user = client.call("signIn", request=asked, code=mailed(realm, email, 2))
            assert client.call("account")["id"] == user["id"]
    finally:
        realm.world.admin.call("delete_app", realm.slug, "swift-club")
        realm.world.settle()


# -- links ------------------------------------------------------------------------------------


def test_a_link_that_is_confirmed_elsewhere_ends_the_waiting(client, realm, app, email):
    pending = client.call("requestLink", email=email)
    link = link_of(realm, pending, email)
    assert Links(app).choose(link, link.number).status == 200
    assert client.call("wait", request=pending)["methods"] == ["otp"]
    assert client.call("pending") == []


def test_a_wrong_number_is_denied(client, realm, app, email):
    pending = client.call("requestLink", email=email)
    link = link_of(realm, pending, email)
    Links(app).choose(link, Links.wrong(link))
    client.fails("wait", "denied", request=pending)
    client.fails("wait", "expired", request=pending)


def test_a_link_whose_account_has_a_second_factor_waits_again_with_it(client, realm, app, email):
    secret, _ = app.enrol_totp(app.sign_in(email)["access_token"])
    pending = client.call("requestLink", email=email)
    link = link_of(realm, pending, email)
    Links(app).choose(link, link.number)
    client.fails("wait", "secondFactorNeeded", request=pending)
    assert client.call("wait", request=pending, totp=totp.code(secret))["level"] == "urn:postern:acr:2"


def test_an_own_link_signs_in_where_it_is_opened(client, realm, email):
    first = client.call("requestLink", email=email)
    url = link_of(realm, first, email).url
    client.call("requestLink", email=realm.user())
    for other in (
        url.replace("/magic-login", "/magic-login/x"), url.replace(realm.host, "evil.example"),
        url.replace("https:", "http:"), url + "&userId=" + Link("", "", "", url).user_id,
    ):
        assert client.call("openLink", url=other) is None
    assert client.call("openLink", url=url)["methods"] == ["otp"]


def test_a_foreign_link_opens_no_session_and_still_works_where_it_was_asked(where, client, realm, email):
    with SwiftClient(*where) as attacker:
        pending = attacker.call("requestLink", email=email)
        url = link_of(realm, pending, email).url
        client.fails("openLink", "foreignLink", url=url)
        own = realm.user()
        asked = client.call("requestLink", email=own)
        client.fails("openLink", "foreignLink", url=url)
        assert client.call("state")["case"] == "signedOut"
        assert attacker.call("openLink", url=url)["methods"] == ["otp"]
        assert client.call("openLink", url=link_of(realm, asked, own).url)["methods"] == ["otp"]


def test_a_request_that_is_forgotten_ends(client, realm, email):
    pending = client.call("requestLink", email=email)
    waiting = client.start("wait", request=pending)
    client.call("forget", request=pending)
    assert client.call("pending") == []
    with pytest.raises(Exception, match="cancelled|expired"):
        waiting.result(10)


# -- passkeys ---------------------------------------------------------------------------------


def test_a_passkey_is_added_and_signs_in(client, realm, email):
    sign_in(client, realm, email)
    with_authenticator(client)
    added = client.call("addPasskey", name="Ada’s phone")
    client.call("signOut")
    user = client.call("signInWithPasskey")
    assert user["level"] == "phr"
    assert [(passkey["id"], passkey["name"], passkey["rpID"]) for passkey in client.call("passkeys")] == [
        (added, "Ada’s phone", realm.host)]


def test_what_a_dialog_gives_is_told_apart(client, realm, email):
    sign_in(client, realm, email)
    kept = with_authenticator(client)
    client.call("addPasskey")
    client.person["get"] = lambda _: None
    client.fails("signInWithPasskey", "cancelled")
    client.person["get"] = lambda _: "no JSON"
    client.fails("signInWithPasskey", "misuse")
    client.person["get"] = lambda options: authenticator.assertion({**options, "challenge": "AAAA"}, kept[0])
    assert client.fails("signInWithPasskey", "refused")["code"] == "invalid_grant"
    with_authenticator(client)[:] = kept
    assert client.call("signInWithPasskey")["level"] == "phr"


# -- pages ------------------------------------------------------------------------------------


@pytest.fixture(name="pages", scope="module")
def _pages(realm):
    hosted(realm)
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("app"), "http://127.0.0.1/signed-in")
    realm.world.settle()
    return realm


@pytest.fixture(name="paged")
def _paged(pages, where):
    with SwiftClient(*where, redirect=REDIRECT, scopes=["openid", "offline_access", "email"]) as made:
        yield made


def test_the_pages_sign_in(paged, pages, email):
    paged.person["page"] = walk(pages, email)
    assert paged.call("signInOnPages")["methods"] == ["otp"]
    assert paged.call("account")["email"] == email
    assert paged.call("accessToken")["type"] == "DPoP"


def test_an_answer_of_another_sign_in_is_refused(paged, pages, email):
    def with_member(name, value):
        def change(url):
            parts = urllib.parse.urlsplit(url)
            members = {**dict(urllib.parse.parse_qsl(parts.query)), name: value}
            return parts._replace(query=urllib.parse.urlencode(members)).geturl()
        return change

    for change in (
        with_member("state", "other"), with_member("iss", "https://other.example"), lambda url: url + "&code=again",
        lambda url: url.replace("app.a.example", "app.b.example"),
    ):
        paged.person["page"] = walk(pages, email, change)
        assert paged.fails("signInOnPages", "refused")["code"] == "invalid_response"
    assert paged.requests("/connect/token") == 0
    paged.person["page"] = lambda _: None
    paged.fails("signInOnPages", "cancelled")


def test_a_person_who_cancels_on_the_page_is_told_so(paged, pages):
    def cancels(page):
        browser = PageBrowser(pages.world.node, pages.host)
        parts = urllib.parse.urlsplit(page)
        return browser.open(f"{parts.path}?{parts.query}").submit("cancel").left_for
    paged.person["page"] = cancels
    paged.fails("signInOnPages", "denied")


def test_the_browser_comes_back_to_a_port_of_this_device(pages, where, email):
    with SwiftClient(*where, redirect="http://127.0.0.1/signed-in") as client:
        signing_in = client.start("signInOnPages", loopback=True)
        page = client.event("show")["page"]
        port = urllib.parse.urlsplit(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))["redirect_uri"]).port
        home = {"Host": f"127.0.0.1:{port}"}
        state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))["state"]
        for target, fields in (
            ("/signed-in", home), (f"/other?state={state}", home), ("/signed-in?state=x&code=c", home),
            (f"/signed-in?state={state}", {"Host": "evil.example"}), (f"/signed-in?state={state}", {"Host": "127.0.0.1:1"}),
        ):
            assert wire.exchange(port, "GET", target, fields).status == 404
        back = urllib.parse.urlsplit(walk(pages, email)(page))
        assert wire.exchange(port, "GET", f"{back.path}?{back.query}", {"Host": back.netloc}).status == 200
        assert signing_in.result(30)["methods"] == ["otp"]


# -- approvals, trusted devices ---------------------------------------------------------------


@pytest.fixture(name="approving", scope="module")
def _approving(realm):
    with_devices(realm, public_clients=True)
    switch_on(realm, "app", "app-2", "api", public_clients=True)
    return realm


def test_an_approval_signs_in_with_the_number(client, approving, email):
    device = Device(approving.app(), approving, email)
    pending = client.call("requestApproval", hint=email)
    item = device.item(approving.client("app"))
    assert device.answer(item, number=pending["matchNumber"]).status == 200
    user = client.call("wait", request=pending)
    assert user["methods"] == ["pop", "mca"]


def test_a_trusted_device_answers_and_signs_in_by_itself(where, client, approving, email):
    sign_in(client, approving, email)
    info = client.call("enrolDevice", name="Ada’s phone")
    assert client.call("enrolDevice")["id"] == info["id"] and info["probationUntil"] is None
    assert client.call("device")["name"] == "Ada’s phone"
    assert client.call("updateDevice", name="Ada’s old phone")["name"] == "Ada’s old phone"
    with SwiftClient(*where) as asking:
        pending = asking.call("requestApproval", hint=email)
        (approval,) = client.call("inbox")
        assert (approval["event"], approval["needsNumber"]) == ("LOGIN", True)
        client.call("answerApproval", target=approval["id"], number=f" {pending['matchNumber']} ")
        client.call("answerApproval", target=approval["id"], number=pending["matchNumber"])
        assert client.fails("answerApproval", "refused", target=approval["id"], decision="deny")["code"] == "already_decided"
        asking.call("wait", request=pending)
    client.call("signOut")
    assert client.call("signInAsTrustedDevice")["methods"] == ["pop"]
    client.call("removeDevice")
    assert client.call("device") is None
    client.call("signOut")
    assert client.fails("signInAsTrustedDevice", "refused")["code"] == "invalid_grant"
    assert client.fails("inbox", "refused")


def test_a_wrong_number_ends_the_request(where, client, approving, email):
    sign_in(client, approving, email)
    client.call("enrolDevice")
    with SwiftClient(*where) as asking:
        pending = asking.call("requestApproval", hint=email)
        (approval,) = client.call("inbox")
        wrong = str(10 + (int(pending["matchNumber"]) - 10 + 45) % 90)
        client.fails("answerApproval", "denied", target=approval["id"], number=wrong)
        asking.fails("wait", "denied", request=pending)


@pytest.mark.parametrize("decision", ["deny", "report"])
def test_a_person_who_did_not_ask_says_no(where, client, approving, email, decision):
    sign_in(client, approving, email)
    client.call("enrolDevice")
    with SwiftClient(*where) as asking:
        pending = asking.call("requestApproval", hint=email)
        (approval,) = client.call("inbox")
        client.fails("answerApproval", "misuse", target=approval["id"])
        client.call("answerApproval", target=approval["id"], decision=decision)
        assert (client.call("inboxNow")["quietUntil"] is not None) == (decision == "report")
        asking.fails("wait", "denied", request=pending)


def test_a_bearer_session_has_a_trusted_device_too(where, approving, email):
    with SwiftClient(*where, key="none") as client:
        sign_in(client, approving, email)
        assert client.call("accessToken")["type"] == "Bearer"
        client.call("enrolDevice")
        client.call("signOut")
        assert client.call("signInAsTrustedDevice")["methods"] == ["pop"]
        assert client.call("account")["email"] == email
        # The session is bound to the key of the device, and its refreshes prove it.
        assert client.call("accessToken", audience=["openid"])["type"] == "DPoP"


def test_a_new_device_is_adopted_by_its_picture_and_digits(where, client, approving, email):
    sign_in(client, approving, email)
    client.call("enrolDevice")
    with SwiftClient(*where) as new:
        offer = new.call("offerDevice", name="Laptop")
        asked = []
        client.person["digits"] = lambda value: asked.append(value["name"]) or offer["checkCode"]
        assert client.call("adoptDevice", qrText=offer["qrText"])["name"] == "Laptop"
        assert asked == ["Laptop"]
        assert new.call("device")["probationUntil"] is not None
        other = new.call("offerDevice")["qrText"]
        client.person["digits"] = lambda _: "0000"
        assert client.fails("adoptDevice", "refused", qrText=other)["code"] == "invalid_offer"
        assert client.fails("adoptDevice", "refused", qrText=other.replace(approving.host, "evil.example"))["code"] == "invalid_offer"
        client.person["digits"] = lambda _: None
        client.fails("adoptDevice", "cancelled", qrText=other)


def test_the_inbox_is_read_by_several_with_one_call_at_a_time(client, approving, email):
    sign_in(client, approving, email)
    client.call("enrolDevice")
    assert client.requests("/connect/approvals") == 0
    readers = [client.start("inboxNow") for _ in range(2)]
    assert [reader.result(10)["approvals"] for reader in readers] == [[], []]
    assert client.requests("/connect/approvals") <= 1 + len(client.logged("nonce"))


# -- possession -------------------------------------------------------------------------------


@pytest.fixture(name="proving", scope="module")
def _proving(world):
    made = signs_in(furnished(possession(world.realm("swiftproof"))))
    yield made
    made.phones.close()


@pytest.fixture(name="prover")
def _prover(proving):
    with SwiftClient(proving.host, proving.client("app"), proving.world.node.port) as made:
        yield made


def test_a_code_proves_a_number_and_signs_in(prover, proving):
    number = new_number()
    proving.world.admin.call("put_user", proving.slug, number, first_name="Ada")
    started = proving.srv.unify(number, allowOTPRetry=True)
    status = prover.call("possession", authToken=started.authToken)
    assert (status["step"], status["channels"], status["needsNumber"]) == ("open", ["otp"], False)
    status = prover.call("possessionSend", channel="otp")
    assert status["step"] == "sent" and status["maskedNumber"].endswith(number[-4:])
    code = proving.phones.wait(number)["code"]
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    assert prover.fails("possessionCheck", "refused", code=wrong)["code"] == "otp_invalid"
    assert prover.call("possessionStatus")["triesLeft"] == 2
    assert prover.call("possessionCheck", code=f" {code} ")["step"] == "passed"
    assert prover.call("possessionWait")["step"] == "passed"
    assert prover.call("signInWithPossession")["methods"] == ["otp", "sms"]
    assert prover.call("possessionStatus")["step"] == "redeemed"


def test_a_link_on_this_phone_leads_back_to_the_app(prover, proving):
    number = new_number()
    started = proving.srv.unify(number, finalTargetUrl="https://app.example/done")
    prover.call("possession", authToken=started.authToken)
    prover.call("possessionSend", channel="link")
    waiting = prover.start("possessionWait")
    path = urllib.parse.urlsplit(proving.phones.wait(number)["link"]).path
    headers = {"Content-Type": wire.FORM, "Origin": proving.issuer, "Sec-Fetch-Site": "same-origin"}
    returned = proving.app().exchange("POST", path, headers, wire.form_body({"action": "continue"})).header("location")
    forged = returned.replace("pc=", "pc=AA")
    assert prover.fails("possessionFinish", "refused", url=forged)["code"] == "redirect_unknown"
    assert prover.call("possessionFinish", url=returned)["step"] == "passed"
    assert waiting.result(30)["step"] == "passed"


def test_a_check_that_is_given_up_has_failed(prover, proving):
    started = proving.srv.unify(new_number())
    prover.call("possession", authToken=started.authToken)
    assert prover.call("possessionCancel")["step"] == "failed"
    assert prover.fails("possessionSend", "refused", channel="otp")["code"] == "transaction_over"
    assert prover.fails("possession", "refused", authToken="no token")


# -- step-up ----------------------------------------------------------------------------------


def test_a_step_up_by_code_makes_the_sign_in_new_and_leaves_one_session(client, realm, email):
    sign_in(client, realm, email)
    user = client.call("state")["user"]
    age(realm, user["sessionID"])
    challenge = client.fails("addPasskey", "stepUpNeeded")
    assert challenge["maxAge"] == 600
    asked = client.call("requestCode", email=email)
    again = client.call(
        "stepUp", by="code", request=asked, code=mailed(realm, email, 2), levels=challenge["levels"], maxAge=challenge["maxAge"])
    assert again["id"] == user["id"] and again["sessionID"] != user["sessionID"]
    with_authenticator(client)
    client.call("addPasskey")
    assert [session["id"] for session in client.call("sessions")] == [again["sessionID"]]


def age(realm, session):
    """The sign-in of a session was eleven minutes ago."""
    realm.world.cluster.sql(f"UPDATE postern.session SET auth_time = auth_time - interval '11 minutes' WHERE id = '{session}'")


def test_a_step_up_by_passkey_reaches_the_level_that_an_api_wants(client, realm, email):
    sign_in(client, realm, email)
    with_authenticator(client)
    client.call("addPasskey")
    assert client.call("stepUp", levels=["phr", "urn:postern:acr:2"])["level"] == "phr"


def test_a_step_up_as_somebody_else_leaves_the_session_and_revokes_the_other(client, realm, app, email):
    sign_in(client, realm, email)
    user = client.call("state")["user"]
    other = realm.user()
    asked = client.call("requestCode", email=other)
    error = client.fails("stepUp", "refused", by="code", request=asked, code=mailed(realm, other), maxAge=600)
    assert error["code"] == "different_user"
    assert client.call("state")["user"]["sessionID"] == user["sessionID"]
    client.call("sessions")
    sub = app.sign_in(other)
    listed = app.get("/connect/sessions", {"Authorization": f"Bearer {sub['access_token']}"}).json()
    assert len(listed) == 1
