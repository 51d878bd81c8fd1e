"""docs/vectors/exchanges.json: flows recorded from a server, played by the Swift and the JavaScript client against `replay.py`.

`scripts/vectors` runs this file; with `--write` it renews exchanges.json first.
"""

import json
import os
import subprocess
import sys

import pytest

from harness import wire
from harness.approvals import switch_on
from harness.codeflow import hosted
from harness.javascript_client import JavaScriptClient
from harness.possession import furnished, possession, signs_in
from harness.swift_client import SwiftClient
from harness.trusted import with_devices
from harness.world import World
from vectors import files
from vectors.flows import FLOWS, Play
from vectors.recording import Recorder, steps
from vectors.urls import HOST, ORIGIN

WRITES = os.environ.get("POSTERN_WRITE_VECTORS") == "1"
REPLAY = files.FOLDER / "replay.py"
CLIENT = "vector-app"


def kept():
    """The flows of the repository, by name."""
    path = files.FOLDER / "exchanges.json"
    return files.by_name(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


@pytest.fixture(scope="module", name="realm")
def _realm():
    """A realm with everything that the flows need, at the host of the vectors."""
    world = World("flows")
    try:
        world.open()
        realm = world.realm("flows")
        world.admin.call("put_realm", realm.slug, display_name="Vectors", primary_domain=HOST)
        realm.host, realm.issuer = HOST, ORIGIN
        world.settle()
        with_devices(realm, public_clients=True)
        switch_on(realm, "app", "api", public_clients=True)
        signs_in(furnished(possession(hosted(realm))))
        try:
            yield realm
        finally:
            realm.phones.close()
    finally:
        world.close()


def recorded(realm, name):
    """A flow as it goes now."""
    play, settings = FLOWS[name]
    recorder = Recorder(realm.world.node.port)
    try:
        with SwiftClient(HOST, realm.client("app"), recorder.port, **settings) as client:
            live = Play(client, realm)
            play(live)
            given = {**live.given, realm.client("app"): CLIENT, realm.slug: "vectors"}
            return {"name": name, **({"client": settings} if settings else {}), "inputs": live.inputs,
                    "steps": steps(recorder.exchanges, given, live.browsed)}
    finally:
        recorder.close()


#: What this run has recorded.
MADE = {}


@pytest.mark.parametrize("name", FLOWS)
def test_the_flow_is_what_server_and_client_do_now(realm, name):
    """Red with the flow, and both texts."""
    MADE[name] = recorded(realm, name)
    if not WRITES:
        told = files.difference(kept().get(name), MADE[name])
        assert not told, "\n".join([f"exchanges.json: {name}", *told, "scripts/vectors --write renews the files."])


def test_the_file_has_these_flows_and_no_others():
    """In their order."""
    if WRITES:
        text = files.text_of("exchanges", {"origin": ORIGIN, "clientId": CLIENT, "cases": [MADE[name] for name in FLOWS]})
        (files.FOLDER / "exchanges.json").write_text(text, encoding="utf-8")
    assert list(kept()) == list(FLOWS)


class Replay:
    """`replay.py` with one flow."""

    def __init__(self, name, *options):
        self.process = subprocess.Popen(
            [sys.executable, REPLAY, name, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.origin = self.process.stdout.readline().split()[-1]
        self.port = int(self.origin.rpartition(":")[2])

    def end(self):
        """Its status and what it said."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def played(name, replay, library=SwiftClient):
    """A library plays a flow with what the person did then."""
    play, settings = FLOWS[name]
    inputs = {key: value.replace(ORIGIN, replay.origin) for key, value in kept()[name]["inputs"].items()}
    with library(HOST, CLIENT, replay.port, origin=replay.origin, **settings) as client:
        play(Play(client, inputs=inputs))


def assert_played(name, library):
    """Every request is the step's, and nothing is missing."""
    replay = Replay(name)
    problem = None
    try:
        played(name, replay, library)
    except Exception as error:  # What replay.py says of it says more.
        problem = error
    assert replay.end() == (0, ""), problem
    assert problem is None


@pytest.mark.parametrize("name", FLOWS)
def test_the_swift_library_plays_the_flow_offline(name):
    """Against `replay.py`."""
    assert_played(name, SwiftClient)


#: What the interface of the JavaScript client does not have: links are opened by the page of the server, and numbers are proved and trusted
#: devices added by `postern.js`, which wants a browser.
NOT_OF_JAVASCRIPT = {
    "link: opened in the app that asked", "link: somebody else asked for it", "trusted device: added, renamed, signs in, removed",
    "possession: a code proves a number and signs in", "possession: given up",
}


@pytest.mark.parametrize("name", [name for name in FLOWS if name not in NOT_OF_JAVASCRIPT])
def test_the_javascript_client_plays_the_flow_offline(name):
    """Against `replay.py`, in Node."""
    assert_played(name, JavaScriptClient)


@pytest.fixture(name="asks")
def _asks():
    """Plays `app info` by hand: one request with a field of the header, or none."""
    def ask(replay, target="/api/app-info", **headers):
        return wire.exchange(replay.port, "GET", target, {"Host": f"localhost:{replay.port}", **headers})
    return ask


def test_a_request_that_differs_is_told_with_the_difference(asks):
    replay = Replay("app info")
    assert asks(replay, "/api/app-infos").status == 400
    status, said = replay.end()
    assert status == 1 and "'GET /api/app-infos' instead of 'GET /api/app-info'" in said
    replay = Replay("app info")
    asks(replay, DPoP="a.b.c")
    status, said = replay.end()
    assert status == 1 and said.startswith("step 1: DPoP: ")


def test_a_request_too_many_is_told(asks):
    replay = Replay("app info", "--linger", "5")
    assert [asks(replay).status, asks(replay).status] == [200, 400]
    status, said = replay.end()
    assert status == 1 and "a request too many: GET /api/app-info" in said


def test_a_client_that_sends_nothing_is_told():
    status, said = Replay("app info", "--wait", "0.2").end()
    assert status == 1 and said == "step 1 of 1: no request for 0 s\n"


@pytest.mark.parametrize("library", [SwiftClient, JavaScriptClient])
def test_an_altered_flow_is_red(tmp_path, library):
    """One member of a request that is not so."""
    document = json.loads((files.FOLDER / "exchanges.json").read_text(encoding="utf-8"))
    (case,) = [case for case in document["cases"] if case["name"] == "code"]
    case["steps"][-1]["request"]["form"]["otp_code"] = "999999"
    path = tmp_path / "exchanges.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    replay = Replay("code", "--file", str(path))
    with pytest.raises(Exception, match="refused"):
        played("code", replay, library)
    status, said = replay.end()
    assert status == 1 and "otp_code: '246801' instead of '999999'" in said
