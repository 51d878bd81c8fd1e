"""Pairs of requests for approval and of the polls after them: the time of an answer tells a backend neither whether a hint means a user nor why
no device answers. And refused sign-ins by devices and by proofs of numbers."""

import json
import secrets
import uuid

from harness import approvals, wire
from harness.app import bearer
from harness.dpop import ProofKey
from harness.jose import parts, unb64url
from harness.phones import new_number
from harness.possession import Backend, possession
from harness.postgres import literal

from . import driver
from .dpop_pairs import Prover
from .registry import pair

DEVICE, POSSESSION = "urn:postern:device", "urn:postern:possession"


def _zip(request, xs, ys):
    return [(request(x), request(y)) for x, y in zip(xs, ys)]


class Askers:
    """Users whose devices do not show a request, each for another reason, and hints that mean them."""

    def __init__(self, accounts):
        self.accounts = accounts

    def _run(self, text):
        return self.accounts.world.cluster.sql(text)

    def _users(self, emails):
        return f"FROM postern.user_account AS u WHERE u.realm_id = {literal(self.accounts.id)} AND u.email = ANY ({literal(emails)})"

    def hidden(self, emails):
        """Hides requests from them: their owners reported one."""
        self._run("INSERT INTO postern.approval_guard (realm_id, user_id, refused_at, quiet_until) "
                  f"SELECT u.realm_id, u.id, now(), now() + interval '24 hours' {self._users(emails)}; ANALYZE postern.approval_guard;")
        return emails

    def on_probation(self, emails):
        """Has all their devices be new."""
        self._run("UPDATE postern.device_key AS d SET probation_until = now() + interval '24 hours' "
                  f"WHERE (d.realm_id, d.user_id) IN (SELECT u.realm_id, u.id {self._users(emails)})")
        return emails

    def numbers(self, count):
        """Phone numbers that no user has."""
        return [f"+49151{secrets.randbelow(10**8):08d}" for _ in range(count)]

    def with_numbers(self, emails):
        """Gives each a proven number; returns the numbers."""
        numbers = self.numbers(len(emails))
        rows = ", ".join(f"({literal(email)}, {literal(number)})" for email, number in zip(emails, numbers))
        self._run("INSERT INTO postern.user_identifier (realm_id, user_id, kind, value, proved_at) "
                  f"SELECT u.realm_id, u.id, 'phone', w.number, now() FROM (VALUES {rows}) AS w (email, number) "
                  f"JOIN postern.user_account AS u ON u.realm_id = {literal(self.accounts.id)} AND u.email = w.email "
                  "ON CONFLICT DO NOTHING; ANALYZE postern.user_identifier;")
        return numbers

    def owners(self, count):
        """Users with a trusted device."""
        return self.accounts.devices(self.accounts.users(count))

    def asked(self, *hints):
        """Asks for each pair of hints; lists of handles, which can be polled for five minutes."""
        fields = {"Host": self.accounts.realm.host, "Content-Type": wire.FORM}
        form = approvals.form(self.accounts.app, requested_expiry="300")
        pairs = _zip(lambda hint: wire.request_bytes("POST", "/connect/bc-authorize", fields, wire.form_body({**form, "login_hint": hint})), *hints)
        answers = driver.run(self.accounts.world.node.port, pairs, connections=16, pause=0).answers
        for answer in answers[0] + answers[1]:
            assert answer.startswith(b"HTTP/1.1 200"), answer
        return [[json.loads(answer[answer.index(b"\r\n\r\n") + 4:])["auth_req_id"] for answer in side] for side in answers]

    def poll(self, handle):
        """One poll."""
        return self.accounts.token(grant_type=approvals.CIBA, auth_req_id=handle)


# -- bc-authorize ----------------------------------------------------------------------------------


@pair("TI-01", "bc-authorize", "hidden by the guard", "unknown")
def _hidden(accounts, count):
    askers = Askers(accounts)
    return _zip(accounts.approval_request, askers.hidden(askers.owners(count)), accounts.addresses(count))


@pair("TI-01", "bc-authorize", "hidden by the guard", "known with a device")
def _hidden_known(accounts, count):
    askers = Askers(accounts)
    return _zip(accounts.approval_request, askers.hidden(askers.owners(count)), askers.owners(count))


@pair("TI-01", "bc-authorize", "known with a device", "disabled")
def _disabled(accounts, count):
    askers = Askers(accounts)
    return _zip(accounts.approval_request, askers.owners(count), accounts.devices(accounts.users(count, enabled=False)))


@pair("TI-01", "bc-authorize", "known with a device", "device on probation")
def _probation(accounts, count):
    askers = Askers(accounts)
    return _zip(accounts.approval_request, askers.owners(count), askers.on_probation(askers.owners(count)))


@pair("TI-01", "bc-authorize by phone", "known with a device", "unknown")
def _phone(accounts, count):
    askers = Askers(accounts)
    return _zip(accounts.approval_request, askers.with_numbers(askers.owners(count)), askers.numbers(count))


@pair("TI-01", "bc-authorize by sub", "known with a device", "unknown")
def _sub(accounts, count):
    known = accounts.ids(Askers(accounts).owners(count))
    return _zip(accounts.approval_request, known, [str(uuid.uuid4()) for _ in known])


@pair("TI-01", "bc-authorize, again", "known with a device", "unknown")
def _again(accounts, count):
    askers = Askers(accounts)
    hints = askers.owners(count), accounts.addresses(count)
    askers.asked(*hints)
    return _zip(accounts.approval_request, *hints)


