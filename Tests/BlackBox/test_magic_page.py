"""/magic-login: a page that anything may open, and that only an answer changes (contract 4.2; MG-09, MG-11, MG-12, MG-18)."""

import re
import uuid

import pytest

from harness import wire
from harness.links import LANDING, Form, Links
from harness.settings import OUTPUT
from harness.volley import in_parallel

REFUSED = {"error": "invalid_grant", "error_description": "Invalid or expired link."}


@pytest.fixture
def links(app):
    """What app, mailbox and browser do with links."""
    return Links(app)


def test_opening_a_link_changes_nothing(world, email, links):
    """MG-09: fifty times by GET, HEAD and both at once, with the agents of scanners; then it redeems."""
    link = links.link(email)

    def row():
        return world.cluster.sql(
            f"SELECT l.*, a.* FROM postern.login_link l JOIN postern.auth_session a ON a.id = l.handle WHERE l.user_id = '{link.user_id}'")

    before = row()
    agents = ["Mozilla/5.0 (compatible; SafeLinks)", "Barracuda", "Slackbot-LinkExpanding", "GoogleImageProxy", "curl/8"]
    answers = in_parallel(
        lambda n: links.open(link, "HEAD" if n % 2 else "GET", {"User-Agent": agents[n % 5], "Purpose": "prefetch", "Sec-Purpose": "prefetch"}),
        range(50))
    assert {a.status for a in answers} == {200}
    assert len({a.body for a in answers if a.body}) == 1, "looking again tells nothing"
    assert row() == before
    assert links.redeem(link).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(email, links, method):
    """405, and the link lives on."""
    link = links.link(email)
    answer = links.open(link, method)
    assert answer.status == 405 and answer.header("allow") == "GET, HEAD, POST"
    assert links.redeem(link).status == 200


def test_the_page_lets_nothing_in_and_nothing_out(realm, email, links):
    """MG-18: a strict policy, no referrer, no script, no third party, no cookie, no store; nothing of the query comes back as sent."""
    link = links.link(email)
    for page in (links.open(link), links.choose(link, "none")):
        policy = page.header("content-security-policy")
        for rule in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert rule in policy.split("; ")
        assert re.search(r"style-src 'sha256-[A-Za-z0-9+/=]{44}'(;|$)", policy) and "script" not in policy and "unsafe" not in policy
        assert page.header("referrer-policy") == "no-referrer" and page.header("x-content-type-options") == "nosniff"
        assert "no-store" in page.header("cache-control") and page.header("set-cookie") is None and page.header("location") is None
        assert page.header("content-type") == "text/html; charset=utf-8"
        text = page.body.decode()
        assert not re.search(r"<(script|iframe|object|embed|img|audio|video|base)\b|\bon[a-z]+=|javascript:|url\(|@import", text, re.I)
        assert not re.search(r"https?://", text), "no address, not even a picture"
        assert link.token not in text and link.user_id not in text
        assert f"Realm {realm.slug}" in text
        assert '<html lang="en">' in text and 'name="viewport"' in text


def test_the_page_offers_three_numbers_and_a_way_out(realm, links):
    """One is the right one, in no fixed place; all have two digits; the form posts to the same path."""
    places = set()
    for link in in_parallel(links.link, realm.users(30)):
        form = links.form(link)
        assert (form.method, form.action) == ("post", LANDING) and set(form.hidden) == {"userId", "token"}
        assert len(form.numbers) == len(set(form.numbers)) == 3 and all(re.fullmatch("[1-9][0-9]", n) for n in form.numbers)
        assert form.offered[-1] == "none" and link.number in form.numbers
        places.add(form.numbers.index(link.number))
    assert places == {0, 1, 2}


def test_the_form_as_the_page_has_it_confirms(email, links):
    """Its own hidden fields, as a browser sends them."""
    link = links.link(email)
    form = links.form(link)
    answer = links.app.post(form.action, {**form.hidden, "number": link.number})
    assert answer.status == 200, answer
    assert links.poll(link.handle).status == 200


def test_a_page_of_no_link_looks_like_any_other(world, email, links):
    """Unknown, used, expired, malformed, none at all: the same shape, the same numbers each time, and no word about it."""
    used, expired = links.link(email), links.link(email)
    shape = lambda page: (page.status, sorted(k for k, _ in page.headers), re.sub(r'value="[0-9a-f]+"|>[1-9][0-9]<', "", page.body.decode()))  # noqa: E731
    alive = shape(links.open(used))
    kept = links.open(used).body
    assert links.redeem(used).status == 200
    assert links.open(used).body == kept, "not even the one who kept the page sees that the link was used"
    world.time_travel(901)
    targets = [
        used.target, expired.target, f"{LANDING}?userId={uuid.uuid4()}&token={used.token}", f"{LANDING}?userId={used.user_id}&token={'A' * 43}",
        LANDING, f"{LANDING}?", f"{LANDING}?userId=1&token=2", f"{LANDING}?userId=%00&token=%zz", f"{LANDING}?token=a&token=b",
        f"{LANDING}?userId=<script>alert(1)</script>&token=\"><img%20src=x>", f"{LANDING}?userId={'x' * 3000}",
    ]
    for target in targets:
        page = links.open(target)
        assert shape(page) == alive, target
        assert links.open(target).body == page.body
        assert len(set(Form(page.body.decode()).numbers)) == 3


