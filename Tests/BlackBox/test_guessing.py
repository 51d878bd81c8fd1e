"""Guessing codes: what strangers may compare, counted by the server's own metric and by the database."""

import collections
import itertools
import re

from harness import wire
from harness.report import say
from harness.volley import in_parallel, token_request, volley

REQUEST = "/api/account/native/otp/request"
_SOURCES = itertools.count()


def anywhere():
    """The header of a request that comes from a source of its own."""
    number = next(_SOURCES)
    return {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}


def compared(node):
    """Codes that were compared and wrong, as the node counts them."""
    found = re.search(r"^postern_wrong_codes_total (\d+)$", node.ops("/metrics").body.decode(), re.MULTILINE)
    return int(found.group(1))


def wrong(code, step=1):
    """As many digits that are not the code."""
    return f"{(int(code) + step) % 10 ** len(code):0{len(code)}}"


def test_one_mail_is_worth_five_guesses_by_handle(world):
    """However many requests there are inside the cooldown: each handle opens its own code alone."""
    realm = world.realm(cooldown="60 seconds")
    app, email = realm.app(), realm.user()
    asked = app.request_code(email)
    others = [app.ask(email).json()["AuthSession"] for _ in range(8)]
    for handle, step in itertools.product(others, range(4)):
        assert app.redeem(wrong(asked.code, step + 1), handle=handle).error == "invalid_grant"
    for handle in others:
        assert app.redeem(asked.code, handle=handle).error == "invalid_grant"
    assert app.redeem(asked.code, handle=asked.handle).status == 200


def test_refusals_that_compared_nothing_close_nothing(world, proxied_node):
    """A thousand tries from anywhere: by address beyond the budget, by used-up and unknown handles. The owner's code is good."""
    realm = world.realm()
    app, email = realm.app(node=proxied_node), realm.user()
    mine = app.request_code(email)
    stranger = app.request_code(email)
    before = compared(proxied_node)

    def guess(step):
        handle = (None, stranger.handle, "pas_" + "A" * 80)[step % 3]
        return app.token(app.redeem_form(wrong(mine.code, step + 1), email=None if handle else email, handle=handle), anywhere()).status

    assert set(in_parallel(guess, range(1000))) == {400}
    assert compared(proxied_node) - before <= 5 + 5 * 2, "five by the stranger's handle, five by address at two codes"
    assert app.redeem(mine.code, handle=mine.handle).status == 200


def test_an_account_is_compared_a_hundred_times_a_day(world, proxied_node):
    """With as many requests, handles and sources as anybody likes: not one more, in any mixture of forms."""
    realm = world.realm()
    realm.limit("token", "failures", 1_000_000, per="1 minute")
    app, email = realm.app(node=proxied_node), realm.user()
    before = compared(proxied_node)
    codes = []
    for _ in range(12):
        codes.append(app.request_code(email))
        for step in range(7):
            app.token(app.redeem_form(wrong(codes[-1].code, step + 1), handle=codes[-1].handle), anywhere())
            app.token(app.redeem_form(wrong(codes[-1].code, step + 20), email=email), anywhere())
        if len(codes) >= 4:
            break
    in_parallel(lambda step: app.token(app.redeem_form(wrong(codes[0].code, step + 50), email=email), anywhere()), range(300))
    count = compared(proxied_node) - before
    say(f"{count} codes of one account compared with wrong ones until it closed")
    assert count == 100
    assert int(world.cluster.sql(
        "SELECT g.consecutive FROM postern.code_guard g JOIN postern.realm r ON r.id = g.realm_id "
        f"WHERE r.slug = '{realm.slug}' AND g.address_key = '{email}'")[0][0]) == 100
    assert app.redeem(codes[-1].code, email=email).error == "invalid_grant"
    events = [e for e in world.admin.rows_of("audit_log", "code_lockout") if realm.slug in e]
    assert len(events) == 1


def test_the_brake_of_a_realm(world, proxied_node):
    """wrong-codes used up: handles have one try, addresses none, on every node within a second; known devices notice nothing."""
    realm = world.realm()
    realm.limit("token", "failures", 1_000_000, per="1 minute")
    realm.limit("token", "wrong-codes", 1, per="1 hour", burst=20)
    app, elsewhere = realm.app(node=proxied_node), realm.app()
    owner = realm.user()
    hint = app.sign_in(owner)["id_token"]
    stranger, second, address = (app.request_code(realm.user()) for _ in range(3))
    for email in realm.users(5):
        asked = app.request_code(email)
        for step in range(4):
            assert app.redeem(wrong(asked.code, step + 1), handle=asked.handle).error == "invalid_grant"
    world.pause()
    for node in (app, elsewhere):
        assert node.redeem(address.code, email=address.email).error == "invalid_grant"
    assert elsewhere.redeem(wrong(stranger.code), handle=stranger.handle).error == "invalid_grant"
    assert elsewhere.redeem(stranger.code, handle=stranger.handle).error == "invalid_grant"
    assert elsewhere.redeem(second.code, handle=second.handle).status == 200
    asked = app.request_code(owner, IdTokenHint=hint)
    for step in range(4):
        assert app.redeem(wrong(asked.code, step + 1), handle=asked.handle).error == "invalid_grant"
    assert app.redeem(asked.code, handle=asked.handle).status == 200
    events = [e for e in world.admin.rows_of("audit_log", "code_brake") if realm.slug in e]
    assert len(events) == 1
    assert "postern_code_brake_refusals_total 0" not in proxied_node.ops("/metrics").body.decode()
    world.pause()  # what was wrong has been reported
    world.time_travel(2 * 3600)
    again = app.request_code(realm.user())
    assert app.redeem(again.code, email=again.email).status == 200


def test_a_used_up_handle_of_a_braked_realm_is_replaced_by_a_resend(world):
    """Whoever errs once while the brake is on gets another handle by asking again."""
    realm = world.realm()
    realm.limit("token", "wrong-codes", 1, per="1 hour", burst=5)
    app = realm.app()
    asked = app.request_code(realm.user())
    for step in range(4):
        app.redeem(wrong(asked.code, step + 1), handle=asked.handle)
    other = app.request_code(realm.user())
    app.redeem(wrong(other.code), handle=other.handle)
    world.pause()
    again = app.request_code(other.email, AuthSession=other.handle)
    assert app.redeem(again.code, handle=again.handle).status == 200


def test_a_hot_address_costs_other_tenants_nothing(world, proxied_node):
    """Three hundred tries at one address at once, from three hundred sources: another realm's user signs in beside them."""
    realm, other = world.realm(), world.realm()
    realm.limit("token", "failures", 1_000_000, per="1 minute")
    app, bystander = realm.app(node=proxied_node), other.app(node=proxied_node)
    email = realm.user()
    app.request_code(email)
    beside = [bystander.request_code(address) for address in other.users(20)]
    requests = []
    for step in range(300):
        fields = {"Host": app.host, "Content-Type": wire.FORM, **anywhere()}
        requests.append(wire.request_bytes("POST", "/connect/token", fields, wire.form_body(app.redeem_form(f"{step:06}", email=email))))
    for asked in beside:
        requests.insert(7 * len(requests) // 8, token_request(bystander, bystander.redeem_form(asked.code, handle=asked.handle)))
    answers = volley(proxied_node.port, requests)
    good = [a for a in answers if not isinstance(a, Exception) and a.status == 200]
    assert len(good) == len(beside), collections.Counter(type(a) if isinstance(a, Exception) else a.status for a in answers)
    say(f"300 tries at one address: {sum(getattr(a, 'status', 0) == 503 for a in answers)} x 503, none of another tenant")
