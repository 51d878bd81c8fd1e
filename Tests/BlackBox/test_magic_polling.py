"""Magic links by polling: the device that asked waits while the number is confirmed elsewhere (RFC 8628 section 3.5)."""

import time

import pytest

from harness.clock import AT_ONCE
from harness.links import Links
from harness.report import say
from harness.settings import ROUNDS, UNIFORM_DEADLINE_MS
from harness.volley import in_parallel, token_request, volley

REFUSED = {"error": "invalid_grant", "error_description": "Invalid or expired link."}
WIDTH = 48


@pytest.fixture
def links(app):
    """What app, mailbox and browser do with links."""
    return Links(app)


def error(answer):
    """The error of a 400."""
    assert answer.status == 400 and "no-store" in answer.header("cache-control"), answer
    return answer.json()["error"]


def test_the_device_that_asked_is_signed_in_once_the_number_is_confirmed(api, email, links):
    """Pending, confirmed elsewhere, tokens; then never again."""
    link = links.link(email)
    assert error(links.poll(link.handle)) == "authorization_pending"
    confirmed = links.choose(link, link.number)
    assert confirmed.status == 200 and b"Confirmed" in confirmed.body
    answer = links.poll(link.handle, scope="openid offline_access profile email")
    assert answer.status == 200, answer
    tokens = answer.json()
    assert api.active(tokens["access_token"]) and links.app.refresh(tokens["refresh_token"]).status == 200
    assert links.app.userinfo(tokens["access_token"]).json()["email_verified"] is True
    assert links.poll(link.handle).json() == REFUSED
    assert links.redeem(link).json() == REFUSED
    assert b"used already" in links.choose(link, links.wrong(link)).body


def test_whoever_polls_too_early_waits_five_seconds_longer(world, email, links):
    """slow_down, and the interval grows with each."""
    handle = links.link(email).handle
    assert error(links.poll(handle)) == "authorization_pending"
    world.time_travel(AT_ONCE)
    for _ in range(7):
        assert error(links.poll(handle)) == "slow_down"
    world.time_travel(20 - AT_ONCE)
    assert error(links.poll(handle)) == "slow_down", "forty seconds since the last one in time"
    world.time_travel(26)
    assert error(links.poll(handle)) == "authorization_pending"
    world.time_travel(25)
    assert error(links.poll(handle)) == "slow_down", "the interval stays longer"


def test_whoever_keeps_the_interval_is_never_slowed_down(world, email, links):
    """Ten polls five seconds apart."""
    handle = links.link(email).handle
    for _ in range(10):
        assert error(links.poll(handle)) == "authorization_pending"
        world.time_travel(5)


def test_the_interval_is_kept_across_nodes(world, email, links):
    """The state is in the database."""
    node = world.start_node()
    try:
        other = Links(type(links.app)(node, links.app.mailbox, links.app.host, links.app.client_id))
        link = links.link(email)
        assert error(links.poll(link.handle)) == "authorization_pending"
        world.time_travel(AT_ONCE)
        assert error(other.poll(link.handle)) == "slow_down"
        assert other.choose(link, link.number).status == 200
        answer = links.poll(link.handle)
        assert answer.status == 200 and other.poll(link.handle).json()["refresh_token"] == answer.json()["refresh_token"]
        assert links.app.refresh(answer.json()["refresh_token"]).status == 200
        assert other.poll(link.handle).json() == REFUSED
    finally:
        node.stop()


def test_a_handle_of_nobody_is_polled_like_any_other(world, realm, email, links):
    """Pending, slow_down, pending, and invalid_grant when its time is over; the bytes and headers are the same."""
    handles = [links.ask(email).json()["AuthSession"], links.ask(realm.new_email()).json()["AuthSession"]]
    world.mailbox.wait(email, 1)
    seen = [[], []]
    for seconds in (0, AT_ONCE, 11 - AT_ONCE, 11, AT_ONCE, 1000):
        if seconds:
            world.time_travel(seconds)
        for number, handle in enumerate(handles):
            seen[number].append(links.poll(handle))
    assert [a.same_bytes() for a in seen[0]] == [a.same_bytes() for a in seen[1]]
    assert [error(a) for a in seen[1]] == [
        "authorization_pending", "slow_down", "authorization_pending", "authorization_pending", "slow_down", "invalid_grant"]
    assert seen[1][-1].json() == REFUSED


