"""links.json: URLs that an app is opened with, and what they are. `read` is the reference."""

import re
import urllib.parse

from .urls import HOST, ORIGIN

ISSUER, OTHER = "https://login.vectors.example", "https://auth.other.example"
#: Where the pages and links that prove a number come back to.
REDIRECT, PROVEN = "https://app.vectors.example/signed-in", "https://app.vectors.example/proven?from=link"
STATE = "vector-state-1"
CLIENT = {"origin": ORIGIN, "issuer": ISSUER, "redirectURI": REDIRECT, "finalTargetUrl": PROVEN, "state": STATE}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_USER, _TOKEN, _AUTH = "01890a5d-ac96-774b-bcce-b302099a8057", "vector-link-1", "01890a5d-ac96-774b-bcce-b302099a8058"


def _base(url):
    """What says whose a URL is: scheme, host and port as browsers spell them, and the path."""
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return None
    preset = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").removesuffix(".")
    return None if parts.username is not None or not host else (parts.scheme, host, preset if port is None else port, parts.path)


def _fields(url):
    return urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query, keep_blank_values=True)


def _once(fields, name):
    """The value of a parameter that is there once and not empty, or None."""
    values = [value for key, value in fields if key == name]
    return values[0] if len(values) == 1 and values[0] else None


def read(url):
    """A magic link of the client's realm, the return of a page or of a link that proves a number, or None."""
    base, fields = _base(url), _fields(url)
    if base is None:
        return None
    if base in [_base(f"{origin}/magic-login") for origin in (ORIGIN, ISSUER)]:
        user, token = _once(fields, "userId"), _once(fields, "token")
        return {"link": {"userId": user, "token": token}} if user and token else None
    names = [name for name, _ in fields]
    if base == _base(PROVEN) and "authId" in names:
        asc, auth, code = (_once(fields, name) for name in ("asc", "authId", "pc"))
        good = asc in ("true", "false") and auth and _UUID.fullmatch(auth) and len(names) == len(set(names))
        return {"possession": {"asc": asc == "true", "authId": auth, **({"pc": code} if code else {})}} if good else None
    if base == _base(REDIRECT) and {"code", "error", "state"} & set(names):
        return {"page": _page(fields)}
    return None


def _page(fields):
    """What a return from the pages says: a code or an error, if all of it is ours and there once."""
    read_ones = ("code", "error", "state", "iss")
    if any(sum(name == key for key, _ in fields) > 1 for name in read_ones):
        return {"refused": "invalid_response"}
    code, error, state, issuer = (_once(fields, name) for name in read_ones)
    if (state, issuer) != (STATE, ISSUER) or (code is None) == (error is None):
        return {"refused": "invalid_response"}
    return {"code": code} if code else {"error": error}


LINK = f"{ORIGIN}/magic-login?userId={_USER}&token={_TOKEN}"
_ISS = urllib.parse.quote(ISSUER, safe="")
_PAGE = f"{REDIRECT}?code=vector-code-1&state={STATE}&iss={_ISS}"
_DONE = f"{PROVEN}&asc=false&authId={_AUTH}&pc=vector-pc-1"
URLS = {
    "a magic link": LINK, "on the issuer's host": LINK.replace(ORIGIN, ISSUER), "parameters the other way round": f"{ORIGIN}/magic-login?token={_TOKEN}&userId={_USER}",
    "an unknown parameter beside": LINK + "&utm_source=mail", "a fragment behind": LINK + "#top", "host and scheme in upper case": LINK.replace(ORIGIN, f"HTTPS://{HOST.upper()}"),
    "the preset port": LINK.replace(HOST, HOST + ":443"), "a dot behind the host": LINK.replace(HOST, HOST + "."), "an escaped token": LINK.replace("vector-link", "vector%2Dlink"),
    "userId twice": LINK + f"&userId={_USER}", "token twice": LINK + "&token=vector-link-2", "without userId": f"{ORIGIN}/magic-login?token={_TOKEN}",
    "without token": f"{ORIGIN}/magic-login?userId={_USER}", "an empty token": f"{ORIGIN}/magic-login?userId={_USER}&token=", "without a query": f"{ORIGIN}/magic-login",
    "a longer path": LINK.replace("magic-login", "magic-login/x"), "a slash behind the path": LINK.replace("magic-login", "magic-login/"),
    "the path in upper case": LINK.replace("magic-login", "Magic-Login"), "another path": LINK.replace("magic-login", "sign-in"), "another host": LINK.replace(ORIGIN, OTHER),
    "the host as a part of another": LINK.replace(HOST, HOST + ".evil.example"), "a host before": LINK.replace("https://", "https://x."),
    "http": LINK.replace("https", "http", 1), "a scheme of an app": LINK.replace("https", "vectors", 1), "the host as user information": LINK.replace(HOST, HOST + "@evil.example"),
    "user information": LINK.replace("https://", "https://ada@"), "parameters in the fragment": LINK.replace("?", "#"), "no URL": "magic-login?userId=x&token=y",
    "the return of a page": _PAGE, "an error of a page": f"{REDIRECT}?error=access_denied&error_description=The+user+refused.&state={STATE}&iss={_ISS}",
    "an unknown parameter beside a code": _PAGE + "&session_state=x", "another state": _PAGE.replace(STATE, "vector-state-2"), "without state": _PAGE.replace(f"&state={STATE}", ""),
    "another issuer": _PAGE.replace(_ISS, urllib.parse.quote(OTHER, safe="")), "without iss": _PAGE.replace(f"&iss={_ISS}", ""), "code twice": _PAGE + "&code=vector-code-2",
    "state twice": _PAGE + f"&state={STATE}", "iss twice": _PAGE + f"&iss={_ISS}", "code and error": _PAGE + "&error=access_denied", "the redirect alone": REDIRECT,
    "the return on another path": _PAGE.replace("signed-in", "signed-out"), "the return on another host": _PAGE.replace("app.", "x."), "the return over http": _PAGE.replace("https", "http", 1),
    "the return of a number's link": _DONE, "a number's link that passed elsewhere": f"{PROVEN}&asc=true&authId={_AUTH}", "a number's link without asc": _DONE.replace("asc=false&", ""),
    "asc that is neither": _DONE.replace("asc=false", "asc=FALSE"), "authId that is no UUID": _DONE.replace(_AUTH, "1"), "authId twice": _DONE + f"&authId={_AUTH}",
    "pc twice": _DONE + "&pc=vector-pc-2", "a number's link on another path": _DONE.replace("proven", "x"),
}


def document():
    """The file."""
    return {"client": CLIENT, "cases": [{"name": name, "url": url, "is": read(url)} for name, url in URLS.items()]}
