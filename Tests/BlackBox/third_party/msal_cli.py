"""MSAL: a command-line program, that is a public client, listens on a port of its own on localhost; its cache refreshes."""

import msal
from conversation import hear, tell

settings = hear()
# MSAL wants a path in an authority. A dot leaves the issuer's URL as it is.
app = msal.PublicClientApplication(settings["client_id"], oidc_authority=settings["issuer"] + "/.")
tokens = app.acquire_token_interactive(["email"], auth_uri_callback=lambda url: tell(open=url))
account = app.get_accounts()[0]
again = app.acquire_token_silent(["email"], account, force_refresh=True)
tell(claims=tokens["id_token_claims"], id_token=tokens["id_token"], access_tokens=[tokens["access_token"], again["access_token"]])
hear()
tell(after=app.acquire_token_silent_with_error(["email"], account, force_refresh=True))
