"""Proof of a phone number in Chromium, by /sdk/v1/postern.js with the steps of the field, on Prove's calls."""

import json
import re
import types

import pytest

from harness.app import bearer
from harness.browser import chromium
from harness.module_site import LINK, OTP, Visitor, until
from harness.phones import Phones, new_number
from harness.realm import call
from test_browser_module import OUTPUT, Served, laptop, phone  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.slow


class Backend(Served):
    """The realm of the module, with possession and a backend."""

    def __init__(self, world):
        super().__init__(world)
        admin = world.admin
        admin.run(
            call("set_possession", "browser", True, resend_cooldown="0"),
            call("put_client", "browser", "prove", "confidential"),
            call("put_service_account", "browser", "prove", "prove"),
            call("grant_permission", "browser", "prove", variadic=["gt:client_credentials", "ept:possession", "cap:assert-possession"]),
            call("put_web_origin", "browser", "prove", self.site.origin),
            call("put_possession_client", "browser", "prove", phone_change=True),
        )
        self.secret = admin.call("rotate_client_secret", "browser", "prove")
        self.phones = Phones(types.SimpleNamespace(
            world=world, slug="browser", client=lambda _: "module-app",
            limit=lambda policy, dimension, permits, per="1 hour", burst=None: admin.call(
                "set_rate_limit", "browser", policy, dimension, permits, per, burst=burst)))
        world.settle()
        answer = self.app.post("/token", {"grant_type": "client_credentials", "client_id": "prove", "client_secret": self.secret})
        assert answer.status == 200, answer
        self.token = answer.json()["access_token"]

    def call(self, name, **members):
        """One of Prove's calls."""
        answer = self.app.post_json(f"/v3/{name}", members, bearer(self.token))
        assert answer.status == 200, answer
        return answer.json()

    def unify(self, kind="mobile", number=None, **members):
        """A transaction: authToken, and a function that asks for its status."""
        made = self.call("unify", possessionType=kind, **({"phoneNumber": number} if number else {}), **members)
        return made["authToken"], lambda: self.call("unify-status", correlationId=made["correlationId"])

    def code(self, number, count=1):
        """The code of the newest of so many messages."""
        return re.search(r"\b\d{6}\b", json.dumps(self.phones.wait(number, count)))[0]

    def link(self, number, count=1):
        """The link of the newest of so many messages."""
        return re.search(r"https?://[^\s\"\\]+/p/[\w-]+", json.dumps(self.phones.wait(number, count)))[0]


@pytest.fixture(scope="module")
def backend(browser_world):
    """The realm."""
    made = Backend(browser_world)
    yield made
    made.phones.close()
    made.close()


@pytest.fixture
def fresh():
    """A browser without a key."""
    with chromium(OUTPUT / "fresh.log") as browser:
        yield browser


def test_a_code_is_asked_for_resent_changed_and_checked(backend, fresh):
    """The steps of the field: number needed, refused, resend (1), change (2), a wrong code, the right one."""
    first, second = new_number(), new_number()
    token, status = backend.unify(allowOTPRetry=True)
    page = Visitor(fresh).visit(backend.site)
    page.begin(OTP, token)
    assert page.asked("start") == [True, None]
    page.answer("start", {"phoneNumber": "12"})
    assert page.asked("start")[1]["code"] == "phone_number_invalid"
    page.answer("start", {"phoneNumber": first})
    backend.code(first)
    page.answer("code", {"resultType": 1})
    old = backend.code(first, 2)
    page.answer("code", {"resultType": 2})
    assert page.asked("start") == [True, None]
    page.answer("start", {"phoneNumber": second})
    right = backend.code(second)
    assert right != old or pytest.skip("the same code twice")
    page.type_code("000000" if right != "000000" else "000001")
    until(lambda: (page.asked("code")[0] or {}).get("code") == "otp_invalid", "no word of the wrong code")
    assert page.asked("code")[0]["triesLeft"] == 2 and status()["success"] == "pending"
    page.type_code(f" {right} ")
    assert page.outcome()["value"]["state"] == "passed"
    result = status()
    assert result["success"] == "true" and result["phoneNumber"] == second and result["deviceId"], result
    assert [set(told) for told in page.shown("finish")] == [{"authId"}]

    # The second time the key proves it, and nothing is sent.
    token, status = backend.unify(number=second)
    page.begin(OTP, token)
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"
    assert len(backend.phones.to(second)) == 1


