"""Calls to Postern in the name of the browser that is asking, and the check of what it signed."""
import contextlib, http.cookiejar, os, threading, time
from urllib.parse import quote

import jwt, requests
from flask import request

ORIGIN, CLIENT, PROXIES = os.environ["POSTERN"], os.environ["CLIENT_ID"], os.environ.get("PROXIES", "").split()
with open(os.environ["CLIENT_SECRET_FILE"], encoding="ascii") as file:
    if os.fstat(file.fileno()).st_mode & 0o077:
        raise SystemExit(f"{file.name}: the mode must be 0600")
    SECRET = file.read().strip()
KEYS, READING, HTTP = {"read": 0.0, "by_id": {}}, threading.Lock(), requests.Session()
HTTP.trust_env = False  # a proxy of the environment would see tokens, and .netrc would replace them
HTTP.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))  # one person's would go with all calls


class Refused(Exception):
    """What Postern, or we, answer in place of what was asked for. 503: nothing was decided, come again."""
    def __init__(self, status=503, document=None, wait=None):
        self.status, self.fields = status, {"Retry-After": wait or "1"} if status in (429, 503) else {}
        self.document = document if isinstance(document, dict) else {"error": "refused"}


def post(path, form=None, json=None, bearer=None, wait=10):
    """The document of a success, asked for with our secret, or with an access token."""
    peer, said = request.remote_addr, request.headers
    if peer in PROXIES:  # your own, which put the address of its peer at the end
        peer = said.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    fields = {"Postern-Forwarded-For": peer, "User-Agent": said.get("User-Agent", "")[:512],
              "Accept-Language": said.get("Accept-Language", "")[:256], "Authorization": bearer and f"Bearer {bearer}"}
    try:
        answer = HTTP.post(ORIGIN + path, form, json, headers=fields, allow_redirects=False, timeout=(3, wait),
                           auth=None if bearer else (quote(CLIENT, safe=""), quote(SECRET, safe="")))
        document = answer.json() if answer.content else {}
    except requests.RequestException as problem:
        raise Refused from problem
    if answer.status_code not in (200, 201):
        status = answer.status_code if 400 <= answer.status_code < 500 else 503
        raise Refused(status, document, answer.headers.get("Retry-After"))
    return document


def refresh(token, scope):
    """Tokens of the next generation. A lost answer is asked for again, and is the same successor."""
    form = {"grant_type": "refresh_token", "refresh_token": token, "scope": scope}
    for pause in (0.5, 1, None):
        try:
            return post("/connect/token", form, wait=3)
        except Refused as problem:
            if problem.status < 500 or pause is None:
                raise
            time.sleep(pause)


def revoke(token):
    """Ends a session by any of its refresh tokens, if Postern can be reached."""
    with contextlib.suppress(Refused):
        post("/connect/revoke", {"token": token}, wait=2)


def key(name):
    """The key of a name. An unknown one is looked for once in ten seconds, while all others wait for the answer."""
    with READING:
        if (age := time.time() - KEYS["read"]) > 300 or (name not in KEYS["by_id"] and age > 10):
            KEYS["read"] = time.time()
            with contextlib.suppress(requests.RequestException, jwt.PyJWTError, AttributeError):
                answer = HTTP.get(ORIGIN + "/.well-known/jwks.json", timeout=3, allow_redirects=False)
                KEYS["by_id"] = {one.key_id: one.key for one in jwt.PyJWKSet.from_dict(answer.json()).keys}
        if not KEYS["by_id"]:
            raise Refused
        return KEYS["by_id"].get(name)


def claims(token, typ):
    """The claims of an ID token or a logout token for us."""
    with contextlib.suppress(jwt.PyJWTError, RecursionError, OverflowError):
        header = jwt.get_unverified_header(token)
        if header.get("typ") == typ and (found := key(header.get("kid"))):
            return jwt.decode(token, found, algorithms=["ES256"], audience=CLIENT, issuer=ORIGIN, leeway=30,
                              options={"require": ["iss", "aud", "exp", "iat", "sub", "sid"]})
    raise Refused(400)
