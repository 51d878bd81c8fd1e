"""A web application with Authlib's client for Flask: authorization code with PKCE, refresh, RP-initiated logout."""

import urllib.parse

from authlib.integrations.flask_client import OAuth
from conversation import hear, tell
from flask import Flask, jsonify, redirect, request, session

settings = hear()
site = urllib.parse.urlsplit(settings["redirect_uri"])
app = Flask(__name__)
app.secret_key = "only for this test"
app.config["SESSION_COOKIE_NAME"] = "authlib-site"
oauth = OAuth(app)
oauth.register(
    "op", server_metadata_url=settings["issuer"] + "/.well-known/openid-configuration",
    client_id=settings["client_id"], client_secret=settings["client_secret"],
    client_kwargs={"scope": "openid email offline_access", "code_challenge_method": "S256"})
TOKENS = {}


@app.get("/login")
def login():
    """To the provider."""
    return oauth.op.authorize_redirect(settings["redirect_uri"])


@app.get("/callback")
def callback():
    """From the provider: Authlib checks state, issuer, nonce and signature."""
    token = oauth.op.authorize_access_token()
    TOKENS.update(token)
    session["claims"] = {name: token["userinfo"][name] for name in ("iss", "sub", "amr")}
    return redirect("/me")


@app.get("/me")
def me():
    """Who is signed in."""
    return jsonify(session.get("claims"))


@app.get("/refresh")
def refresh():
    """A new access token, and what it opens."""
    metadata = oauth.op.load_server_metadata()
    with oauth.op._get_oauth_client(**metadata) as client:
        token = client.refresh_token(metadata["token_endpoint"], refresh_token=TOKENS["refresh_token"])
    rotated = token["refresh_token"] != TOKENS["refresh_token"]
    return jsonify(rotated=rotated, userinfo=oauth.op.userinfo(token=token))


@app.get("/logout")
def logout():
    """To the provider, which leads back to /goodbye."""
    session.pop("claims", None)
    return oauth.op.logout_redirect(f"http://{site.netloc}/goodbye", TOKENS["id_token"])


@app.get("/goodbye")
def goodbye():
    """Back from the provider: Authlib checks the state."""
    oauth.op.validate_logout_response()
    return jsonify(signed_out=True, query=sorted(request.args))


tell(listening=True)
app.run("127.0.0.1", site.port)