def test_a_person_who_closes_the_step_ends_it(backend, fresh):
    """`cancel` is sent, `authenticate` rejects with the reason, the backend reads "false"."""
    number = new_number()
    token, status = backend.unify(number=number)
    page = Visitor(fresh).visit(backend.site)
    page.begin(OTP, token)
    page.answer("start", "closed by the person", how="reject")
    assert page.outcome() == {"error": "closed by the person"}
    assert status()["success"] == "false" and backend.phones.to(number) == []


def test_the_last_wrong_code_fails_and_the_backend_is_asked(backend, fresh):
    """The finish step runs, then `authenticate` rejects."""
    number = new_number()
    token, status = backend.unify(number=number)
    page = Visitor(fresh).visit(backend.site)
    page.begin(OTP, token)
    page.answer("start", None)
    right = backend.code(number)
    page.type_code("000000" if right != "000000" else "000001")
    assert page.outcome() == {"error": "possession_failed"}
    assert status()["success"] == "false" and len(page.shown("finish")) == 1


@pytest.mark.parametrize("is_right", [True, False])
def test_a_code_whose_answer_is_lost_is_not_sent_again(backend, fresh, is_right):
    """The module asks for the state and reports it: one try for each request that arrived, also if the browser repeats it."""
    number = new_number()
    token, _ = backend.unify(number=number, allowOTPRetry=True)
    page = Visitor(fresh).visit(backend.site)
    page.begin(OTP, token)
    page.answer("start", None)
    right = backend.code(number)
    backend.proxy.requests.clear()
    backend.proxy.drop("/connect/possession/check", 2)
    page.type_code(right if is_right else ("000000" if right != "000000" else "000001"))
    if is_right:
        assert page.outcome()["value"]["state"] == "passed"
    else:
        until(lambda: (page.asked("code")[0] or {}).get("code") == "network", "no word of the lost answer")
        backend.proxy.drop("/connect/possession/check", 0)
        page.type_code(right)
        assert page.outcome()["value"]["state"] == "passed"
    checks = backend.proxy.calls("/connect/possession/check")
    assert [status for status in checks if status != 401] == ([200] if is_right else [400, 200]), checks
    assert backend.proxy.calls("/connect/possession/result") == [200]


def test_a_desktop_passes_when_the_number_is_typed_on_the_phone(backend, fresh, phone):  # noqa: F811
    """Two profiles. The desktop hears of it within two seconds."""
    number = new_number()
    token, status = backend.unify("desktop", number, finalTargetUrl=backend.site.origin + "/done")
    page = Visitor(fresh).visit(backend.site)
    page.begin(LINK, token)
    page.answer("start", None)
    backend.link(number)
    page.answer("retry", 1)
    link = backend.link(number, 2)
    until(lambda: len(page.shown("number")) == 2, "no second number")
    other = Visitor(phone)
    other.open(link)
    other.type("input[name=number]", page.shown("number")[-1])
    other.click("button.primary")
    page.wait("window.outcome !== undefined", timeout=2 + 10)
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"
    other.wait("location.pathname === '/done'")
    assert "asc=true" in other.evaluate("location.search")


