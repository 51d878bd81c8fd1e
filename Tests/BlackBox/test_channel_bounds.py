"""What a receiver of messages can check, and what a message, a notice and a page of Cotter's wire cost and send."""

import base64
import hashlib
import json
import time

import pytest

from harness import jose
from harness.codeflow import hosted
from harness.holder import signed_in
from harness.phones import Phones, new_number
from test_channel_faults import Vendor, providers, status
from test_channels import verified
from test_cotter import PERMISSIONS, REDIRECT, Cotter


class Keeping(Vendor):
    """A vendor that keeps the header of each call beside its body."""

    def __init__(self, *script):
        super().__init__(*script)
        self.heads = []

    def _answer(self, taken):
        recorded = _Recording(taken)
        super()._answer(recorded)
        head, _, body = recorded.data.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        self.heads.append(({name.title(): value for name, value in fields.items()}, body))


class _Recording:
    """A connection that remembers what was read from it."""

    def __init__(self, taken):
        self._taken, self.data = taken, b""

    def __enter__(self):
        self._taken.__enter__()
        return self

    def __exit__(self, *reason):
        return self._taken.__exit__(*reason)

    def __getattr__(self, name):
        return getattr(self._taken, name)

    def recv(self, size):
        """Reads and remembers."""
        data = self._taken.recv(size)
        self.data += data
        return data


@pytest.fixture
def vendor():
    """Refuses the first call for the moment, and takes the second."""
    made = Keeping(status(503, "Retry-After: 1\r\n"))
    yield made
    made.close()


def receive(realm, url, head, body, jwks, now):
    """The claims of a call as a careful receiver reads them; raises for a call that it must refuse."""
    header, claims = jose.verify(head["Authorization"].removeprefix("Bearer "), jwks)
    assert header["typ"] == "postern-hook+jwt" and claims["iss"] == realm.issuer
    assert claims["aud"] == url and claims["iat"] <= now + 10 and now < claims["exp"]
    assert claims["body"] == base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    return claims


def test_a_receiver_can_refuse_what_is_not_meant_for_it(world, realm, vendor):
    """An altered body, another URL, another realm's keys and an old call do not verify; both calls of one message name it alike."""
    policy = Phones(realm, channels=())
    policy.close()
    number = new_number()
    world.admin.call("put_user", realm.slug, phone=number)
    with providers(realm, vendor.url()):
        assert Phones.ask(realm.app(), number).status == 200
        vendor.wait(2)
        deadline = time.monotonic() + 5
        while len(vendor.heads) < 2:
            assert time.monotonic() < deadline
            world.pause()
        (head, body), (again, repeated) = vendor.heads
        jwks, other = (made.app().get("/.well-known/jwks").json() for made in (realm, world.realm()))
        claims, second = verified(realm, vendor.url(), head, body), verified(realm, vendor.url(), again, repeated)
        assert claims["jti"] == second["jti"] == json.loads(body)["id"] == json.loads(repeated)["id"] and body == repeated
        now = time.time()
        assert receive(realm, vendor.url(), head, body, jwks, now)["jti"] == claims["jti"]
        for changes in ({"body": body.replace(number.encode(), b"+436991234567")}, {"url": vendor.url("/voice")}, {"jwks": other}, {"now": now + 61}):
            given = {"url": vendor.url(), "head": head, "body": body, "jwks": jwks, "now": now, **changes}
            with pytest.raises(Exception):
                receive(realm, **given)
        for fields in (head, again):
            assert not [name for name in fields if name.lower().startswith("webhook-")]


def test_a_notice_by_sms_takes_of_the_budget_and_of_nothing_else(world):
    """A user with a number alone is told of a passkey; the limits of codes are as before."""
    realm = world.realm()
    phones = Phones(realm, daily_budget=1000)
    try:
        number = new_number()
        world.admin.call("put_user", realm.slug, phone=number)
        world.settle()
        tokens = phones.sign_in(realm.app(), number)

        def taken():
            return dict(world.cluster.sql(
                "SELECT b.key, round(extract(epoch FROM b.tat - now())) FROM postern.rate_bucket b JOIN postern.realm r ON r.id = b.realm_id"
                f" WHERE r.slug = '{realm.slug}' AND b.key LIKE 'phone-otp|%' AND b.tat > now() + interval '3 seconds'"))

        before = taken()
        realm.app().enroll(tokens["access_token"])
        assert phones.wait(number, 2)["kind"] == "notice"
        after = taken()
        assert set(before) == set(after) == {"phone-otp|spend|all"}, (before, after)
        assert float(after["phone-otp|spend|all"]) > float(before["phone-otp|spend|all"])
    finally:
        phones.close()


def test_an_account_with_a_number_alone_is_an_administrators_to_manage(world):
    """By number and by id: switched off and on, signed out, unlocked and deleted."""
    realm = world.realm()
    phones = Phones(realm)
    try:
        world.settle()
        for by_id in (False, True):
            number = new_number()
            key = world.admin.call("put_user", realm.slug, phone=number)
            name = key if by_id else number
            tokens = phones.sign_in(realm.app(), number)
            account = realm.app().account(tokens["access_token"])
            assert account["Email"] is None and account["Phone"] == number
            world.admin.call("set_user_enabled", realm.slug, name, False)
            assert realm.app().userinfo(tokens["access_token"]).status == 401
            world.admin.call("set_user_enabled", realm.slug, name, True)
            tokens = phones.sign_in(realm.app(), number)
            world.admin.call("sign_out_everywhere", realm.slug, name)
            assert realm.app().userinfo(tokens["access_token"]).status == 401
            world.admin.call("unlock_codes", realm.slug, name)
            world.admin.call("delete_user", realm.slug, name)
            assert not world.admin.rows_of("users", number)
    finally:
        phones.close()


def test_no_visit_of_cotters_page_sends_to_a_number(world):
    """Fifty with a prefilled number, with and without the promise of a direct sign-in; one tap sends one message."""
    realm = hosted(world.realm(), offer_passkey=False)
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", *PERMISSIONS)
    world.admin.call("put_redirect_uri", realm.slug, realm.client("cotter"), REDIRECT)
    phones, number = Phones(realm), new_number()
    try:
        world.settle()
        client = Cotter(realm)
        for visit in range(50):
            client.open(type="PHONE", input=number, direct_login="true" if visit % 2 else None)
            assert client.browser.page.step == "address" and client.browser.page.fields["address"] == number
        assert signed_in(realm).token and not phones.messages
        client.browser.submit("continue")
        assert client.browser.page.step == "code" and phones.wait(number)["kind"] == "otp"
        assert len(phones.messages) == 1
    finally:
        phones.close()
