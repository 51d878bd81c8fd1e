"""`postern try … --dpop`: the headless app with a key."""

import json

import pytest

from harness.node import run_postern


@pytest.mark.parametrize("flow", ["otp", "refresh", "magic", "passkey", "approval", "hosted"])
def test_every_flow_works_with_a_key(dev, flow):
    """Each token is bound, and userinfo is read with a proof; a token alone would not do."""
    run = run_postern("try", flow, "--url", dev.origin, "--client", dev.client_id, "--email", dev.email, "--dpop")
    assert run.returncode == 0, run.stdout + run.stderr
    answers = [json.loads(line[2:]) for line in run.stdout.splitlines() if line.startswith('< {"access_token"')]
    assert answers and {answer["token_type"] for answer in answers} == {"DPoP"}, run.stdout
    assert "> Authorization: DPoP " in run.stdout and "> DPoP: eyJ" in run.stdout
    assert "> Authorization: Bearer" not in run.stdout
