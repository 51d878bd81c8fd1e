"""A site whose server signs people in with Postern: the browser has cookies, the server has the tokens."""
import base64, contextlib, hashlib, http.client, json, os, re, secrets, socket, threading, time
from urllib.parse import urlencode, urlsplit

from cryptography.fernet import InvalidToken
from flask import Flask, g, redirect, request

import postern
from postern import Refused, post
from store import LIFE, Session, fernet, run

SITE, API, SEAL = os.environ["SITE"], urlsplit(os.environ["API"]), fernet(postern.SECRET, "device")
PREFIX = "" if re.fullmatch(r"http://([a-z0-9-]+\.)*localhost(:\d+)?", SITE) else "__Host-"
API_SCOPE, API_PATHS = "orders:read", ("GET /me", "GET /orders(/[0-9]{1,9})?", "POST /orders")
SCOPE, LIMIT, DEVICE_LIFE = {"scope": f"openid offline_access email {API_SCOPE}"}, 1 << 20, 400 * 86400
FIELDS = {
    "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    f"connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' {postern.ORIGIN}"}
app = Flask(__name__, static_url_path="")
app.url_map.merge_slashes = False
app.add_url_rule("/", view_func=lambda: app.send_static_file("page.html"))
app.register_error_handler(Refused, lambda problem: (problem.document, problem.status, problem.fields))


@app.before_request
def guard():
    """Requests to this site alone, of bounded size; and what changes something, from its own pages alone."""
    said, limit = request.headers, LIMIT if request.path.startswith("/api/") else 16384
    if request.host != SITE.partition("//")[2]:
        raise Refused(404)
    if "Transfer-Encoding" in said or (request.content_length or 0) > limit or len(request.query_string) > 4096:
        raise Refused(413)
    own = said.get("Sec-Fetch-Site") or ("same-origin" if said.get("Origin") == SITE else "")
    if own != "same-origin" and request.method not in ("GET", "HEAD") and request.path != "/logged-out":
        raise Refused(403)
    g.cookie = g.former = request.cookies.get(PREFIX + "app", "")
    try:
        g.sealed = SEAL.decrypt(request.cookies.get(PREFIX + "device", "").encode(), DEVICE_LIFE)
    except InvalidToken:
        g.sealed = b"{}"
    g.device = json.loads(g.sealed)  # the last ID token, and what was begun: before a sign-in there is no row


@app.after_request
def finish(answer):
    """The fields and cookies of every answer."""
    answer.headers.extend({name: value for name, value in FIELDS.items() if name not in answer.headers})
    kept = {"secure": bool(PREFIX), "httponly": True, "samesite": "Lax"}
    if "device" in g and (device := json.dumps(g.device).encode()) != g.sealed:
        answer.set_cookie(PREFIX + "device", SEAL.encrypt(device).decode(), DEVICE_LIFE, **kept)
    if "device" in g and g.cookie != g.former:
        answer.set_cookie(PREFIX + "app", g.cookie, LIFE if g.cookie else 0, **kept)
    return answer


def sign_in(nonce=None, **form):
    """Redeems what proves the person; then a new cookie, and the row for it."""
    tokens = post("/connect/token", form)
    claims = postern.claims(tokens["id_token"], "JWT")
    if claims.get("nonce") != nonce:
        raise Refused(400)
    Session(g.cookie).end()
    g.cookie, g.device = secrets.token_urlsafe(32), {"hint": tokens["id_token"]}
    Session(g.cookie).begin(claims["sid"], {"refresh": tokens["refresh_token"]})
    return {}


def ceremony(begun):
    """Options for the authenticator. Postern takes the answer once, and for five minutes."""
    g.device["ceremony"] = begun["ceremonyId"]
    return begun["options"]


@app.post("/code")
def code():
    """Mails a code; then takes it, with the second factor of people who have one."""
    if "code" in request.form:
        return sign_in(grant_type="urn:cocoar:otp", auth_session=g.device.get("handle"), otp_code=request.form["code"],
                       totp_code=request.form.get("totp"), **SCOPE)
    wish = {"Email": request.form.get("email"), "ClientId": postern.CLIENT, "IdTokenHint": g.device.get("hint")}
    g.device["handle"] = post("/api/account/native/otp/request", json=wish)["AuthSession"]
    return {}


@app.post("/passkey")
def passkey():
    """A sign-in: options, then the credential."""
    if "credential" not in request.form:
        return ceremony(post("/connect/passkey/begin", {"client_id": postern.CLIENT}))
    return sign_in(grant_type="urn:cocoar:passkey", ceremony_id=g.device.pop("ceremony", None),
                   assertion=request.form["credential"], **SCOPE)


@app.post("/passkey/new")
def new_passkey():
    """One more passkey of who is signed in: options, then the credential."""
    bearer = Session(g.cookie).token("openid")
    if "credential" not in request.form:
        return ceremony(post("/connect/passkey/enroll/begin", bearer=bearer))
    made = {"ceremonyId": g.device.pop("ceremony", None)}
    with contextlib.suppress(ValueError, RecursionError):
        made["attestation"] = json.loads(request.form["credential"])
    return post("/connect/passkey/enroll", json=made, bearer=bearer)


@app.post("/page")
def to_pages():
    """To the pages of Postern; what is asked of them goes there from here."""
    g.device["page"] = kept = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(kept["verifier"].encode()).digest()).rstrip(b"=").decode()
    wish = {"client_id": postern.CLIENT, "response_type": "code", "redirect_uri": SITE + "/callback", **SCOPE, "nonce":
            kept["nonce"], "state": kept["state"], "code_challenge": challenge, "code_challenge_method": "S256"}
    with contextlib.suppress(Refused):  # strangers can use up the limit of pushed requests: then the browser takes it
        wish = {"client_id": postern.CLIENT, "request_uri": post("/connect/par", wish)["request_uri"]}
    return redirect(f"{postern.ORIGIN}/connect/authorize?{urlencode(wish)}", 303)


