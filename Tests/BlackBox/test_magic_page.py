"""/magic-login: a page that anything may open, and that only an answer changes."""

import datetime
import html
import re
import time
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
    """Fifty times by GET, HEAD and both at once, with the agents of scanners; then it redeems."""
    link = links.link(email)

    def row():
        return world.cluster.sql(
            f"SELECT l.*, a.* FROM postern.login_link l JOIN postern.sign_in_request a ON a.id = l.handle WHERE l.user_id = '{link.user_id}'")

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
    """A strict policy, no referrer, no script, no third party, no cookie, no store; nothing of the query comes back as sent."""
    link = links.link(email)
    for page in (links.open(link), links.choose(link, "none")):
        policy = page.header("content-security-policy")
        for rule in ("default-src 'none'", "style-src 'self'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert rule in policy.split("; ")
        assert "unsafe" not in policy and "form-action" not in policy and page.header("x-frame-options") == "DENY"
        assert page.header("referrer-policy") == "no-referrer" and page.header("x-content-type-options") == "nosniff"
        assert "no-store" in page.header("cache-control") and page.header("set-cookie") is None and page.header("location") is None
        assert page.header("content-type") == "text/html; charset=utf-8"
        text = page.body.decode()
        assert not re.search(r"<(script|iframe|object|embed|img|audio|video|base)\b|\bon[a-z]+=|javascript:|url\(|@import", text, re.I)
        assert not re.search(r"https?://", text), "no address, not even a picture"
        assert page.header("x-robots-tag") == "noindex"
        assert link.token not in text and link.user_id not in text
        assert f"Realm {realm.slug}" in text
        assert '<html lang="en" dir="ltr">' in text and 'name="viewport"' in text


def test_the_page_asks_for_the_number_and_does_not_know_it(email, links):
    """One labelled field for two digits, without a script; "not me" is a button beside it; the number is nowhere in the page."""
    link = links.link(email)
    text = links.open(link).body.decode()
    form = Form(text)
    assert [(f["method"], f["action"], set(f["hidden"])) for f in form.forms] == [
        ("post", LANDING, {"userId", "token"})]
    assert re.findall(r'<button[^>]*name="action" value="([a-z]+)"', text) == ["confirm", "deny"]
    field = form.field
    assert (field["name"], field["type"], field["inputmode"], field["maxlength"], field["autocomplete"]) == ("number", "text", "numeric", "32", "off")
    assert re.search(rf'<label for="{field["id"]}">[^<]+</label>', text) and "required" in field
    assert not re.search(r'<button[^>]*name="number"', text)
    assert "value" not in field
    shown = re.sub("<style>.*</style>|<dl>.*</dl>|<svg.*</svg>", "", re.sub("<[^>]*>", " ", re.sub("(?s)<style>.*</style>|<dl>.*</dl>", "", text)))
    assert not re.search(rf"(?<![0-9]){link.number}(?![0-9])", shown)


def test_the_page_says_which_app_asks_when_and_from_where(world, realm, links):
    """The App's name, else the client's, else the realm's; the time in UTC; the address shortened, and not the viewer's."""
    world.admin.call("put_client", realm.slug, links.app.client_id, display_name="Phone & Co <app>")
    world.settle()
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        there = Links(type(links.app)(node, world.mailbox, realm.host, links.app.client_id))
        for source, shown, members, name in (
            ("198.51.100.77", "198.51.x.x", {}, f"Realm {realm.slug}"),
            ("2001:db8:1:2::77", "2001:db8:x:x:x:x:x:x", {"ClientId": links.app.client_id}, "Phone & Co <app>"),
        ):
            email = realm.user()
            before = time.time()
            link = there.received(there.ask(email, {"X-Forwarded-For": source}, **members), email, 1)
            page = there.open(link, headers={"X-Forwarded-For": "203.0.113.9"})
            facts = Form(page.body.decode()).facts
            assert facts["App"] == name and facts["Network address"] == shown
            asked = datetime.datetime.strptime(facts["Time"], "%d %B %Y, %H:%M (UTC)").replace(tzinfo=datetime.timezone.utc).timestamp()
            assert before - 60 <= asked <= time.time()
            assert source not in page.body.decode() and "203.0" not in page.body.decode()
            message = world.mailbox.to(email)[0].message
            for kind in ("plain", "html"):
                part = html.unescape(re.sub("<[^>]*(?:[>]|$)", "", message.get_body((kind,)).get_content()) if kind == "html" else message.get_body((kind,)).get_content())
                part = re.sub(r"\s+", " ", part)
                assert shown in part and facts["Time"] in part and source not in part
                assert name in part
    finally:
        node.stop()


def test_the_form_as_the_page_has_it_confirms(email, links):
    """Its own hidden fields, as a browser sends them."""
    link = links.link(email)
    form = links.form(link)
    answer = links.app.post(form.forms[0]["action"], {**form.hidden, "number": link.number})
    assert answer.status == 200, answer
    assert links.poll(link.handle).status == 200


def test_the_page_of_a_link_that_is_over_says_what_became_of_it(world, email, links):
    """Used, expired; unknown, malformed and none at all are one page, whatever the query holds; none of them asks for a number."""
    used, expired = links.link(email), links.link(email)
    assert links.open(used).status == 200
    assert links.redeem(used).status == 200
    ended = links.open(expired)
    assert ended.status == 400 and b'data-error="superseded"' in ended.body, "a sign-in ends the other links"
    late = links.link(email)
    world.time_travel(901)
    targets = {
        "used": [used.target], "expired": [late.target],
        "unknown": [
            f"{LANDING}?userId={uuid.uuid4()}&token={used.token}", f"{LANDING}?userId={used.user_id}&token={'A' * 43}",
            LANDING, f"{LANDING}?", f"{LANDING}?userId=1&token=2", f"{LANDING}?userId=%00&token=%zz", f"{LANDING}?token=a&token=b",
            f"{LANDING}?userId=<script>alert(1)</script>&token=\"><img%20src=x>", f"{LANDING}?userId={'x' * 3000}",
        ],
    }
    for error, each in targets.items():
        pages = [links.open(target) for target in each for _ in range(2)]
        assert {page.status for page in pages} == {400} and len({page.body for page in pages}) == 1, error
        assert f'data-error="{error}"'.encode() in pages[0].body and b'name="number"' not in pages[0].body, pages[0]
        assert pages[0].header("referrer-policy") == "no-referrer" and "no-store" in pages[0].header("cache-control")


@pytest.mark.parametrize("number", [None, "", "1", "123", "1a", "４", "4²", "-1", "none ", "00x", "' OR 1=1", "x" * 50_000])
def test_what_is_no_number_answers_nothing(email, links, number):
    """The page asks again, with the same request's facts, and the link lives on."""
    link = links.link(email)
    answer = links.choose(link, number)
    assert answer.status == 400 and b"Type the two digits" in answer.body, answer
    again, before = Form(answer.body.decode()), links.form(link)
    assert (again.hidden, again.facts) == (before.hidden, before.facts) and again.field["aria-invalid"] == "true"
    assert links.app.post(LANDING, {**again.hidden, "number": f" {link.number} "}).status == 200
    assert links.poll(link.handle).status == 200


def test_the_page_says_plainly_what_happened(world, realm, links):
    """Confirmed, refused, used, replaced, expired, not valid."""
    def say(link, number=None, **changes):
        answer = links.choose(link, number or link.number, **changes)
        return answer.status, re.search("<h1>(.*?)</h1>", answer.body.decode()).group(1)

    link = links.link(realm.user())
    assert say(link, token="A" * 43) == say(link, userId=str(uuid.uuid4())) == say(link, userId="x") == (400, "This link is not valid")
    assert say(link) == say(link) == (200, "Confirmed") and say(link, links.wrong(link)) == (400, "This link was used already")
    email = realm.user()
    older, newer = links.link(email), links.link(email)
    assert say(newer) == (200, "Confirmed") and say(older) == (400, "This link no longer works")
    link = links.link(realm.user())
    assert say(link, links.wrong(link)) == (400, "Sign-in refused")
    link = links.link(realm.user())
    assert say(link, "none") == (200, "Nobody was signed in")
    link = links.link(realm.user())
    world.time_travel(901)
    assert say(link) == (400, "This link has expired")


@pytest.mark.parametrize("change", [
    {"content_type": "application/json"}, {"content_type": None}, {"body": b"userId=1&userId=2&token=x&number=10"},
    {"body": b"number=%zz"}, {"body": b"a=" + b"b" * 70_000},
])
def test_the_form_is_bounded(app, change):
    """Another content type, a repeated parameter, a broken escape, too much: refused, and said so on a page."""
    fields = {"Host": app.host, "Content-Type": change.get("content_type", wire.FORM)}
    answer = wire.exchange(app.node.port, "POST", LANDING, fields, change.get("body", b"{}"))
    assert answer.status in (400, 413, 415) and answer.header("content-type").startswith("text/html"), answer


@pytest.mark.parametrize("header", [
    "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example;proto=http", "X-Host: evil.example", "X-Original-URL: http://evil.example/",
    "X_Forwarded_Host: evil.example", "X-Forwarded-Proto: http", "X-Forwarded-Port: 1337", "X-Forwarded-Prefix: /evil", "Origin: https://evil.example",
    "Referer: https://evil.example/", "X-Forwarded-Server: evil.example",
])
def test_the_links_host_is_the_realms(realm, email, links, header):
    """Whatever an untrusted peer sends along."""
    name, _, value = header.partition(": ")
    link = links.received(links.ask(email, {name: value}), email, 1)
    assert link.url.startswith(realm.issuer + "/magic-login?userId=")
    mail = links.app.mailbox.to(email)[0]
    assert "evil" not in mail.raw.decode(errors="replace") and "1337" not in mail.text


@pytest.mark.parametrize("host", ["evil.example", "%s.evil.example", "%s@evil.example", "evil.example/%s", "[::1]", "%s\t", "%s:99999999"])
def test_another_host_gets_no_link(realm, email, links, host):
    """400, 404 or 421, and no mail."""
    fields = {"Host": host.replace("%s", realm.host), "Content-Type": "application/json"}
    body = f'{{"Email":"{email}"}}'.encode()
    answer = wire.exchange(links.app.node.port, "POST", "/api/account/magic-link/request", fields, body)
    assert answer.status in (400, 404, 421), answer
    two = [("Host", realm.host), ("Host", "evil.example"), ("Content-Type", "application/json")]
    assert wire.exchange(links.app.node.port, "POST", "/api/account/magic-link/request", two, body).status in (400, 421)
    links.link(realm.user())
    assert not links.app.mailbox.to(email)


def test_another_spelling_of_the_host_gets_the_realms_link(realm, email, links):
    """A port, a trailing dot, upper case; the link's host is as configured."""
    for count, host in enumerate((f"{realm.host}:1337", f"{realm.host}.", realm.host.upper()), 1):
        answer = links.ask(email, {"Host": host})
        assert answer.status == 200, answer
        assert links.received(answer, email, count).url.startswith(realm.issuer + "/magic-login?")


def test_no_log_has_a_link(world, realm, links):
    """Opened, answered, redeemed, polled; neither the server nor its metrics wrote a token down."""
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
        part = re.sub(r"(?s)Asked for by.*?\.x\.x", "", part.replace("15 minutes", ""))
        assert not re.search(rf"(?<![0-9A-Za-z_-]){link.number}(?![0-9A-Za-z_-])", re.sub(r"https?://\S+", "", re.sub("<[^>]*>", " ", part)))
