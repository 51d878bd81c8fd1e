"""Magic links by token: how they are asked for, what redeems and what ends them."""

import base64
import collections
import random
import string
import time
import uuid

import pytest

from harness import wire
from harness.links import MAGIC, Links
from harness.volley import in_parallel

REFUSED = {"error": "invalid_grant", "error_description": "Invalid or expired link."}


@pytest.fixture
def links(app):
    """What app, mailbox and browser do with links."""
    return Links(app)


def refused(answer):
    """Whether an answer is the uniform one."""
    return answer.status == 400 and answer.json() == REFUSED


def test_a_link_signs_in(realm, app, api, email, links):
    """Request, mail, token; an id token of a single factor."""
    asked = links.ask(email)
    assert asked.status == 200 and "no-store" in asked.header("cache-control"), asked
    document = asked.json()
    assert document.pop("AuthSession").startswith("pas_")
    number = document.pop("MatchNumber")
    assert len(number) == 2 and number.isdigit()
    assert document == {
        "Message": "If your email is registered, you will receive a login link.", "ExpiresIn": 900, "ResendAfter": 0, "Interval": 5,
    }
    link = links.received(asked, email, 1)
    assert link.url.startswith(f"{realm.issuer}/magic-login?userId=") and set(link.query) == {"userId", "token"}
    assert str(uuid.UUID(link.user_id)) == link.user_id == realm.put_user(email)
    answer = links.redeem(link, scope="openid offline_access")
    assert answer.status == 200, answer
    tokens = answer.json()
    claims = json_of(tokens["id_token"])
    assert claims["amr"] == ["otp"] and claims["sub"] == link.user_id
    assert api.active(tokens["access_token"]) and app.refresh(tokens["refresh_token"]).status == 200


def json_of(token):
    """The claims of a JWT."""
    import json  # pylint: disable=import-outside-toplevel

    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_tokens_are_256_random_bits(realm, links):
    """The small form: of two hundred links no two share a piece, and every position takes many values."""
    users = realm.users(200)
    for user in users:
        assert links.ask(user).status == 200
    tokens = [links.app.mailbox.wait(user, 1).link.partition("token=")[2] for user in users]
    raw = [base64.urlsafe_b64decode(token + "=") for token in tokens]
    assert all(len(value) == 32 for value in raw) and len(set(raw)) == 200
    assert len({value[i:i + 4] for value in raw for i in range(29)}) > 200 * 29 - 5
    for position in range(32):
        assert len({value[position] for value in raw}) > 90
    ones = sum(bin(byte).count("1") for value in raw for byte in value)
    assert abs(ones / (200 * 256) - 0.5) < 0.02


@pytest.mark.parametrize("change", [
    lambda t: t[:20] + ("A" if t[20] != "A" else "B") + t[21:], lambda t: t[:-1], lambda t: t + "A", lambda t: t.swapcase(),
    lambda t: t + "=", lambda t: t + "==", lambda t: " " + t, lambda t: t + " ", lambda t: t[:42] + chr(ord(t[42]) + 1),
    lambda t: base64.urlsafe_b64decode(t + "=").hex(), lambda t: "A" * 43, lambda t: "A" * 60_000,
])
def test_a_token_has_one_spelling(links, email, change):
    """Altered, cut, extended, in another case, padded, in hexadecimal; the link lives on."""
    link = links.link(email)
    assert change(link.token) != link.token
    assert refused(links.redeem(link, magic_token=change(link.token)))
    assert links.redeem(link).status == 200


def test_a_link_works_once(world, links, email):
    """Twice, an hour later, and at another node."""
    link = links.link(email)
    assert links.redeem(link).status == 200
    assert refused(links.redeem(link))
    node = world.start_node()
    try:
        links.app.node = node
        assert refused(links.redeem(link))
    finally:
        node.stop()
    links.app.node = world.node
    world.time_travel(3600)
    assert refused(links.redeem(link))


def test_a_user_id_and_a_token_belong_together(realm, links, email):
    """The owner's token survives."""
    link, other = links.link(email), links.link(realm.user())
    assert refused(links.redeem(link, user_id=other.user_id))
    assert refused(links.redeem(other, user_id=link.user_id))
    assert links.redeem(link).status == 200 and links.redeem(other).status == 200


def test_a_link_belongs_to_its_realm_and_client(world, realm, links, email):
    """Realm B and client A2 are refused; a link that named no client is for any."""
    link = links.link(email, ClientId=links.app.client_id)
    assert refused(Links(world.realm().app()).redeem(link))
    assert refused(Links(realm.app("app-2")).redeem(link))
    assert links.redeem(link).status == 200
    assert Links(realm.app("app-2")).redeem(links.link(realm.user())).status == 200
    bound = links.ask(realm.user(), ClientId=links.app.client_id).json()["AuthSession"]
    assert refused(Links(realm.app("app-2")).poll(bound))
    assert links.poll(bound).error == "authorization_pending"
    assert links.ask(email, ClientId="nobody").json() == {"error": "invalid_client"}


