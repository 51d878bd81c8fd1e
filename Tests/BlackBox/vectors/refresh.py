"""refresh.json: what a client does for its tokens. The reference is `client.py`; `stage.py` plays the cases."""

from .proofs import NOW
from .tokens import (ABSENT, ANY, BAD_PROOF, ENDED, NONCE_DUE, SCOPE, IDTokens, access, answer, busy, call, error, fails, gets, in_store, ok, posts, refresh, refreshes,
                     signed_in)
from .urls import ORIGIN

IDS = IDTokens()
CASES = []
ORDERS = f"{SCOPE} orders:read"
API = {"scopes": ["orders:read"], "resource": "https://api.example/"}
SIGNED_OUT = {"session": None, "refresh": None, "access": []}


def case(name, store, *steps, **client):
    """One more."""
    CASES.append({"name": name, **({"client": client} if client else {}), "store": store, "steps": [part for step in steps for part in (step if isinstance(step, list) else [step])]})


def session(*tokens, **changes):
    """A store with session 1 at generation 1."""
    return signed_in(IDS, *tokens, **changes)


def new(number, at=0, **changes):
    """A token answer of generation `number` at a virtual time."""
    return ok(number, IDS(at=at), **changes)


def stored(number, **more):
    """The store has generation `number`."""
    return {"store": {"refresh": refresh(number), "access": [access(number)], **more}}


#: A refresh of generation 1, and what follows when it succeeds.
CALL, R1 = call("a"), refreshes(1)
DONE = [gets("a", 2), stored(2)]
SIGNED_IN = {"state": "signedIn:vector-user-1"}

# -- when a token is used, and when one is fetched ------------------------------------------------------

case("61 of 900 s are left: used", session(in_store(1, 61)), CALL, gets("a", 1))
case("59 of 900 s are left: refreshed", session(in_store(1, 59)), CALL, R1, answer(new(2)), DONE)
case("21 of 60 s are left: used", session(in_store(1, 21, 60)), CALL, gets("a", 1))
case("19 of 60 s are left: refreshed", session(in_store(1, 19, 60)), CALL, R1, answer(new(2)), DONE)
case("a token of the store that has ended: refreshed", session(in_store(1, -1)), CALL, R1, answer(new(2)), DONE)
case("a token of the store from the future: refreshed", session(in_store(1, 1500)), CALL, R1, answer(new(2)), DONE)
case("no token in the store: refreshed", session(), CALL, R1, answer(new(2)), DONE)
case("a token that was fetched is used until 60 s are left", session(), CALL, R1, answer(new(2)), DONE, {"pass": 835}, call("b"), gets("b", 2), {"pass": 10}, call("c"),
     refreshes(2), answer(new(3, 845)), gets("c", 3), stored(3))
case("a token that the server gave a short life", session(), CALL, R1, answer(new(2, expires_in=30)), DONE, {"pass": 18}, call("b"), gets("b", 2), {"pass": 4}, call("c"),
     refreshes(2), answer(new(3, 22)), gets("c", 3))
case("the device sleeps while a token ends: refreshed once", session(), CALL, R1, answer(new(2)), DONE, {"pass": 1200}, call("b"), call("c"), refreshes(2),
     answer(new(3, 1200)), gets("b", 3), gets("c", 3))
case("the clock is set back an hour while a token is in use: not used past its end", session(), CALL, R1, answer(new(2)), DONE, {"wall": -3600}, {"pass": 1000}, call("b"),
     refreshes(2), answer(new(3, 1000)), gets("b", 3))
case("without a session", {}, CALL, fails("a", "signedOut", reason="never"), {"state": "signedOut:never"})
case("without a refresh token, while the token lives", session(in_store(1, 100), generation=None), CALL, gets("a", 1), SIGNED_IN, scopes="openid")
case("without a refresh token, when the token has ended: the session is over", session(in_store(1, -1), generation=None), CALL, fails("a", "signedOut", reason="ended"),
     {"state": "signedOut:ended"}, {"store": SIGNED_OUT}, scopes="openid")

# -- one flight, one after another ----------------------------------------------------------------------

