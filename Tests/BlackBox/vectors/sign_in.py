"""sign-in.json: how a client signs in. The reference is `signing.py`; `stage.py` plays the cases."""

import hashlib

from .links import LINK
from .proofs import NOW
from .tokens import (ABSENT, ANY, BAD_PROOF, NONCE_DUE, SCOPE, STRING, IDTokens, access, answer, busy, call, error, fails, in_store, ok, posts, refresh, signed_in, token_request)
from .urls import ORIGIN

IDS = IDTokens()
CASES = []
EMAIL = "ada@vectors.example"
SIGNED_IN = {"state": "signedIn:vector-user-1"}


def case(name, *steps, store=None, **client):
    """One more."""
    CASES.append({"name": name, **({"client": client} if client else {}), "store": store or {}, "steps": [part for step in steps for part in (step if isinstance(step, list) else [step])]})


def new(number=1, at=0, user=1, session=1, **changes):
    """A token answer."""
    return ok(number, IDS(at=at, user=user, session=session), **changes)


def asked(handle=1, **more):
    """The answer to a request for a code or link."""
    return {"status": 200, "json": {"Message": "If your email is registered, you will receive it.", "AuthSession": f"vector-handle-{handle}", "ExpiresIn": 600, "ResendAfter": 60, **more}}


def asks(kind="code", proof=True, **members):
    """The request for a code or link as it is expected."""
    path = {"code": "/api/account/native/otp/request", "link": "/api/account/magic-link/request"}[kind]
    return posts(path, {"Email": EMAIL, "ClientId": "vector-client", **members}, proof)


def code_for(name="c", handle=1, **members):
    """A code is asked for, and came."""
    return [call(name, "requestCode", email=EMAIL), asks(**members), answer(asked(handle)), {"result": name, "made": "code"}]


def link_for(name="l", handle=1, interval=5):
    """A link is asked for, and came."""
    return [call(name, "requestLink", email=EMAIL), asks("link"), answer(asked(handle, Interval=interval, MatchNumber="42")), {"result": name, "made": "signIn", "matchNumber": "42"}]


def redeems(code="123456", handle=1, proof=True, **form):
    """The request with a code as it is expected."""
    return token_request({"grant_type": "urn:cocoar:otp", "auth_session": f"vector-handle-{handle}", "otp_code": code, "scope": SCOPE, **form}, proof)


def polls(handle=1, **form):
    """A poll for a link."""
    return token_request({"grant_type": "urn:cocoar:magic", "auth_session": f"vector-handle-{handle}", "scope": SCOPE, **form})


def opens(handle=1, **form):
    """The request that redeems a link."""
    return polls(handle, user_id="01890a5d-ac96-774b-bcce-b302099a8057", magic_token="vector-link-1", **form)


TYPES, R = call("s", "signIn", code="123456", of="c"), redeems()
DONE = [{"result": "s", "user": "vector-user-1"}, SIGNED_IN, {"store": {"session": "vector-session-1", "refresh": refresh(1), "access": [access(1)], "pending": []}}]
WRONG = error("invalid_grant", text="Invalid or expired code.")
SECOND = error("invalid_grant", text="Two-factor authentication is required; supply totp_code.")
SECOND_WRONG = error("invalid_grant", text="The two-factor code is invalid.")
PENDING = error("authorization_pending", text="The link has not been confirmed yet.")
SLOW = error("slow_down", text="Polled too early: wait five seconds longer between polls.")
DEAD = error("invalid_grant", text="Invalid or expired link.")
#: A pause whose length the rules leave to the client, or none.
SOON = {"pause": [0, 10], "maybe": True}

# -- codes ------------------------------------------------------------------------------------------------

case("a code", code_for(), TYPES, R, answer(new()), DONE)
case("a wrong code, then the right one", code_for(), call("x", "signIn", code="654321", of="c"), redeems("654321"), answer(WRONG), fails("x", "wrongCode"), {"store": {"pending": ["c"]}},
     TYPES, R, answer(new()), DONE)