def test_a_mobile_link_comes_back_in_a_new_tab_of_the_same_browser_alone(backend, fresh, phone):  # noqa: F811
    """`finishInstantLink` on the page that the link led to; the tab that waits goes on. Elsewhere it is worth nothing."""
    number = new_number()
    token, status = backend.unify("mobile", number, finalTargetUrl=backend.site.origin + "/done")
    page = Visitor(fresh).visit(backend.site)
    page.begin(LINK, token)
    page.answer("start", None)
    tab = Visitor(fresh)
    tab.open(backend.link(number))
    tab.click("button.primary")
    tab.wait("location.pathname === '/done' && window.postern !== undefined")
    returned = tab.evaluate("location.href")
    finish = "new postern.AuthenticatorBuilder().build().finishInstantLink(%s).then(value => value.state, error => error.code)"
    other = Visitor(phone).visit(backend.site)
    assert other.evaluate(finish % json.dumps(returned)) == "redirect_unknown"
    for address in (returned.split("?")[0], returned + "&authId=1"):
        assert tab.evaluate(finish % json.dumps(address)) == "redirect_invalid"
    assert status()["success"] == "pending"
    assert tab.evaluate(finish % "location.href") == "passed"
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"
    assert len(page.shown("finish")) == 1


def test_a_retry_step_that_asks_for_nothing_sends_nothing(backend, fresh, phone):  # noqa: F811
    """It resolves with nothing, and is not asked again: the page waits for the link that was sent."""
    number = new_number()
    token, status = backend.unify("desktop", number, finalTargetUrl=backend.site.origin + "/done")
    page = Visitor(fresh).visit(backend.site)
    backend.proxy.requests.clear()
    page.begin("""builder => builder.withInstantLinkFallback(step('start'), async () => { log.push(['retry']); })
        .withMatchNumber(({ matchNumber }) => { log.push(['number', matchNumber]); }).withRole('secondary')""", token)
    page.answer("start", None)
    link = backend.link(number)
    other = Visitor(phone)
    other.open(link)
    other.type("input[name=number]", page.shown("number")[-1])
    other.click("button.primary")
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"
    assert backend.proxy.calls("/connect/possession/send") == [200] and len(page.shown("retry")) == 1
    assert len(backend.phones.to(number)) == 1


@pytest.fixture
def unhurried(backend):
    """A realm whose cooldown is long enough to be met and short enough to be waited for."""
    backend.world.admin.call("set_possession", "browser", True, resend_cooldown="4 seconds")
    backend.world.settle()
    yield backend
    backend.world.admin.call("set_possession", "browser", True, resend_cooldown="0")
    backend.world.settle()


def test_a_reload_within_the_cooldown_waits_and_ends_nothing(unhurried, fresh, phone):  # noqa: F811
    """The page that begins again asks for a link once the server takes it; the transaction goes on."""
    number = new_number()
    token, status = unhurried.unify("desktop", number, finalTargetUrl=unhurried.site.origin + "/done")
    page = Visitor(fresh).visit(unhurried.site)
    page.begin(LINK, token)
    page.answer("start", None)
    unhurried.link(number)
    page.visit(unhurried.site)
    page.begin(LINK, token)
    page.answer("start", None)
    unhurried.proxy.requests.clear()
    link = unhurried.link(number, 2)
    until(lambda: page.shown("number"), "no number")
    assert status()["success"] == "pending" and len(page.shown("start")) == 1, "the person agreed once"
    assert unhurried.proxy.calls("/connect/possession/send") in ([200], [400, 200])
    other = Visitor(phone)
    other.open(link)
    other.type("input[name=number]", page.shown("number")[-1])
    other.click("button.primary")
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"


def test_the_link_of_before_a_reload_still_ends_the_transaction(unhurried, fresh, phone):  # noqa: F811
    """While the page waits for the cooldown, the link that is on the phone is opened."""
    number = new_number()
    token, status = unhurried.unify("desktop", number, finalTargetUrl=unhurried.site.origin + "/done")
    page = Visitor(fresh).visit(unhurried.site)
    page.begin(LINK, token)
    page.answer("start", None)
    link = unhurried.link(number)
    shown = until(lambda: page.shown("number"), "no number")[-1]
    page.visit(unhurried.site)
    page.begin(LINK, token)
    page.answer("start", None)
    other = Visitor(phone)
    other.open(link)
    other.type("input[name=number]", shown)
    other.click("button.primary")
    assert page.outcome()["value"]["state"] == "passed" and status()["success"] == "true"
    assert len(unhurried.phones.to(number)) == 1


