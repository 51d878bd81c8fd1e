"""errors.json: every row of docs/errors.md, with what a client does about it.

The class of most rows follows from what the page tells the app to do. A row that no rule knows makes `document` fail: then
decide what a client does, and write it into `RULES`.
"""

import re

from harness.settings import REPOSITORY

PAGE = REPOSITORY / "docs/errors.md"
_NATIVE = ["POST /api/account/native/otp/request", "POST /api/account/native/register", "POST /api/account/magic-link/request"]
_TOKEN = ["POST /connect/token"]
_ACCOUNT = ["/connect/account", "/connect/identifiers", "/connect/sessions", "/connect/passkey", "/connect/passkey/enroll", "/connect/totp", "/connect/userinfo"]
#: The endpoints of the page's sections, by their headings; a grant beside the token endpoint.
ENDPOINTS = {
    "Every endpoint": ["*"], "Token endpoint": _TOKEN, "Authorization codes: `authorization_code`": [*_TOKEN, "authorization_code"],
    "Codes: `urn:cocoar:otp`": [*_TOKEN, "urn:cocoar:otp"], "Links: `urn:cocoar:magic`": [*_TOKEN, "urn:cocoar:magic"],
    "Approvals: `urn:openid:params:grant-type:ciba`": [*_TOKEN, "urn:openid:params:grant-type:ciba"],
    "Asking for an approval": ["POST /connect/bc-authorize"], "Answering a request for approval": ["/connect/approvals"],
    "Passkeys: `urn:cocoar:passkey`": [*_TOKEN, "urn:cocoar:passkey"], "Refresh: `refresh_token`": [*_TOKEN, "refresh_token"],
    "Authorization endpoint": ["/connect/authorize", "POST /connect/par"], "Cotter's web wire": ["POST /api/v0/verify/get_identity", "POST /api/v0/token"],
    "Possession of phone numbers": ["/v3/*", "/connect/possession/*"], "Requests for codes and links, registration": _NATIVE,
    "Beginning a passkey sign-in": ["POST /connect/passkey/begin"], "Endpoints that take an access token": _ACCOUNT, "Own data: `/connect/account`": ["/connect/account"],
    "Addresses and phone numbers: `/connect/identifiers`": ["/connect/identifiers"], "Trusted devices: `/connect/devices`": ["/connect/devices", *_TOKEN],
    "Userinfo: `/connect/userinfo`": ["/connect/userinfo"], "Sessions: `/connect/sessions`": ["/connect/sessions"], "Passkeys: `/connect/passkey`": ["/connect/passkey"],
    "TOTP: `/connect/totp`": ["/connect/totp"], "Introspection and revocation": ["POST /connect/introspect", "POST /connect/revoke"],
    "The page of a link": ["/magic-login"], "The page of an undo link": ["/undo"],
}
#: Class, what else is over, and a pattern of "SECTION: STATUS ANSWER TEXT -> APP". The first that matches counts.
RULES = [
    ("retry_after", r"rate_limited|: 429 "),
    ("retry", r": 408|temporarily_unavailable|: 503 page|authorization_pending|slow_down|resend_too_soon"),
    ("fix", r"(Channel|Passkey)\.Unavailable"),
    ("sign_in ends_session", r"The refresh token is invalid"),
    ("second_factor", r"Two-factor authentication is required|The two-factor code is invalid"),
    ("step_up", r"insufficient_user_authentication|unmet_authentication_requirements"),
    ("names", r"(First|Last)name is required\."),
    ("again", r"dpop_nonce|invalid_dpop_proof|: 401 .*invalid_token|(login|consent|interaction)_required"),
    ("again consumed", r"access_denied|expired_token|number_mismatch|possession_failed|transaction_over|Invalid or expired link|^Passkeys: .urn.*invalid_grant|"
                       r"authentication request is invalid|check is not valid|Challenge Expired|Enrollment session|Passkey enrollment|send_limit|wrong_key|invalid_correlation_id|"
                       r"page: (Sign-in refused|This link|There is nothing)|page: invalid_request_uri|invalid_offer|^Authorization codes.*Invalid or expired code"),
    ("again", r"Invalid or expired code|TOTP enrollment|otp_invalid|phone_number_|(Email|Phone|Firstname|Lastname|DisplayName) is invalid|Address is not accepted|"
              r"Code is (required|invalid)|login_hint is not|invalid_response |Type the two digits|redirect_(invalid|unknown)|id_token_hint is not valid|key_in_use|"
              r"[Tt]he device is not trusted|device_not_trusted"),
    ("fix", r"-> (is wrong|asks? the administrator|checks host|hides|sends|uses|removes|lets the backend|fetches a new token|offers another way|"
            r"asks for (less|the scope|the status)|reads the list|says so|is done|adds|does without|asks the backend|pushes it|—)"),
]


def rows():
    """The rows of the page's tables that begin with a status: section, status, answer, text, app."""
    section, found = "", []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"##+ (.*)", line):
            section = heading.group(1)
        elif re.match(r"\| \d{3} \|", line):
            status, answer, text, _, app = (cell.strip() for cell in line.strip().strip("|").split("|"))
            found.append((section, int(status), answer.strip("`"), text.strip("`"), app))
    return found


def classified(section, status, answer, text, app):
    """The class of a row, and what else is over."""
    line = f"{section}: {' '.join(part for part in (str(status), answer, text) if part != '—')} -> {app}"
    for rule, pattern in RULES:
        if re.search(pattern, line):
            name, *more = rule.split()
            return {"class": name, "ends_session": "ends_session" in more, "consumed": "consumed" in more}
    raise AssertionError(f"decide what a client does at {line}")


def document():
    """The file."""
    cases, seen = [], {}
    for section, status, answer, text, app in rows():
        member, _, value = answer.partition(": ")
        name = f"{section.replace('`', '')}: {status}{'' if answer == '—' else ' ' + value}{'' if text == '—' else ': ' + text}"
        seen[name] = seen.get(name, 0) + 1
        cases.append({
            "name": name if seen[name] == 1 else f"{name} ({seen[name]})", "endpoints": [one for one in ENDPOINTS[section] if "/" in one or one == "*"],
            "grant": next((one for one in ENDPOINTS[section] if "/" not in one and one != "*"), None), "status": status,
            "body": None if answer == "—" else {member: value}, "text": None if text == "—" else text, **classified(section, status, answer, text, app),
        })
    return {"cases": cases}
