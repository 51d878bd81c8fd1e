"""requests-oauth2client: a pushed authorization request, the issuer of the response, the ID token, userinfo, refresh, revocation."""

from conversation import hear, tell
from requests_oauth2client import ClientSecretBasic, OAuth2Client, PrivateKeyJwt

settings = hear()
if settings["private_key"]:
    authentication = PrivateKeyJwt(settings["client_id"], settings["private_key"], alg="ES256")
else:
    authentication = ClientSecretBasic(settings["client_id"], settings["client_secret"])
client = OAuth2Client.from_discovery_endpoint(
    issuer=settings["issuer"], auth=authentication,
    redirect_uri=settings["redirect_uri"], id_token_signed_response_alg="ES256", testing=True)
assert client.authorization_response_iss_parameter_supported
with client:
    request = client.authorization_request(scope="openid email offline_access")
    pushed = client.pushed_authorization_request(request)
    tell(open=pushed.uri)
    response = request.validate_callback(hear()["arrived"])
    tokens = client.authorization_code(response, validate=True)
    userinfo = client.userinfo(tokens)
    again = client.refresh_token(tokens.refresh_token)
    tell(sub=tokens.id_token.claims["sub"], email=userinfo["email"], id_token=str(tokens.id_token),
         rotated=again.refresh_token != tokens.refresh_token, renewed=client.userinfo(again)["sub"])
    hear()
    assert client.revoke_refresh_token(again.refresh_token)
    try:
        client.refresh_token(again.refresh_token)
    except Exception as refused:
        tell(after=type(refused).__name__)
