"""docs/vectors/proofs.json before libraries of others."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import settings
from test_third_party_clients import want
from vectors import files

#: Right by the letter of RFC 9449 and RFC 3986, and refused by pydpop.
STRICT = {
    "typ in upper case", "htu: upper case of scheme and host, default port", "htu: an unreserved letter encoded", "htu: dot segments",
    "right, of Ed25519",
}
#: The steps at which pydpop refuses each proof that the server refuses; the others it leaves to its callers, in part.
STEPS = {1, 4, 7, 8, 9, 10, 12}


@pytest.fixture(scope="module", name="said")
def _said():
    """What they say, by library and case."""
    for package in ("pydpop", "joserfc"):
        want(package)
    run = subprocess.run(
        ["/usr/bin/python3", Path(__file__).parent / "third_party/proofs_cli.py", files.FOLDER / "proofs.json"],
        env={**os.environ, "PYTHONPATH": str(settings.CLIENTS)}, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def cases():
    """All, each with whether it is right."""
    for case in json.loads((files.FOLDER / "proofs.json").read_text(encoding="utf-8"))["cases"]:
        yield case, case["do"] == "make" or case["answer"] == "accept"


def test_joserfc_verifies_the_signatures(said):
    """Of all that are right, and not of those whose signature is wrong."""
    for case, is_right in cases():
        if is_right or case["step"] == 7:
            assert (said["joserfc"][case["name"]] is None) == is_right, (case["name"], said["joserfc"][case["name"]])


def test_pydpop_takes_right_proofs_for_right_and_wrong_ones_for_wrong(said):
    """As far as it looks."""
    for case, is_right in cases():
        told = said["pydpop"][case["name"]]
        if is_right and case["name"] not in STRICT:
            assert told is None, (case["name"], told)
        elif not is_right and case["step"] in STEPS:
            assert told is not None, case["name"]
