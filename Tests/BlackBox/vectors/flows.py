"""The flows of exchanges.json: what an app does, through the Swift client library, and what its person reads or types meanwhile."""

import time
import urllib.parse

from harness import authenticator, totp, wire
from harness.approvals import Device
from harness.jose import b64url
from harness.links import Link, Links
from harness.pages_client import PageBrowser
from harness.postgres import literal
from vectors.recording import payload

REDIRECT = "https://app.a.example/cb"
ORDERS = ["openid", "offline_access", "orders.read"]
#: Stands for the token that a backend gives an app to prove a number: the nonce in it is the first one to use.
AUTH_TOKEN = ".".join(b64url(part) for part in (b'{"alg":"none"}', b'{"nonce":"vector-nonce-of-token"}', b"a vector's signature"))
#: By name: what it does, and the settings of its client.
FLOWS = {}


def flow(name, **settings):
    """A flow of this name, whose client has these settings."""
    def add(play):
        FLOWS[name] = (play, settings)
        return play
    return add


class Play:
    """A flow that is played: on a real server (`realm`), or by what its person read and typed then (`inputs`)."""

    def __init__(self, client, realm=None, inputs=None):
        self.client, self.realm, self.inputs = client, realm, dict(inputs or {})
        #: What was read or typed, with what stands for it.
        self.given = {}
        self.mails = 0
        #: What a browser asked the server, and where that led.
        self.browsed = None
        if realm is not None:
            self.email = realm.user()
            self.app = realm.app()
        self.email = self.input("email", lambda: self.email, "ada@vectors.example")

    def input(self, name, read, stands):
        """Something that a person reads or types."""
        if self.realm is None:
            return self.inputs[name]
        value = read()
        self.inputs[name] = self.given[value] = stands
        return value

    def really(self, do):
        """What happens at the server or elsewhere, when there is one."""
        return do() if self.realm is not None else None

    def fails(self, method, case, **arguments):
        """A call that must fail so."""
        return self.client.fails(method, case, **arguments)

    def call(self, method, **arguments):
        """A call."""
        return self.client.call(method, **arguments)

    def code(self, name="code", stands="246801", to=None):
        """Of the next mail."""
        def read():
            self.mails += to is None
            return self.realm.world.mailbox.wait(to or self.email, 1 if to else self.mails, kind="code").code
        return self.input(name, read, stands)

    def sign_in(self, name="code", stands="246801", **more):
        """By a code."""
        asked = self.call("requestCode", email=self.email)
        return self.call("signIn", request=asked, code=self.code(name, stands), **more)

    def link(self, pending):
        """The link of a mail. It is the realm's, so it has the place of the origin."""
        def read():
            mail = self.realm.world.mailbox.wait(self.email, kind="link")
            self.found = Link(self.email, "", pending["matchNumber"], mail.link)
            self.given[self.found.user_id] = "vector-user-1"
            self.given[self.found.token] = "vector-link-token-1"
            return mail.link
        return self.input("link", read, self.client.origin + "/magic-login?userId=vector-user-1&token=vector-link-token-1")

    def second_factor(self):
        """An account with TOTP: the secret."""
        def enrol():
            tokens = self.app.sign_in(self.email)
            self.mails += 1
            return self.app.enrol_totp(tokens["access_token"])
        self.secret, self.recovery = self.really(enrol) or (None, None)

    def has_authenticator(self):
        """The person has an authenticator."""
        kept = []

        def create(options):
            document, credential = authenticator.create(options)
            kept[:] = [credential]
            return document

        self.client.person["create"] = create
        self.client.person["get"] = lambda options: authenticator.assertion(options, kept[0])

    def revoked(self, count=1):
        """Waits until so many sessions were revoked."""
        deadline = time.monotonic() + 20
        while self.client.requests("/connect/revoke") < count:
            assert time.monotonic() < deadline, "nothing was revoked"
            time.sleep(0.02)


# -- codes and registration ------------------------------------------------------------------------


@flow("code")
def _code(play):
    play.sign_in()


