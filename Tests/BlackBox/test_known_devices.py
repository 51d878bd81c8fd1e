"""Known devices: an app that sends the last ID token it has signs in by code, whatever strangers do to the account."""

import concurrent.futures
import itertools
import random
import threading

import pytest

from harness import jose, settings, wire
from harness.report import say

REQUEST = "/api/account/native/otp/request"
_SOURCES = itertools.count()


def anywhere():
    """The header of a request that comes from a source of its own."""
    number = next(_SOURCES)
    return {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}


def wrong(code, step=1):
    """As many digits that are not the code."""
    return f"{(int(code) + step) % 10 ** len(code):0{len(code)}}"


@pytest.fixture
def strict(world):
    """A realm with the default limits."""
    return world.realm(limits=False)


def hint_of(app, email):
    """The ID token of a sign-in."""
    return app.sign_in(email)["id_token"]


def sent(app, email, hint, **members):
    """Asks with a hint; whether a mail came. The worker is past the request, and a mail of before is not far behind one of after."""
    before = len(app.mailbox.to(email))
    assert app.ask(email, IdTokenHint=hint, **members).status == 200
    past(app)
    try:
        app.mailbox.wait(email, before + 1, timeout=0.5)
    except AssertionError:
        return False
    return True


def past(app):
    """The worker has decided what was asked for before: it works in order, and a mail needs a decision."""
    realm = PAST[app.host]
    email = realm.user()
    app.request_code(email)


PAST = {}


@pytest.fixture(autouse=True)
def _remember(strict):
    PAST[strict.host] = strict


def close_for_strangers(realm, email):
    """As a hundred wrong codes would."""
    realm.world.cluster.sql(
        "INSERT INTO postern.code_guard (realm_id, address_key, consecutive, locked_until) "
        f"SELECT id, '{email}', 100, now() + interval '1 day' FROM postern.realm WHERE slug = '{realm.slug}' "
        "ON CONFLICT (realm_id, address_key) DO UPDATE SET consecutive = 100, locked_until = now() + interval '1 day'"
    )


def test_a_known_device_signs_in_while_the_account_is_closed_to_strangers(strict, proxied_node):
    """Its requests send mail, its handle is looked at; strangers' are not, and nobody sees a difference in the answers."""
    app = strict.app(node=proxied_node)
    email = strict.user()
    hint = hint_of(app, email)
    close_for_strangers(strict, email)
    answers = [app.ask(email), app.ask(email, IdTokenHint=hint)]
    assert [list(a.json()) for a in answers] == [list(answers[0].json())] * 2
    assert len(answers[0].body) == len(answers[1].body)
    app.mailbox.wait(email, 2)
    asked = app.request_code(email, IdTokenHint=hint)
    assert app.redeem(asked.code, email=email).error == "invalid_grant"
    answer = app.redeem(asked.code, handle=asked.handle)
    assert answer.status == 200
    assert not sent(app, email, None), "its success opened the account for strangers"
    assert sent(app, email, answer.json()["id_token"])


def test_strangers_cannot_use_up_what_a_known_device_may_ask_for(strict, proxied_node):
    """Twenty requests from anywhere use up the address's limits, also for its owner without a hint; not for the device."""
    app = strict.app(node=proxied_node)
    email = strict.user()
    hint = hint_of(app, email)
    statuses = [app.post_json(REQUEST, {"Email": email}, anywhere()).status for _ in range(20)]
    assert statuses.count(200) == 9 and statuses[-1] == 429
    assert app.ask(email).status == 429
    app.mailbox.wait(email, 10)
    asked = app.request_code(email, IdTokenHint=hint)
    assert app.redeem(asked.code, handle=asked.handle).status == 200


def test_one_network_does_not_use_up_what_everybody_finds_of_a_client(world, proxied_node):
    """Requests of one IPv6 /48 for invented addresses; then each other source, unknown as it may be, has a few requests, by code and by link."""
    realm = world.realm()
    app = realm.app(node=proxied_node)

    def uses_up(policy, part, all_but):
        per = {"": 550, "each|": 250}[part]
        world.cluster.sql(
            "INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)"
            f" SELECT r.id, '{policy}|client|{part}{app.client_id}', now() + interval '1 day' * {per - all_but} / {per}"
            f" FROM postern.realm AS r WHERE r.slug = '{realm.slug}' ON CONFLICT (realm_id, key) DO UPDATE SET tat = excluded.tat;")

    for policy, path in (("native-otp", REQUEST), ("magic-link", "/api/account/magic-link/request")):
        realm.limit(policy, "client", 1000, per="1 day", burst=1000)
        uses_up(policy, "", 10)

        def ask(source, path=path):
            return app.post_json(path, {"Email": realm.new_email(), "ClientId": app.client_id}, {"X-Forwarded-For": source})

        statuses = [ask(f"2001:db8:7:{number:x}::1").status for number in range(40)]
        assert statuses == [200] * (10 + 20) + [429] * 10, "what all find, and the share of the network"
        assert [ask(anywhere()["X-Forwarded-For"]).status for _ in range(5)] == [200] * 5
        uses_up(policy, "each|", 0)
        answers = [ask(anywhere()["X-Forwarded-For"]) for _ in range(70)]  # the process has some permits at hand
        assert answers[-1].status == 429 and answers[-1].json()["dimension"] == "client", "a quarter, and no more"


