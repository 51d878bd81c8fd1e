"""Single use is exact: of any number of simultaneous redemptions one wins, and nobody sees a 5xx."""

import collections

import pytest

from harness.ledger import LEDGER
from harness.report import say
from harness.settings import ROUNDS
from harness.volley import in_parallel, token_request, volley

WIDTH = 48
pytestmark = pytest.mark.slow


def statuses(answers):
    """How often each status came; exceptions count by their text."""
    return dict(collections.Counter(getattr(a, "status", repr(a)) for a in answers))


def fire(app, form, nodes):
    """48 copies of one request, spread evenly over the nodes."""
    raw = token_request(app, form)
    if len(nodes) == 1:
        return volley(nodes[0].port, [raw] * WIDTH)
    share = WIDTH // len(nodes)
    parts = in_parallel(lambda node: volley(node.port, [raw] * share), nodes, threads=len(nodes))
    return [answer for part in parts for answer in part]


@pytest.mark.parametrize("form", ["address", "handle"])
def test_one_code_redeemed_48_times_at_once_opens_one_session(world, realm, second_node, form):
    """R rounds, every other one spread over two processes. With the handle all get the session; by address every loser the uniform
    invalid_grant."""
    app = realm.app()
    rounds = ROUNDS if form == "address" else max(1, ROUNDS // 4)
    asked = in_parallel(app.request_code, realm.users(rounds))
    for number, one in enumerate(asked):
        who = {"email": one.email} if form == "address" else {"handle": one.handle}
        nodes = [world.node] if number % 2 == 0 else [world.node, second_node]
        answers = fire(app, app.redeem_form(one.code, **who), nodes)
        good = [answer.json() for answer in answers if getattr(answer, "status", None) == 200]
        wanted = {200: 1, 400: WIDTH - 1} if form == "address" else {200: WIDTH}
        assert statuses(answers) == wanted, f"round {number}: {statuses(answers)}"
        assert {a.error for a in answers if a.status == 400} <= {"invalid_grant"}
        assert len({tokens["refresh_token"] for tokens in good}) == 1
        for tokens in good:
            LEDGER.tokens(tokens)
    say(f"concurrency: {rounds} rounds x {WIDTH} redemptions of one code by {form}: one session in each")


def test_one_refresh_token_used_48_times_at_once_gives_one_successor(world, realm, second_node):
    """R rounds; all succeed with the same successor, which works, and whose use closes the window."""
    app, api = realm.app(), realm.app("api")
    families = in_parallel(app.sign_in, realm.users(ROUNDS))
    for number, tokens in enumerate(families):
        nodes = [world.node] if number % 2 == 0 else [world.node, second_node]
        form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}
        answers = fire(app, form, nodes)
        assert statuses(answers) == {200: WIDTH}, f"round {number}: {statuses(answers)}"
        for answer in answers:
            LEDGER.tokens(answer.json())
        successors = {a.json()["refresh_token"] for a in answers}
        assert len(successors) == 1, f"round {number}: {len(successors)} successors"
        assert api.active(answers[number % WIDTH].json()["access_token"])
        assert app.refresh(successors.pop()).status == 200
    say(f"concurrency: {ROUNDS} rounds x {WIDTH} refreshes of one token: one successor in each")


def test_simultaneous_wrong_guesses_are_all_counted(realm):
    """48 different guesses at once on one handle: at most five were compared, so the handle is used up."""
    app = realm.app()
    for asked in in_parallel(app.request_code, realm.users(max(1, ROUNDS // 4))):
        guesses = [f"{(int(asked.code) + step) % 1_000_000:06}" for step in range(1, WIDTH + 1)]
        answers = volley(realm.world.node.port, [token_request(app, app.redeem_form(g, handle=asked.handle)) for g in guesses])
        assert statuses(answers) == {400: WIDTH}, statuses(answers)
        assert app.redeem(asked.code, handle=asked.handle).error == "invalid_grant"


def test_the_right_code_among_wrong_ones_wins_at_most_once(realm):
    """24 right and 24 wrong by address at once: at most one success, no 5xx, no 429."""
    app = realm.app()
    for asked in in_parallel(app.request_code, realm.users(max(1, ROUNDS // 4))):
        right = token_request(app, app.redeem_form(asked.code, email=asked.email))
        wrong = token_request(app, app.redeem_form(f"{(int(asked.code) + 1) % 1_000_000:06}", email=asked.email))
        answers = volley(realm.world.node.port, [right, wrong] * (WIDTH // 2))
        counted = statuses(answers)
        assert set(counted) <= {200, 400} and counted.get(200, 0) <= 1, counted


def test_simultaneous_requests_for_one_address_leave_three_live_codes(realm):
    """Eight requests at once: eight mails, and no more than three of the codes work as guesses of their own handles."""
    app = realm.app()
    email = realm.user()
    handles = [a.json()["AuthSession"] for a in in_parallel(lambda _: app.ask(email), range(8))]
    assert len(set(handles)) == 8
    realm.world.mailbox.wait(email, 8)
    codes = {mail.code for mail in realm.world.mailbox.to(email)}
    won = [code for code in codes if app.redeem(code, email=email).status == 200]
    assert len(won) <= 1


def test_many_realms_on_one_connection_never_mix(world):
    """Two realms, one keep-alive connection, alternating: every answer is from its own realm."""
    from harness import wire  # pylint: disable=import-outside-toplevel

    realms = [world.realm(), world.realm()]
    tokens = [r.app().sign_in(r.user())["access_token"] for r in realms]
    with wire.Connection(world.node.port) as connection:
        for number in range(500 if ROUNDS < 100 else 10_000):
            here = number % 2
            headers = {"Host": realms[here].host, "Authorization": f"Bearer {tokens[here]}"}
            assert connection.exchange("GET", "/connect/userinfo", headers).status == 200
            headers["Authorization"] = f"Bearer {tokens[1 - here]}"
            assert connection.exchange("GET", "/connect/userinfo", headers).status == 401
