"""google-auth-oauthlib: a command-line program, that is a public client, listens on a port of its own on loopback."""

import requests
from conversation import hear, tell
from google.auth.transport.requests import Request
from google_auth_oauthlib.flow import InstalledAppFlow

settings = hear()
metadata = requests.get(settings["issuer"] + "/.well-known/openid-configuration", timeout=20).json()
flow = InstalledAppFlow.from_client_config(
    {"installed": {"client_id": settings["client_id"], "client_secret": "", "auth_uri": metadata["authorization_endpoint"],
                   "token_uri": metadata["token_endpoint"]}},
    scopes=["openid", "email", "offline_access"], autogenerate_code_verifier=True)
credentials = flow.run_local_server(port=0, open_browser=False, authorization_prompt_message='{{"open": "{url}"}}')
session = flow.authorized_session()
userinfo = session.get(metadata["userinfo_endpoint"]).json()
first = credentials.refresh_token
credentials.refresh(Request())
tell(sub=userinfo["sub"], email=userinfo["email"], id_token=credentials.id_token, rotated=credentials.refresh_token != first,
     renewed=session.get(metadata["userinfo_endpoint"]).json()["sub"])
hear()
try:
    credentials.refresh(Request())
except Exception as refused:
    tell(after=type(refused).__name__)