def test_a_device_has_a_target_total_of_its_own(strict):
    """Ten requests an hour by its sid; then it is refused like anybody."""
    app = strict.app()
    email = strict.user()
    hint, other = hint_of(app, email), hint_of(app, email)
    answers = [app.ask(email, IdTokenHint=hint) for _ in range(11)]
    assert [a.status for a in answers] == [200] * 10 + [429]
    assert answers[-1].json()["dimension"] == "target-total"
    app.mailbox.wait(email, 12)
    asked = app.request_code(email, IdTokenHint=other)
    assert app.redeem(asked.code, handle=asked.handle).status == 200, "another device has its own"


def test_another_accounts_id_token_gains_nothing(strict, proxied_node):
    """Whoever has ID tokens of their own is bound by the address's limits, and the address's owner learns nothing of it."""
    app = strict.app(node=proxied_node)
    victim, attacker = strict.user(), strict.user()
    hint = hint_of(app, victim)
    mine = []
    for _ in range(3):
        mine.append(hint_of(app, attacker))
    before = len(app.mailbox.to(victim))
    statuses = [
        app.post_json(REQUEST, {"Email": victim, "IdTokenHint": token}, anywhere()).status for token in mine for _ in range(10)
    ]
    assert statuses == [200] * 30, "what a hint is worth is not told"
    past(app)
    assert len(app.mailbox.to(victim)) - before <= 10, "no more mails than without a hint"
    assert app.post_json(REQUEST, {"Email": victim}, anywhere()).status == 429
    close_for_strangers(strict, victim)
    assert not sent(app, victim, hint_of(app, strict.user())), "closed for strangers is closed for them"
    asked = app.request_code(victim, IdTokenHint=hint)
    assert app.redeem(asked.code, handle=asked.handle).status == 200


def test_a_device_that_errs_closes_only_itself(strict):
    """A hundred wrong codes by handles of one device: that device for a day, no other one and no stranger."""
    strict.limit("native-otp", "target", 1_000_000, per="1 minute")
    strict.limit("native-otp", "target-total", 1_000_000, per="1 minute")
    app = strict.app()
    email = strict.user()
    one, other = hint_of(app, email), hint_of(app, email)
    for _ in range(20):
        asked = app.request_code(email, IdTokenHint=one)
        for step in range(5):
            assert app.redeem(wrong(asked.code, step + 1), handle=asked.handle).error == "invalid_grant"
    assert app.redeem(asked.code, handle=asked.handle).error == "invalid_grant"
    assert not sent(app, email, one)
    for hint in (other, None):
        asked = app.request_code(email, **({"IdTokenHint": hint} if hint else {}))
        assert app.redeem(asked.code, handle=asked.handle).status == 200


def forged(token, **claims):
    """The same token with other claims and the old signature."""
    header, payload, signature = token.split(".")
    changed = {**jose.parts(token)[1], **claims}
    return f"{header}.{jose.b64url(wire.json.dumps(changed).encode())}.{signature}"


def test_what_is_no_id_token_of_the_realm_changes_nothing(world, strict):
    """Access tokens, other realms', forged and broken ones, other clients' where the request names one: no mail while closed, and 200."""
    app, jwt, second = strict.app(), strict.app("jwt"), strict.app("app-2")
    email = strict.user()
    good = hint_of(app, email)
    access = jwt.sign_in(email)["access_token"]
    elsewhere = world.realm()
    elsewhere.put_user(email)
    foreign = hint_of(elsewhere.app(), email)
    strict.limit("native-otp", "target", 1_000_000, per="1 minute")
    strict.limit("native-otp", "target-total", 1_000_000, per="1 minute")
    close_for_strangers(strict, email)
    head, body, signature = good.split(".")
    none = jose.b64url(b'{"alg":"none","typ":"JWT"}')
    bad = [
        access, foreign, forged(good, sid=jose.parts(good)[1]["sub"]), f"{none}.{body}.", f"{none}.{body}.{signature}", f"{head}.{body}", good + ".x",
        good[:-2], "", "x", "." * 3, good + "A" * 5000, "\u202e" + good, f"{head}.{body}.{signature[:-4]}AAAA",
    ]
    for hint in bad:
        assert not sent(app, email, hint), hint
    assert not sent(app, email, good, ClientId=second.client_id), "another client's"
    assert sent(app, email, good, ClientId=app.client_id)
    assert sent(app, email, good), "of any client where none is named"