@flow("code, bearer tokens", key="none")
def _bearer(play):
    play.sign_in()


@flow("code: wrong, then right")
def _wrong_code(play):
    asked = play.call("requestCode", email=play.email)
    code = play.code()
    play.fails("signIn", "wrongCode", request=asked, code="13579")
    play.call("signIn", request=asked, code=code)


@flow("code: asked for again")
def _resent_code(play):
    asked = play.call("requestCode", email=play.email)
    play.code("first code", "135790")
    again = play.call("resendCode", request=asked)
    play.call("signIn", request=again, code=play.code())


@flow("code: a second factor is missing, wrong, right")
def _totp(play):
    play.second_factor()
    asked = play.call("requestCode", email=play.email)
    code = play.code()
    play.fails("signIn", "secondFactorNeeded", request=asked, code=code)
    play.fails("signIn", "secondFactorWrong", request=asked, code=code, totp=play.input("wrong", lambda: totp.wrong(play.secret), "112233"))
    play.call("signIn", request=asked, code=code, totp=play.input("totp", lambda: totp.code(play.secret), "445566"))


@flow("code: a recovery code is the second factor")
def _recovery(play):
    play.second_factor()
    asked = play.call("requestCode", email=play.email)
    recovery = play.input("recovery code", lambda: play.recovery[0], "aaaa-bbbb-cccc")
    play.call("signIn", request=asked, code=play.code(), recoveryCode=recovery)


@flow("code: a text that is not an address")
def _no_address(play):
    assert play.fails("requestCode", "refused", email="no-at")["code"] == "Email is invalid."


@flow("app info")
def _info(play):
    play.call("appInfo")


# -- links ---------------------------------------------------------------------------------------


@flow("link: the number is typed elsewhere")
def _link(play):
    pending = play.call("requestLink", email=play.email)
    play.link(pending)
    play.really(lambda: Links(play.app).choose(play.found, play.found.number))
    play.call("wait", request=pending)


@flow("link: a wrong number")
def _denied_link(play):
    pending = play.call("requestLink", email=play.email)
    play.link(pending)
    play.really(lambda: Links(play.app).choose(play.found, Links.wrong(play.found)))
    play.fails("wait", "denied", request=pending)


@flow("link: a second factor is missing, then right")
def _link_totp(play):
    play.second_factor()
    pending = play.call("requestLink", email=play.email)
    play.link(pending)
    play.really(lambda: Links(play.app).choose(play.found, play.found.number))
    play.fails("wait", "secondFactorNeeded", request=pending)
    play.call("wait", request=pending, totp=play.input("totp", lambda: totp.code(play.secret), "445566"))


@flow("link: opened in the app that asked")
def _own_link(play):
    pending = play.call("requestLink", email=play.email)
    play.call("openLink", url=play.link(pending))


@flow("link: somebody else asked for it")
def _foreign_link(play):
    def elsewhere():
        return {"matchNumber": Links(play.app).ask(play.email).json()["MatchNumber"]}
    url = play.link(play.really(elsewhere))
    play.call("requestLink", email="unknown@vectors.example")
    play.fails("openLink", "foreignLink", url=url)


# -- passkeys --------------------------------------------------------------------------------------


@flow("passkey: added, signs in")
def _passkey(play):
    play.sign_in()
    play.has_authenticator()
    play.call("addPasskey", name="Phone")
    play.call("signOut")
    play.call("signInWithPasskey")


@flow("passkey: listed, renamed, removed")
def _passkeys(play):
    play.sign_in()
    play.has_authenticator()
    added = play.call("addPasskey", name="Phone")
    play.call("passkeys")
    play.call("renamePasskey", target=added, name="Old phone")
    play.call("removePasskey", target=added)
    assert play.call("passkeys") == []


@flow("passkey: none of this account")
def _foreign_passkey(play):
    play.has_authenticator()
    options = {"rp": {"id": "auth.vectors.example"}, "user": {"id": "dmVjdG9y"}, "challenge": "dmVjdG9y"}
    play.client.person["create"](options)
    assert play.fails("signInWithPasskey", "refused")["code"] == "invalid_grant"