@pytest.mark.parametrize("number", [None, "", "1", "123", "1a", "４２", "-1", "none ", "00x", "' OR 1=1", "x" * 50_000])
def test_what_is_no_number_answers_nothing(email, links, number):
    """The link lives on."""
    link = links.link(email)
    answer = links.choose(link, number)
    assert answer.status == 400 and b"No number was chosen" in answer.body, answer
    assert links.choose(link, link.number).status == 200 and links.poll(link.handle).status == 200


def test_the_page_says_plainly_what_happened(world, realm, links):
    """Confirmed, refused, used, replaced, expired, not valid."""
    def say(link, number=None, **changes):
        answer = links.choose(link, number or link.number, **changes)
        return answer.status, re.search("<h1>(.*?)</h1>", answer.body.decode()).group(1)

    link = links.link(realm.user())
    assert say(link, token="A" * 43) == say(link, userId=str(uuid.uuid4())) == say(link, userId="x") == (400, "This link is not valid")
    assert say(link) == (200, "Confirmed") and say(link) == (400, "This link was used already")
    email = realm.user()
    older, newer = links.link(email), links.link(email)
    assert say(newer) == (200, "Confirmed") and say(older) == (400, "This link was replaced")
    link = links.link(realm.user())
    assert say(link, "none") == (400, "Sign-in refused")
    link = links.link(realm.user())
    world.time_travel(901)
    assert say(link) == (400, "This link has expired")


@pytest.mark.parametrize("change", [
    {"content_type": "application/json"}, {"content_type": None}, {"body": b"userId=1&userId=2&token=x&number=10"},
    {"body": b"number=%zz"}, {"body": b"a=" + b"b" * 70_000},
])
def test_the_form_is_bounded(app, change):
    """Another content type, a repeated parameter, a broken escape, too much: refused, and said so in JSON."""
    fields = {"Host": app.host, "Content-Type": change.get("content_type", wire.FORM)}
    answer = wire.exchange(app.node.port, "POST", LANDING, fields, change.get("body", b"{}"))
    assert answer.status in (400, 413, 415) and answer.header("content-type").startswith("application/json"), answer


@pytest.mark.parametrize("header", [
    "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example;proto=http", "X-Host: evil.example", "X-Original-URL: http://evil.example/",
    "X_Forwarded_Host: evil.example", "X-Forwarded-Proto: http", "X-Forwarded-Port: 1337", "X-Forwarded-Prefix: /evil", "Origin: https://evil.example",
    "Referer: https://evil.example/", "X-Forwarded-Server: evil.example",
])
def test_the_links_host_is_the_realms(realm, email, links, header):
    """MG-11: whatever an untrusted peer sends along."""
    name, _, value = header.partition(": ")
    link = links.received(links.ask(email, {name: value}), email, 1)
    assert link.url.startswith(realm.issuer + "/magic-login?userId=")
    mail = links.app.mailbox.to(email)[0]
    assert "evil" not in mail.raw.decode(errors="replace") and "1337" not in mail.text


@pytest.mark.parametrize("host", ["evil.example", "%s.evil.example", "%s@evil.example", "evil.example/%s", "[::1]", "%s\t", "%s:99999999"])
def test_another_host_gets_no_link(realm, email, links, host):
    """MG-10, MG-12: 400, 404 or 421, and no mail."""
    fields = {"Host": host.replace("%s", realm.host), "Content-Type": "application/json"}
    body = f'{{"Email":"{email}"}}'.encode()
    answer = wire.exchange(links.app.node.port, "POST", "/api/account/magic-link/request", fields, body)
    assert answer.status in (400, 404, 421), answer
    two = [("Host", realm.host), ("Host", "evil.example"), ("Content-Type", "application/json")]
    assert wire.exchange(links.app.node.port, "POST", "/api/account/magic-link/request", two, body).status in (400, 421)
    links.link(realm.user())
    assert not links.app.mailbox.to(email)


def test_another_spelling_of_the_host_gets_the_realms_link(realm, email, links):
    """MG-12: a port, a trailing dot, upper case; the link's host is as configured."""
    for count, host in enumerate((f"{realm.host}:1337", f"{realm.host}.", realm.host.upper()), 1):
        answer = links.ask(email, {"Host": host})
        assert answer.status == 200, answer
        assert links.received(answer, email, count).url.startswith(realm.issuer + "/magic-login?")


def test_no_log_has_a_link(world, realm, links):
    """MG-18: opened, answered, redeemed, polled; neither the server nor its metrics wrote a token down."""
    link, other = links.link(realm.user()), links.link(realm.user())
    links.open(link)
    links.open(link.target + "&x=%zz")
    links.choose(link, link.number)
    links.poll(link.handle)
    links.redeem(other)
    links.redeem(other)
    text = "".join(path.read_text(errors="replace") for path in OUTPUT.glob("serve-*")) + world.node.log()
    text += world.node.ops("/metrics").body.decode()
    for secret in (link.token, other.token, link.handle, other.handle):
        assert secret not in text and secret[5:25] not in text


def test_the_mail_has_the_link_in_both_parts_and_says_how_long(realm, email, links):
    """Text and HTML, one link, the number nowhere: it is what ties the mailbox to the device."""
    link = links.link(email)
    message = links.app.mailbox.to(email)[0].message
    assert f"Realm {realm.slug}" in message["subject"]
    for kind in ("plain", "html"):
        part = message.get_body((kind,)).get_content()
        assert "15 minutes" in part
        part = part.replace("15 minutes", "")
        assert not re.search(rf"(?<![0-9A-Za-z_-]){link.number}(?![0-9A-Za-z_-])", re.sub(r"https?://\S+", "", re.sub("<[^>]*>", " ", part)))
