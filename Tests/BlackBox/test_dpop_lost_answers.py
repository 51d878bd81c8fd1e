"""Bound families on a bad network: a lost answer never signs a device out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.device import pem_of
from harness.dpop import DPoPApp, assert_bound
from harness.proxy import DroppingProxy
from harness.report import say
from harness.settings import FULL

pytestmark = pytest.mark.slow
REFRESHES = 10_000 if FULL else 500


def test_two_processes_of_a_device_that_lose_a_tenth_of_their_answers_stay_signed_in(world, realm, tmp_path):
    """They share key and refresh token; each proof is new. Afterwards there is one live leaf, and it works."""
    app = DPoPApp(realm.app())
    store = tmp_path / "token"
    store.write_text(app.bound(realm.user())["refresh_token"])
    proxy = DroppingProxy(world.node.port, 0.1, seed=REFRESHES)
    settings = {
        "port": proxy.port, "host": realm.host, "client_id": app.client_id, "store": str(store), "key": pem_of(app.key), "rounds": REFRESHES // 2}
    processes = []
    try:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "harness.device", json.dumps({**settings, "seed": seed})], stdout=subprocess.PIPE, text=True,
                cwd=Path(__file__).parent)
            for seed in (1, 2)]
        happened = [json.loads(process.communicate(timeout=1800)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
        proxy.close()
    assert [one["refused"] for one in happened] == [[], []], happened
    assert sum(one["refreshed"] for one in happened) == REFRESHES and proxy.dropped > REFRESHES // 20, happened
    following = assert_bound(app.refresh(store.read_text()), app.key)
    assert app.userinfo(following["access_token"]).status == 200
    sessions = app.get("/connect/sessions", {"Authorization": f"Bearer {following['access_token']}"}).json()
    assert len(sessions) == 1 and sessions[0]["DPoP"], sessions
    say(f"lost answers: {REFRESHES} refreshes of a bound family by two processes, {proxy.dropped} answers dropped, 0 sign-outs")