case("three callers of one audience: one refresh", session(), call("a"), call("b"), call("c"), R1, answer(new(2)), gets("a", 2), gets("b", 2), gets("c", 2), stored(2))
case("three audiences: one refresh after another", session(), call("a"), call("b", audience="account"), call("c", audience=API),
     R1, answer(new(2)), gets("a", 2), refreshes(2, scope="openid"), answer(new(3, scope="openid")), gets("b", 3),
     refreshes(3, scope="orders:read", resource="https://api.example/"), answer(new(4, scope="orders:read")), gets("c", 4),
     {"store": {"refresh": refresh(4), "access": [access(2), access(3), access(4)]}}, scopes=ORDERS)
case("a caller gives up: the others get the token", session(), call("a"), call("b"), R1, {"cancel": "a"}, fails("a", "cancelled"), answer(new(2)), gets("b", 2), stored(2))
case("all callers give up: the answer is stored", session(), call("a"), R1, {"cancel": "a"}, fails("a", "cancelled"), answer(new(2)), stored(2), call("b"), gets("b", 2))
case("an API's token is fetched once and used again", session(in_store(1, 800)), call("a", audience=API), refreshes(1, scope="orders:read", resource="https://api.example/"),
     answer(new(2, scope="orders:read")), gets("a", 2), call("b", audience=API), gets("b", 2), call("c"), gets("c", 1), scopes=ORDERS)
case("the account has a token of its own beside an API's scopes", session(in_store(1, 800)), call("a", audience="account"), refreshes(1, scope="openid"),
     answer(new(2, scope="openid")), gets("a", 2), call("b", audience="account"), gets("b", 2), call("c"), gets("c", 1), scopes=ORDERS)
case("with identity scopes alone one token serves the account too", session(in_store(1, 800)), call("a", audience="account"), gets("a", 1))
case("nine audiences: the oldest token goes", session(in_store(1, 800)),
     *[step for n in range(1, 9) for step in (call(f"c{n}", audience={"scopes": [f"api:{n}"]}), refreshes(n, scope=f"api:{n}"), answer(new(n + 1, scope=f"api:{n}")), gets(f"c{n}", n + 1))],
     {"store": {"refresh": refresh(9), "access": [access(n) for n in range(2, 10)]}}, scopes=f"{SCOPE} " + " ".join(f"api:{n}" for n in range(1, 9)))

# -- nothing was decided: the same token again ------------------------------------------------------------

case("one lost answer", session(), CALL, R1, answer("lost"), {"pause": [0.4, 0.6]}, R1, answer(new(2)), DONE)
case("five lost answers: growing pauses", session(), CALL,
     *[step for low, high in ((0.4, 0.6), (0.8, 1.2), (1.6, 2.4), (3.2, 4.8)) for step in (R1, answer("lost"), {"pause": [low, high]})], R1, answer(new(2, 7)), DONE)
case("20 s without a decision: unavailable; the next call begins anew", session(), CALL, R1, answer("lost", after=8), {"pause": [0.4, 0.6]}, R1, answer("lost", after=8),
     {"pause": [0.8, 1.2]}, R1, answer("lost", after=8), fails("a", "unavailable"), {"store": {"refresh": refresh(1)}}, SIGNED_IN, call("b"), R1, answer(new(2, 25)),
     gets("b", 2), stored(2))
case("503 without Retry-After", session(), CALL, R1, answer(busy()), {"pause": [0.4, 0.6]}, R1, answer(new(2)), DONE)
case("503 with Retry-After 3: waits so long", session(), CALL, R1, answer(busy(3)), {"pause": [3, 3.7]}, R1, answer(new(2, 3)), DONE)
case("503 with Retry-After 60: unavailable at once", session(), CALL, R1, answer(busy(60)), fails("a", "unavailable", retryAfter=60), stored_one := {"store": {"refresh": refresh(1)}})
case("429 with Retry-After 3: waits so long", session(), CALL, R1, answer(busy(3, 429)), {"pause": [3, 3.7]}, R1, answer(new(2, 3)), DONE)
case("429 with Retry-After 60: unavailable at once", session(), CALL, R1, answer(busy(60, 429)), fails("a", "unavailable", retryAfter=60), stored_one)
case("Retry-After longer than what is left", session(), CALL, R1, answer("lost", after=15), {"pause": [0.4, 0.6]}, R1, answer(busy(10)), fails("a", "unavailable", retryAfter=10), stored_one)
case("502 with a page", session(), CALL, R1, answer({"status": 502, "headers": {"Content-Type": "text/html"}, "text": "<h1>Bad Gateway</h1>"}), {"pause": [0.4, 0.6]}, R1,
     answer(new(2)), DONE)