@pytest.mark.parametrize("user_id", [
    "1", str(uuid.UUID(int=0)), "{%s}", "upper", "urn:uuid:%s", "%s ", "hex", "' OR 1=1 --", "../%s", "x" * 5000,
])
def test_a_malformed_user_id_is_an_invalid_link(links, email, user_id):
    """The same bytes as any other; the link lives on."""
    link = links.link(email)
    text = {"upper": link.user_id.upper(), "hex": link.user_id.replace("-", "")}.get(user_id) or user_id.replace("%s", link.user_id)
    assert refused(links.redeem(link, user_id=text))
    assert links.redeem(link).status == 200


def test_a_link_expires(world, realm, links, email):
    """Fifteen minutes, or what the realm says."""
    link = links.link(email)
    world.time_travel(840)
    assert links.redeem(link).status == 200
    link = links.link(email)
    world.time_travel(901)
    assert refused(links.redeem(link)) and refused(links.poll(link.handle))
    brief = world.realm()
    brief.policy(magic_link_lifetime="2 minutes")
    there = Links(brief.app())
    user = brief.user()
    asked = there.ask(user)
    assert asked.json()["ExpiresIn"] == 120
    link = there.received(asked, user, 1)
    assert "2 minutes" in world.mailbox.to(user)[0].text
    world.time_travel(121)
    assert refused(there.redeem(link))


@pytest.mark.parametrize("drop", ["user_id", "magic_token", "both"])
def test_a_missing_parameter_is_an_invalid_request(links, email, drop):
    """user_id and magic_token come together; alone they are no grant."""
    link = links.link(email)
    gone = {"user_id": None, "magic_token": None} if drop == "both" else {drop: None}
    assert links.redeem(link, **gone).error == "invalid_request"
    assert links.redeem(link, **{name: "" for name in gone}).error == "invalid_request"
    assert links.redeem(link).status == 200


def test_a_client_needs_the_permission(realm, links, email):
    """gt:urn:cocoar:magic."""
    link = links.link(email)
    plain = realm.put_client("no-magic", "gt:urn:cocoar:otp", "gt:refresh_token")
    realm.world.settle()
    assert Links(plain).redeem(link).error == "unauthorized_client"
    assert Links(plain).poll(link.handle).error == "unauthorized_client"


def test_a_realm_may_have_native_grants_off(world):
    """The request says so, the grant is not supported, discovery does not list it."""
    realm = world.realm()
    links = Links(realm.app())
    metadata = "/.well-known/openid-configuration"
    assert MAGIC in links.app.get(metadata).json()["grant_types_supported"]
    link = links.link(realm.user())
    realm.native(enabled=False)
    assert MAGIC not in links.app.get(metadata).json()["grant_types_supported"]
    answer = links.ask(realm.new_email())
    assert answer.status == 400 and answer.json()["title"] == "NativeGrants.Disabled"
    assert links.redeem(link).error == "unsupported_grant_type" and links.poll(link.handle).error == "unsupported_grant_type"


@pytest.mark.parametrize("body", [
    {"Email": "no address"}, {"Email": ""}, {"Email": None}, {}, {"Email": 7}, {"Email": "a@b.example\r\nBcc: c@d.example"},
])
def test_a_malformed_address_is_said_so(app, body):
    """Whatever is known about it."""
    answer = app.post_json("/api/account/magic-link/request", body)
    assert answer.status == 400 and answer.json() == {"error": "Email is invalid."}


def test_a_link_token_is_nothing_else(links, api, app, email):
    """No access token, no refresh token, nothing to introspect, no code; and no other secret is a link."""
    link = links.link(email)
    assert api.introspect(link.token).json() == {"active": False}
    assert app.userinfo(link.token).status == 401
    assert app.refresh(link.token).error == "invalid_grant"
    assert app.redeem(link.token, email=email).error == "invalid_grant"
    assert app.redeem("000000", handle=link.handle).error == "invalid_grant"
    asked = app.request_code(email)
    assert refused(links.redeem(link, magic_token=asked.code)) and refused(links.redeem(link, magic_token=asked.handle))
    assert refused(links.poll(asked.handle))
    assert links.redeem(link).status == 200


