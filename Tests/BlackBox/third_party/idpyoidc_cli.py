"""idpyoidc: a strict relying party with PKCE, from discovery to RP-initiated logout."""

import urllib.parse

from conversation import hear, tell
from idpyoidc.client.rp_handler import RPHandler

settings = hear()
issuer = settings["issuer"]
handler = RPHandler(
    base_url="http://localhost", httpc_params={"verify": settings["authority"], "timeout": 20},
    key_conf={"key_defs": [{"type": "EC", "crv": "P-256", "use": ["sig"]}]},
    client_configs={issuer: {
        "issuer": issuer, "client_type": "oidc", "client_id": settings["client_id"], "client_secret": settings["client_secret"],
        "redirect_uris": [settings["redirect_uri"]], "post_logout_redirect_uris": [settings["goodbye"]],
        "response_types_supported": ["code"], "scopes_supported": ["openid", "email", "offline_access"],
        "id_token_signed_response_alg": "ES256", "client_authn_methods": ["client_secret_basic"],
        "add_ons": {"pkce": {
            "function": "idpyoidc.client.oauth2.add_on.pkce.add_support",
            "kwargs": {"code_challenge_length": 64, "code_challenge_method": "S256"}}},
        "services": {name: {"class": f"idpyoidc.client.oidc.{name}"} for name in (
            "provider_info_discovery.ProviderInfoDiscovery", "registration.Registration", "authorization.Authorization",
            "access_token.AccessToken", "refresh_access_token.RefreshAccessToken", "userinfo.UserInfo", "end_session.EndSession")},
    }})
tell(open=handler.begin(issuer))
arrived = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(hear()["arrived"]).query))
client = handler.get_client_from_session_key(arrived["state"])
done = handler.finalize(issuer, arrived)
assert "error" not in done, done
before = client.get_context().cstate.get_set(done["state"], claim=["refresh_token"])["refresh_token"]
again = client.refresh_access_token(done["state"], scope="openid email offline_access")
tell(sub=done["id_token"]["sub"], email=done["userinfo"]["email"], rotated=again["refresh_token"] != before,
     renewed=client.get_user_info(done["state"], again["access_token"])["sub"])
tell(open=client.logout(done["state"], settings["goodbye"])["url"])