# -- polls -----------------------------------------------------------------------------------------


@pair("TI-02", "poll for an approval", "known with a device", "unknown")
def _poll(accounts, count):
    askers = Askers(accounts)
    return _zip(askers.poll, *askers.asked(askers.owners(count), accounts.addresses(count)))


@pair("TI-02", "poll for an approval", "known with a device", "hidden by the guard")
def _poll_hidden(accounts, count):
    askers = Askers(accounts)
    return _zip(askers.poll, *askers.asked(askers.owners(count), askers.hidden(askers.owners(count))))


# -- sign-in by a device ---------------------------------------------------------------------------


class Signers:
    """Keys with which no user signs in, each for another reason."""

    def __init__(self, accounts):
        self.accounts, self.prover = accounts, Prover(accounts)
        client = accounts.app.client_id
        accounts.world.admin.run(f"SELECT admin.grant_permission('{accounts.realm.slug}', '{client}', 'gt:{DEVICE}');")
        accounts.world.settle()

    def request(self, key):
        """A sign-in by a key."""
        proof = key.proof("POST", f"https://{self.accounts.realm.host}/connect/token", nonce=self.prover.nonce)
        return self.prover.token(proof, grant_type=DEVICE, scope="openid")

    def keys(self, count):
        """Keys that are no device."""
        return [ProofKey() for _ in range(count)]

    def added(self, keys, client, probation="NULL"):
        """Makes each the device of a user of its own."""
        rows = ", ".join(
            f"({literal(email)}, '\\x{unb64url(key.thumbprint).hex()}'::bytea, '\\x{b''.join(unb64url(key.public()[name]) for name in 'xy').hex()}'::bytea)"
            for email, key in zip(self.accounts.users(len(keys)), keys))
        self.accounts.world.cluster.sql(
            "INSERT INTO postern.device_key (realm_id, thumbprint, public_key, user_id, client, added_at, probation_until) "
            f"SELECT u.realm_id, w.print, w.point, u.id, k.id, now(), {probation} FROM (VALUES {rows}) AS w (email, print, point) "
            f"JOIN postern.user_account AS u ON u.realm_id = {literal(self.accounts.id)} AND u.email = w.email "
            f"JOIN postern.client AS k ON k.realm_id = u.realm_id AND k.client_id = {literal(self.accounts.realm.client(client))}; "
            "ANALYZE postern.device_key;")
        return keys


@pair("TI-03", "device signs in", "on probation", "no device")
def _device_probation(accounts, count):
    signers = Signers(accounts)
    return _zip(signers.request, signers.added(signers.keys(count), "app", "now() + interval '24 hours'"), signers.keys(count))


@pair("TI-03", "device signs in", "of another client", "no device")
def _device_client(accounts, count):
    signers = Signers(accounts)
    return _zip(signers.request, signers.added(signers.keys(count), "app-2"), signers.keys(count))


# -- sign-in by a proven number --------------------------------------------------------------------


class Proofs:
    """Proofs of numbers that are passed as if the app's key had been, for one key."""

    def __init__(self, accounts):
        self.accounts, self.prover = accounts, Prover(accounts)
        if getattr(accounts, "backend", None) is None:
            realm, admin = possession(accounts.realm), accounts.world.admin
            realm.limit("possession", "client", 1_000_000, per="1 minute", burst=1_000_000)
            accounts.backend = Backend(realm, "prove")
            admin.run(f"SELECT admin.grant_permission('{realm.slug}', '{accounts.app.client_id}', 'gt:{POSSESSION}');")
            admin.call("put_possession_client", realm.slug, realm.client("prove"), login_client=accounts.app.client_id)
            accounts.world.settle()

    def started(self, count):
        """Tokens for apps, of transactions that the key has opened."""
        backend = self.accounts.backend
        fields = {"Host": self.accounts.realm.host, "Content-Type": "application/json", **bearer(backend.token)}
        start = wire.request_bytes("POST", "/v3/unify", fields, b'{"possessionType":"mobile"}')
        answers = driver.run(self.accounts.world.node.port, [(start, start)] * ((count + 1) // 2), connections=16, pause=0).answers
        tokens = [json.loads(answer[answer.index(b"\r\n\r\n") + 4:])["authToken"] for side in answers for answer in side][:count]
        self._update(tokens, f"key = '\\x{unb64url(self.prover.key.thumbprint).hex()}', opened_at = now()")
        return tokens

    def _update(self, tokens, change):
        names = ", ".join(literal(parts(token)[1]["jti"]) for token in tokens)
        self.accounts.world.cluster.sql(f"UPDATE postern.device_request AS t SET {change} WHERE t.auth_id IN ({names}); ANALYZE postern.device_request;")
        return tokens

    def passed(self, tokens):
        """Passed by a code, for numbers that no user has."""
        return self._update(tokens, f"state = 'passed', phone = {literal(new_number())}, detail = t.detail || '{{\"by\": \"code\"}}'")

    def request(self, token):
        """A sign-in."""
        return self.prover.token(self.prover.proof(), grant_type=POSSESSION, auth_token=token, scope="openid")


@pair("TI-03", "number signs in", "not passed", "passed, of no user")
def _possession(accounts, count):
    proofs = Proofs(accounts)
    return _zip(proofs.request, proofs.started(count), proofs.passed(proofs.started(count)))
