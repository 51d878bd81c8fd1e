"""A relying party and its user's browser, as the OpenID Foundation's conformance suite plays them."""

import base64
import hashlib
import secrets
import time

from . import jose, wire
from .codeflow import REDIRECT, Flow, challenge_of
from .ledger import LEDGER
from .pages_client import PageBrowser


class RelyingParty:
    """One client with one browser; it checks every answer as the suite does in every module. `mode`: the response mode that it asks for;
    `post`: its secret travels in the form."""

    def __init__(self, realm, name="api", mode=None, post=False, browser=None):
        self.realm = realm
        self.flow = Flow(realm, name)
        self.app = self.flow.app
        self.mode, self.post = mode, post
        self.browser = browser or PageBrowser(self.app.node, self.app.host)
        self.sent = {}

    # -- the authorization endpoint --------------------------------------------------------------

    def parameters(self, **changes):
        """A request without PKCE, with a fresh state and nonce; None leaves a parameter out."""
        self.sent = self.flow.request(**{
            "scope": "openid", "state": secrets.token_urlsafe(8), "nonce": secrets.token_urlsafe(8), "code_challenge": None,
            "code_challenge_method": None, "response_mode": self.mode, **changes})
        return self.sent

    def open(self, **changes):
        """Begins; the browser shows a page or has got an answer."""
        return self.browser.open("/connect/authorize?" + wire.form_body(self.parameters(**changes)).decode())

    def pass_pages(self, email):
        """Goes through the pages of a sign-in, by a code; a client that asks is allowed."""
        page = self.browser.page
        assert page is not None and page.step == "address", self.browser.answer
        before = len(self.realm.world.mailbox.to(email, "code"))
        self.browser.submit("continue", address=email)
        code = LEDGER.add("code", self.realm.world.mailbox.wait(email, before + 1, kind="code").code)
        self.browser.submit("continue", code=code)
        self.allow()

    def allow(self):
        """Answers a consent page, if there is one."""
        if self.browser.page is not None and self.browser.page.step == "consent":
            self.browser.submit("allow")

    def answer(self):
        """The members of the authorization response, in the mode that was asked for; with the state and issuer of every response."""
        if self.sent.get("response_mode") == "form_post":
            page = self.browser.page
            assert self.browser.left_for is None and page.step == "form-post", self.browser.answer
            assert (page.action, page.method) == (REDIRECT, "post"), self.browser.answer
            members = dict(page.fields)
        else:
            assert self.browser.left_for and self.browser.left_for.startswith(REDIRECT), self.browser.answer
            members = self.browser.members
        assert members.pop("iss") == self.realm.issuer
        assert members.pop("state", None) == self.sent.get("state")
        return members

    def code(self):
        """The code of a successful response."""
        members = self.answer()
        assert set(members) == {"code"}, members
        return LEDGER.add("authorization_code", members["code"])

    def error(self):
        """The error of a response that is none."""
        members = self.answer()
        assert "code" not in members and members["error_description"], members
        return members["error"]

    # -- the token endpoint and what follows -----------------------------------------------------

    def ask(self, **form):
        """A token request, authenticated in this client's way."""
        if self.post:
            return self.app.token({**form, **self.app.credentials()})
        return self.app.token(form, {"Authorization": self.app.basic})

    def exchange(self, code, **changes):
        """The code at the token endpoint; the raw answer."""
        return self.ask(**{"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, **changes})

    def tokens(self, code=None, **changes):
        """The token answer of a success, with an ID token that is right in everything."""
        answer = self.exchange(code or self.code(), **changes)
        assert answer.status == 200 and "no-store" in answer.header("cache-control"), answer
        tokens = answer.json()
        assert tokens["token_type"] == "Bearer" and tokens["access_token"] and tokens["expires_in"] > 0
        self.check_identity(tokens, self.sent.get("nonce"))
        return tokens

    def check_identity(self, tokens, nonce):
        """OpenID Connect Core §3.1.3.7; returns the claims."""
        header, claims = jose.verify(tokens["id_token"], self.app.get("/.well-known/jwks").json())
        assert (claims["iss"], claims["aud"]) == (self.realm.issuer, self.app.client_id)
        assert claims.get("azp", self.app.client_id) == self.app.client_id
        assert claims["iat"] - 5 <= time.time() < claims["exp"] and abs(claims["iat"] - time.time()) < 300
        assert 0 < len(claims["sub"]) <= 255 and claims.get("nonce") == nonce
        size = hashlib.sha512 if header["alg"] == "EdDSA" else hashlib.sha256
        digest = size(tokens["access_token"].encode()).digest()
        assert claims["at_hash"] == base64.urlsafe_b64encode(digest[:len(digest) // 2]).rstrip(b"=").decode()
        return claims

    def claims(self, tokens):
        """The claims of the ID token."""
        return jose.parts(tokens["id_token"])[1]

    def userinfo(self, tokens):
        """The userinfo of a success, which is about the user of the ID token."""
        answer = self.app.userinfo(tokens["access_token"])
        assert answer.status == 200 and answer.header("content-type").startswith("application/json"), answer
        assert answer.json()["sub"] == self.claims(tokens)["sub"]
        return answer.json()

    def signed_in(self, email, **changes):
        """A whole sign-in through the pages; the token answer."""
        self.open(**changes)
        self.pass_pages(email)
        return self.tokens()

    def silently(self, **changes):
        """One more authorization of a browser that is signed in; the token answer."""
        self.open(**changes)
        return self.tokens()

    # -- PKCE ---------------------------------------------------------------------------------------

    def pkce(self):
        """The parameters of a request with PKCE."""
        return {"code_challenge": challenge_of(self.flow.verifier), "code_challenge_method": "S256"}
