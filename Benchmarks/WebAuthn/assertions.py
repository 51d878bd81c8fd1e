"""Checks the assertion in argv[1] with PyPI `webauthn` and prints processor time per check in microseconds."""
import json
import sys
import time

from webauthn import base64url_to_bytes, verify_authentication_response

with open(sys.argv[1]) as file:
    document = json.load(file)
text = json.dumps(document["credential"])
arguments = dict(
    expected_challenge=base64url_to_bytes(document["challenge"]),
    expected_rp_id=document["rpId"],
    expected_origin=document["origin"],
    credential_public_key=base64url_to_bytes(document["publicKey"]),
    credential_current_sign_count=0,
    require_user_verification=True,
)
rounds = []
for _ in range(15):
    start = time.process_time_ns()
    for _ in range(200):
        verify_authentication_response(credential=text, **arguments)
    rounds.append((time.process_time_ns() - start) / 200 / 1000)
print(f"{sorted(rounds)[len(rounds) // 2]:.1f}")