def test_polls_leave_at_the_fixed_deadline(realm, email, links):
    """Pending, refused, denied and unknown: none is answered before it."""
    link = links.link(email)
    for handle in (link.handle, link.handle, "pas_nonsense", links.ask(realm.new_email()).json()["AuthSession"]):
        started = time.monotonic()
        assert error(links.poll(handle)) in ("authorization_pending", "slow_down", "invalid_grant")
        assert time.monotonic() - started >= UNIFORM_DEADLINE_MS / 1000 * 0.9


@pytest.mark.parametrize("number", ["wrong", "none"])
def test_a_wrong_number_ends_the_link(world, email, links, number):
    """access_denied, as often as the device asks; the link is dead in every form, and a new request starts anew."""
    link = links.link(email)
    assert error(links.poll(link.handle)) == "authorization_pending"
    refused = links.choose(link, links.wrong(link) if number == "wrong" else number)
    assert (refused.status, b"Sign-in refused" in refused.body) == ((400, True) if number == "wrong" else (200, False))
    assert error(links.poll(link.handle)) == "access_denied"
    assert error(links.poll(link.handle)) == "access_denied"
    assert links.redeem(link).json() == REFUSED
    assert links.choose(link, link.number).status == 400 and error(links.poll(link.handle)) == "access_denied"
    if number == "none":
        world.time_travel(901)
    again = links.link(email, AuthSession=link.handle)
    assert again.handle != link.handle
    assert links.choose(again, again.number).status == 200 and links.poll(again.handle).status == 200
    world.time_travel(901)
    assert links.poll(link.handle).json() == REFUSED


def test_a_redeemed_link_leaves_its_device_nothing(email, links):
    """The app opened the link by itself: polling and page find it used."""
    link = links.link(email)
    assert error(links.poll(link.handle)) == "authorization_pending"
    assert links.redeem(link).status == 200
    assert links.poll(link.handle).json() == REFUSED
    assert b"used already" in links.choose(link, link.number).body


@pytest.mark.parametrize("handle", ["pas_", "nonsense", "pas_" + "A" * 90, "x" * 5000])
def test_a_forged_handle_is_refused_uniformly(links, handle):
    """The same bytes as any other."""
    assert links.poll(handle).json() == REFUSED


def test_a_handle_belongs_to_its_realm(world, email, links):
    link = links.link(email)
    assert Links(world.realm().app()).poll(link.handle).json() == REFUSED
    assert links.choose(link, link.number).status == 200 and links.poll(link.handle).status == 200


def test_the_handle_of_a_confirmed_link_lives_a_moment_longer(world, email, links):
    """Confirmed in the last seconds, polled after the end of the link."""
    link = links.link(email)
    world.time_travel(880)
    assert links.choose(link, link.number).status == 200
    world.time_travel(40)
    assert links.poll(link.handle).status == 200


def test_requests_are_limited_alike_for_everybody(world):
    """Policy magic-link: target, target-total, source, client; the 429 is the same for known and unknown addresses."""
    for dimension in ("target", "target-total", "source", "client"):
        realm = world.realm()
        realm.limit("magic-link", dimension, permits=2)
        links = Links(realm.app())
        for address in (realm.user(), realm.new_email()):
            answers = [links.ask(address, ClientId=links.app.client_id) for _ in range(3)]
            if dimension in ("target", "target-total"):
                assert [a.status for a in answers] == [200, 200, 429], dimension
            body = answers[-1].json()
            assert answers[-1].status == 429 and (body["error"], body["policy"], body["dimension"]) == ("rate_limited", "magic-link", dimension)
            assert int(answers[-1].header("retry-after")) == body["retryAfterSeconds"] > 0


