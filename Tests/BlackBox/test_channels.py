"""Providers of channels, the pre-send hook and address rules, as an operator's endpoint and a vendor's API meet them."""

import contextlib
import hashlib
import http.server
import json
import os
import re
import threading
import time
import urllib.parse

import pytest

from harness import jose, settings
from harness.node import run_postern
from harness.pages import to_run
from harness.ports import free_port

NUMBER = "+4915112345678"
PROVISION = settings.REPOSITORY / "docs/provision.md"


class Endpoint:
    """A server on loopback that keeps what is posted to it; `answer` is what it says."""

    def __init__(self, status=200, answer=b"{}"):
        self.status, self.answer, self.calls = status, answer, []
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Keeps a POST."""

            def do_POST(self):  # pylint: disable=invalid-name
                """Reads and answers."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.calls.append((self.path, dict(self.headers.items()), body))
                self.send_response(endpoint.status)
                self.send_header("Content-Length", str(len(endpoint.answer)))
                self.end_headers()
                self.wfile.write(endpoint.answer)

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def wait(self, count, timeout=10.0):
        """The calls, once there are so many."""
        deadline = time.monotonic() + timeout
        while len(self.calls) < count:
            assert time.monotonic() < deadline, self.calls
            time.sleep(0.02)
        return self.calls


@contextlib.contextmanager
def provider(realm, channel="sms", name="test", **settings_):
    """A provider of the realm, gone afterwards."""
    realm.world.admin.call("put_channel", realm.slug, channel, name, **settings_)
    try:
        yield
    finally:
        realm.world.admin.call("delete_channel", realm.slug, channel, name)


def user(realm, name):
    """The address of a user with an account."""
    email = f"{realm.slug}-{name}@mail.example"
    realm.world.admin.call("put_user", realm.slug, email, email_verified=True)
    return email


def doctor(world, *arguments, **changes):
    """Runs it with the settings of the world's node and some changes."""
    return run_postern("doctor", *arguments, environment={**world.node.environment, **changes})


def verified(realm, url, headers, body):
    """The claims of the token of a call, checked as an endpoint is told to check them."""
    scheme, _, token = headers["Authorization"].partition(" ")
    assert scheme == "Bearer"
    jwks = realm.app().get("/.well-known/jwks").json()
    header, claims = jose.verify(token, jwks)
    assert header["typ"] == "postern-hook+jwt"
    assert claims["iss"] == realm.issuer and claims["aud"] == url
    assert claims["exp"] - claims["iat"] == 60 and abs(claims["iat"] - time.time()) < 10
    assert claims["body"] == jose.b64url(hashlib.sha256(body).digest())
    assert set(claims) == {"iss", "aud", "iat", "exp", "jti", "body"}
    return claims


def test_a_webhook_is_called_with_a_token_of_the_realm(realm):
    """`postern doctor --send` sends one message by each provider of the channel."""
    realm.app().sign_in(user(realm, "first"))
    with Endpoint() as endpoint, provider(realm, provider="webhook", url=f"{endpoint.url}/sms?a=b"):
        done = doctor(realm.world, "--send", NUMBER, "--realm", realm.slug)
        assert done.returncode == 0, done
        assert f"ok    message to {NUMBER} by test" in done.stdout
        ((path, headers, body),) = endpoint.calls
        envelope = json.loads(body)
        claims = verified(realm, f"{endpoint.url}/sms?a=b", headers, body)
        assert path == "/sms?a=b" and headers["Content-Type"] == "application/json"
        assert claims["jti"] == envelope["id"] and envelope["type"] == "message.send"
        assert envelope["to"] == NUMBER and envelope["code"] == "000000" and envelope["realm"] == realm.slug
        assert envelope["text"].endswith(f"\n@{realm.host} #000000"), envelope
        assert not [name for name in headers if name.lower().startswith("webhook-")]
        endpoint.status = 503
        done = doctor(realm.world, "--send", NUMBER, "--realm", realm.slug)
        assert done.returncode == 1 and "the provider did not take the message: 5xx" in done.stdout, done