@flow("step-up: a passkey reaches the level that is asked for")
def _step_up(play):
    play.sign_in()
    play.has_authenticator()
    play.call("addPasskey")
    assert play.call("stepUp", levels=["phr", "urn:postern:acr:2"])["level"] == "phr"
    play.revoked()


@flow("step-up: the sign-in is too old to add a passkey, a code makes it new")
def _renewed(play):
    user = play.sign_in()
    session = play.call("state")["user"]["sessionID"]
    play.really(lambda: play.realm.world.cluster.sql(
        f"UPDATE postern.session SET auth_time = auth_time - interval '11 minutes' WHERE id = {literal(session)}"))
    assert play.fails("addPasskey", "stepUpNeeded")["maxAge"] == 600
    asked = play.call("requestCode", email=play.email)
    again = play.call("stepUp", by="code", request=asked, code=play.code("second code", "975310"), maxAge=600)
    assert again["id"] == user["id"]
    play.revoked()


# -- sessions ----------------------------------------------------------------------------------------


@flow("refresh: a token for an API", scopes=ORDERS)
def _refresh(play):
    play.sign_in()
    assert play.call("accessToken", audience=["orders.read"])["scopes"] == ["orders.read"]


@flow("refresh: the session has ended", scopes=ORDERS)
def _ended(play):
    play.sign_in()
    play.really(lambda: play.realm.world.admin.call("sign_out_everywhere", play.realm.slug, play.email))
    assert play.fails("accessToken", "signedOut", audience=["orders.read"])["reason"] == "ended"


@flow("refresh: a scope that the sign-in has not", scopes=ORDERS)
def _wide(play):
    play.sign_in()
    play.fails("accessToken", "refused", audience=["forbidden.read"])


@flow("adopt: a bearer session is bound")
def _adopt(play):
    token = play.input("refresh token", lambda: play.app.sign_in(play.email)["refresh_token"], "vector-former-refresh")
    play.call("adopt", refreshToken=token)


@flow("adopt: a token that is refused")
def _refused_token(play):
    play.fails("adopt", "signedOut", refreshToken="vector-unknown-refresh")


@flow("sign-out")
def _sign_out(play):
    play.sign_in()
    play.call("signOut")


@flow("sign-out: everywhere")
def _everywhere(play):
    play.sign_in()
    play.call("signOut", scope="everywhere")


@flow("sessions: listed, another one ended, all others ended", agent="Vector/1.0")
def _sessions(play):
    play.really(lambda: [play.app.sign_in(play.email) for _ in range(2)])
    play.mails += 2
    play.sign_in()
    others = [session["id"] for session in play.call("sessions") if not session["isCurrent"]]
    play.call("endSession", target=others[0])
    play.call("endOtherSessions")
    assert len(play.call("sessions")) == 1


@flow("userinfo")
def _userinfo(play):
    play.sign_in()
    assert play.call("send", url=play.client.origin + "/connect/userinfo")["status"] == 200


@flow("sign-in over a session: the former one is revoked")
def _replaced(play):
    play.sign_in()
    play.sign_in("second code", "975310")
    play.revoked()


# -- the account -----------------------------------------------------------------------------------------


@flow("account: read and changed")
def _account(play):
    play.sign_in()
    play.call("account")
    play.call("updateAccount", changes={"FirstName": "Augusta Ada", "LastName": None})


@flow("account: deleted")
def _deleted(play):
    play.sign_in()
    play.call("deleteAccount")


@flow("identifiers: an address is added, made primary, removed")
def _identifiers(play):
    play.sign_in()
    new = play.input("new email", lambda: play.realm.new_email(), "augusta@vectors.example")
    asked = play.call("beginIdentifier", email=new)
    added = play.call("finishIdentifier", request=asked, code=play.code("new code", "975310", to=new))
    play.call("makePrimary", target=added["id"])
    former = [item["id"] for item in play.call("identifiers") if item["id"] != added["id"]]
    play.call("removeIdentifier", target=former[0])