def test_a_step_that_changes_the_number_too_soon_hears_of_it(unhurried, fresh):
    """The step that gave the number is told how long to wait, and the number that it gives again is used."""
    first, second = new_number(), new_number()
    token, status = unhurried.unify(number=first)
    page = Visitor(fresh).visit(unhurried.site)
    page.begin(OTP, token)
    page.answer("start", None)
    unhurried.code(first)
    page.answer("code", {"resultType": 2})
    page.answer("start", {"phoneNumber": second})
    told = page.asked("start")[1]
    assert told["code"] == "resend_too_soon" and 0 < told["resendAfter"] <= 4, told
    page.answer("start", {"phoneNumber": second})
    page.type_code(unhurried.code(second))
    assert page.outcome()["value"]["state"] == "passed" and status()["phoneNumber"] == second
    assert [told for told in page.shown("code") if told] == [], "the finish step has nothing to say of it"


def test_a_page_that_displays_no_number_hears_what_is_missing(backend, fresh):
    """The person could never type what the page does not display."""
    token, status = backend.unify("desktop", new_number(), finalTargetUrl=backend.site.origin + "/done")
    page = Visitor(fresh).visit(backend.site)
    message = page.evaluate(f"""new postern.AuthenticatorBuilder().withInstantLinkFallback(async () => null).withRole('secondary')
        .build().authenticate({json.dumps(token)}).then(() => null, error => `${{error.code}}: ${{error.message}}`)""")
    assert message.startswith("misuse: ") and "withMatchNumber" in message and "link_match" in message, message
    assert status()["success"] == "false"


def test_a_page_of_an_unregistered_origin_hears_why_at_once(backend, fresh):
    """Not after half a minute of repetitions."""
    token, _ = backend.unify(number=new_number())
    page = Visitor(fresh).visit(backend.stranger)
    page.begin(OTP, token)
    page.wait("window.outcome !== undefined", timeout=8)
    assert page.outcome() == {"error": "origin_not_registered"}


_WATCHED = """(() => {
  const before = window.fetch;
  window.sent = [];
  window.fetch = (url, options) => {
    if (options?.method === "POST") sent.push([new URL(url).pathname, options.body ?? "", Object.keys(options.headers).sort().join()]);
    return before(url, options);
  };
})()"""


def test_a_browser_whose_storage_was_wiped_is_a_new_one(backend, fresh):
    """The backend names the key of before; possession is asked for again, and no trait of the browser stands in for the key."""
    number = new_number()

    def proves(page, sent, **members):
        """One proof by a code: what the backend reads, and what the module said when it opened."""
        token, status = backend.unify(number=number, **members)
        page.evaluate(_WATCHED)
        page.begin(OTP, token)
        page.answer("start", None)
        page.type_code(backend.code(number, sent))
        assert page.outcome()["value"]["state"] == "passed"
        said = page.evaluate("sent.filter(([path]) => path === '/connect/possession/open')")
        return status()["deviceId"], said

    page = Visitor(fresh).visit(backend.site)
    first, said_first = proves(page, 1)
    page.send("Storage.clearDataForOrigin", {"origin": backend.site.origin, "storageTypes": "all"})
    page.visit(backend.site)
    second, said_second = proves(page, 2, deviceId=first)
    assert second != first and len(backend.phones.to(number)) == 2
    assert said_first and all(one in said_first for one in said_second) and {body for _, body, _ in said_first} <= {"", "{}"}, (said_first, said_second)

    # With its storage kept the browser is known, and no message is sent.
    token, status = backend.unify(number=number, deviceId=second)
    page.visit(backend.site).begin(OTP, token)
    assert page.outcome()["value"]["state"] == "passed" and status()["deviceId"] == second
    assert len(backend.phones.to(number)) == 2
