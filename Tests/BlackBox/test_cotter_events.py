"""Cotter's events: requests for approval under a number, signed."""

import time

import pytest

from harness import jose
from harness.approvals import CIBA, Device, switch_on
from harness.ledger import LEDGER
from harness.node import run_postern
from harness.volley import volley
from harness import wire

BAD_KEY = {"msg": "Invalid API key", "type": ""}
MEMBERS = {
    "ID", "CreatedAt", "UpdatedAt", "DeletedAt", "client_user_id", "issuer", "event", "ip", "location", "timestamp", "method", "new", "approved", "signature",
}
WIDTH = 48


class Backend:
    """A backend that uses Cotter's events."""

    def __init__(self, app):
        self.app = app

    @property
    def headers(self):
        """Key and secret."""
        return {"API_KEY_ID": self.app.client_id, "API_SECRET_KEY": self.app.secret}

    def create(self, user, headers=None, **changes):
        """POST create_pending; the raw answer."""
        body = {
            "client_user_id": user, "issuer": self.app.client_id, "event": "LOGIN", "ip": "192.0.2.5", "location": "Berlin",
            "timestamp": str(int(time.time())), "method": "TRUSTED_DEVICE", **changes,
        }
        answer = self.app.post_json(
            "/api/v0/event/create_pending", {name: value for name, value in body.items() if value is not None}, self.headers if headers is None else headers)
        if answer.status == 200:
            LEDGER.add("auth_req_id", answer.json()["auth_req_id"])
        return answer

    def get(self, number, query=""):
        """GET get/{ID}; the raw answer."""
        answer = self.app.get(f"/api/v0/event/get/{number}{query}", self.headers)
        if answer.status == 200 and "oauth_token" in answer.json():
            LEDGER.tokens(answer.json()["oauth_token"])
        return answer

    def new(self, user):
        """GET new/{user}; the raw answer."""
        return self.app.get(f"/api/v0/event/new/{user}", self.headers)


def backend(realm, name, *permissions):
    """A confidential client with events."""
    app = realm.put_client(name, "gt:" + CIBA, "gt:refresh_token", *permissions, client_type="confidential")
    app.secret = LEDGER.add("client_secret", realm.world.admin.call("rotate_client_secret", realm.slug, app.client_id))
    return Backend(app)


@pytest.fixture(scope="module")
def realm(world):
    """A realm with approvals."""
    made = world.realm("cotev")
    switch_on(made, "app", public_clients=True)
    return made


@pytest.fixture(scope="module")
def events(realm):
    """The backend."""
    made = backend(realm, "srv", "cap:cotter")
    realm.world.settle()
    return made


@pytest.fixture
def device(realm, email):
    """A trusted device."""
    return Device(realm.app(), realm, email)


def verified(realm, event):
    """The claims of an event's signature."""
    keys = realm.app().get("/.well-known/jwks").json()
    jose.verify_es256(event["signature"], keys)
    header, claims = jose.parts(event["signature"])[:2]
    assert header["typ"] == "postern-event+jwt" and claims["iss"] == realm.issuer
    return claims


def test_an_event_from_request_to_tokens(realm, events, device):
    """Members and types of the object; the tokens once."""
    made = events.create(device.email).json()
    assert set(made) == MEMBERS | {"match_number", "auth_req_id"}
    assert isinstance(made["ID"], int) and 1 <= made["ID"] < 2**31 and made["DeletedAt"] is None
    assert (made["client_user_id"], made["issuer"], made["event"], made["ip"], made["location"], made["method"], made["new"], made["approved"]) == (
        device.email, events.app.client_id, "LOGIN", "192.0.2.5", "Unknown", "TRUSTED_DEVICE", True, False)
    assert made["timestamp"].isdigit() and made["CreatedAt"].endswith("Z")
    claims = verified(realm, made)
    assert {name: claims[name] for name in MEMBERS - {"signature"}} == {name: made[name] for name in MEMBERS - {"signature"}}
    item = device.item()
    assert claims["jti"] == item["Id"]
    before = events.get(made["ID"], "?oauth_token=true").json()
    assert set(before) == MEMBERS and before["new"] is True
    assert device.answer(item, number=made["match_number"]).status == 200
    after = events.get(made["ID"]).json()
    assert (after["new"], after["approved"]) == (False, True) and verified(realm, after)["approved"] is True
    tokens = events.get(made["ID"], "?oauth_token=true").json()["oauth_token"]
    assert set(tokens) == {"access_token", "id_token", "refresh_token", "expires_in", "token_type", "auth_method"}
    assert tokens["auth_method"] == "TRUSTED_DEVICE" and tokens["token_type"] == "Bearer"
    assert "oauth_token" not in events.get(made["ID"], "?oauth_token=true").json()
    assert events.app.refresh(tokens["refresh_token"]).status == 200


def test_a_changed_member_does_not_verify(realm, events, device):
    """The signature is over the members."""
    made = events.create(device.email).json()
    header, payload, signature = made["signature"].split(".")
    changed = ".".join([header, jose.b64url(jose.unb64url(payload).replace(b"false", b"true ")), signature])
    with pytest.raises(Exception):
        jose.verify_es256(changed, realm.app().get("/.well-known/jwks").json())