def test_one_link_redeemed_48_times_at_once_succeeds_once(world, realm, links):
    """Rounds over two processes; every loser gets the uniform invalid_grant."""
    node = world.start_node()
    try:
        all_links = in_parallel(links.link, realm.users(ROUNDS))
        for number, link in enumerate(all_links):
            raw = token_request(links.app, links.redeem_form(link))
            check(fire([world.node, node] if number % 2 else [world.node], [raw] * WIDTH), number)
        say(f"concurrency: {ROUNDS} rounds x {WIDTH} redemptions of one link: one success in each")
    finally:
        node.stop()


def test_one_confirmed_link_polled_and_redeemed_48_times_at_once_succeeds_once(world, realm, links):
    """Half of them polls, half redemptions of the token: one session, which all polls get if a poll opened it."""
    node = world.start_node()
    try:
        all_links = in_parallel(links.link, realm.users(ROUNDS))
        for number, link in enumerate(all_links):
            if number % 2:
                assert links.choose(link, link.number).status == 200
            poll, redeem = token_request(links.app, links.poll_form(link.handle)), token_request(links.app, links.redeem_form(link))
            answers = fire([world.node, node], [poll, redeem] * (WIDTH // 2))
            won = {a.json()["refresh_token"] for a in answers if a.status == 200}
            assert len(won) == 1, [str(a) for a in answers]
            errors = {a.json()["error"] for a in answers if a.status == 400}
            assert errors <= {"invalid_grant", "authorization_pending", "slow_down"} and {a.status for a in answers} <= {200, 400}, errors
        say(f"concurrency: {ROUNDS} rounds x {WIDTH} polls and redemptions of one link: one success in each")
    finally:
        node.stop()


def test_one_link_answered_redeemed_and_polled_at_once_has_one_end(realm, links):
    """Confirmations, denials, redemptions and polls of one link at the same instant: at most one sign-in, no 5xx."""
    ends = set()
    for link in in_parallel(links.link, realm.users(max(4, ROUNDS // 2))):
        app = links.app
        wrong = links.wrong(link)
        form = lambda number: page_request(app, link, number)  # pylint: disable=cell-var-from-loop
        raws = [form(link.number), form(wrong), token_request(app, links.redeem_form(link)), token_request(app, links.poll_form(link.handle))]
        answers = volley(app.node.port, raws * 8)
        assert {a.status for a in answers} <= {200, 400}, [str(a) for a in answers]
        last = links.poll(link.handle)
        signed_in = [a for a in answers + [last] if a.status == 200 and b"access_token" in a.body]
        assert len({a.json()["refresh_token"] for a in signed_in}) <= 1
        if signed_in:
            ends.add("signed in")
        else:
            assert error(last) == "access_denied"
            ends.add("denied")
    assert ends


def page_request(app, link, number):
    """The bytes of an answer to the page."""
    from harness import wire  # pylint: disable=import-outside-toplevel

    body = wire.form_body({"userId": link.user_id, "token": link.token, "number": number})
    return wire.request_bytes("POST", "/magic-login", {"Host": app.host, "Content-Type": wire.FORM}, body)


def fire(nodes, raws):
    """The requests, spread evenly over the nodes."""
    share = len(raws) // len(nodes)
    parts = in_parallel(
        lambda index: volley(nodes[index].port, raws[index * share:(index + 1) * share]), range(len(nodes)), threads=len(nodes))
    return [answer for part in parts for answer in part]


def check(answers, number):
    """One 200, and the uniform refusal otherwise."""
    won = [a for a in answers if a.status == 200]
    assert len(won) == 1, f"round {number}: {[str(a) for a in answers]}"
    assert all(a.json() == REFUSED for a in answers if a is not won[0])
