"""requests-oauth2client with DPoP: an authorization code bound by `dpop_jkt`, then many refreshes and calls of userinfo, counted."""

import time

import requests
from conversation import hear, tell
from requests_oauth2client import DPoPKey, OAuth2Client, PublicApp


class Counting(requests.adapters.HTTPAdapter):
    """Counts what really goes over the wire, repetitions too."""

    statuses = []

    def send(self, request, **how):
        response = super().send(request, **how)
        if "DPoP" in request.headers:
            self.statuses.append(response.status_code)
        return response


settings = hear()
session = requests.Session()
session.mount("https://", Counting())
key = DPoPKey.generate(alg=settings["alg"], iat_generator=lambda: int(time.time()) + settings["wrong"])
client = OAuth2Client.from_discovery_endpoint(
    issuer=settings["issuer"], auth=PublicApp(settings["client_id"]), redirect_uri=settings["redirect_uri"],
    id_token_signed_response_alg="ES256", testing=True, session=session, dpop_bound_access_tokens=True)
request = client.authorization_request(scope="openid email offline_access", dpop=True, dpop_key=key)
tell(open=request.uri, thumbprint=key.dpop_jkt)
response = request.validate_callback(hear()["arrived"])
Counting.statuses.clear()
# Its own validation of ID tokens makes a DPoPToken without a key, which raises TypeError (1.8.0).
tokens = client.authorization_code(response, validate=False)
called, subjects, kinds = 1, set(), {tokens.token_type}
for _ in range(settings["rounds"]):
    tokens = client.refresh_token(tokens)
    kinds.add(tokens.token_type)
    subjects.add(client.userinfo(tokens)["sub"])
    called += 2
counts = {str(status): Counting.statuses.count(status) for status in set(Counting.statuses)}
tell(called=called, sent=len(Counting.statuses), counts=counts, subjects=sorted(subjects), kinds=sorted(kinds))
hear()
assert client.revoke_refresh_token(tokens.refresh_token)
try:
    client.refresh_token(tokens)
except Exception as refused:
    tell(after=type(refused).__name__)