case("200 with an empty object", session(), CALL, R1, answer({"status": 200, "json": {}}), {"pause": [0.4, 0.6]}, R1, answer(new(2)), DONE)
case("200 with somebody else's page", session(), CALL, R1, answer({"status": 200, "headers": {"Content-Type": "text/html"}, "text": "<h1>Welcome to the hotel</h1>"}),
     {"pause": [0.4, 0.6]}, R1, answer(new(2)), DONE)
case("lost, three hours without network, the app ended and started: the same successor", session(), CALL, R1, {"restart": True}, {"pass": 10800}, call("b"), R1,
     answer(new(2, 10800)), gets("b", 2), stored(2), SIGNED_IN)

# -- the server refuses --------------------------------------------------------------------------------------

case("invalid_grant of the newest: the session is over, the hint stays", session(in_store(1, 5)), CALL, R1, answer(ENDED), fails("a", "signedOut", reason="ended"),
     {"state": "signedOut:ended"}, {"store": {**SIGNED_OUT, "hint": IDS(), "key": True}}, call("b"), fails("b", "signedOut", reason="ended"))
case("invalid_grant: every caller is told, and one change of the state", session(), call("a"), call("b"), call("c"), R1, answer(ENDED),
     *[fails(name, "signedOut", reason="ended") for name in "abc"], {"states": ["signedOut:ended"]})
case("invalid_grant, and another process has stored a newer generation and a token: that token", session(), CALL, R1,
     {"other": session(in_store(3, 800), generation=3)}, answer(ENDED), gets("a", 3), stored(3), SIGNED_IN)
case("invalid_grant, and another process has stored a newer generation alone: goes on with that", session(), CALL, R1, {"other": session(generation=3)}, answer(ENDED),
     refreshes(3), answer(new(4)), gets("a", 4), stored(4), SIGNED_IN, {"states": []})
for _status in (401, 403):
    case(f"{_status} with invalid_grant is a refusal, no end", session(), CALL, R1, answer(error("invalid_grant", _status)), fails("a", "refused", code="invalid_grant", status=_status),
         stored_one, SIGNED_IN)
for _code, _status in (("invalid_client", 401), ("unauthorized_client", 400), ("invalid_scope", 400), ("invalid_target", 400), ("invalid_request", 400)):
    case(f"{_code}: refused, nothing is erased, and later it works", session(), CALL, R1, answer(error(_code, _status)), fails("a", "refused", code=_code, status=_status), stored_one,
         SIGNED_IN, call("b"), R1, answer(new(2)), gets("b", 2))
case("404 with a page: refused, nothing is erased", session(), CALL, R1, answer({"status": 404, "text": "<h1>Not found</h1>"}),
     fails("a", "refused", code=ANY, status=404), stored_one, SIGNED_IN)

# -- proofs, nonces, clocks ------------------------------------------------------------------------------------

case("use_dpop_nonce: once more with the nonce, and with it as long as it is fresh", session(), CALL, refreshes(1, {"nonce": ABSENT}), answer(NONCE_DUE),
     refreshes(1, {"nonce": "vector-nonce-1"}), answer(new(2, expires_in=30)), gets("a", 2), {"pass": 50}, call("b"), refreshes(2, {"nonce": "vector-nonce-1"}),
     answer(new(3, 50, expires_in=15)), gets("b", 3), {"pass": 15}, call("c"), refreshes(3, {"nonce": ABSENT}), answer(new(4, 65)), gets("c", 4))
case("a nonce that comes with a success is used next", session(), CALL, R1, answer({**new(2, expires_in=30), "headers": {"DPoP-Nonce": "vector-nonce-2"}}), gets("a", 2),
     {"pass": 30}, call("b"), refreshes(2, {"nonce": "vector-nonce-2"}), answer(new(3, 30)), gets("b", 3))
case("invalid_dpop_proof: once more with a new proof", session(), CALL, R1, answer(BAD_PROOF), R1, answer(new(2)), DONE)
case("invalid_dpop_proof twice: refused", session(), CALL, R1, answer(BAD_PROOF), R1, answer(BAD_PROOF), fails("a", "refused", code="invalid_dpop_proof", status=400), stored_one)
for _wrong in (600, -600, 94_608_000):
    case(f"the device's clock is {_wrong} s off: later proofs are right", session(), {"wall": -_wrong}, CALL, refreshes(1, {"iat": [-_wrong - 1, 2 - _wrong]}), answer(NONCE_DUE),
         refreshes(1, {"nonce": "vector-nonce-1"}), answer(new(2)), gets("a", 2), {"store": {"clock": {"$": "number", "min": _wrong - 5, "max": _wrong + 5}}}, {"restart": True},
         {"pass": 900}, call("b"), refreshes(2, {"nonce": ABSENT, "iat": [895, 905]}), answer(new(3, 900)), gets("b", 3))
