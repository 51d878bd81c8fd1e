"""A process of an app on a device: it shares a refresh token and a key with other processes, and refreshes again and again.

    python3 -m harness.device '{"port":…,"host":…,"client_id":…,"store":…,"key":…,"rounds":…,"seed":…}'

The store is a file: the newest refresh token. One process at a time refreshes, under the file's lock; the new token is written before the lock
is given back. Where no answer came it sometimes asks again, with a new proof, and sometimes leaves that to the other process. Prints one line of JSON.
"""

import fcntl
import json
import os
import random
import sys
from types import SimpleNamespace

from cryptography.hazmat.primitives import serialization

from . import wire
from .app import NativeApp
from .dpop import DPoPApp, ProofKey


def pem_of(key):
    """A key as text."""
    return key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def key_of(pem):
    """The key of a text: ES256."""
    key = ProofKey.__new__(ProofKey)
    key.alg, key.kid, key.private = "ES256", None, serialization.load_pem_private_key(pem.encode(), None)
    return key


def run(settings):
    """Refreshes until the rounds are done or it is signed out; returns what happened."""
    dice = random.Random(settings["seed"])
    node = SimpleNamespace(port=settings["port"])
    app = DPoPApp(NativeApp(node, None, settings["host"], settings["client_id"]), key_of(settings["key"]), recorded=False)
    happened = {"refreshed": 0, "lost": 0, "unavailable": 0, "refused": []}
    while happened["refreshed"] < settings["rounds"] and not happened["refused"]:
        with open(settings["store"], "r+", encoding="ascii") as store:
            fcntl.flock(store, fcntl.LOCK_EX)
            while True:
                store.seek(0)
                try:
                    answer = app.refresh(store.read().strip(), timeout=20)
                except (wire.WireError, OSError):
                    happened["lost"] += 1
                    if dice.random() < 0.5:
                        break
                    continue
                if answer.status == 200 and answer.json()["token_type"] == "DPoP":
                    happened["refreshed"] += 1
                    store.seek(0)
                    store.truncate()
                    store.write(answer.json()["refresh_token"])
                    store.flush()
                    os.fsync(store.fileno())
                elif answer.status == 503:
                    happened["unavailable"] += 1
                else:
                    happened["refused"].append(f"{answer.status} {answer.body.decode(errors='replace')[:200]}")
                break
    return happened


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))), flush=True)
