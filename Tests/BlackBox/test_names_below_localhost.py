"""Names below localhost are this machine: `http` is taken there as it is for localhost, and an unknown host is told and counted."""

import re
import urllib.parse

import pytest

from harness import wire
from harness.codeflow import Flow, hosted
from harness.links import Links

ORIGIN = "http://app.localhost:8080"


@pytest.fixture(scope="module")
def local(world):
    """A realm whose issuer is http on a name below localhost."""
    made = hosted(world.realm())
    made.host = f"{made.slug}.localhost"
    made.issuer = f"http://{made.host}:8080"
    world.admin.call("put_realm", made.slug, primary_domain=made.host, public_origin=made.issuer)
    world.admin.call("put_web_origin", made.slug, made.client("app"), ORIGIN)
    world.settle()
    return made


def test_a_realm_may_be_there_and_says_so_in_its_documents(local):
    """Issuer and endpoints are http."""
    document = local.app().get("/.well-known/openid-configuration").json()
    assert document["issuer"] == local.issuer
    assert document["token_endpoint"].startswith(local.issuer + "/")


def test_its_links_lead_there_and_sign_in(local):
    """They are mailed, and good."""
    links = Links(local.app())
    link = links.link(local.user())
    assert link.url.startswith(local.issuer + "/magic-login?"), link.url
    assert links.redeem(link).status == 200


def test_its_cookies_have_no_prefix(local):
    """Browsers take `Secure` and `__Host-` from https alone."""
    answer = Flow(local, host=local.host).authorize()
    lines = [value for name, value in answer.headers if name.lower() == "set-cookie"]
    assert lines and all(re.match(r"postern-browser=", line) and "Secure" not in line and "HttpOnly" in line for line in lines), answer


def test_a_redirect_uri_there_matches_as_it_is_registered(world, local):
    """Any port is for the three loopback hosts alone."""
    world.admin.call("put_redirect_uri", local.slug, local.client("app"), ORIGIN + "/cb")
    world.admin.call("put_redirect_uri", local.slug, local.client("app"), "http://localhost/cb")
    world.settle()
    flow = Flow(local, host=local.host)
    for uri, is_known in ((ORIGIN + "/cb", True), ("http://localhost:8081/cb", True), ("http://app.localhost:8081/cb", False),
                          ("http://app.localhost/cb", False), ("http://x.app.localhost:8080/cb", False)):
        answer = flow.authorize(redirect_uri=uri)
        assert (answer.status == 200) == is_known, (uri, answer)
        if not is_known:
            assert answer.status == 400 and answer.header("location") is None, (uri, answer)


def test_a_web_origin_there_may_read_answers(local):
    """Exactly as registered."""
    for origin, may in ((ORIGIN, True), ("http://app.localhost:8081", False), ("http://app.localhost", False),
                        ("http://app.localhost.example:8080", False), ("https://app.localhost:8080", False)):
        answer = local.app().get("/api/app-info", {"Origin": origin})
        assert (answer.header("access-control-allow-origin") == origin) == may, (origin, answer)


# -- unknown hosts -----------------------------------------------------------------------------------


def test_unknown_hosts_are_answered_as_ever_told_once_and_counted(world, realm):
    """One line a minute and process, of 64 printable characters; one series without labels."""
    node = world.start_node()
    try:
        assert node.metric("postern_unknown_host_total") == 0
        with wire.Connection(node.port) as connection:
            # What stands in the log is the first: it must not leave its line and its quotation marks.
            hosts = ['x" level="error" ' + "y" * 8000, *(f"h{number}.example" for number in range(1000)), 'a"b', "a\\b", "app.localhost.example"]
            for host in hosts:
                answer = connection.exchange("GET", "/connect/userinfo", {"Host": host})
                assert (answer.status, answer.body) == (404, b""), (host[:80], answer)
            assert connection.exchange("GET", "/.well-known/openid-configuration", {"Host": realm.host}).status == 200
        assert node.metric("postern_unknown_host_total") == len(hosts)
        told = [line for line in node.log().splitlines() if "no realm has the host" in line]
        assert len(told) == 1, told
        shown, = re.findall(r'no realm has the host "([^"]*)"$', told[0])
        assert shown == 'x??level=?error??' + "y" * 47
        series = [line for line in node.ops("/metrics").body.decode().splitlines() if line.startswith("postern_unknown_host_total")]
        assert len(series) == 1, series
    finally:
        node.stop()


def test_a_path_that_is_not_there_is_no_unknown_host(world, realm):
    """A text that is not a DNS name counts as an unknown host too."""
    before = world.node.metric("postern_unknown_host_total")
    assert wire.exchange(world.node.port, "GET", "/none", {"Host": realm.host}).status == 404
    assert world.node.metric("postern_unknown_host_total") == before
    assert wire.exchange(world.node.port, "GET", "/none", {"Host": urllib.parse.quote("ü") + ".example"}).status == 404
    assert world.node.metric("postern_unknown_host_total") == before + 1
