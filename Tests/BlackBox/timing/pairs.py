"""The pairs of the native endpoints: each a name, and a function that makes `count` pairs of requests from fresh accounts."""

import json
import secrets
import uuid

from harness import authenticator
from harness.app import PASSKEY
from harness.jose import unb64url

from . import approval_pairs, dpop_pairs, driver, page_pairs  # noqa: F401  # their pairs are registered
from .accounts import MAGIC
from .registry import PAIRS, pair


def _zip(request, xs, ys):
    return [(request(x), request(y)) for x, y in zip(xs, ys)]


# -- otp/request -----------------------------------------------------------------------------------


@pair("ET-01", "otp/request", "known", "unknown")
def _known_unknown(accounts, count):
    return _zip(accounts.code_request, accounts.users(count), accounts.addresses(count))


@pair("ET-03", "otp/request", "confirmed", "unconfirmed")
def _confirmed_unconfirmed(accounts, count):
    return _zip(accounts.code_request, accounts.users(count), accounts.users(count, verified=False))


@pair("ET-03", "otp/request", "confirmed", "disabled")
def _confirmed_disabled(accounts, count):
    return _zip(accounts.code_request, accounts.users(count), accounts.users(count, enabled=False))


@pair("ML-12", "otp/request", "known", "suppressed")
def _known_suppressed(accounts, count):
    return _zip(accounts.code_request, accounts.users(count), accounts.suppressed(accounts.users(count)))


@pair("ET-02", "otp/request, JitOnOtp", "known", "unknown")
def _jit(accounts, count):
    return _zip(lambda email: accounts.code_request(email, "JitOnOtp"), accounts.users(count), accounts.addresses(count))


@pair("ET-02", "otp/request, JitOnOtp, again", "known", "registering")
def _jit_again(accounts, count):
    pairs = _jit(accounts, count)
    driver.run(accounts.world.node.port, pairs, connections=16, pause=0)
    return pairs


@pair("ET-03", "register", "known", "unknown")
def _register(accounts, count):
    return _zip(accounts.registration, accounts.users(count), accounts.addresses(count))


@pair("ET-03", "magic-link/request", "known", "unknown")
def _link(accounts, count):
    return _zip(accounts.link_request, accounts.users(count), accounts.addresses(count))


@pair("ML-12", "magic-link/request", "known", "suppressed")
def _link_suppressed(accounts, count):
    return _zip(accounts.link_request, accounts.users(count), accounts.suppressed(accounts.users(count)))


@pair("ET-03", "magic-link/request", "confirmed", "unconfirmed")
def _link_unconfirmed(accounts, count):
    return _zip(accounts.link_request, accounts.users(count), accounts.users(count, verified=False))


@pair("ET-03", "magic-link/request", "confirmed", "disabled")
def _link_disabled(accounts, count):
    return _zip(accounts.link_request, accounts.users(count), accounts.users(count, enabled=False))


# -- bc-authorize ----------------------------------------------------------------------------------


@pair("CB-02", "bc-authorize", "known with a device", "unknown")
def _approval(accounts, count):
    return _zip(accounts.approval_request, accounts.devices(accounts.users(count)), accounts.addresses(count))


@pair("CB-02", "bc-authorize", "known with a device", "known without")
def _approval_without_device(accounts, count):
    return _zip(accounts.approval_request, accounts.devices(accounts.users(count)), accounts.users(count))


# -- wrong links -----------------------------------------------------------------------------------


def _wrong_link(accounts, user):
    return accounts.token(grant_type=MAGIC, user_id=user, magic_token=secrets.token_urlsafe(32), scope="")


@pair("ET-04", "wrong link", "user with a live link", "unknown user")
def _link_live_unknown(accounts, count):
    users = accounts.with_links(accounts.users(count))
    return _zip(lambda user: _wrong_link(accounts, user), users, [uuid.uuid4() for _ in users])


@pair("ET-04", "wrong link", "user with a live link", "user without")
def _link_live_without(accounts, count):
    users = accounts.with_links(accounts.users(count))
    return _zip(lambda user: _wrong_link(accounts, user), users, accounts.ids(accounts.users(count)))


@pair("ET-04", "poll for a link", "known", "unknown")
def _poll(accounts, count):
    emails = accounts.users(count), accounts.addresses(count)
    asked = driver.run(accounts.world.node.port, _zip(accounts.link_request, *emails), connections=16, pause=0)
    handles = [[_member(answer, b"AuthSession") for answer in answers] for answers in asked.answers]
    return _zip(lambda handle: accounts.token(grant_type=MAGIC, auth_session=handle, scope=""), *handles)