@app.get("/callback")
def callback():
    """Back from the pages: once, and only in the browser that went there."""
    kept, said = g.device.get("page", {}), request.args
    if not kept or said.get("state") != kept["state"] or said.get("iss") != postern.ORIGIN:
        raise Refused(400)
    del g.device["page"]
    if "code" in said:
        sign_in(kept["nonce"], grant_type="authorization_code", code=said["code"], code_verifier=kept["verifier"])
    return redirect("/", 303)


@app.post("/logged-out")
def logged_out():
    """Back-channel logout: a token of the last minutes ends the session that it names, once."""
    claims, now = postern.claims(request.form.get("logout_token", ""), "logout+jwt"), time.time()
    events, jti, sid = (claims.get(name) for name in ("events", "jti", "sid"))
    run("DELETE FROM logout WHERE until < ?", now)
    if (not isinstance(events, dict) or "http://schemas.openid.net/event/backchannel-logout" not in events
            or "nonce" in claims or claims["iat"] < now - 150 or not isinstance(jti, str) or not isinstance(sid, str)
            or not run("INSERT OR IGNORE INTO logout VALUES (?, ?)", jti, now + 600)):
        raise Refused(400)
    run("DELETE FROM session WHERE sid = ?", sid)
    return {}


@app.post("/sign-out")
def sign_out():
    Session(g.cookie).end()
    g.cookie = ""
    return {}


@app.route("/api/<path:path>", methods=["GET", "POST"])
def relay(path):
    """The API: paths and methods of a list, a token for it alone, at most ten seconds and 1 MiB."""
    if not any(re.fullmatch(one, f"{request.method} /{path}") for one in API_PATHS):
        raise Refused(404)
    said = {name: request.headers.get(name, "") for name in ("Accept", "Content-Type")}
    fields = {name: value for name, value in said.items() if re.fullmatch("[ -~]+", value)}  # one line, else none
    fields["Authorization"] = "Bearer " + Session(g.cookie).token(API_SCOPE)
    target, sent, began = f"/{path}?{request.query_string.decode('latin-1')}", request.get_data(), time.monotonic()
    kind = http.client.HTTPSConnection if API.scheme == "https" else http.client.HTTPConnection
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException), contextlib.ExitStack() as stack:
        connection = stack.enter_context(contextlib.closing(kind(API.netloc, timeout=10)))
        connection.connect()
        end = threading.Timer(began + 10 - time.monotonic(), connection.sock.shutdown, [socket.SHUT_RDWR])
        end.start()
        stack.callback(end.cancel)
        connection.request(request.method, target, sent, fields)
        answer = connection.getresponse()
        body = answer.read(LIMIT + 1)
        if answer.status // 100 in (2, 4, 5) and len(body) <= LIMIT and not answer.length:
            kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            return body, answer.status, {**kept, "Content-Security-Policy": "sandbox; default-src 'none'"}
    raise Refused(504 if time.monotonic() > began + 9.9 else 502)
