"""Pairs of requests with proofs of possession: what is beside a proof that is refused, and tokens of other keys."""

import secrets

from harness.app import OTP
from harness.dpop import ProofKey
from harness.pepper import set_code
from harness.realm import call

from . import driver
from .registry import pair

_PATH = "/connect/token"


class Prover:
    """A key, and a nonce that is good for half an hour: as long as a comparison takes."""

    def __init__(self, accounts):
        self.accounts, self.key = accounts, ProofKey()
        accounts.world.admin.run(call("set_dpop", accounts.realm.slug, nonce_lifetime="30 minutes"))
        accounts.world.settle()
        stale = self.token(self.proof(payload={"iat": 1}), grant_type="refresh_token", refresh_token="x")
        (answers, _) = driver.run(accounts.world.node.port, [(stale, stale)], connections=1, pause=0).answers
        self.nonce = answers[0].split(b"DPoP-Nonce: ", 1)[1].split(b"\r\n", 1)[0].decode()

    nonce = None

    def proof(self, **changes):
        """For the token endpoint."""
        return self.key.proof("POST", f"https://{self.accounts.realm.host}{_PATH}", nonce=self.nonce, **changes)

    def token(self, proof, **parameters):
        """A token request with a proof."""
        return self.accounts.form(_PATH, {"client_id": self.accounts.app.client_id, **parameters}, [("DPoP", proof)])

    def bound(self, count):
        """Refresh tokens of families that are bound to a key of their own."""
        credentials, _ = self.accounts.credentials(count)
        families = []
        for credential in credentials:
            tokens = self.accounts.sign_in(credential)
            other = ProofKey()
            form = {"grant_type": "refresh_token", **self.accounts.app.credentials(), "refresh_token": tokens["refresh_token"]}
            answer = self.accounts.app.token(form, {"DPoP": other.proof("POST", f"https://{self.accounts.realm.host}{_PATH}")})
            if answer.status != 200:  # a database that has just been made asks for a nonce
                proof = other.proof("POST", f"https://{self.accounts.realm.host}{_PATH}", nonce=answer.header("DPoP-Nonce"))
                answer = self.accounts.app.token(form, {"DPoP": proof})
            assert answer.status == 200, answer
            families.append(answer.json()["refresh_token"])
        return families


def _with_right_codes(accounts, count=20):
    emails = accounts.with_codes(accounts.users(count))
    for email in emails:
        set_code(accounts.world, accounts.realm, email, "123456")
    return emails


def _beside(accounts, count, spoil):
    """A right code of a user beside a wrong one of an address that nobody has; the proof of both is refused."""
    prover, known = Prover(accounts), _with_right_codes(accounts)
    unknown = accounts.addresses(count)

    def request(email, code):
        return prover.token(spoil(prover), grant_type=OTP, username=email, otp_code=code, scope="")
    return [(request(known[n % len(known)], "123456"), request(unknown[n], "654321")) for n in range(count)]


@pair("DPoP", "bad proof", "right code", "wrong code", held=False)
def _bad(accounts, count):
    return _beside(accounts, count, lambda prover: prover.proof(spoil=lambda raw: raw[::-1]))


@pair("DPoP", "proof without a nonce", "right code", "wrong code", held=False)
def _stale(accounts, count):
    return _beside(accounts, count, lambda prover: prover.key.proof(
        "POST", f"https://{accounts.realm.host}{_PATH}", payload={"iat": 1}))


@pair("DPoP", "refresh token", "another key's", "made up", same_statements=False)
def _key(accounts, count):
    prover = Prover(accounts)
    tokens = prover.bound(20)

    def request(token):
        return prover.token(prover.proof(), grant_type="refresh_token", refresh_token=token)
    made_up = ["prt_" + secrets.token_urlsafe(len(tokens[0]))[:len(tokens[0]) - 4] for _ in range(20)]
    return [(request(tokens[n % 20]), request(made_up[n % 20])) for n in range(count)]
