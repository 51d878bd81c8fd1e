"""What the cases of refresh.json and sign-in.json are written with: tokens, answers, requests, and steps."""

import json

from harness.jose import b64url

from .client import CLIENT_ID
from .proofs import NOW
from .urls import ORIGIN

SCOPE = "openid offline_access"
ANY, STRING, ABSENT = {"$": "any"}, {"$": "string"}, {"$": "absent"}


class IDTokens:
    """ID tokens by name. Clients do not check their signature: they come from the token endpoint over TLS."""

    def __init__(self):
        self.made = {}

    def __call__(self, at=0, user=1, session=1, **changes):
        """The name of one that was issued at a virtual time."""
        claims = {
            "iss": ORIGIN, "sub": f"vector-user-{user}", "aud": CLIENT_ID, "iat": NOW + at, "exp": NOW + at + 900, "auth_time": NOW, "sid": f"vector-session-{session}",
            "amr": ["otp"], "acr": "urn:postern:acr:1", "email": f"user-{user}@vectors.example", "email_verified": True, **changes,
        }
        parts = [{"alg": "ES256", "kid": "vector-kid"}, {name: value for name, value in claims.items() if value is not None}]
        token = ".".join([*(b64url(json.dumps(part, separators=(",", ":")).encode()) for part in parts), b64url(b"not a signature, a vector")])
        name = next((name for name, one in self.made.items() if one["jwt"] == token), f"vector-id-{len(self.made) + 1}")
        self.made[name] = {"claims": parts[1], "jwt": token}
        return name


def refresh(number):
    """The refresh token of a generation."""
    return f"vector-refresh-{number}"


def access(number):
    """An access token."""
    return f"vector-access-{number}"


def ok(number, id_token=None, kind="DPoP", **changes):
    """A token answer: generation `number`."""
    body = {"access_token": access(number), "token_type": kind, "expires_in": 900, "refresh_token": refresh(number), "scope": SCOPE, "id_token": id_token, **changes}
    return {"status": 200, "json": {name: value for name, value in body.items() if value is not None}}


def error(code, status=400, text=None, headers=None):
    """A refusal."""
    return {"status": status, **({"headers": headers} if headers else {}), "json": {"error": code, **({"error_description": text} if text else {})}}


ENDED = error("invalid_grant", text="The refresh token is invalid.")
NONCE_DUE = error("use_dpop_nonce", text="Use the nonce given in DPoP-Nonce.", headers={"DPoP-Nonce": "vector-nonce-1"})
BAD_PROOF = error("invalid_dpop_proof", text="The DPoP proof is invalid.")


def busy(retry_after=None, status=503):
    """The server decided nothing."""
    code = "rate_limited" if status == 429 else "temporarily_unavailable"
    return error(code, status, headers=None if retry_after is None else {"Retry-After": str(retry_after)})


def token_request(form, proof=True, **members):
    """POST /connect/token as it is expected; `proof`: False for none, or what is known about it."""
    return {"request": {"method": "POST", "url": f"{ORIGIN}/connect/token", "form": {"client_id": CLIENT_ID, **form}, **_proof(proof), **members}}


def refreshes(number, proof=True, **form):
    """A refresh with the token of a generation."""
    return token_request({"grant_type": "refresh_token", "refresh_token": refresh(number), "scope": ANY, **form}, proof)


def _proof(proof):
    return {"proof": {} if proof is True else proof} if proof is not False else {}


def posts(path, members, proof=True, kind="json"):
    """POST of JSON as it is expected."""
    return {"request": {"method": "POST", "url": ORIGIN + path, kind: members, **_proof(proof)}}


def call(name, do="accessToken", **arguments):
    """A call of the app begins."""
    return {"call": name, "do": do, **arguments}


def answer(what, **how):
    """An answer, or "lost"."""
    return {"answer": what, **how}


def gets(name, number):
    """A call ended with an access token."""
    return {"result": name, "token": access(number)}


def fails(name, failure, **details):
    """A call ended with an error."""
    return {"result": name, "error": failure, **details}


def in_store(number, left, life=900, audience="default", **changes):
    """An access token of the store."""
    return {"audience": audience, "value": access(number), "issued": left - life, "expires": left, **changes}


def signed_in(ids, *tokens, generation=1, user=1, session=1, bound=True, **changes):  # pylint: disable=too-many-arguments
    """A store with a session, and access tokens."""
    id_token = ids(user=user, session=session)
    kept = {"id": f"vector-session-{session}", "user": f"vector-user-{user}", "refresh": generation and refresh(generation), "bound": bound, "idToken": id_token}
    return {"session": kept, "access": list(tokens), "hint": id_token, **changes}
