"""challenges.json: what an answer's fields `WWW-Authenticate` and `DPoP-Nonce` say. `read` is the reference."""

import re

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:({_TOKEN})|"((?:[^"\\]|\\.)*)")')
_SCHEME = re.compile(rf"({_TOKEN})(?:[ \t]+|(?=,)|$)")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
#: One nonce: RFC 9449 §8.1 without the comma, which two fields that were joined have.
_NONCE = re.compile(r"[!#-+\--\[\]-~]+")


def challenges(field):
    """The challenges of a field's value (RFC 9110 §11.6.1): scheme in lower case, and parameters with names in lower case; None if it is none."""
    found, at = [], 0
    while at < len(field):
        if field[at] in ", \t":
            at += 1
        elif found and (match := _PARAMETER.match(field, at)):
            name, plain, quoted = match.groups()
            found[-1][1].setdefault(name.lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
            at = match.end()
        elif match := _SCHEME.match(field, at):
            found.append((match.group(1).lower(), {}))
            at = match.end()
            if not _PARAMETER.match(field, at) and (credentials := _TOKEN68.match(field, at)):
                at = credentials.end()
        else:
            return None
    return found


def read(authenticate, nonces):
    """The first challenge of scheme DPoP or Bearer that says an error, else the first of either; and the nonce, if there is exactly one."""
    known = [(scheme, members) for field in authenticate for scheme, members in challenges(field) or () if scheme in ("dpop", "bearer")]
    scheme, members = next((one for one in known if "error" in one[1]), known[0] if known else (None, {}))
    age = members.get("max_age", "")
    return {
        "scheme": {"dpop": "DPoP", "bearer": "Bearer", None: None}[scheme], "error": members.get("error"),
        "levels": [level for level in members.get("acr_values", "").split(" ") if level], "age": int(age) if re.fullmatch(r"[0-9]{1,10}", age) else None,
        "nonce": nonces[0] if len(nonces) == 1 and _NONCE.fullmatch(nonces[0]) else None,
    }


_STEP_UP = 'error="insufficient_user_authentication", error_description="A more recent sign-in is required."'
_ALGS = 'algs="ES256 EdDSA PS256 RS256"'
_ACR = "urn:postern:acr:2"
FIELDS = {
    "nothing": ([], []), "a Bearer challenge without an error": (["Bearer"], []), "both schemes without an error": (["Bearer", f"DPoP {_ALGS}"], []),
    "both in one field": ([f"Bearer, DPoP {_ALGS}"], []),
    "an ended token": (['Bearer error="invalid_token", error_description="The access token is invalid."'], []),
    "an ended token that is bound": ([f'DPoP error="invalid_token", error_description="The access token is invalid.", {_ALGS}'], []),
    "a refused proof": ([f'DPoP error="invalid_dpop_proof", error_description="The DPoP proof is invalid.", {_ALGS}'], []),
    "a nonce": ([f'DPoP error="use_dpop_nonce", error_description="Use the nonce given in DPoP-Nonce.", {_ALGS}'], ["vector-nonce-1"]),
    "a nonce with a success": ([], ["vector-nonce-2"]), "a nonce of other characters": ([], ["eyJ.a~b!c#[]{}"]),
    "two nonces": ([f'DPoP error="use_dpop_nonce", {_ALGS}'], ["vector-nonce-1", "vector-nonce-2"]), "two nonces in one field": ([], ["vector-nonce-1, vector-nonce-2"]),
    "an empty nonce": ([], [""]), "a nonce with a space": ([], ["vector nonce"]), "a nonce with a quotation mark": ([], ['"vector-nonce-1"']), "a nonce with a backslash": ([], ["a\\b"]),
    "a nonce that is not ASCII": ([], ["vector-nöncé"]),
    "an older sign-in": ([f'Bearer {_STEP_UP}, max_age="600"'], []), "a second factor": ([f'Bearer {_STEP_UP}, max_age="600", acr_values="{_ACR}"'], []),
    "a bound token and a second factor": ([f'DPoP {_STEP_UP}, max_age="600", acr_values="{_ACR}", {_ALGS}'], []),
    "levels without an age": ([f'Bearer {_STEP_UP}, acr_values="{_ACR} phr"'], []), "levels with two spaces": ([f'Bearer {_STEP_UP}, acr_values="phr  {_ACR} "'], []),
    "an age of zero": ([f'Bearer {_STEP_UP}, max_age="0"'], []), "an age without quotation marks": ([f"Bearer {_STEP_UP}, max_age=300"], []),
    "an age that is no number": ([f'Bearer {_STEP_UP}, max_age="soon"'], []), "a negative age": ([f'Bearer {_STEP_UP}, max_age="-1"'], []),
    "an age of thirty digits": ([f'Bearer {_STEP_UP}, max_age="{"9" * 30}"'], []), "neither levels nor age": ([f"Bearer {_STEP_UP}"], []),
    "names and scheme in other case": (['BEARER Error="insufficient_user_authentication", MAX_AGE="60"'], []),
    "spaces around the equals sign": (['Bearer error = "invalid_token"'], []), "a quoted comma": (['Bearer error_description="a, DPoP error=\\"x\\"", error="invalid_token"'], []),
    "an escaped quotation mark": (['Bearer error_description="say \\"hi\\"", error="insufficient_scope"'], []), "an error without quotation marks": (["Bearer error=invalid_token"], []),
    "another scheme before": (['Basic realm="postern", charset="UTF-8"', 'Bearer error="invalid_token"'], []),
    "another scheme in the same field": (['Basic realm="a", Bearer error="invalid_token", error_description="x"'], []),
    "another scheme with credentials": (["Negotiate YWJj==, Bearer error=\"invalid_token\""], []), "another scheme alone": (['Basic realm="postern"'], []),
    "the error in the second of two": (["Bearer", f'DPoP error="invalid_dpop_proof", {_ALGS}'], []), "two errors": (['Bearer error="first"', 'DPoP error="second"'], []),
    "an error twice": (['Bearer error="first", error="second"'], []), "an empty field": ([""], []), "a field that is no challenge": (['"Bearer"'], []),
    "empty parts": ([', ,Bearer error="invalid_token",,'], []), "an unknown parameter": (['Bearer realm="x", error="invalid_token", later="y"'], []),
    "a metadata address": (['Bearer resource_metadata="https://api.example/.well-known/oauth-protected-resource", error="insufficient_scope", scope="orders:read"'], []),
}


def document():
    """The file."""
    return {"cases": [
        {"name": name, "WWW-Authenticate": authenticate, "DPoP-Nonce": nonces, "is": read(authenticate, nonces)}
        for name, (authenticate, nonces) in FIELDS.items()
    ]}