def test_an_event_of_before_two_rotations_still_verifies(world, realm, events, device):
    """The keys that signed it stay published."""
    made = events.create(device.email).json()
    for _ in range(2):
        done = run_postern("keys", "rotate", "--realm", realm.slug, "--now", environment={
            "POSTERN_DATABASE_URL": world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(world.key_file)})
        assert done.returncode == 0, done.stderr
        world.settle()
    assert verified(realm, made)["ID"] == made["ID"]
    later = events.get(made["ID"]).json()
    assert jose.parts(later["signature"])[0]["kid"] != jose.parts(made["signature"])[0]["kid"]
    assert verified(realm, later)["ID"] == made["ID"]


def test_one_of_many_calls_gets_the_tokens(events, device):
    """Exactly one."""
    made = events.create(device.email).json()
    assert device.answer(device.item(), number=made["match_number"]).status == 200
    request = wire.request_bytes("GET", f"/api/v0/event/get/{made['ID']}?oauth_token=true", {"Host": events.app.host, **events.headers}, b"")
    answers = volley(events.app.node.port, [request] * WIDTH)
    assert {answer.status for answer in answers} <= {200, 503}
    assert sum("oauth_token" in answer.json() for answer in answers) == 1


def test_a_denial_shows_at_once(world, events, device):
    """And stays, also past the end of the event."""
    made = events.create(device.email).json()
    assert device.answer(device.item(), "deny").status == 200
    event = events.get(made["ID"], "?oauth_token=true").json()
    assert (event["new"], event["approved"]) == (False, False) and "oauth_token" not in event
    world.time_travel(61)
    later = events.get(made["ID"], "?oauth_token=true").json()
    assert (later["new"], later["approved"]) == (False, False) and "oauth_token" not in later


def test_an_expired_event_is_neither_new_nor_approved(world, events, device):
    """After a minute."""
    made = events.create(device.email).json()
    world.time_travel(61)
    event = events.get(made["ID"]).json()
    assert (event["new"], event["approved"]) == (False, False)
    assert events.new(device.email).json() is None


def test_the_newest_undecided_event_of_a_user(realm, events):
    """Of this client; null without."""
    email = realm.new_email()
    assert events.new(email).json() is None
    events.create(email)
    newest = events.create(email).json()["ID"]
    assert events.new(email).json()["ID"] == newest
    assert events.new(email.replace("@", "%40")).json()["ID"] == newest


def test_keys_and_permissions(world, realm, events, email):
    """One body for all; no event."""
    other = backend(realm, "plain")
    public = realm.put_client("pub", "gt:" + CIBA, "gt:authorization_code", "gt:refresh_token", access_token_type="jwt")
    world.admin.call("grant_permission", realm.slug, public.client_id, variadic=["cap:cotter"])
    world.settle()
    keys = [
        {"API_KEY_ID": events.app.client_id}, {"API_SECRET_KEY": events.app.secret}, {**events.headers, "API_SECRET_KEY": "wrong"}, {},
        {"API_KEY_ID": public.client_id, "API_SECRET_KEY": "x"}, other.headers, {**events.headers, "API_KEY_ID": "nobody"},
    ]
    for headers in keys:
        answer = events.create(email, headers=headers)
        assert (answer.status, answer.json()) == (401, BAD_KEY), headers
    query = f"?API_KEY_ID={events.app.client_id}&API_SECRET_KEY=x"
    assert events.app.get("/api/v0/event/get/1" + query).status == 401
    assert events.new(email).json() is None
    with pytest.raises(Exception, match="needs the permission"):
        world.admin.call("revoke_permission", realm.slug, events.app.client_id, variadic=["gt:" + CIBA])


@pytest.mark.parametrize("changes", [
    {"issuer": "other"}, {"issuer": None}, {"method": "PIN"}, {"method": None}, {"event": "login"}, {"event": None}, {"client_user_id": None},
    {"client_user_id": "1014"}, {"client_user_id": 1014}, {"timestamp": None}, {"timestamp": "now"}, {"ip": "x" * 101},
], ids=str)
def test_what_the_body_must_be(events, email, changes):
    """400; a right one after it."""
    answer = events.create(email, **changes)
    assert answer.status == 400 and answer.json()["type"] == "", answer
    assert events.create(email, timestamp=str(int(time.time()) - 3600)).status == 200, "the time is ours"


def test_there_are_no_other_paths_and_numbers(world, realm, events, device):
    """Numbers of others, malformed ones, and what Cotter's SDKs had beside."""
    made = events.create(device.email).json()
    other = backend(realm, "srv2", "cap:cotter")
    world.settle()
    assert other.get(made["ID"]).status == 404 and other.new(device.email).json() is None
    for number in ("0", "-1", str(2**31), "x", "01", "1.0", ""):
        assert events.get(number).status == 404, number
    assert events.get(made["ID"]).status == 200
    for method, path in (("POST", "/api/v0/event/create"), ("POST", "/api/v0/event/respond/1"), ("PUT", "/api/v0/user/x"), ("GET", "/api/v0/user/enrolled/x/y/z")):
        assert events.app.exchange(method, path, events.headers).status == 404


def test_without_approvals_there_is_nothing(world):
    """Whatever the key."""
    realm = world.realm("cotoff")
    app = realm.app("api")
    for method, path in (("POST", "/api/v0/event/create_pending"), ("GET", "/api/v0/event/get/1"), ("GET", "/api/v0/event/new/x")):
        assert app.exchange(method, path, {"API_KEY_ID": app.client_id}).status == 404


def test_numbers_are_distinct_and_random(world, realm, events):
    """31 bits."""
    user = realm.new_email()
    numbers = [events.create(user).json()["ID"] for _ in range(20)]
    assert len(set(numbers)) == 20 and sorted(numbers) != numbers and max(numbers) > 2**24
