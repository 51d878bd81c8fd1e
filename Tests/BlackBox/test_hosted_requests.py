"""Authorization requests, case by case: beyond what test_authorize.py holds."""

import pytest

from harness import jose, wire
from harness.codeflow import REDIRECT, Flow, hosted, page_error, refused, response
from harness.control import Control
from harness.sign_in_pages import counted_case, other_realm, positive_control, Session  # pylint: disable=unused-import  # fixtures

CUSTOM = "com.example.app:/cb"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and a client that is also an app."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("put_redirect_uri", made.slug, made.client("app"), CUSTOM)
    world.settle()
    return made


@pytest.fixture(scope="module")
def signed_in(realm):
    """A browser of a user who proved an address."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    return flow


# -- clients ---------------------------------------------------------------------------------------


def test_a_client_that_nobody_has_looks_like_one_of_another_realm(realm, other):
    """And like a disabled one: the same bytes."""
    realm.world.admin.call("put_client", realm.slug, realm.client("disabled"), enabled=False)
    realm.world.settle()
    flow = Flow(realm)
    answers = [flow.authorize(client_id=name) for name in ("nobody", other.client("app"), realm.client("disabled"))]
    assert {page_error(answer) for answer in answers} == {"invalid_client"}
    assert len({answer.body for answer in answers}) == 1


def test_on_the_host_of_an_app_only_its_clients_are_known(realm):
    """A client of no App or of another one is none there."""
    host = realm.put_app("own", ["app-2"])
    mine, foreign = Flow(realm, "app-2", host=host), Flow(realm, "no-refresh", host=host)
    assert mine.authorize().status == 200
    realm.put_app("foreign", ["no-refresh"])
    assert page_error(foreign.authorize()) == "invalid_client"


@pytest.mark.parametrize("uris", [1, 2])
def test_the_redirect_uri_is_never_guessed(realm, uris):
    """Not even where only one is registered."""
    name = f"uris-{uris}"
    realm.put_client(name, "gt:authorization_code", "gt:refresh_token", "scp:email")
    for number in range(uris):
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client(name), f"{REDIRECT}/{number}")
    realm.world.settle()
    assert page_error(Flow(realm, name).authorize(redirect_uri=None)) == "invalid_redirect_uri"


# -- parameters ------------------------------------------------------------------------------------


def test_form_post_is_for_web_redirects_only(realm):
    """A private-use URI takes no form."""
    flow = Flow(realm, redirect_uri=CUSTOM)
    assert refused(flow.authorize(response_mode="form_post"), CUSTOM) == "invalid_request"
    assert refused(flow.authorize(response_mode="jwt"), CUSTOM) == "invalid_request"


def test_an_empty_scope_is_none(signed_in):
    """Plain OAuth: no ID token, an empty scope."""
    for scope in ("", None):
        tokens = signed_in.tokens(scope=scope)
        assert tokens.get("scope") == "" and "id_token" not in tokens, tokens


def test_offline_access_needs_the_permission_to_refresh(realm):
    """Else it is a scope that the client does not have."""
    realm.put_client("online", "gt:authorization_code")
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("online"), REDIRECT)
    realm.world.settle()
    flow = Flow(realm, "online")
    assert refused(flow.authorize(scope="openid offline_access")) == "invalid_scope"
    flow.sign_in(realm.user())
    tokens = flow.tokens(scope="openid")
    assert "refresh_token" not in tokens and flow.app.userinfo(tokens["access_token"]).status == 200


def test_more_resources_than_a_request_may_name_are_refused(signed_in):
    """Thirty-two are read."""
    for count in (32, 33):
        pairs = [*signed_in.request().items(), *(("resource", f"https://r{number}.example") for number in range(count))]
        assert refused(signed_in.authorize(query=wire.form_body(pairs).decode())) == "invalid_target"
    pairs = [*signed_in.request(scope="openid orders.read").items(), ("resource", signed_in.realm.granted_resource)]
    assert "code" in response(signed_in.authorize(query=wire.form_body(pairs).decode()))


@pytest.mark.parametrize("value", ["x", "A" * 42, "A" * 44, "{}"])
def test_a_malformed_key_thumbprint_is_refused(signed_in, value):
    """RFC 9449 §10."""
    assert refused(signed_in.authorize(dpop_jkt=value)) == "invalid_request"


@pytest.mark.parametrize("asked, acr", [
    ("urn:postern:acr:email", "urn:postern:acr:email"), ("phr urn:postern:acr:email urn:postern:acr:1", "urn:postern:acr:email"),
    ("nonsense urn:postern:acr:1", "urn:postern:acr:1"), (None, "urn:postern:acr:1"),
])
def test_the_first_context_class_that_is_met_is_told(signed_in, asked, acr):
    """In the order of the request."""
    assert jose.parts(signed_in.tokens(acr_values=asked)["id_token"])[1]["acr"] == acr


@pytest.mark.parametrize("asked", ["phr", "urn:postern:acr:2"])
def test_a_context_class_that_the_user_cannot_meet_is_told_after_the_sign_in(realm, asked):
    """Before it the page looks as ever."""
    session = Session(realm, acr_values=asked)
    assert session.browser.page.step == "address"
    session.sign_in(realm.user())
    assert session.browser.members["error"] == "unmet_authentication_requirements"


def test_a_hint_of_an_address_changes_nothing_but_the_field(realm):
    """Known and unknown; and nothing is sent."""
    known = realm.user()
    unknown, pages = "y" + known[1:], []
    for email in (known, unknown):
        session = Session(realm, login_hint=email)
        fields = session.browser.page.fields
        assert fields["address"] == email
        text = session.browser.answer.body.decode()
        for value, name in ((fields["tx"], "tx"), (email, "email")):
            text = text.replace(value, name)
        pages.append((len(fields["tx"]), text.count("tx"), len(text)))
    assert pages[0] == pages[1]
    Control(realm).check()
    assert not realm.world.mailbox.to(known) and not realm.world.mailbox.to(unknown)


@pytest.mark.parametrize("hint", ["other realm", "access token", "expired", "empty signature"])
def test_hints_of_others_are_refused(realm, other, hint):
    """Only an ID token of this realm for this client counts; an expired one does."""
    flow, foreign = Flow(realm), Flow(other)
    flow.sign_in(realm.user())
    foreign.sign_in(other.user())
    tokens = flow.tokens()
    if hint == "expired":
        realm.world.time_travel(4000)
        assert "code" in response(flow.authorize(prompt="none", id_token_hint=tokens["id_token"]))
        return
    token = {
        "other realm": foreign.tokens()["id_token"], "access token": tokens["access_token"],
        "empty signature": tokens["id_token"].rsplit(".", 1)[0] + ".",
    }[hint]
    assert refused(flow.authorize(id_token_hint=token)) == "invalid_request"


@pytest.mark.parametrize("path", [
    "/connect/authorize/", "//connect/authorize", "/connect/./authorize", "/Connect/Authorize", "/connect/%61uthorize",
    "/connect/authorize%00", "/connect/par/", "/sign-in/", "/connect/authorize;x=1",
])
def test_paths_are_exact(signed_in, path):
    """404 for each variant."""
    query = wire.form_body(signed_in.request()).decode()
    answer = wire.exchange(signed_in.app.node.port, "GET", f"{path}?{query}", {"Host": signed_in.host, **signed_in.cookies()})
    assert answer.status in (400, 404) and answer.header("location") is None, answer


def test_no_outside_request_object_is_fetched(signed_in):
    """Neither at the endpoint nor at a push."""
    with wire.socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}/req.jwt"
        assert refused(signed_in.authorize(request_uri=uri)) == "request_uri_not_supported"
        assert signed_in.push(request_uri=uri).status == 400
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_address_is_an_identity_behind_a_proxy(world, realm):
    """The limit of a source is that of the user's address, not of the proxy's."""
    made = hosted(world.realm(), offer_passkey=False)
    made.limit("authorize", "source", 3, per="1 minute", burst=3)
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32")
    try:
        flow = Flow(made, node=node)
        answers = [flow.authorize(headers={"X-Forwarded-For": f"198.51.100.{number}"}) for number in range(30)]
        assert {answer.status for answer in answers} == {200}
        same = [flow.authorize(headers={"X-Forwarded-For": "203.0.113.7"}).status for _ in range(5)]
        assert same == [200, 200, 200, 429, 429]
    finally:
        node.stop()
    del realm