def test_the_mail_goes_to_the_stored_address(realm, links):
    """Twins in Unicode are other mailboxes; ASCII case is not."""
    email = realm.user()
    for twin in (email.replace("i", "\u0131", 1), email.replace("m", "\uff4d", 1), email.replace("e", "\u0435", 1)):
        assert twin != email
        assert links.ask(twin).status in (200, 400)
    before = len(links.app.mailbox.mails)
    link = links.received(links.ask(email.upper()), email, 1)
    assert len(links.app.mailbox.mails) == before + 1
    assert links.redeem(link).status == 200


def test_nobody_learns_who_is_known(world, realm, links, email):
    """Same bytes but for handle and number, same headers; handles of one length; no mail."""
    unknown = realm.new_email()
    while len(unknown) != len(email):
        unknown = realm.new_email() if len(unknown) < len(email) else "m" + unknown[len(unknown) - len(email) + 1:]
    disabled = realm.user(enabled=False)
    answers = [links.ask(address) for address in (email, unknown, disabled)]
    seen = []
    for answer in answers:
        document = answer.json()
        handle, number = document.pop("AuthSession"), document.pop("MatchNumber")
        seen.append((answer.status, sorted((k, v) for k, v in answer.headers if k.lower() not in ("date", "content-length")), document, len(number)))
        assert abs(len(handle) - len(answers[0].json()["AuthSession"])) <= 4
    assert seen[0] == seen[1] == seen[2]
    world.mailbox.wait(email, 1)
    world.mailbox.wait(links.link(realm.user()).email, 1)
    assert not world.mailbox.to(unknown) and not world.mailbox.to(disabled)


@pytest.mark.parametrize("name", ["returnUrl", "redirect", "next", "redirect_uri", "url", "host"])
def test_a_link_leads_nowhere_else(realm, links, email, name):
    """In the request, on the page, in the form."""
    evil = "https://evil.example/"
    link = links.received(links.ask(email, **{name: evil}), email, 1)
    assert link.url.startswith(realm.issuer + "/magic-login?") and set(link.query) == {"userId", "token"}
    page = links.open(f"{link.target}&{name}={evil}")
    assert page.status == 200 and b"evil" not in page.body and page.header("location") is None
    answer = links.choose(link, link.number, **{name: evil})
    assert answer.status == 200 and b"evil" not in answer.body and answer.header("location") is None


def test_many_links_live_and_a_success_ends_them(realm, links, email):
    """A newer link ends no older one, so that a stranger cannot push the owner's out; codes and links do not revive each other."""
    all_links = [links.link(email) for _ in range(11)]
    code = links.app.request_code(email)
    assert links.redeem(all_links[0]).status == 200
    for link in all_links:
        assert refused(links.redeem(link))
    assert links.app.redeem(code.code, email=email).status == 200
    for link in all_links:
        assert refused(links.redeem(link))
    link = links.link(email)
    assert links.redeem(link).status == 200
    assert links.app.redeem(code.code, email=email).error == "invalid_grant"


def test_a_disabled_or_deleted_user_has_no_link(world, realm, links):
    """After the mail, and between confirmation and poll."""
    for end in (
        lambda email: world.admin.call("set_user_enabled", realm.slug, email, False),
        lambda email: world.admin.call("delete_user", realm.slug, email),
    ):
        one, two = realm.user(), realm.user()
        link, confirmed = links.link(one), links.link(two)
        assert links.choose(confirmed, confirmed.number).status == 200
        end(one)
        end(two)
        assert refused(links.redeem(link))
        assert refused(links.poll(confirmed.handle))
        assert links.choose(link, link.number).status == 400


def test_guessing_is_bounded_and_harms_nobody(world):
    """429 by source; the link, its page, codes and passkeys of the user go on."""
    realm = world.realm()
    links = Links(realm.app())
    email = realm.user()
    link = links.link(email)
    realm.limit("token", "source", permits=60, per="10 minutes")
    answers = [links.redeem(link, magic_token=base64.urlsafe_b64encode(uuid.uuid4().bytes * 2).decode().rstrip("=")) for _ in range(80)]
    counted = collections.Counter((a.status, a.error) for a in answers)
    assert set(counted) == {(400, "invalid_grant"), (429, "rate_limited")} and 60 <= counted[(400, "invalid_grant")] <= 61, counted
    world.time_travel(605)
    world.pause()
    assert links.redeem(link).status == 200
    assert links.app.sign_in(email)["access_token"]


def guesses_at(link, count):
    """Tokens that are not the link's: a character off, shifted, or at random."""
    rng = random.Random(22)
    alphabet = string.ascii_letters + string.digits + "-_"
    for number in range(count):
        guess = link.token
        while guess == link.token:
            place = rng.randrange(42)  # the last character has but 16 spellings
            guess = (
                link.token[:place] + rng.choice(alphabet) + link.token[place + 1:],
                link.token[1:42] + rng.choice(alphabet) + "A",
                "".join(rng.choice(alphabet) for _ in range(42)) + "A",
            )[number % 3]
        yield guess