@pair("ET-04", "page of a wrong link", "user with a live link", "unknown user", held=False)
def _page(accounts, count):
    users = accounts.with_links(accounts.users(count))
    return _zip(
        lambda user: accounts.get(f"/magic-login?userId={user}&token={secrets.token_urlsafe(32)}"), users, [uuid.uuid4() for _ in users])


# -- wrong codes -----------------------------------------------------------------------------------


@pair("ET-04", "wrong code", "with a live code", "known without")
def _live_without(accounts, count):
    return _zip(accounts.redemption, accounts.with_codes(accounts.users(count)), accounts.users(count))


@pair("ET-04", "wrong code", "with a live code", "unknown")
def _live_unknown(accounts, count):
    return _zip(accounts.redemption, accounts.with_codes(accounts.users(count)), accounts.addresses(count))


@pair("ET-04", "wrong code", "known without", "unknown")
def _without_unknown(accounts, count):
    return _zip(accounts.redemption, accounts.users(count), accounts.addresses(count))


@pair("ET-04", "wrong code by handle", "with a live code", "unknown")
def _handle_live_unknown(accounts, count):
    emails = accounts.users(count), accounts.addresses(count)
    asked = driver.run(accounts.world.node.port, _zip(accounts.code_request, *emails), connections=16, pause=0)
    handles = [[_member(answer, b"AuthSession") for answer in answers] for answers in asked.answers]
    return _zip(lambda handle: accounts.redemption(handle=handle), *handles)


def _member(answer, name):
    """A string member of a JSON answer, as bytes came."""
    start = answer.index(b'"' + name + b'":"') + len(name) + 4
    return answer[start:answer.index(b'"', start)].decode()


# -- secrets ---------------------------------------------------------------------------------------


def _secret(correct, accounts, count):
    """A client secret whose first `correct` characters are right, against one that is wrong from the start."""
    right = accounts.realm.secrets["api"]
    client = accounts.realm.client("api")

    def request(prefix):
        wrong = right[:prefix] + "".join("A" if c != "A" else "B" for c in right[prefix:])
        return accounts.token(grant_type=PASSKEY, client_id=client, client_secret=wrong)
    return [(request(0), request(correct)) for _ in range(count)]


@pair("ET-06", "client secret", "wrong from the start", "first character right", held=False)
def _secret_1(accounts, count):
    return _secret(1, accounts, count)


@pair("ET-06", "client secret", "wrong from the start", "first 8 right", held=False)
def _secret_8(accounts, count):
    return _secret(8, accounts, count)


@pair("ET-06", "client secret", "wrong from the start", "first 31 right", held=False)
def _secret_31(accounts, count):
    return _secret(31, accounts, count)


def _tokens(accounts, count=20):
    """Refresh tokens of sign-ins of their own."""
    credentials, _ = accounts.credentials(count)
    return [accounts.sign_in(credential)["refresh_token"] for credential in credentials]


def _spoilt(token, position):
    """A refresh token with one character of its base64url changed."""
    return token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1:]


def _refreshes(accounts, xs, ys, count):
    def request(token):
        return accounts.token(grant_type="refresh_token", refresh_token=token)
    return [(request(xs[n % len(xs)]), request(ys[n % len(ys)])) for n in range(count)]


@pair("ET-06", "refresh token", "secret wrong from the start", "wrong at the end", same_statements=False)
def _refresh_prefix(accounts, count):
    tokens = _tokens(accounts)
    # prt_, then 24 bytes of names (32 characters), then the secret's 32 bytes (43 characters)
    return _refreshes(accounts, [_spoilt(t, 38) for t in tokens], [_spoilt(t, 76) for t in tokens], count)


@pair("RT", "refresh token", "forged", "revoked", same_statements=False)
def _forged_revoked(accounts, count):
    tokens = _tokens(accounts)
    for token in tokens:
        assert accounts.app.revoke(token).status == 200
    return _refreshes(accounts, [_spoilt(t, len(t) - 2) for t in tokens], tokens, count)


@pair("RT", "refresh token", "revoked", "of a deleted family")
def _revoked_deleted(accounts, count):
    revoked, deleted = _tokens(accounts), _tokens(accounts)
    for token in revoked + deleted:
        assert accounts.app.revoke(token).status == 200
    rows = accounts.world.cluster.sql(
        "DELETE FROM postern.session WHERE id IN (SELECT id FROM postern.session WHERE revoked_at IS NOT NULL "
        f"AND realm_id = '{accounts.id}' ORDER BY revoked_at DESC LIMIT {len(deleted)}) RETURNING id;"
    )
    assert len(rows) == len(deleted)
    return _refreshes(accounts, revoked, deleted, count)


# -- passkeys --------------------------------------------------------------------------------------