for _typed in (" 123-456 ", "１２３４５６", "12345"):
    case(f"a code is sent as it was typed: {_typed!r}", code_for(), call("s", "signIn", code=_typed, of="c"), redeems(_typed), answer(new()), DONE)
case("an empty code: nothing is sent", code_for(), call("s", "signIn", code="", of="c"), fails("s", "misuse"), {"store": {"pending": ["c"]}})
case("the app is ended between request and code", code_for(), {"restart": True}, {"pass": 200}, TYPES, R, answer(new(at=200)), DONE)
case("a second factor: needed, wrong, right", code_for(), TYPES, R, answer(SECOND), fails("s", "secondFactorNeeded"), call("t", "signIn", code="123456", of="c", totp="000000"),
     redeems(totp_code="000000"), answer(SECOND_WRONG), fails("t", "secondFactorWrong"), call("u", "signIn", code="123456", of="c", totp="111111"), redeems(totp_code="111111"),
     answer(new()), {"result": "u", "user": "vector-user-1"}, SIGNED_IN)
case("a recovery code", code_for(), call("s", "signIn", code="123456", of="c", recoveryCode="vector-recovery-1"), redeems(recovery_code="vector-recovery-1"), answer(new()), DONE)
case("the answer is lost twice: the same request again", code_for(), TYPES, R, answer("lost", after=1), SOON, R, answer("lost", after=1), SOON, R, answer(new()), DONE)
case("503 and a proxy's page: the same request again", code_for(), TYPES, R, answer(busy()), SOON, R, answer({"status": 502, "text": "<h1>Bad Gateway</h1>"}), SOON, R, answer(new()), DONE)
case("no answer for 50 s: unavailable, still pending; later the same code", code_for(), TYPES, R, answer("lost", after=50), fails("s", "unavailable"), {"store": {"pending": ["c"]}},
     {"state": "signedOut:never"}, call("t", "signIn", code="123456", of="c"), R, answer(new(at=50)), {"result": "t", "user": "vector-user-1"}, SIGNED_IN)
case("no answer for 50 s: the same code is refused later", code_for(), TYPES, R, answer("lost", after=50), fails("s", "unavailable"), call("t", "signIn", code="123456", of="c"), R,
     answer(WRONG), fails("t", "wrongCode"))
case("a nonce is asked for: once more with it", code_for(), TYPES, redeems(proof={"nonce": ABSENT}), answer(NONCE_DUE), redeems(proof={"nonce": "vector-nonce-1"}), answer(new()), DONE)
case("Bearer: no proof", call("c", "requestCode", email=EMAIL), asks(proof=False), answer(asked()), {"result": "c", "made": "code"}, TYPES, redeems(proof=False), answer(new(kind="Bearer")),
     DONE, key="none")
case("unknown members of answers are ignored", call("c", "requestCode", email=EMAIL), asks(), answer(asked(Later={"a": 1})), {"result": "c", "made": "code"}, TYPES, R,
     answer(new(later=[1, 2])), DONE)
case("a refusal by the client's settings", code_for(), TYPES, R, answer(error("invalid_scope", text="The requested scope is not available.")),
     fails("s", "refused", code="invalid_scope", status=400), {"store": {"pending": ["c"]}})
case("an ID token for another client: its session is revoked, the app stays signed out", code_for(), TYPES, R, answer(ok(1, IDS(aud="other-client"))),
     fails("s", "refused", code="invalid_response", status=ANY), {"state": "signedOut:never"}, {"revoked": [refresh(1)]})

# -- asking ---------------------------------------------------------------------------------------------------

case("a name is needed; then with a name", call("c", "requestCode", email=EMAIL), asks(), answer(error("Firstname is required.")), fails("c", "namesNeeded", names=["Firstname"]),
     call("d", "requestCode", email=EMAIL, firstName="Ada"), asks(FirstName="Ada"), answer(asked()), {"result": "d", "made": "code"})
