"""What authlib makes of an ID token at a given time, as a client that got it."""

from authlib.jose import JsonWebKey, JsonWebToken
from authlib.oidc.core import CodeIDToken
from conversation import hear, tell

hear()
while True:
    asked = hear()
    options = {"iss": {"essential": True, "values": [asked["issuer"]]}, "aud": {"essential": True, "values": [asked["client"]]}}
    try:
        claims = JsonWebToken(["EdDSA", "ES256", "RS256"]).decode(
            asked["token"], JsonWebKey.import_key_set(asked["keys"]), claims_cls=CodeIDToken, claims_options=options,
            claims_params={"nonce": asked["nonce"], "client_id": asked["client"]})
        claims.validate(now=asked["now"], leeway=0)
        tell(email=claims["email"])
    except Exception as error:  # pylint: disable=broad-exception-caught  # any refusal is told by its name
        tell(refused=type(error).__name__)