case("the device's clock is 20 s off: nothing is kept", session(), {"wall": -20}, CALL, R1, answer(new(2)), gets("a", 2), {"store": {"clock": 0}})
case("Bearer: no proof", session(bound=False), CALL, refreshes(1, False), answer(new(2, kind="Bearer")), DONE, key="none")
case("the key is gone: the session is over, nothing is sent", {**session(), "key": False}, CALL, fails("a", "signedOut", reason="keyLost"), {"state": "signedOut:keyLost"},
     {"store": SIGNED_OUT})

# -- the store ----------------------------------------------------------------------------------------------------

case("another process stored a newer generation: that is sent", session(), {"other": session(generation=5)}, CALL, refreshes(5), answer(new(6)), gets("a", 6), stored(6))
case("another process stored a token: nothing is sent", session(in_store(1, 5)), {"other": session(in_store(3, 700), generation=3)}, CALL, gets("a", 3))
case("another process refreshes during the pause: its token", session(), CALL, R1, answer("lost"), {"other": session(in_store(2, 900), generation=2)}, {"pause": [0.4, 0.6]}, gets("a", 2),
     stored(2))
case("another process refreshed twice before the answer: its generation is kept", session(), CALL, R1, {"other": session(in_store(3, 900), generation=3)}, answer(new(2)),
     {"result": "a", "token": {"$": "match", "pattern": "vector-access-[23]"}}, {"store": {"refresh": refresh(3)}}, SIGNED_IN)
case("the answer cannot be written: nothing is handed out, and the next attempt gets the same", session(), CALL, R1, {"writeFails": True}, answer(new(2)), fails("a", "unavailable"),
     {"writeFails": False}, stored_one, call("b"), R1, answer(new(2)), gets("b", 2), stored(2))
case("killed between answer and write: the same token again", session(), CALL, R1, {"restart": True}, call("b"), R1, answer(new(2)), gets("b", 2), stored(2))
case("the store is locked: unavailable, nothing is erased or sent; later it works", session(in_store(1, 800)), {"locked": True}, CALL, fails("a", "unavailable"), {"state": "locked"},
     {"locked": False}, call("b"), gets("b", 1), SIGNED_IN)
case("the store is locked when the answer comes", session(), CALL, R1, {"locked": True}, answer(new(2)), fails("a", "unavailable"), {"locked": False}, stored_one, call("b"), R1,
     answer(new(2)), gets("b", 2), SIGNED_IN)

# -- signing out, other users ----------------------------------------------------------------------------------------

OTHER_USER = signed_in(IDS, in_store(21, 800), generation=21, user=2, session=2)
case("signed out during a refresh: the late answer is revoked, not stored", session(), CALL, R1, call("out", "signOut"), {"result": "out"}, answer(new(2)), fails("a", "signedOut", reason=ANY),
     {"revoked": [refresh(1), refresh(2)]}, {"store": {**SIGNED_OUT, "revoke": []}}, {"state": "signedOut:byUser"})
case("another user signed in during a refresh: the late answer is not hers", session(), CALL, R1, {"other": OTHER_USER}, answer(new(2)), fails("a", "signedOut", reason=ANY),
     {"store": {"session": "vector-session-2", "refresh": refresh(21), "access": [access(21)]}}, {"revoked": [refresh(2)]}, {"state": "signedIn:vector-user-2"})
case("another user signed in during a refresh: a late invalid_grant does not end her session", session(), CALL, R1, {"other": OTHER_USER}, answer(ENDED), fails("a", "signedOut", reason=ANY),
     {"store": {"session": "vector-session-2", "refresh": refresh(21), "access": [access(21)]}}, {"state": "signedIn:vector-user-2"})
case("signing out", session(in_store(1, 800)), call("out", "signOut"), {"result": "out"}, {"state": "signedOut:byUser"}, {"store": {**SIGNED_OUT, "key": True, "hint": IDS(), "revoke": []}},
     {"revoked": [refresh(1)]})