case("an address that is none: refused, not repeated", call("c", "requestCode", email=EMAIL), asks(), answer(error("Email is invalid.")),
     fails("c", "refused", code="Email is invalid.", status=400), {"store": {"pending": []}})
case("too many requests: when to come back", call("c", "requestCode", email=EMAIL), asks(), answer(busy(1234, 429)), fails("c", "rateLimited", retryAfter=1234))
case("a lost answer to a request for a code: unavailable", call("c", "requestCode", email=EMAIL), asks(), answer("lost"), fails("c", "unavailable"), {"store": {"pending": []}})
case("a request whose proof was used: as a lost answer", call("c", "requestCode", email=EMAIL), asks(), answer(BAD_PROOF), fails("c", "unavailable"))
case("a nonce is asked for twice: unavailable after two requests", call("c", "requestCode", email=EMAIL), asks(), answer(NONCE_DUE), asks(proof={"nonce": "vector-nonce-1"}), answer(NONCE_DUE),
     fails("c", "unavailable"))
case("a nonce is asked for, and none is given: unavailable after one", call("c", "requestCode", email=EMAIL), asks(), answer(error("use_dpop_nonce")), fails("c", "unavailable"))
case("a nonce is asked for, and two are given: unavailable after one", call("c", "requestCode", email=EMAIL), asks(),
     answer({**NONCE_DUE, "headers": {"DPoP-Nonce": "vector-nonce-1, vector-nonce-2"}}), fails("c", "unavailable"))
case("a message once more: the same request", code_for(), {"pass": 60}, call("r", "resend", of="c"), asks(AuthSession="vector-handle-1"), answer(asked()), {"result": "r", "made": "code"},
     {"store": {"pending": ["c"]}}, TYPES, R, answer(new(at=60)), DONE)
case("a message once more has another handle: that one counts", code_for(), {"pass": 60}, call("r", "resend", of="c"), asks(AuthSession="vector-handle-1"), answer(asked(2)),
     {"result": "r", "made": "code"}, TYPES, redeems(handle=2), answer(new(at=60)), DONE)
case("nine requests: the oldest goes", *[code_for(f"c{n}", n) for n in range(1, 10)], {"store": {"pending": [f"c{n}" for n in range(2, 10)]}})
case("pending requests are listed and forgotten", code_for(), link_for(handle=2), call("p", "pending"), {"result": "p", "pending": ["c", "l"]}, call("f", "forget", of="c"), {"result": "f"},
     call("q", "pending"), {"result": "q", "pending": ["l"]})
case("the last ID token goes along", [call("c", "requestCode", email=EMAIL), asks(IdTokenHint=IDS()), answer(asked()), {"result": "c", "made": "code"}],
     store={"hint": IDS()})

# -- work -----------------------------------------------------------------------------------------------------


def work(number, most=300_000):
    """A challenge with work, whose answer is the number."""
    salt = "vector-salt?expires=1800000300"
    digest = hashlib.sha256(f"{salt}{number}".encode()).hexdigest()
    return {"status": 400, "json": {"error": "challenge_required", "ExpiresIn": 300, "Challenge": {"algorithm": "SHA-256", "challenge": digest, "maxnumber": most, "salt": salt,
                                                                                                  "signature": "vector-signature"}}}


case("work is done, and the request sent once more", call("c", "requestCode", email=EMAIL), asks(), answer(work(321)), asks(Challenge=STRING), answer(asked()), {"result": "c", "made": "code"})
case("work is asked for again: refused", call("c", "requestCode", email=EMAIL), asks(), answer(work(321)), asks(Challenge=STRING), answer(work(99)),
     fails("c", "refused", code="challenge_required", status=400))
case("more work than anybody should do: refused, none is done", call("c", "requestCode", email=EMAIL), asks(), answer(work(1, 6_000_000)),
     fails("c", "refused", code="challenge_required", status=400))

# -- links: polling ----------------------------------------------------------------------------------------------

