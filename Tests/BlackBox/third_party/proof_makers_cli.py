"""Proofs by other libraries, and what they make of ours: pydpop, idpyoidc, joserfc."""

import time
import uuid

import pydpop
from conversation import hear, tell
from cryptojwt.jwk.ec import new_ec_key
from idpyoidc.client.oauth2.add_on.dpop import DPoPProof
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet

_PYDPOP, _IDPYOIDC, _JOSERFC = pydpop.generate_key(), new_ec_key(crv="P-256"), ECKey.generate_key("P-256")


def by_pydpop(method, url, token, nonce):
    """Its own function."""
    jwk = pydpop.public_jwk(_PYDPOP)
    return pydpop.generate_proof(private_key=_PYDPOP, htm=method, htu=url, access_token=token, nonce=nonce), pydpop.jwk_thumbprint(jwk)


def by_idpyoidc(method, url, token, nonce):
    """Its message class; it knows no nonce, and its `ath` is not the one of RFC 9449."""
    proof = DPoPProof(typ="dpop+jwt", alg="ES256", jwk=_IDPYOIDC.serialize(), jti=uuid.uuid4().hex, htm=method, htu=url, iat=int(time.time()))
    proof.key = _IDPYOIDC
    return proof.create_header(), _IDPYOIDC.thumbprint("SHA-256").decode()


def by_joserfc(method, url, token, nonce):
    """A JWT with a key in its header."""
    from hashlib import sha256
    from base64 import urlsafe_b64encode
    claims = {"jti": uuid.uuid4().hex, "htm": method, "htu": url, "iat": int(time.time()), **({"nonce": nonce} if nonce else {})}
    if token:
        claims["ath"] = urlsafe_b64encode(sha256(token.encode()).digest()).rstrip(b"=").decode()
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": _JOSERFC.as_dict(private=False)}
    return jwt.encode(header, claims, _JOSERFC, registry=jws.JWSRegistry(strict_check_header=False)), _JOSERFC.thumbprint()


hear()
while True:
    asked = hear()
    if asked["do"] == "make":
        proof, thumbprint = globals()["by_" + asked["maker"]](asked["method"], asked["url"], asked["token"], asked["nonce"])
        tell(proof=proof, thumbprint=thumbprint)
    elif asked["do"] == "verify proof":
        pydpop.verify_proof(proof=asked["proof"], htm=asked["method"], htu=asked["url"], access_token=asked["token"])
        tell(verified=True)
    else:
        decoded = jwt.decode(asked["token"], KeySet.import_key_set(asked["keys"]), algorithms=[asked["alg"]])
        tell(claims=decoded.claims, header=decoded.header)