def test_an_old_id_token_is_as_good_as_a_new_one(world, strict):
    """Expired, its session ended, its key retired: as long as the key is not deleted, or taken back by an administrator."""
    app = strict.app()
    email = strict.user()
    tokens = app.sign_in(email)
    hint = tokens["id_token"]
    world.time_travel(3600)
    assert app.post("/connect/revoke", {**app.credentials(), "token": tokens["refresh_token"]}).status == 200
    world.admin.call("rotate_signing_key", strict.slug)
    deadline = 60
    while deadline and world.cluster.sql(
        f"SELECT count(*) FROM admin.signing_keys WHERE realm = '{strict.slug}'", role=world.admin.role
    )[0][0] == "1":
        deadline -= 1
        threading.Event().wait(0.25)
    world.time_travel(3 * 3600)
    world.pause()
    kid = jose.parts(hint)[0]["kid"]
    assert kid not in app.get("/.well-known/jwks").body.decode(), "retired"
    close_for_strangers(strict, email)
    assert sent(app, email, hint)
    world.admin.call("retire_signing_key", strict.slug, kid)
    world.pause()
    assert not sent(app, email, hint), "whoever has a key that was taken back can write hints"


def test_a_hint_may_come_with_a_resend(world):
    """The handle stays, and is the device's from then on."""
    realm = world.realm(cooldown="60 seconds")
    PAST[realm.host] = realm
    app = realm.app()
    email = realm.user()
    hint = hint_of(app, email)
    asked = app.request_code(email)
    world.time_travel(61)
    again = app.request_code(email, AuthSession=asked.handle, IdTokenHint=hint)
    close_for_strangers(realm, email)
    assert app.redeem(again.code, handle=again.handle).status == 200


@pytest.mark.parametrize("dimension", ["app", "client"])
def test_known_devices_have_a_fifth_of_the_broad_limits(world, strict, dimension):
    """Strangers use up four fifths between them; a device asks on. The fifth is no secret way round: one account takes ten an hour of it."""
    host = strict.put_app("shop", clients=["app"])
    app = strict.app_on(host)
    email = strict.user()
    hint = hint_of(app, email)
    strict.limit("native-otp", "target-total", 10, per="1 hour")
    strict.limit("native-otp", dimension, 100, per="1 hour")
    named = {"ClientId": app.client_id} if dimension == "client" else {}

    def ask(address, **members):
        return app.ask(address, **named, **members)

    statuses = [ask(strict.new_email()).status for _ in range(82)]
    assert statuses[:79] == [200] * 79 and statuses[-1] == 429, statuses.count(200)
    assert ask(email).status == 429
    assert [ask(email, IdTokenHint=hint).status for _ in range(5)] == [200] * 5
    assert [ask(strict.new_email(), IdTokenHint=hint).status for _ in range(6)] == [200] * 5 + [429]


def sign_in_among_strangers(app, email, hint):
    """Mails that strangers caused may come first: the owner tries the codes as they come, two at most in practice."""
    known = len(app.mailbox.to(email))
    answer = app.ask(email, IdTokenHint=hint)
    assert answer.status == 200, answer
    handle = answer.json()["AuthSession"]
    for number in range(known, known + 5):
        app.mailbox.wait(email, number + 1)
        answer = app.redeem(app.mailbox.to(email)[number].code, handle=handle)
        if answer.status == 200:
            break
    return answer


def test_the_owner_signs_in_at_every_attempt(world, strict, proxied_node):
    """Strangers from thousands of sources ask, guess by address and by their own handles, without pause."""
    attempts = 50 if settings.FULL else 8
    app = strict.app(node=proxied_node)
    email = strict.user()
    hint = hint_of(app, email)
    handles, stop, counts = [], threading.Event(), {"requests": 0, "guesses": 0}
    other = hint_of(app, strict.user())

    def stranger(number):
        while not stop.is_set():
            kind = random.random()
            if kind < 0.3:
                answer = app.post_json(REQUEST, {"Email": email, **({"IdTokenHint": other} if number % 2 else {})}, anywhere())
                if answer.status == 200:
                    handles.append(answer.json()["AuthSession"])
                counts["requests"] += 1
                continue
            handle = random.choice(handles) if handles and kind < 0.6 else None
            form = app.redeem_form(f"{random.randrange(1_000_000):06}", email=None if handle else email, handle=handle)
            assert app.token(form, anywhere(), timeout=30).status in (400, 429, 503)
            counts["guesses"] += 1

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        strangers = [pool.submit(stranger, number) for number in range(6)]
        try:
            for _ in range(attempts):
                answer = sign_in_among_strangers(app, email, hint)
                assert answer.status == 200, answer
                hint = answer.json()["id_token"]
        finally:
            stop.set()
    for result in strangers:
        result.result()
    say(f"{attempts} sign-ins of a known device beside {counts['requests']} requests and {counts['guesses']} guesses of strangers")
    row = world.cluster.sql(
        "SELECT g.consecutive FROM postern.code_guard g JOIN postern.realm r ON r.id = g.realm_id "
        f"WHERE r.slug = '{strict.slug}' AND g.address_key = '{email}'"
    )
    assert not row or int(row[0][0]) <= 100