WAITS = call("w", "wait", of="l")
AT_FIRST, THEN = {"pause": [0, 5.5], "maybe": True}, {"pause": [4.5, 6]}
GOT = [{"result": "w", "user": "vector-user-1"}, SIGNED_IN, {"store": {"pending": []}}]
case("a link is confirmed", link_for(), WAITS, AT_FIRST, polls(), answer(PENDING), THEN, polls(), answer(new(at=10)), GOT)
case("slow_down twice: five seconds more each time", link_for(), WAITS, AT_FIRST, polls(), answer(SLOW), {"pause": [9.5, 11]}, polls(), answer(SLOW), {"pause": [14.5, 16]}, polls(),
     answer(new(at=30)), GOT)
case("a wrong number", link_for(), WAITS, AT_FIRST, polls(), answer(error("access_denied", text="The link was refused.")), fails("w", "denied"))
case("the link has expired", link_for(), WAITS, AT_FIRST, polls(), answer(DEAD), fails("w", "expired"))
case("three answers are lost, the confirming one among them", link_for(), WAITS, AT_FIRST, polls(), answer("lost"), {"pause": [0, 9]}, polls(), answer("lost"), {"pause": [0, 9]}, polls(),
     answer("lost"), {"pause": [0, 9]}, polls(), answer(new(at=20)), GOT)
case("503 and 429 do not end the polls", link_for(), WAITS, AT_FIRST, polls(), answer(busy(1)), {"pause": [0, 9]}, polls(), answer(busy(1, 429)), {"pause": [0, 9]}, polls(),
     answer(new(at=20)), GOT)
case("the device sleeps two minutes: it polls at once", link_for(), WAITS, AT_FIRST, polls(), answer(PENDING), {**THEN, "passes": 120}, polls(), answer(new(at=125)), GOT)
case("two callers share the polls", link_for(), WAITS, call("x", "wait", of="l"), AT_FIRST, polls(), answer(PENDING), THEN, polls(), answer(new(at=10)), {"result": "x", "user": "vector-user-1"},
     GOT)
case("a second factor: wait again with it", link_for(), WAITS, AT_FIRST, polls(), answer(SECOND), fails("w", "secondFactorNeeded"), call("x", "wait", of="l", totp="111111"),
     AT_FIRST, polls(totp_code="111111"), answer(new(at=5)), {"result": "x", "user": "vector-user-1"}, SIGNED_IN)
case("the app is ended and started: the link is still waited for", link_for(), {"restart": True}, {"pass": 30}, WAITS, AT_FIRST, polls(), answer(new(at=30)), GOT)
case("an approval", call("l", "requestApproval", hint=EMAIL), {"request": {"method": "POST", "url": f"{ORIGIN}/connect/bc-authorize",
     "form": {"client_id": "vector-client", "scope": SCOPE, "login_hint": EMAIL}, "proof": {}}},
     answer({"status": 200, "json": {"auth_req_id": "vector-handle-1", "expires_in": 120, "interval": 5}}), {"result": "l", "made": "signIn"}, WAITS, AT_FIRST,
     token_request({"grant_type": "urn:openid:params:grant-type:ciba", "auth_req_id": "vector-handle-1", "scope": ANY}), answer(error("authorization_pending")), THEN,
     token_request({"grant_type": "urn:openid:params:grant-type:ciba", "auth_req_id": "vector-handle-1", "scope": ANY}), answer(error("expired_token")), fails("w", "expired"))
