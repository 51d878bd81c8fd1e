"""Pages of links, whose token is their state: the same right answer sent again within a minute shows the same page and changes nothing."""

import pytest

from harness.clock import time_travel
from harness.codeflow import hosted
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.possession import Backend, coded, possession
from harness.sign_in_pages import Session, other_code
from test_hosted_links import link_of
from test_possession_link import linked, post, step_of


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm with pages that proves numbers."""
    realm = possession(hosted(world.realm(), offer_passkey=False))
    realm.phones = Phones(realm)
    realm.srv = Backend(realm, "srv")
    world.admin.call("put_web_origin", realm.slug, realm.client("srv"), "https://app.example")
    world.settle()
    yield realm
    realm.phones.close()


def test_a_number_typed_twice_confirms_once(realm, world):
    """A minute later the link was used; another number never confirms."""
    session, email = Session(realm), realm.user()
    path, number = link_of(realm, session, email)
    other = PageBrowser(session.flow.app.node, session.flow.host)
    asked = other.open(path).page
    fields = {**asked.fields, "number": number, "action": "confirm"}
    first = other.submit("confirm", fields=fields).answer
    other.page = asked
    again = other.submit("confirm", fields=fields).answer
    assert first.status == again.status == 200 and first.body == again.body
    time_travel(world.cluster, 61)
    other.open(path)
    assert other.page.step == "done" and other.answer.status == 400


def test_a_wrong_number_stays_final(realm):
    """However often it is sent; the right one comes too late."""
    session, email = Session(realm), realm.user()
    path, number = link_of(realm, session, email)
    asked = PageBrowser(session.flow.app.node, session.flow.host).open(path)
    fields = {**asked.page.fields, "action": "confirm"}
    for typed in [str(10 + (int(number) + 35) % 90)] * 2 + [number]:
        other = PageBrowser(session.flow.app.node, session.flow.host)
        other.page = asked.page
        assert other.submit("confirm", fields={**fields, "number": typed}).answer.status == 400


def test_a_link_on_the_phone_leads_back_to_the_app_twice_with_one_code(realm):
    """Another phone that opens the link gets nothing of it."""
    _, phone, _, path = linked(realm, kind="mobile")
    first, again = post(realm, path, action="continue"), post(realm, path, action="continue")
    assert first.status == again.status == 303 and first.header("location") == again.header("location")
    assert phone.call("finish", redirectUrl=again.header("location"))["state"] == "passed"


def test_a_number_of_a_desktop_that_is_typed_twice_leads_on_twice(realm):
    """And a wrong one ends the proof."""
    _, _, sent, path = linked(realm)
    number = sent["matchNumber"]
    first, again = [post(realm, path, action="confirm", number=number) for _ in range(2)]
    assert first.status == again.status == 303 and first.header("location") == again.header("location")
    assert "asc=true" in first.header("location")
    _, _, sent, path = linked(realm)
    number = sent["matchNumber"]
    assert "asc=false" in post(realm, path, action="confirm", number=str(10 + (int(number) + 35) % 90)).header("location")
    assert step_of(post(realm, path, action="confirm", number=number)) == ("done", "possession-gone")


def test_a_right_code_of_a_proof_that_is_checked_twice_passes_twice(realm):
    """By the same key; a wrong one afterwards is refused."""
    _, phone, _, code = coded(realm, number=new_number())
    for _ in range(2):
        assert phone.call("check", otp=code) == {"state": "passed"}
    assert phone.ask("check", otp=other_code(code)).status != 200
