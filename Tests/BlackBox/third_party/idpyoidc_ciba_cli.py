"""idpyoidc asks for an approval (CIBA); Authlib polls the token endpoint for it."""

from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from conversation import hear, tell
from idpyoidc.client.rp_handler import RPHandler

settings = hear()
issuer = settings["issuer"]
handler = RPHandler(
    base_url="http://localhost", httpc_params={"verify": settings["authority"], "timeout": 20},
    key_conf={"key_defs": [{"type": "EC", "crv": "P-256", "use": ["sig"]}]},
    client_configs={issuer: {
        "issuer": issuer, "client_type": "oidc", "client_id": settings["client_id"], "client_secret": settings["client_secret"],
        "redirect_uris": [settings["redirect_uri"]], "response_types_supported": ["code"], "scopes_supported": ["openid"],
        "client_authn_methods": ["client_secret_basic"],
        "services": {name: {"class": f"idpyoidc.client.oidc.{name}"} for name in (
            "provider_info_discovery.ProviderInfoDiscovery", "registration.Registration", "authorization.Authorization",
            "backchannel_authentication.BackChannelAuthentication")},
    }})
client = handler.client_setup(issuer)
# Its service is declared for GET, which CIBA Core 1.0 section 7.1 does not know.
asked = client.do_request(
    "backchannel_authentication", request_args={"scope": ["openid"], "login_hint": settings["email"], "binding_message": "Order 4711"},
    authn_method="client_secret_basic", method="POST")
tell(**asked.to_dict())
session = OAuth2Session(settings["client_id"], settings["client_secret"], token_endpoint_auth_method="client_secret_basic")
session.verify = settings["authority"]
while True:
    hear()
    try:
        token = session.fetch_token(
            f"{issuer}/connect/token", grant_type="urn:openid:params:grant-type:ciba", auth_req_id=asked["auth_req_id"])
        tell(token_type=token["token_type"], id_token=token["id_token"])
        break
    except OAuthError as problem:
        tell(error=problem.error)