case("a sign-in on another device", call("l", "requestDeviceSignIn"), {"request": {"method": "POST", "url": f"{ORIGIN}/connect/device_authorization",
     "form": {"client_id": "vector-client", "scope": SCOPE}, "proof": {}}},
     answer({"status": 200, "json": {"device_code": "vector-handle-1", "user_code": "WDJB-MJHT", "verification_uri": f"{ORIGIN}/device",
             "verification_uri_complete": f"{ORIGIN}/device?user_code=WDJB-MJHT", "expires_in": 600, "interval": 5}}), {"result": "l", "made": "signIn", "userCode": "WDJB-MJHT"}, WAITS, AT_FIRST,
     token_request({"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "vector-handle-1", "scope": ANY}), answer(new(at=5)), GOT)

# -- links: opened in the app -----------------------------------------------------------------------------------------

OPENS = call("o", "open", url=LINK)
OPENED = [{"result": "o", "user": "vector-user-1"}, SIGNED_IN]
case("a link of this app's request is opened", link_for(), OPENS, opens(), answer(new()), OPENED, {"store": {"pending": []}})
case("a link of an older request: the newest is tried first", link_for("l", 1), link_for("m", 2), OPENS, opens(2), answer(DEAD), opens(1), answer(new()), OPENED, {"store": {"pending": ["m"]}})
case("a link that an attacker asked for: three tries, the app stays signed out", *[link_for(f"l{n}", n) for n in range(1, 5)], OPENS, opens(4), answer(DEAD), opens(3), answer(DEAD), opens(2),
     answer(DEAD), fails("o", "foreignLink"), {"state": "signedOut:never"}, {"store": {"session": None, "pending": ["l1", "l2", "l3", "l4"]}})
case("a link without a request of this app: nothing is sent", OPENS, fails("o", "foreignLink"), {"state": "signedOut:never"})
case("a link beside a request for a code alone: nothing is sent", code_for(), OPENS, fails("o", "foreignLink"))
case("the answer is lost: sent once", link_for(), OPENS, opens(), answer("lost"), fails("o", "unavailable"), {"store": {"pending": ["l"]}})
case("a link with a second factor", link_for(), OPENS, opens(), answer(SECOND), fails("o", "secondFactorNeeded"), call("p", "open", url=LINK, totp="111111"), opens(totp_code="111111"),
     answer(new()), {"result": "p", "user": "vector-user-1"}, SIGNED_IN)
case("a URL that is no link of ours: nothing is sent", link_for(), call("o", "open", url=LINK.replace("magic-login", "magic-login/x")), {"result": "o", "none": True})

# -- a session is there already -----------------------------------------------------------------------------------------

FORMER = {"store": signed_in(IDS, in_store(11, 800), generation=11, user=9, session=9)}
HINTED = {"IdTokenHint": IDS(user=9, session=9)}
case("a sign-in over a live session replaces and revokes it", code_for(**HINTED), TYPES, R, answer(new()), DONE, {"revoked": [refresh(11)]}, {"store": {"revoke": []}}, **FORMER)
case("a sign-in that fails leaves the session as it is", code_for(**HINTED), TYPES, R, answer(WRONG), fails("s", "wrongCode"), {"state": "signedIn:vector-user-9"},
     {"store": {"refresh": refresh(11)}}, **FORMER)
STEP_UP = call("s", "stepUp", code="123456", of="c", levels=["urn:postern:acr:2"], maxAge=600)
STEPS_UP = redeems(acr_values="urn:postern:acr:2", max_age=ANY)
case("a step-up by the same person", code_for(**HINTED), STEP_UP, STEPS_UP, answer(new(1, user=9, session=10)), {"result": "s", "user": "vector-user-9"},
     {"store": {"session": "vector-session-10", "refresh": refresh(1)}}, {"revoked": [refresh(11)]}, **FORMER)
case("a step-up by somebody else: revoked, the session stays", code_for(**HINTED), STEP_UP, STEPS_UP, answer(new(1, user=1, session=1)),
     fails("s", "refused", code="different_user", status=ANY), {"state": "signedIn:vector-user-9"}, {"store": {"session": "vector-session-9", "refresh": refresh(11)}},
     {"revoked": [refresh(1)]}, **FORMER)


def document():
    """The file."""
    return {"epoch": NOW, "origin": ORIGIN, "clientId": "vector-client", "id_tokens": IDS.made, "cases": CASES}