def fire_guesses(node, links, link, guesses):
    """Presents (source, token) pairs for a known user over eight kept connections; the answers."""
    def run(share):
        with wire.Connection(node.port) as connection:
            return [connection.exchange("POST", "/connect/token", {
                "Host": links.app.host, "Content-Type": wire.FORM, "X-Forwarded-For": source,
            }, wire.form_body(links.redeem_form(link, magic_token=token))) for source, token in share]
    shares = [guesses[start::8] for start in range(8)]
    return [answer for answers in in_parallel(run, shares) for answer in answers]


def test_thousands_of_guesses_lock_nothing(world):
    """At the default limits: 429 for the source that guesses; from hundreds of sources the uniform answer; the user notices nothing."""
    realm = world.realm(limits=False)
    links = Links(realm.app())
    email, neighbour = realm.user(), realm.user()
    tokens = links.app.sign_in(email)
    _, passkey = links.app.enroll(tokens["access_token"])
    link, neighbours, code = links.link(email), links.link(neighbour), links.app.request_code(email)
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        started = time.monotonic()
        answers = fire_guesses(node, links, link, [("203.0.113.7", guess) for guess in guesses_at(link, 3000)])
        elapsed = time.monotonic() - started
        kinds = collections.Counter((answer.status, answer.error) for answer in answers)
        assert set(kinds) == {(400, "invalid_grant"), (429, "rate_limited")}, kinds
        assert 200 <= kinds[(400, "invalid_grant")] <= 201 + 10 * elapsed, (kinds, elapsed)
        for answer in answers:
            if answer.status == 429:
                document = answer.json()
                assert (document["policy"], document["dimension"]) == ("token", "source") and int(answer.header("retry-after")) > 0
        many = [(f"198.51.{number % 250}.{number // 250 + 1}", guess) for number, guess in enumerate(guesses_at(link, 600))]
        spread = fire_guesses(node, links, link, many)
    finally:
        node.stop()
    refusals = {str(answer.same_bytes()) for answer in answers + spread if answer.status == 400}
    assert len(refusals) == 1 and {answer.status for answer in spread} == {400}
    assert links.redeem(link).status == 200 and links.redeem(neighbours).status == 200
    assert links.app.redeem(code.code, email=email).status == 200
    assert links.app.passkey_sign_in(passkey)["access_token"] and links.app.refresh(tokens["refresh_token"]).status == 200
    locked = world.admin.run(f"SELECT codes_locked_until FROM admin.users WHERE realm = '{realm.slug}' AND codes_locked_until IS NOT NULL;")
    assert not locked, locked


def test_a_link_ends_a_lockout_of_codes(world, realm, links, email):
    """A hundred refused tries, then a link succeeds."""
    realm.put_user(email)
    code = links.app.request_code(email)
    world.cluster.sql(
        "INSERT INTO postern.code_guard (realm_id, address_key, consecutive, locked_until) "
        f"SELECT id, '{email}', 100, now() + interval '24 hours' FROM postern.realm WHERE slug = '{realm.slug}' "
        "ON CONFLICT (realm_id, address_key) DO UPDATE SET consecutive = 100, locked_until = excluded.locked_until")
    assert links.app.redeem(code.code, handle=code.handle).error == "invalid_grant"
    assert links.redeem(links.link(email)).status == 200
    assert links.app.redeem(code.code, handle=code.handle).status == 200


def test_the_order_of_checks_does_not_depend_on_the_link(realm, links, email):
    """Scope and resource are refused before the link is touched."""
    link = links.link(email)
    assert links.redeem(link, scope="nonsense").error == "invalid_scope"
    assert links.redeem(link, scope=realm.forbidden_scope).error == "invalid_request"
    assert links.redeem(link, scope="openid", resource=realm.forbidden_resource).error == "invalid_target"
    assert links.redeem(link).status == 200


def test_sign_ins_by_link_are_audited(world, realm, links, email):
    """Asked for, confirmed, signed in, refused."""
    link = links.link(email)
    assert links.choose(link, link.number).status == 200 and links.poll(link.handle).status == 200
    link = links.link(email)
    assert links.choose(link, links.wrong(link)).status == 400
    who = realm.put_user(email)
    events = [row[0] for row in world.admin.run(
        f"SELECT event FROM admin.audit_log WHERE realm = '{realm.slug}' AND user_id = '{who}' AND event NOT LIKE 'user%' ORDER BY at, id;")]
    assert events == ["link_requested", "link_confirmed", "sign_in", "link_requested", "link_denied"], events
