"""Rate limits: every dimension, exact over processes, cheap when refused, effective at once."""

import collections
import re
import time

import pytest

from harness import wire
from harness.report import say
from harness.volley import in_parallel, volley

REQUEST, REGISTER = "/api/account/native/otp/request", "/api/account/native/register"


def assert_refused(answer, policy, dimension):
    """429 as docs/wire.md writes it."""
    assert answer.status == 429, answer
    assert re.fullmatch(r"[1-9][0-9]*", answer.header("retry-after")), answer
    assert answer.json() == {
        "error": "rate_limited", "policy": policy, "dimension": dimension, "retryAfterSeconds": int(answer.header("retry-after")),
    }
    assert "no-store" in answer.header("cache-control"), answer


def requests_of(realm, app):
    """One request of each limited endpoint: policy, how to send it from some source, what it is answered unlimited."""
    def json_to(path):
        return lambda headers=None, **members: app.post_json(path, {"Email": realm.new_email(), **members}, headers)
    return {
        "otp/request": ("native-otp", json_to(REQUEST), 200),
        "register": ("native-otp", json_to(REGISTER), 200),
        "magic-link/request": ("magic-link", json_to("/api/account/magic-link/request"), 200),
        "passkey/begin": ("passkey-begin", lambda headers=None: app.begin(headers), 200),
        "token": ("token", lambda headers=None: app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": "x"}, headers), 400),
    }


ENDPOINTS = ["otp/request", "register", "magic-link/request", "passkey/begin", "token"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_source_gets_its_burst_and_no_more(world, endpoint):
    """N answers, then 429; the same source in another realm is not concerned."""
    realm, other = world.realm(), world.realm()
    policy, send, usual = requests_of(realm, realm.app())[endpoint]
    realm.limit(policy, "source", 4)
    assert [send().status for _ in range(4)] == [usual] * 4
    assert_refused(send(), policy, "source")
    assert requests_of(other, other.app())[endpoint][1]().status == usual


@pytest.mark.parametrize("endpoint", ["token", "passkey/begin"])
def test_a_client_has_a_budget_of_its_own(world, endpoint):
    """Where a limit by client is set."""
    realm = world.realm()
    policy, send, usual = requests_of(realm, realm.app())[endpoint]
    realm.limit(policy, "client", 3)
    assert [send().status for _ in range(3)] == [usual] * 3
    assert_refused(send(), policy, "client")
    assert requests_of(realm, realm.app("app-2"))[endpoint][1]().status == usual


def test_a_client_is_counted_in_requests_that_name_it(world):
    """ClientId."""
    realm = world.realm()
    realm.limit("native-otp", "client", 2)
    app = realm.app()
    _, send, _ = requests_of(realm, app)["otp/request"]
    assert [send(ClientId=app.client_id).status for _ in range(2)] == [200] * 2
    assert_refused(send(ClientId=app.client_id), "native-otp", "client")
    assert send().status == 200


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_app_has_a_budget_of_its_own(world, endpoint):
    """Dimension app: the host's App, whoever asks; other Apps and the realm's own host are not concerned."""
    realm = world.realm()
    shop, desk = realm.put_app("shop"), realm.put_app("desk")
    policy, send, usual = requests_of(realm, realm.app_on(shop))[endpoint]
    realm.limit(policy, "app", 3)
    assert [send().status for _ in range(3)] == [usual] * 3
    assert_refused(send(), policy, "app")
    for host in (desk, realm.host):
        assert requests_of(realm, realm.app_on(host))[endpoint][1]().status == usual


def test_an_address_is_limited_per_source_and_in_all(world, proxied_node):
    """target: five from one source; target-total: ten from wherever. Known and unknown alike."""
    realm = world.realm(limits=False)
    app = realm.app(node=proxied_node)
    for email in (realm.user(), realm.new_email()):
        sources = [f"203.0.113.{number}" for number in (1, 2, 3)]
        answers = {s: [app.post_json(REQUEST, {"Email": email}, {"X-Forwarded-For": s}) for _ in range(6)] for s in sources[:2]}
        for source in sources[:2]:
            assert [a.status for a in answers[source]] == [200] * 5 + [429]
            assert_refused(answers[source][-1], "native-otp", "target")
        assert_refused(app.post_json(REQUEST, {"Email": email}, {"X-Forwarded-For": sources[2]}), "native-otp", "target-total")


@pytest.mark.parametrize("endpoint", ["otp/request", "register"])
def test_five_hundred_requests_for_one_address_at_once_stop_at_the_limit(world, second_node, endpoint):
    """500 at a barrier on two processes; exactly five pass."""
    realm = world.realm()
    realm.limit("native-otp", "target", 5)
    email = realm.user()
    path = REQUEST if endpoint == "otp/request" else REGISTER
    app = realm.app()
    raw = wire.request_bytes(
        "POST", path, {"Host": app.host, "Content-Type": "application/json"}, b'{"Email":"%s"}' % email.encode()
    )
    counts = fire(raw, 500, [world.node, second_node], app.host)
    assert counts == {200: 5, 429: 495}, counts


def fire(raw, count, nodes, host):
    """How often each status came. The realm's first request makes its signing key, which is not what is to be seen."""
    for node in nodes:
        assert wire.exchange(node.port, "GET", "/.well-known/jwks", {"Host": host}).status == 200
    share = count // len(nodes)
    parts = in_parallel(lambda node: volley(node.port, [raw] * share), nodes, threads=len(nodes))
    return dict(collections.Counter(getattr(a, "status", repr(a)) for part in parts for a in part))


#: Seconds after which a process forfeits the permits that it leased and did not use.
LEASE = 2


@pytest.mark.parametrize("dimension", ["source", "client"])
@pytest.mark.parametrize("limit", [7, 100, 300])
def test_a_limit_is_exact_over_two_processes(world, second_node, dimension, limit):
    """400 token requests at a barrier. Permits leased in blocks (limits of 128 and more) never add up to more than there are."""
    # On a machine that stands still for longer than a lease lasts, permits go unused: that run says nothing of the lower bound.
    for _ in range(5):
        realm = world.realm()
        realm.limit("token", dimension, limit, per="1 day")
        app = realm.app()
        raw = wire.request_bytes(
            "POST", "/connect/token", {"Host": app.host, "Content-Type": wire.FORM},
            wire.form_body({"grant_type": "refresh_token", "client_id": app.client_id, "refresh_token": "x"}),
        )
        began = time.monotonic()
        counts = fire(raw, 400, [world.node, second_node], app.host)
        took = time.monotonic() - began
        assert set(counts) <= {400, 429} and counts[400] <= limit, counts
        # What one process leased in blocks and did not use is lost to the other.
        if counts[400] >= limit - (4 * (limit // 64) if limit >= 128 else 0):
            return
        assert limit >= 128 and took >= LEASE, counts
    pytest.fail(f"five runs in which 400 requests took {LEASE} s and more")


def test_after_retry_after_it_works_again_and_not_before(world):
    """Two permits at once, then one in two seconds."""
    realm = world.realm()
    _, send, usual = requests_of(realm, realm.app())["token"]
    realm.limit("token", "source", 1, per="2 seconds", burst=2)
    assert [send().status for _ in range(2)] == [usual] * 2
    refused = send()
    began = time.monotonic()
    assert_refused(refused, "token", "source")
    assert int(refused.header("retry-after")) <= 2
    while (answer := send()).status == 429:
        assert time.monotonic() - began < int(refused.header("retry-after")) + 0.5, "later than promised"
        time.sleep(0.05)
    assert answer.status == usual
    assert time.monotonic() - began > int(refused.header("retry-after")) - 1


def test_a_changed_limit_is_in_force_at_once(world, second_node):
    """Raised and lowered, by set and by reset, on every node, within a second; a remembered refusal does not outlive it."""
    realm = world.realm()
    realm.limit("token", "source", 2)
    nodes = [realm.app(node=node) for node in (world.node, second_node)]
    assert [nodes[0].refresh("x").status for _ in range(3)] == [400, 400, 429]
    assert nodes[1].refresh("x").status == 429
    realm.limit("token", "source", 1_000_000, per="1 minute")
    assert [app.refresh("x").status for app in nodes] == [400, 400]
    realm.limit("token", "source", 1, per="1 day")
    assert [app.refresh("x").status for app in nodes].count(400) <= 1
    world.admin.call("reset_rate_limit", realm.slug, "token", "source")
    world.settle()
    world.time_travel(86400)
    world.pause()
    assert [app.refresh("x").status for app in nodes] == [400, 400]


def test_a_watched_limit_refuses_nobody_and_says_so(world):
    """Mode log-only: counted, one line in the log, a metric; enforced from then on, what was counted is counted."""
    realm = world.realm()
    app = realm.app()
    world.admin.call("set_rate_limit", realm.slug, "native-otp", "source", permits=3, per="1 day", burst=3, mode="log-only")
    world.admin.call("set_rate_limit", realm.slug, "native-otp", "target", permits=1, per="1 day", burst=1, mode="log-only")
    world.settle()
    email = realm.user()
    assert [app.ask(email).status for _ in range(9)] == [200] * 9
    lines = [line for line in world.node.log().splitlines() if "rate limit exceeded" in line and realm.slug in line]
    assert any("source" in line and "127.0.0.1" in line and "log-only" in line for line in lines), lines
    assert any("target" in line for line in lines) and not any(email in line for line in lines), lines
    assert len(lines) < 9, "one line for each time the database was asked, not for each request of a flood"
    counted = re.findall(r'postern_rate_limit_exceeded_total\{policy="native-otp",dimension="source",mode="log-only"\} (\d+)', world.node.ops("/metrics").body.decode())
    assert counted and int(counted[0]) >= 6, counted
    world.admin.call("set_rate_limit", realm.slug, "native-otp", "source", mode="enforce")
    world.settle()
    assert_refused(app.ask(realm.new_email()), "native-otp", "source")


def test_a_watched_limit_does_not_hide_an_enforced_one(world):
    """The first watched, the second enforced."""
    realm = world.realm()
    world.admin.call("set_rate_limit", realm.slug, "token", "source", permits=1, per="1 day", burst=1, mode="log-only")
    realm.limit("token", "client", 4)
    assert [realm.app().refresh("x").status for _ in range(5)] == [400] * 4 + [429]


@pytest.mark.slow
def test_a_flood_of_refused_requests_hardly_reaches_the_database(world):
    """3,000 refused requests for one address, and for one source; far fewer transactions than requests, and less time each."""
    realm = world.realm()
    realm.limit("native-otp", "target", 5)
    realm.limit("token", "source", 5)
    app, email = realm.app(), realm.user()
    for send in (lambda _: app.ask(email).status, lambda _: app.refresh("x").status):
        in_parallel(send, range(20))
        before = transactions(world)
        began = time.monotonic()
        assert set(in_parallel(send, range(3000))) == {429}
        seconds = time.monotonic() - began
        used = transactions(world) - before
        say(f"limits: 3,000 refused requests in {seconds:.1f} s: {used} transactions of the whole server, its heartbeats included")
        assert used < 300, used


def transactions(world):
    """Transactions of the database so far; sessions report theirs after a second."""
    time.sleep(1.5)
    return int(world.cluster.value("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database();"))


def test_refused_by_one_limit_a_user_is_not_shut_out(world):
    """No code for anybody at this address any more; refresh and passkey work, and so does a code already mailed."""
    realm = world.realm()
    app = realm.app()
    tokens = app.sign_in(realm.user())
    _, credential = app.enroll(tokens["access_token"])
    asked = app.request_code(realm.user())
    realm.limit("native-otp", "source", 1, per="1 day")
    assert [app.ask(realm.new_email()).status for _ in range(2)][-1] == 429
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert app.try_passkey(credential).status == 200
    assert app.redeem(asked.code, email=asked.email).status == 200


def test_a_restarted_server_forgets_no_limit(world):
    """What a process remembers is not the truth; a new one refuses too, by source, by address, and wrong tries."""
    realm = world.realm()
    realm.limit("native-otp", "source", 3, per="1 day")
    app = realm.app()
    asked = app.request_code(realm.user())
    for step in range(5):
        assert app.redeem(f"{(int(asked.code) + 1 + step) % 1_000_000:06}", email=asked.email).error == "invalid_grant"
    assert [app.ask(realm.new_email()).status for _ in range(3)] == [200, 200, 429]
    node = world.start_node()
    try:
        fresh = realm.app(node=node)
        assert_refused(fresh.ask(realm.new_email()), "native-otp", "source")
        assert fresh.redeem(asked.code, email=asked.email).error == "invalid_grant", "the budget of wrong tries"
    finally:
        node.stop()


def test_a_clock_that_steps_locks_nobody_and_opens_no_window(world):
    """An hour forward or back gives one burst and no more."""
    realm = world.realm()
    app = realm.app()
    realm.limit("token", "source", 3, per="10 minutes")
    assert [app.refresh("x").status for _ in range(4)] == [400] * 3 + [429]
    for step in (3600, -3600):
        world.time_travel(step)
        world.pause()
        assert [app.refresh("x").status for _ in range(4)] == [400] * 3 + [429]


# -- where a request comes from --------------------------------------------------------------------


def sources(world, node, headers, limit=2):
    """The statuses of token requests with these headers, one each, where the third from one source is refused."""
    realm = world.realm()
    realm.limit("token", "source", limit, per="1 day")
    app = realm.app(node=node)
    form = {"grant_type": "refresh_token", "client_id": app.client_id, "refresh_token": "x"}
    return [app.token(form, each).status for each in headers]


@pytest.mark.parametrize("name", [
    "X-Forwarded-For", "X-Real-IP", "Forwarded", "True-Client-IP", "X_Forwarded_For", "CF-Connecting-IP", "Postern-Forwarded-For",
])
def test_headers_of_strangers_do_not_say_where_they_are(world, name):
    value = "for=203.0.113.{}" if name == "Forwarded" else "203.0.113.{}"
    assert sources(world, world.node, [{name: value.format(n)} for n in range(3)]) == [400, 400, 429]


@pytest.mark.parametrize("first, second, same", [
    ("203.0.113.1", "203.0.113.2", False),
    ("198.51.100.1, 203.0.113.1", "198.51.100.2, 203.0.113.1", True),  # the leftmost is whatever the caller wrote
    ("203.0.113.1, 127.0.0.5", "203.0.113.1", True),  # a chain of trusted proxies
    ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),  # RL-07
    ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
    ("::ffff:203.0.113.1", "203.0.113.1", True),
    ("garbage", "", True), ("garbage", "1.2.3", True), ("fe80::1%eth0", "garbage", False), ("203.0.113.1:1234", "203.0.113.1", True),
    (", ".join(f"198.51.100.{n}" for n in range(50)), "198.51.100.49", True),
])
def test_behind_a_trusted_proxy_the_rightmost_stranger_counts(world, proxied_node, first, second, same):
    """Two requests of the first and one of the second; what cannot be read counts as the proxy, never as nobody."""
    statuses = sources(world, proxied_node, [{"X-Forwarded-For": value} for value in (first, first, second)])
    assert statuses == [400, 400, 429 if same else 400]


@pytest.fixture(scope="module")
def forwarding(world):
    """A realm where the third request from one source is refused, and whose client api is a trusted forwarder."""
    realm = world.realm()
    world.admin.call("grant_permission", realm.slug, realm.client("api"), "cap:trusted-forwarder")
    for policy in ("native-otp", "magic-link", "token", "passkey-begin"):
        world.admin.call("set_rate_limit", realm.slug, policy, "source", permits=2, per="1 day", burst=2)
    world.settle()
    return realm


@pytest.fixture
def rested(world):
    """Budgets are full again."""
    world.time_travel(86400)
    world.pause()


@pytest.mark.usefixtures("rested")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_trusted_forwarders_users_are_counted_apart(forwarding, endpoint):
    """By Basic and Postern-Forwarded-For; one of them who asks too often is refused alone."""
    app = forwarding.app("api")
    app.credentials = dict
    if endpoint == "passkey/begin":
        app.credentials = lambda: {"client_id": app.client_id}
    policy, send, usual = requests_of(forwarding, app)[endpoint]

    def on_behalf(address):
        return send({"Authorization": app.basic, "Postern-Forwarded-For": address})

    assert [on_behalf(f"203.0.113.{n}").status for n in range(5)] == [usual] * 5
    assert on_behalf("203.0.113.1").status == usual
    assert_refused(on_behalf("203.0.113.1"), policy, "source")
    assert [on_behalf(f"2001:db8::{n}").status for n in range(3)] == [usual, usual, 429], "IPv6 by /64"
    assert [on_behalf(bad).status for bad in ("garbage", "", "203.0.113.9, 203.0.113.10")] == [usual, usual, 429], "counted as the forwarder"


@pytest.mark.usefixtures("rested")
def test_who_is_no_trusted_forwarder_is_not_believed(forwarding):
    """Without the permission, without Basic, with the secret in the form, with a wrong secret."""
    def tries(app, endpoint, headers):
        _, send, _ = requests_of(forwarding, app)[endpoint]
        return [send({**headers, "Postern-Forwarded-For": f"198.51.100.{n}"}).status for n in range(3)]

    other = forwarding.app("other-api")
    other.credentials = dict
    assert tries(other, "token", {"Authorization": other.basic}) == [400, 400, 429]
    assert tries(forwarding.app("api"), "token", {}) == [429] * 3, "client_secret_post: the same source as before"
    assert tries(forwarding.app(), "otp/request", {}) == [200, 200, 429]
    assert tries(other, "otp/request", {"Authorization": other.basic}) == [429] * 3
    wrong = forwarding.app("api")
    wrong.secret = "wrong"
    answer = requests_of(forwarding, wrong)["otp/request"][1]({"Authorization": wrong.basic, "Postern-Forwarded-For": "198.51.100.1"})
    assert (answer.status, answer.error) == (401, "invalid_client") and answer.header("www-authenticate").startswith("Basic"), answer


@pytest.mark.usefixtures("rested")
def test_a_sign_in_through_a_forwarder_is_recorded_where_the_user_is(forwarding):
    """The audit log's source."""
    app = forwarding.app("api")
    headers = {"Authorization": app.basic, "Postern-Forwarded-For": "192.0.2.77"}
    email = forwarding.user()
    handle = app.post_json(REQUEST, {"Email": email}, headers).json()["AuthSession"]
    code = app.mailbox.wait(email).code
    answer = app.token({"grant_type": "urn:cocoar:otp", "auth_session": handle, "otp_code": code}, headers)
    assert answer.status == 200, answer
    assert any('"source":"192.0.2.77"' in row for row in forwarding.world.admin.rows_of("audit_log", "192.0.2.77"))


@pytest.mark.slow
def test_two_thousand_users_behind_one_address_sign_in_within_an_hour(world):
    """Default limits, one source; waves of 100 every three minutes. Nobody sees a 429."""
    realm = world.realm(limits=False, cooldown="60 seconds")
    app = realm.app()
    began = time.monotonic()
    watch = world.stopwatch()
    signed_in = 0
    for wave in range(20):
        emails = realm.users(100)

        def sign_in(email):
            asked = app.ask(email)
            if asked.status != 200:
                return asked.status
            code = app.mailbox.wait(email, timeout=30).code
            return app.redeem(code, handle=asked.json()["AuthSession"], scope="openid offline_access").status

        statuses = collections.Counter(in_parallel(sign_in, emails))
        assert statuses == {200: 100}, f"wave {wave}: {statuses}"
        signed_in += statuses[200]
        if wave < 19:
            watch.reach(max(180 * (wave + 1), watch.age() + 1))
    assert watch.age() <= 3600
    say(f"limits: {signed_in} users behind one address signed in within {watch.age():.0f} s of the server's clock ({time.monotonic() - began:.0f} s), no 429")
