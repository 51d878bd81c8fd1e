"""docs/vectors: the files are what is made now, and what they say is what the server and the reference machines do.

`scripts/vectors` runs this file; with `--write` it renews the files first.
"""

import hashlib
import json
import os
import re

import pytest

from harness import wire
from harness.dpop_places import Refresh, Userinfo
from harness.moving_world import MovingWorld
from harness.settings import REPOSITORY
from vectors import errors, files, proofs
from vectors.client import Client
from vectors.made import KINDS
from vectors.stage import Stage
from vectors.urls import HOST

#: Set by `scripts/vectors --write`.
WRITES = os.environ.get("POSTERN_WRITE_VECTORS") == "1"


def kept(kind):
    """A file of the repository."""
    return json.loads((files.FOLDER / f"{kind}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_what_is_made_now(kind):
    """Red with file, case and both texts."""
    text = files.text_of(kind, KINDS[kind].document())
    if WRITES:
        (files.FOLDER / f"{kind}.json").write_text(text, encoding="utf-8")
    told = "\n".join(files.differences(kind, text))
    assert not told, f"{told}\nscripts/vectors --write renews the files."


def test_the_index_counts_and_names_what_is_there():
    """Numbers, digests and format; at least as many cases as a client wants."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(files.FOLDER.glob("*.json")) if path.stem != "index"}
    made, path = files.index(texts), files.FOLDER / "index.json"
    if WRITES:
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, "scripts/vectors --write renews the index."
    listed = json.loads(made)["files"]
    assert {file["kind"] for file in listed} == set(files.LEAST)
    for file in listed:
        text = texts[file["kind"]]
        document = json.loads(text)
        assert (document["format"], document["kind"]) == (1, file["kind"])
        assert file["count"] == len(files.by_name(document)) >= files.LEAST[file["kind"]], file
        assert file["sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_every_documented_error_has_a_case_and_no_other():
    """Both ways."""
    def of_case(case):
        body = ": ".join(next(iter(case["body"].items()))) if case["body"] else "—"
        return case["status"], body, case["text"] or "—"

    assert sorted(of_case(case) for case in kept("errors")["cases"]) == sorted((status, answer, text) for _, status, answer, text, _ in errors.rows())


def test_a_changed_text_is_named_with_both_texts(monkeypatch):
    """What a run prints when an error says something else."""
    changed = errors.PAGE.read_text(encoding="utf-8").replace("`Passkey verification failed.`", "`The passkey was refused.`")
    document = errors.document

    class Page:
        """The page with another text."""

        @staticmethod
        def read_text(encoding):
            """As of a path."""
            assert encoding
            return changed

    monkeypatch.setattr(errors, "PAGE", Page)
    told = "\n".join(files.differences("errors", files.text_of("errors", document())))
    assert "errors.json: Passkeys: urn:cocoar:passkey" in told
    assert '- "text": "Passkey verification failed."' in told and '+ "text": "The passkey was refused."' in told, told


# -- what a client does --------------------------------------------------------------------------------

PLAYED = [(kind, case) for kind in ("refresh", "sign-in") for case in KINDS[kind].document()["cases"]]


@pytest.mark.parametrize("kind, case", [pytest.param(kind, case, id=f"{kind}-{case['name']}") for kind, case in PLAYED])
def test_the_reference_client_does_what_the_case_says(kind, case):
    """Each step, and nothing besides."""
    Stage(KINDS[kind].document(), case, Client).play()


def altered(steps):
    """The steps with one thing that is not so, in each way that there is."""
    for number, step in enumerate(steps):
        before, after = steps[:number], steps[number + 1:]
        if "request" in step:
            yield [*before, {"request": {**step["request"], "method": "PUT"}}, *after]
            yield [*before, *after]
        elif "token" in step:
            yield [*before, {**step, "token": "vector-access-99"}, *after]
        elif "error" in step:
            yield [*before, {**step, "error": "other"}, *after]
        elif "state" in step:
            yield [*before, {"state": "signedIn:nobody"}, *after]
        elif "refresh" in step.get("store", {}):
            yield [*before, {"store": {"refresh": "vector-refresh-99"}}, *after]


@pytest.mark.parametrize("kind", ["refresh", "sign-in"])
def test_an_altered_case_is_red_and_named(kind):
    """Every expectation counts."""
    file, tried = KINDS[kind].document(), 0
    for case in file["cases"]:
        for steps in altered(case["steps"]):
            tried += 1
            with pytest.raises(AssertionError, match=re.escape(case["name"])):
                Stage(file, {**case, "steps": steps}, Client).play()
    assert tried > 3 * len(file["cases"])


# -- proofs ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="world")
def _world():
    """A server and a database whose clock is that of the proofs."""
    made = MovingWorld("vectors")
    made.begins = proofs.NOW
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = world.realm()
    world.admin.call("put_realm", realm.slug, primary_domain=HOST)
    realm.host = HOST
    world.settle()
    return realm


def test_the_server_says_to_each_proof_what_its_case_says(world, realm):
    """At a server whose clock is the cases'. `ath` names a token of this server: the proof is made anew, like the case's but for that."""
    places = {proofs.TOKEN_ENDPOINT: Refresh(realm), proofs.USERINFO: Userinfo(realm)}
    cases = {case["name"]: case for case in kept("proofs")["cases"]}
    for place in places.values():
        place.app.clock = world.shift.now
    for case in proofs.judged():
        places[case.request].request(case.key)  # Signs in, so that the cases come soon after one another.
    world.shift.pass_by(proofs.NOW - int(world.shift.now()))
    for case in proofs.judged():
        place, token = places[case.request], None
        if case.token is None:
            assert cases[case.name]["fields"] == case.fields()
        else:
            token = place.token(case.key)
        answer = place.send(case.key, *case.fields(token))
        said = "accept" if answer.status == 200 else answer.json().get("error")
        assert said == cases[case.name]["answer"], (case.name, answer)


# -- secrets -----------------------------------------------------------------------------------------


def test_no_secret_of_the_vectors_is_accepted_by_a_server(dev):
    """As what its name says, or as the handle of a code: an access token, a refresh token, a handle."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(files.FOLDER.glob("*.json")))
    secrets = sorted(set(re.findall(r"vector-[\w.-]+|ey[\w-]+\.[\w-]+\.[\w-]+", texts)))
    assert len(secrets) > 100
    host = {"Host": f"localhost:{dev.port}"}
    with wire.Connection(dev.port) as line:
        for secret in secrets:
            if secret.startswith("ey") or "access" in secret:
                answer = line.exchange("GET", "/connect/userinfo", {**host, "Authorization": f"Bearer {secret}"})
                assert answer.status == 401, (secret, answer)
                continue
            form = {"grant_type": "urn:cocoar:otp", "auth_session": secret, "otp_code": "246801"}
            if "refresh" in secret:
                form = {"grant_type": "refresh_token", "refresh_token": secret}
            body = wire.form_body({"client_id": dev.client_id, **form})
            answer = line.exchange("POST", "/connect/token", {**host, "Content-Type": wire.FORM}, body)
            assert answer.status in (400, 429), (secret, answer)