def _ceremonies(accounts, count):
    """Login ceremonies, begun without waiting for each other."""
    begin = accounts.form("/connect/passkey/begin", {"client_id": accounts.app.client_id})
    asked = driver.run(accounts.world.node.port, [(begin, begin)] * ((count + 1) // 2), connections=16, pause=0)
    return [_json(answer) for answer in asked.answers[0] + asked.answers[1]]


def _json(answer):
    return json.loads(answer[answer.index(b"\r\n\r\n") + 4:])


def _nobody(accounts):
    return authenticator.Credential(accounts.realm.host, secrets.token_bytes(32), accounts.key)


def _assertions(accounts, count, x, y):
    ceremonies = _ceremonies(accounts, 2 * count)
    credentials, _ = accounts.credentials(2 * count)

    def request(index, kind):
        if kind == "unknown":
            return accounts.assertion(ceremonies[index], _nobody(accounts))
        if kind == "signature":
            return accounts.assertion(ceremonies[index], credentials[index], "sig_bitflip")
        return accounts.assertion(ceremonies[index], credentials[index], origin=f"https://{accounts.realm.host[:-1]}x")
    return [(request(2 * n, x), request(2 * n + 1, y)) for n in range(count)]


@pair("ET-07", "passkey", "unknown credential", "bad signature")
def _unknown_signature(accounts, count):
    return _assertions(accounts, count, "unknown", "signature")


@pair("ET-07", "passkey", "bad signature", "wrong origin")
def _signature_origin(accounts, count):
    return _assertions(accounts, count, "signature", "origin")


@pair("ET-07", "passkey", "unknown credential", "wrong origin")
def _unknown_origin(accounts, count):
    return _assertions(accounts, count, "unknown", "origin")


@pair("ET-08", "passkey", "ceremony forged", "ceremony spent", same_statements=False)
def _ceremony_forged_spent(accounts, count):
    ceremonies = _ceremonies(accounts, 2 * count)
    mine = ceremonies[::2]
    nobody = _nobody(accounts)
    first = [(accounts.assertion(c, nobody), accounts.assertion(d, nobody)) for c, d in zip(mine[::2], mine[1::2])]
    driver.run(accounts.world.node.port, first, connections=16, pause=0)
    mine = mine[:len(first) * 2]
    forged = [dict(c, ceremonyId=_spoilt(c["ceremonyId"], 40)) for c in ceremonies[1::2]]
    return [(accounts.assertion(x, nobody), accounts.assertion(y, nobody)) for x, y in zip(forged, mine)]


@pair("ET-08", "delete passkey", "unknown id", "another user's id", held=False)
def _delete(accounts, count):
    _, others = accounts.credentials(count)
    owners, _ = accounts.credentials(20)
    tokens = [accounts.sign_in(credential)["access_token"] for credential in owners]

    def request(number, passkey):
        return accounts.delete(f"/connect/passkey/{passkey}", tokens[number % len(tokens)])
    return [(request(n, uuid.uuid4()), request(n, other)) for n, other in enumerate(others)]


@pair("ET-08", "delete session", "unknown id", "another user's id", held=False)
def _delete_session(accounts, count):
    credentials, _ = accounts.credentials(40)
    tokens = [accounts.sign_in(credential) for credential in credentials]
    others = [json.loads(unb64url(t["id_token"].split(".")[1]))["sid"] for t in tokens[20:]]
    mine = [t["access_token"] for t in tokens[:20]]

    def request(number, session):
        return accounts.delete(f"/connect/sessions/{session}", mine[number % len(mine)])
    return [(request(n, uuid.uuid4()), request(n, others[n % len(others)])) for n in range(count)]


# -- clients ---------------------------------------------------------------------------------------


def _clients(accounts, path, x, y, count):
    """Names of one length: nobody's, another realm's, a disabled one."""
    names = {
        "unknown": lambda: f"{accounts.realm.slug}-{secrets.token_hex(4)}",
        "other realm": lambda: accounts.foreign_client, "disabled": lambda: accounts.realm.client("disabled"),
    }

    def request(kind):
        more = {"grant_type": "refresh_token", "refresh_token": "prt_x"} if path == "/connect/token" else {}
        return accounts.form(path, {"client_id": names[kind](), **more})
    return [(request(x), request(y)) for _ in range(count)]


def _client_pair(path, endpoint, x, y):
    @pair("ET-09", endpoint, f"client {x}", f"client {y}", held=False)
    def _make(accounts, count):
        return _clients(accounts, path, x, y, count)


for _path, _endpoint in (("/connect/token", "token"), ("/connect/passkey/begin", "passkey/begin")):
    _client_pair(_path, _endpoint, "unknown", "disabled")
    _client_pair(_path, _endpoint, "unknown", "other realm")