case("signing out without network: revoked with the first request of the next start", session(), {"offline": True}, call("out", "signOut"), {"result": "out"},
     {"state": "signedOut:byUser"}, {"store": {**SIGNED_OUT, "revoke": [refresh(1)]}}, {"restart": True}, {"offline": False}, call("a", "requestCode", email="ada@vectors.example"),
     posts("/api/account/native/otp/request", {"Email": "ada@vectors.example", "ClientId": "vector-client", "IdTokenHint": IDS()}),
     answer({"status": 200, "json": {"Message": "x", "AuthSession": "vector-handle-1", "ExpiresIn": 600, "ResendAfter": 60}}), {"result": "a", "made": "code"},
     {"revoked": [refresh(1)]}, {"store": {"revoke": []}})
EVERYWHERE = {"request": {"method": "DELETE", "url": f"{ORIGIN}/connect/sessions?current=true", "authorization": f"DPoP {access(1)}", "proof": {}}}
case("signing out everywhere", session(in_store(1, 800)), call("out", "signOut", scope="everywhere"), EVERYWHERE, answer({"status": 204}), {"result": "out"}, {"state": "signedOut:byUser"},
     {"store": SIGNED_OUT})
case("signing out everywhere without network: still signed in", session(in_store(1, 800)), call("out", "signOut", scope="everywhere"), EVERYWHERE, answer("lost"), fails("out", "unavailable"),
     SIGNED_IN, {"store": {"refresh": refresh(1)}})

# -- adopting --------------------------------------------------------------------------------------------------------

ADOPT, ADOPTED = call("a", "adopt", refreshToken=refresh(1)), refreshes(1, scope="openid")
case("a refresh token of the app's own is adopted", {}, ADOPT, ADOPTED, answer(new(2, scope="openid")), {"result": "a", "user": "vector-user-1"}, {"store": {"refresh": refresh(2)}}, SIGNED_IN)
case("one that has ended: nothing is stored", {}, ADOPT, ADOPTED, answer(ENDED), fails("a", "signedOut", reason="ended"), {"store": SIGNED_OUT})
case("one of a family without openid: nothing is stored", {}, ADOPT, ADOPTED, answer(error("invalid_scope")), fails("a", "refused", code="invalid_scope", status=400), {"store": SIGNED_OUT})

# -- requests to an API ------------------------------------------------------------------------------------------------

URL = "https://api.example/orders?of=2027"


def sends(number, proof=None):
    """The request to the API with an access token."""
    return {"request": {"method": "GET", "url": URL, "authorization": f"DPoP {access(number)}", "proof": proof or {}}}


def challenge(error_code, **headers):
    """401 of an API."""
    return {"status": 401, "headers": {"WWW-Authenticate": f'DPoP error="{error_code}", algs="ES256"', **headers}}


SEND, FRESH = call("a", "send", url=URL), session(in_store(1, 800))
case("an API's answer is returned as it is", FRESH, SEND, sends(1), answer({"status": 404}), {"result": "a", "status": 404})
case("invalid_token of an API: one refresh, one repetition", FRESH, SEND, sends(1), answer(challenge("invalid_token")), R1, answer(new(2)), sends(2), answer({"status": 200}),
     {"result": "a", "status": 200})
case("invalid_token twice: the answer is returned", FRESH, SEND, sends(1), answer(challenge("invalid_token")), R1, answer(new(2)), sends(2), answer(challenge("invalid_token")),
     {"result": "a", "status": 401}, SIGNED_IN)
case("an API's nonce is for the API alone", FRESH, SEND, sends(1, {"nonce": ABSENT}), answer(challenge("use_dpop_nonce", **{"DPoP-Nonce": "vector-nonce-9"})),
     sends(1, {"nonce": "vector-nonce-9"}), answer(challenge("invalid_token")), refreshes(1, {"nonce": ABSENT}), answer(new(2)), sends(2, {"nonce": "vector-nonce-9"}),
     answer({"status": 200}), {"result": "a", "status": 200})
case("a lost answer of an API: not repeated", FRESH, SEND, sends(1), answer("lost"), fails("a", "unavailable"), SIGNED_IN)
case("an API wants a newer sign-in", FRESH, SEND, sends(1), answer(challenge("insufficient_user_authentication")), fails("a", "stepUpNeeded"), SIGNED_IN)


def document():
    """The file."""
    return {"epoch": NOW, "origin": ORIGIN, "clientId": "vector-client", "id_tokens": IDS.made, "cases": CASES}
