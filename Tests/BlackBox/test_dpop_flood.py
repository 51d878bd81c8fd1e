"""Hundreds of refused proofs a second beside apps that work: the apps are served, and the server stays as small as it was."""

import asyncio
import json
import random
import time

import pytest

from harness import wire
from harness.dpop import INVALID, NONCE_DUE, DPoPApp, ProofKey
from harness.fleet import Client, Fleet
from harness.report import say
from harness.settings import FULL

pytestmark = pytest.mark.slow
RATE, SECONDS, APPS = 500, 60 if FULL else 8, 8


def bad_requests(app, tokens, spent, count):
    """Forged, stale, malformed and replayed ones, at a refresh and at userinfo."""
    dice = random.Random(count)
    forger = ProofKey()
    form = wire.form_body({"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]})
    used = app.proof()
    replay = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": spent["refresh_token"]}
    assert app.token(replay, {"DPoP": used}).status == 200
    makers = [
        lambda method, path, token: app.key.sign(app.key.header(), app.key.payload(method, app.url(path), token=token), spoil=lambda raw: raw[::-1]),
        lambda method, path, token: app.key.proof(method, app.url(path), token=token, payload={"iat": 1}),
        lambda method, path, token: app.key.proof(method, app.url(path), token=token, payload={"nonce": "n" * 64}),
        lambda method, path, token: "junk." * dice.randrange(600), lambda method, path, token: used,
        lambda method, path, token: forger.proof(method, app.url(path) + "x", token=token),
    ]
    requests = []
    for _ in range(count):
        make = dice.choice(makers)
        if dice.random() < 0.5:
            fields = {"Host": app.host, "Content-Type": wire.FORM, "DPoP": make("POST", "/connect/token", None)}
            requests.append(wire.request_bytes("POST", "/connect/token", fields, form))
        else:
            token = tokens["access_token"]
            fields = {"Host": app.host, "Authorization": f"DPoP {token}", "DPoP": make("GET", "/connect/userinfo", token)}
            requests.append(wire.request_bytes("GET", "/connect/userinfo", fields))
    return requests


def good(app, token, times):
    """An app that refreshes with its key, twenty times a second."""
    async def work(fleet):
        client, current = Client(app.node.port), token
        while not fleet.stopped:
            form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": current}
            fields = {"Host": app.host, "Content-Type": wire.FORM, "DPoP": app.proof()}
            began = time.monotonic()
            answer = await fleet.ask("good", client, wire.request_bytes("POST", "/connect/token", fields, wire.form_body(form)))
            times.append(time.monotonic() - began)
            if answer is not None and answer[0] == 200:
                current = json.loads(answer[2])["refresh_token"]
            await asyncio.sleep(0.05)
        client.close()
    return work


def flood(app, requests):
    """A share of the bad ones, evenly over the time."""
    async def work(fleet):
        client, started = Client(app.node.port), time.monotonic()
        for number, request in enumerate(requests):
            answer = await fleet.ask("bad", client, request, expected=(400, 401))
            document = json.loads(answer[2]) if answer else INVALID
            if document not in (INVALID, NONCE_DUE):
                fleet.violate(f"bad: {document}")
            ahead = number * SECONDS / len(requests) - (time.monotonic() - started)
            if ahead > 0:
                await asyncio.sleep(ahead)
        client.close()
    return work


def percentile(times):
    """The 99th, in milliseconds."""
    return sorted(times)[int(len(times) * 0.99)] * 1000


def test_apps_are_served_beside_a_flood_of_refused_proofs(world, realm):
    """No good request fails or waits long; memory stays."""
    apps = [DPoPApp(realm.app(), recorded=False) for _ in range(APPS)]
    tokens = [app.bound(realm.user())["refresh_token"] for app in apps]
    victim = DPoPApp(realm.app(), recorded=False)
    requests = bad_requests(victim, victim.bound(realm.user()), victim.bound(realm.user()), RATE * SECONDS)
    alone, beside = [], []
    fleet = Fleet().start(*(good(app, token, alone) for app, token in zip(apps, tokens)))
    time.sleep(3)
    fleet.stop()
    assert not fleet.violations, fleet.violations[:5]
    tokens = [app.bound(realm.user())["refresh_token"] for app in apps]
    resident = world.node.resident()
    fleet = Fleet().start(
        *(good(app, token, beside) for app, token in zip(apps, tokens)), *(flood(victim, requests[n::16]) for n in range(16)))
    time.sleep(SECONDS)
    fleet.stop(timeout=180)
    assert not fleet.violations, fleet.violations[:5]
    assert fleet.total(503) == 0 and fleet.total(400) + fleet.total(401) == len(requests), fleet.counts
    assert world.node.resident() - resident < 64 << 20
    say(f"flood: {len(requests)} refused proofs in {SECONDS} s; p99 of good refreshes {percentile(beside):.1f} ms, alone {percentile(alone):.1f} ms")
    assert percentile(beside) < max(4 * percentile(alone), 250)
