"""docs/vectors/ceremonies.json: what a server says to each case, and what WebAuthn libraries of others say."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness import authenticator, report, settings
from harness.app import PASSKEY
from harness.holder import signed_in
from harness.jose import unb64url
from test_third_party_clients import want
from vectors import files
from vectors.ceremonies import PASSKEYS, ceremonies
from vectors.matching import matches
from vectors.urls import HOST

#: Of which a library may say something else: what it leaves to its callers, does not look at, or does not take.
_BOTH = {
    "the challenge padded", "in a frame of another origin", "a top-level origin", "client data: challenge twice", "a point beside the curve",
    "an id of 1024 bytes", "a passkey that is registered", "no user handle", "another backup eligibility", "the user handle of another account",
}
DIFFERS = {
    "fido2": _BOTH | {
        "origin: a slash behind", "origin: a port", "origin: in upper case", "origin: a subdomain that is not registered",
        "backed up, but not to be backed up", "type of the document in upper case", "an algorithm that was not offered", "an unknown format",
        "format none with a statement", "self attestation: signed over other data", "self attestation: another algorithm",
        "client data behind a byte order mark", "the counter stands still", "the counter goes back", "the counter is 0 after others",
    },
    "webauthn": _BOTH | {"unknown members", "client data: UTF-16", "something behind the attestation object"},
}


@pytest.fixture(scope="module", name="file")
def _file():
    return json.loads((files.FOLDER / "ceremonies.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", name="one")
def _one(world):
    """A user of a realm at the host of the vectors."""
    realm = world.realm()
    world.admin.call("put_realm", realm.slug, primary_domain=HOST)
    realm.host = HOST
    world.settle()
    return signed_in(realm)


def cases(do):
    """Those of a kind."""
    return [case for case in ceremonies() if case.do == do]


def mine(name, options):
    """A passkey of the vectors, of the account that a server's options name."""
    return replace(PASSKEYS[name], user_handle=unb64url(options["user"]["id"]))


def enrol(one, name):
    """Adds one that is right."""
    ceremony = one.app.enrolment(one.token)
    passkey = mine(name, ceremony["options"])
    answer = one.app.complete(one.token, ceremony, authenticator.attestation(ceremony["options"], passkey))
    assert answer.status == 200, (name, answer)
    return passkey


def given(options):
    """Options as a server gives them: what is of the realm, the account and the moment is its own."""
    own = {"challenge": {"$": "match", "pattern": "[A-Za-z0-9_-]{43}"}}
    if "rp" in options:
        own |= {"rp": {**options["rp"], "name": {"$": "string"}}, "user": {name: {"$": "string"} for name in options["user"]}}
    return {**options, **own}


def test_the_server_says_to_each_new_passkey_what_its_case_says(one, file):
    """With the credential made anew, like the case's but for challenge and account."""
    answers = {case["name"]: case["answer"] for case in file["cases"]}
    for case in cases("create"):
        for name in case.excludes:
            enrol(one, name)
        ceremony = one.app.enrolment(one.token)
        options = ceremony["options"]
        matches(given(case.options()), options, case.name)
        answer = one.app.complete(one.token, ceremony, case.credential(options, mine(case.passkey, options)))
        assert answer.status == (200 if answers[case.name] == "accept" else 400), (case.name, answer)
        for passkey in one.app.passkeys(one.token):
            assert one.app.delete_passkey(one.token, passkey["Id"]).status == 204


def test_the_server_says_to_each_sign_in_what_its_case_says(one, file):
    """The same."""
    answers = {case["name"]: case["answer"] for case in file["cases"]}
    passkeys = {name: enrol(one, name) for name in PASSKEYS}
    for case in cases("get"):
        ceremony = one.app.ceremony()
        matches(given(case.options()), ceremony["options"], case.name)
        answer = one.app.redeem_passkey(ceremony, case.credential(ceremony["options"], passkeys[case.passkey]))
        assert answer.status == (200 if answers[case.name] == "accept" else 400), (case.name, answer)


def test_no_passkey_of_the_vectors_signs_in_at_a_dev_server(dev):
    """Their private keys are public."""
    for passkey in PASSKEYS.values():
        ceremony = dev.post("/connect/passkey/begin", {"client_id": dev.client_id}).json()
        document = authenticator.assertion(ceremony["options"], passkey, origin=dev.origin)
        form = {"grant_type": PASSKEY, "client_id": dev.client_id, "ceremony_id": ceremony["ceremonyId"], "assertion": json.dumps(document)}
        answer = dev.post("/connect/token", form)
        assert (answer.status, answer.json()["error"]) == (400, "invalid_grant"), answer


@pytest.mark.parametrize("library", DIFFERS)
def test_a_library_of_others_says_the_same(library, file):
    """About the bytes of the file, but for what it leaves to its callers."""
    want("webauthn")
    if settings.PEERS is None:
        report.say("vectors: ceremonies.json was not shown to fido2: POSTERN_PEERS is not set")
        pytest.skip("fido2 is absent")
    run = subprocess.run(
        ["/usr/bin/python3", Path(__file__).parent / "third_party/ceremonies_cli.py", files.FOLDER / "ceremonies.json"],
        env={**os.environ, "PYTHONPATH": f"{settings.CLIENTS}:{settings.PEERS}"}, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)[library]
    for case in file["cases"]:
        if case["name"].partition(": ")[2] not in DIFFERS[library]:
            assert (case["answer"] == "accept") == (said[case["name"]] is None), (case["name"], said[case["name"]])
