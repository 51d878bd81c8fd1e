"""Links that prove a number: pages that change nothing by being looked at, on desktops and on the phone itself."""

import re
import urllib.parse

import pytest

from harness import wire
from harness.phones import Phones, new_number
from harness.possession import Backend, possession

TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = possession(world.realm())
    realm.phones = Phones(realm)
    realm.srv = Backend(realm, "srv")
    world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "https://app.example")
    world.settle()
    yield realm
    realm.phones.close()


def linked(realm, kind="desktop", target=TARGET, **members):
    """A transaction with a link on the phone: transaction, app, what the app was told, path of the link."""
    number = new_number()
    started = realm.srv.unify(number, kind, finalTargetUrl=target, **members)
    phone = realm.srv.phone(started)
    phone.call("open")
    sent = phone.call("send", channel="link")
    link = realm.phones.wait(number)["link"]
    assert re.fullmatch(re.escape(realm.issuer) + r"/p/[A-Za-z0-9_-]{24}", link)
    return started, phone, sent, urllib.parse.urlsplit(link).path


def post(realm, path, **form):
    """The form of the page."""
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    return realm.app().exchange("POST", path, headers, wire.form_body(form))


def target_of(answer):
    """The parameters that a redirect brings."""
    assert answer.status == 303, answer
    assert answer.header("referrer-policy") == "no-referrer" and answer.header("set-cookie") is None
    location = urllib.parse.urlsplit(answer.header("location"))
    return location, dict(urllib.parse.parse_qsl(location.query))


def step_of(answer):
    """data-step and data-error."""
    found = re.search(rb'data-step="([^"]*)"(?: data-error="([^"]*)")?', answer.body)
    return tuple(part and part.decode() for part in found.groups())


def test_looking_changes_nothing(realm):
    """Fifty times, by GET and HEAD; live, dead and unknown links look alike."""
    started, _, sent, path = linked(realm)
    live = realm.app().get(path)
    assert live.status == 200 and step_of(live)[0] == "confirm-possession", live
    for _ in range(25):
        assert realm.app().get(path).same_bytes() == live.same_bytes()
        assert realm.app().exchange("HEAD", path).status == 200
    altered = path[:-1] + ("A" if path[-1] != "A" else "B")
    unknown = "/p/" + path[3] + "x" * 23
    for other in (altered, unknown):
        assert realm.app().get(other).same_bytes() == live.same_bytes()
    assert live.header("set-cookie") is None and live.header("referrer-policy") == "no-referrer"
    assert b"form-action" not in (live.header("content-security-policy") or "").encode()
    assert realm.srv.status(started).success == "pending"
    target_of(post(realm, path, number=sent["matchNumber"], action="confirm"))
    assert realm.app().get(path).same_bytes() == live.same_bytes()


def test_a_desktop_shows_the_number(realm):
    """Typed on the phone it passes; once."""
    started, phone, sent, path = linked(realm)
    location, query = target_of(post(realm, path, number=sent["matchNumber"]))
    assert (location.scheme, location.netloc, location.path) == ("https", "app.example", "/done")
    assert query == {"asc": "true", "authId": phone.call("open")["authId"]}
    status = realm.srv.status(started)
    assert status.success == "true" and not hasattr(status, "deviceId")
    dead = post(realm, path, number=str(10 + (int(sent["matchNumber"]) + 35) % 90))
    assert dead.status == 400 and step_of(dead) == ("done", "possession-gone")


def test_what_is_no_number_changes_nothing_and_a_wrong_one_ends_it(realm):
    """Empty, three digits, other digits: the page again; wrong, or denied: over."""
    started, phone, sent, path = linked(realm)
    for form in ({}, {"number": ""}, {"number": "123"}, {"number": "４"}, {"number": "4x"}, {"number": "4"}):
        again = post(realm, path, action="confirm", **form)
        assert again.status == 400 and step_of(again) == ("confirm-possession", "wrong_number"), again
    assert realm.srv.status(started).success == "pending"
    wrong = "10" if sent["matchNumber"] != "10" else "11"
    _, query = target_of(post(realm, path, number=wrong))
    assert query["asc"] == "false" and "pc" not in query
    assert post(realm, path, number=sent["matchNumber"]).status == 400
    status = realm.srv.status(started)
    assert status.success == "false" and "9212" in status.evaluation["authentication"]["failureReasons"]
    assert phone.call("result") == {"state": "failed"}
    started, _, _, path = linked(realm)
    assert target_of(post(realm, path, action="deny"))[1]["asc"] == "false"
    assert "9212" in realm.srv.status(started).evaluation["authentication"]["failureReasons"]