@flow("totp: turned on and off")
def _totp_on(play):
    play.sign_in()
    play.really(lambda: totp.settle(5))
    begun = play.call("beginTOTP")
    play.call("finishTOTP", code=play.input("totp", lambda: totp.code(begun["secret"], -1), "445566"))
    play.call("removeTOTP")


# -- pages, devices, possession --------------------------------------------------------------------------


def walk(play, page):
    """A person who signs in on the pages by a code: where the browser is sent then."""
    browser = PageBrowser(play.realm.world.node, play.realm.host)
    parts = urllib.parse.urlsplit(page)
    browser.open(f"{parts.path}?{parts.query}").submit("continue", address=play.email)
    browser.submit("continue", code=play.realm.world.mailbox.wait(play.email, kind="code").code)
    while browser.page is not None:
        browser.submit({"offer-passkey": "skip", "consent": "allow"}.get(browser.page.step, "continue"))
    return browser.left_for


@flow("pages: the browser comes back with a code", redirect=REDIRECT)
def _pages(play):
    def person(page):
        parts = urllib.parse.urlsplit(page)
        if play.realm is None:
            answer = wire.exchange(play.client.port, "GET", f"{parts.path}?{parts.query}", {"Host": parts.netloc})
            return answer.header("Location")
        # The pages between are of the browser: for the app they are one request.
        back = walk(play, page)
        play.browsed = (f"{parts.path}?{parts.query}", back)
        return back
    play.client.person["page"] = person
    play.call("signInOnPages")


@flow("pages: the person gives up", redirect=REDIRECT)
def _cancelled(play):
    def person(page):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))
        answer = {"error": "access_denied", "state": asked["state"], "iss": play.client.origin}
        return f"{REDIRECT}?{urllib.parse.urlencode(answer)}"
    play.client.person["page"] = person
    play.fails("signInOnPages", "denied")


@flow("approval: the trusted device of the person approves")
def _approval(play):
    device = play.really(lambda: Device(play.app, play.realm, play.email))
    pending = play.call("requestApproval", hint=play.email)
    play.really(lambda: device.answer(device.item(play.realm.client("app")), number=pending["matchNumber"]))
    play.call("wait", request=pending)


@flow("approval: the person refuses")
def _refused(play):
    device = play.really(lambda: Device(play.app, play.realm, play.email))
    pending = play.call("requestApproval", hint=play.email)
    play.really(lambda: device.answer(device.item(play.realm.client("app")), "deny"))
    play.fails("wait", "denied", request=pending)


@flow("trusted device: added, renamed, signs in, removed")
def _device(play):
    play.sign_in()
    play.call("enrolDevice", name="Phone")
    play.call("updateDevice", name="Old phone")
    play.call("signOut")
    play.call("signInAsTrustedDevice")
    play.call("removeDevice")


@flow("trusted device: refused when it is none")
def _no_device(play):
    assert play.fails("signInAsTrustedDevice", "refused")["code"] == "invalid_grant"


def begun(play, number):
    """A backend begins to prove a number: the token for the app."""
    def begin():
        token = play.realm.srv.unify(number, allowOTPRetry=True).authToken
        play.given[payload(token)["nonce"]] = "vector-nonce-of-token"
        return token
    return play.input("auth token", begin, AUTH_TOKEN)


@flow("possession: a code proves a number and signs in")
def _possession(play):
    number = "+436641234567"
    play.really(lambda: play.realm.world.admin.call("put_user", play.realm.slug, number, first_name="Ada"))
    play.call("possession", authToken=begun(play, number))
    play.call("possessionSend", channel="otp")
    assert play.fails("possessionCheck", "refused", code="13579")["code"] == "otp_invalid"
    play.call("possessionCheck", code=play.input("code", lambda: play.realm.phones.wait(number)["code"], "246801"))
    play.call("signInWithPossession")


@flow("possession: given up")
def _given_up(play):
    play.call("possession", authToken=begun(play, "+436641234568"))
    assert play.call("possessionCancel")["step"] == "failed"