def test_twilio_as_documented(realm, tmp_path):
    """The examples of docs/provision.md for Twilio's Messages and Calls, against a server in its place."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "twilio").write_text("AC00000000000000000000000000000000:token")
    os.chmod(secrets / "twilio", 0o400)
    examples = [block.text for block in to_run(PROVISION) if block.language == "sql" and "api.twilio.com" in block.text]
    assert len(examples) == 2
    with Endpoint(status=201, answer=b'{"sid":"SM00000000000000000000000000000001","status":"queued"}') as twilio:
        try:
            for example in examples:
                realm.world.admin.run(
                    example.replace("'acme'", f"'{realm.slug}'").replace("https://api.twilio.com", twilio.url))
            forms = {}
            for channel in ("sms", "whatsapp", "voice"):
                done = doctor(
                    realm.world, "--send", NUMBER, "--realm", realm.slug, "--channel", channel,
                    POSTERN_SECRETS_DIR=str(secrets))
                assert done.returncode == 0, done
                path, headers, body = twilio.calls[-1]
                assert headers["Authorization"] == "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDp0b2tlbg=="
                assert headers["Content-Type"] == "application/x-www-form-urlencoded"
                assert path.endswith("Calls.json" if channel == "voice" else "Messages.json")
                forms[channel] = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
            assert len(twilio.calls) == 3
        finally:
            for channel in ("sms", "whatsapp", "voice"):
                realm.world.admin.call("delete_channel", realm.slug, channel, "twilio")
    assert forms["sms"]["To"] == NUMBER and forms["sms"]["From"] == "+15005550006"
    assert re.search(rf"^000000 is your code for .*\n@{re.escape(realm.host)} #000000$", forms["sms"]["Body"])
    assert forms["whatsapp"]["To"] == f"whatsapp:{NUMBER}" and "000000" in forms["whatsapp"]["Body"]
    spoken = re.fullmatch(r"<Response><Say>([^<>&]*)</Say></Response>", forms["voice"]["Twiml"])
    assert spoken and spoken[1].count("0 0 0 0 0 0") == 2, forms["voice"]


def test_the_doctor_names_what_is_wrong_with_a_provider(realm, tmp_path):
    """a missing or readable credential, and an endpoint that is not there."""
    where = f"sms of {realm.slug} by test"
    fields = {"provider": "http", "secret_name": "vendor", "auth": "bearer", "fields": '{"to": "{to}"}'}

    def fault(**changes):
        done = doctor(realm.world, **changes)
        (line,) = [line for line in done.stdout.splitlines() if line[6:].startswith(where)]
        assert line.startswith("FAIL") == (done.returncode == 1), done
        return line[6:].partition(": ")[2]

    with Endpoint() as endpoint:
        with provider(realm, url=endpoint.url, **fields):
            assert "POSTERN_SECRETS_DIR is not set" in fault()
            assert "vendor is not a file" in fault(POSTERN_SECRETS_DIR=str(tmp_path))
            (tmp_path / "vendor").write_text("key")
            os.chmod(tmp_path / "vendor", 0o644)
            assert "must have mode 0400 or 0600" in fault(POSTERN_SECRETS_DIR=str(tmp_path))
            os.chmod(tmp_path / "vendor", 0o600)
            assert fault(POSTERN_SECRETS_DIR=str(tmp_path)) == ""
    with provider(realm, provider="webhook", url=f"http://127.0.0.1:{free_port()}/"):
        assert "cannot be reached: connection" in fault()
    done = doctor(realm.world, "--send", NUMBER, "--realm", realm.slug)
    assert done.returncode == 1 and "has no enabled provider of sms" in done.stdout
    assert doctor(realm.world, "--send", "0151 123", "--realm", realm.slug).returncode == 64


def test_a_hook_decides_before_a_mail_is_sent(realm):
    """it sees neither code nor text; the asker gets the same answer; what it denies is audited."""
    app, allowed, denied = realm.app(), user(realm, "yes"), user(realm, "no")
    with Endpoint(answer=b'{"allow":true}') as hook:
        realm.world.admin.call("set_pre_send_hook", realm.slug, f"{hook.url}/check")
        try:
            asked = app.request_code(allowed, ClientId=app.client_id)
            _, headers, body = hook.wait(1)[0]
            check = json.loads(body)
            assert verified(realm, f"{hook.url}/check", headers, body)["jti"] == check["id"]
            assert check["type"] == "message.check" and check["channel"] == "email" and check["to"] == allowed
            assert check["kind"] == "otp" and check["purpose"] == "sign-in" and check["client_id"] == app.client_id
            assert not {"text", "code", "link"} & set(check) and asked.code not in body.decode()
            hook.answer = b'{"allow":false}'
            answer = app.ask(denied)
            assert answer.status == 200 and "If your email is registered" in answer.json()["Message"]
            hook.wait(2)
            deadline = time.monotonic() + 10
            while not realm.world.admin.rows_of("audit_log", "message_denied"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            rows = realm.world.admin.run(
                f"SELECT state, last_error FROM admin.messages WHERE realm = '{realm.slug}' AND recipient = '{denied}';")
            assert rows == [["dead", "denied"]]
            assert realm.world.mailbox.to(denied) == []
        finally:
            realm.world.admin.call("delete_pre_send_hook", realm.slug)
    assert app.request_code(denied).code


def test_an_address_that_is_not_accepted_is_refused_alike(realm):
    """known and unknown addresses get the same bytes, at each endpoint that sends."""
    known = f"{realm.slug}-known@refused.example"
    realm.world.admin.call("put_user", realm.slug, known, email_verified=True)
    realm.world.admin.call("put_address_rule", realm.slug, "refused.example", "deny")
    try:
        realm.world.settle()
        app = realm.app()
        for path in ("native/otp/request", "native/register", "magic-link/request"):
            answers = [app.post_json(f"/api/account/{path}", {"Email": email}) for email in (known, "nobody@REFUSED.example")]
            assert [answer.status for answer in answers] == [400, 400]
            assert {answer.body for answer in answers} == {b'{"error":"Address is not accepted."}'}, answers
        assert app.ask("nobody@sub.refused.example").status == 200
    finally:
        realm.world.admin.call("delete_address_rule", realm.slug, "refused.example")
        realm.world.settle()
    assert realm.app().request_code(known).code


@pytest.mark.parametrize("accepted, locale", [("de-AT,en;q=0.5", "de"), ("xx, pt;q=0.8, en;q=0.1", "pt-BR"), ("xx", None), (None, None)])
def test_the_language_of_a_request_is_noted_with_its_message(realm, accepted, locale):
    """The message that the request causes is to be in it."""
    email = user(realm, "speaker")
    app = realm.app()
    before = len(realm.world.mailbox.to(email, "code"))
    headers = {"Accept-Language": accepted} if accepted else {}
    assert app.post_json("/api/account/native/otp/request", {"Email": email}, headers).status == 200
    realm.world.mailbox.wait(email, before + 1, kind="code")
    rows = realm.world.admin.run(
        f"SELECT locale, channel, kind FROM admin.messages WHERE recipient = '{email}' ORDER BY created_at DESC LIMIT 1;")
    assert rows == [[locale or "", "email", "otp"]], rows


def test_messages_are_counted_by_channel_and_outcome(realm):
    """And the queues by channel."""
    realm.app().sign_in(user(realm, "counted"))
    text = realm.world.node.ops("/metrics").body.decode()
    sent = re.search(r'^postern_messages_total\{channel="email",outcome="sent"\} (\d+)$', text, re.M)
    assert sent and int(sent[1]) >= 1
    for queue in ("mail", "sms", "voice", "whatsapp", "push", "requests", "approvals", "logout-tokens"):
        assert f'postern_queue_entries{{queue="{queue}"}}' in text