def test_without_a_number_to_type(realm):
    """One button; the pass says so."""
    admin = realm.world.admin
    admin.call("put_possession_client", realm.slug, realm.client("srv"), link_match=False)
    try:
        started, _, sent, path = linked(realm)
        assert "matchNumber" not in sent and step_of(realm.app().get(path))[0] == "continue-possession"
        assert target_of(post(realm, path, action="continue"))[1]["asc"] == "true"
        assert realm.srv.status(started).evaluation["authentication"] == {
            "result": "pass", "failureReasons": {"9203": "Passed without number match."}}
    finally:
        admin.call("put_possession_client", realm.slug, realm.client("srv"), link_match=True)


def test_on_the_phone_the_app_brings_the_answer_back(realm):
    """linked, then passed by finish with the pinned key alone; once."""
    started, phone, sent, path = linked(realm, "mobile", allowOTPRetry=True)
    assert "matchNumber" not in sent and step_of(realm.app().get(path))[0] == "continue-possession"
    location, query = target_of(post(realm, path, action="continue"))
    assert query["asc"] == "false" and set(query) == {"asc", "authId", "pc"}
    url = location.geturl()
    assert phone.call("result", wait=25) == {"state": "linked"}
    assert realm.srv.status(started).success == "pending"
    auth, code = query["authId"], query["pc"]
    for bad in (url.replace("asc=false", "asc=TRUE"), f"{TARGET}?authId={auth}&pc={code}", f"{TARGET}?asc=false&authId=1&pc={code}",
                f"{url}&authId={auth}", f"{TARGET}?asc=false&authId={auth}", TARGET,
                url.replace("app.example", "evil.example"), url.replace("https://app.example", "https://app.example.evil.example"),
                url.replace("https://", "https://app.example@evil.example/"), url.replace("https://", "http://"),
                url.replace("app.example", "app.example:8443"), url.replace("https:", "HTTPS:"),
                " " + url, url.removeprefix("https:"), url.removeprefix("https://app.example"), ":" + url):
        phone.refused("finish", 400, "redirect_invalid", redirectUrl=bad)
    foreign, *_ = linked(realm, "mobile")
    other = realm.srv.phone(foreign)
    for unknown in (url[:-1] + ("A" if url[-1] != "A" else "B"), url.replace(auth, "00000000-0000-4000-8000-000000000000")):
        phone.refused("finish", 400, "redirect_unknown", redirectUrl=unknown)
    realm.srv.phone(started).refused("finish", 403, "wrong_key", redirectUrl=url)
    assert other.ask("finish", redirectUrl=url).status == 403
    led_on = url.replace("https://app.example/", "com.example.app:/")
    assert phone.call("finish", redirectUrl=led_on) == {"state": "passed"}, "the target may lead on to the app by its own scheme"
    phone.refused("finish", 400, "redirect_unknown", redirectUrl=url)
    assert realm.srv.status(started).deviceId


def test_the_asker_alone_never_gets_through(realm):
    """A victim's tap on the asker's link leaves the asker with nothing: the answer goes to the victim's own app."""
    started, asker, _, path = linked(realm, "mobile")
    target_of(post(realm, path, action="continue"))
    assert asker.call("result") == {"state": "linked"}
    asker.refused("check", 403, "step_not_allowed", otp="000000")
    assert realm.srv.status(started).success == "pending"


def test_targets_keep_their_own_query(realm):
    """& after a query, ? else."""
    for target, start in ((TARGET + "?a=1", "https://app.example/done?a=1&asc=true&authId="), ("https://app.example", "https://app.example?asc=true&authId=")):
        _, _, sent, path = linked(realm, target=target)
        answer = post(realm, path, number=sent["matchNumber"])
        assert answer.header("location").startswith(start), answer


def test_old_links_are_dead(realm):
    """After the next message."""
    started, phone, sent, path = linked(realm)
    second = phone.call("send", channel="link")
    assert post(realm, path, number=sent["matchNumber"]).status == 400
    assert realm.srv.status(started).success == "pending" and second["matchNumber"]


def test_forms_of_other_sites_are_refused(realm):
    """Nothing changes."""
    started, _, sent, path = linked(realm)
    headers = {"Content-Type": wire.FORM, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = realm.app().exchange("POST", path, headers, wire.form_body({"number": sent["matchNumber"]}))
    assert answer.status in (400, 403), answer
    assert realm.srv.status(started).success == "pending"
