"""What PyPI's pydpop and joserfc say to each proof of a file like proofs.json: a name, and the error or null."""

import json
import sys

import pydpop
from joserfc import jws
from joserfc.jwk import import_key


def by_pydpop(case, proof):
    """Its function for servers, at the case's time."""
    pydpop.verify_proof(proof=proof, htm=case["method"], htu=case["url"], access_token=case["token"], expected_nonce=case.get("nonce"), now=case["time"])


def by_joserfc(_, proof):
    """The signature, by the key in the header."""
    algorithms = ["ES256", "EdDSA", "Ed25519"]
    registry = jws.JWSRegistry(algorithms=algorithms, strict_check_header=False)
    header = jws.extract_compact(proof.encode(), registry=registry).headers()
    jws.deserialize_compact(proof, import_key(header["jwk"]), algorithms=algorithms, registry=registry)


def verdict(verify, case):
    """None: it accepts."""
    fields = case.get("fields") or [case["expect"]["proof"]]
    try:
        (proof,) = fields
        verify(case, proof)
        return None
    except Exception as error:  # Their errors have no class in common.
        return f"{type(error).__name__}: {error}"


with open(sys.argv[1], encoding="utf-8") as opened:
    told = json.load(opened)
json.dump({
    name: {case["name"]: verdict(verify, case) for case in told["cases"]} for name, verify in {"pydpop": by_pydpop, "joserfc": by_joserfc}.items()
}, sys.stdout)
