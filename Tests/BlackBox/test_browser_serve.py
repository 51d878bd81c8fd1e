"""Passkeys in a real browser against `postern serve`: no dev page, only the endpoints an app has."""

import json

import pytest

from harness.app import NativeApp
from harness.browser import Page, chromium
from harness.realm import call
from harness.settings import REPOSITORY

PICTURES = REPOSITORY / ".test-output" / "browser"

pytestmark = pytest.mark.slow

ENROL = """
(async (bearer) => {
  const post = (path, body) => fetch(path, {method: 'POST', headers: {Authorization: 'Bearer ' + bearer,
    'Content-Type': 'application/json'}, body: JSON.stringify(body)}).then(async (r) => [r.status, await r.json()]);
  const [begun, {ceremonyId, options}] = await post('/connect/passkey/enroll/begin', {});
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const credential = await navigator.credentials.create({publicKey});
  const [done, answer] = await post('/connect/passkey/enroll', {ceremonyId, attestation: credential.toJSON(), DisplayName: 'Chromium'});
  return {begun, done, answer};
})(%s)
"""

SIGN_IN = """
(async (clientId) => {
  const form = (path, fields) => fetch(path, {method: 'POST', body: new URLSearchParams(fields)})
    .then(async (r) => [r.status, await r.json()]);
  const [begun, {ceremonyId, options}] = await form('/connect/passkey/begin', {client_id: clientId});
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const assertion = await navigator.credentials.get({publicKey});
  const [done, tokens] = await form('/connect/token', {grant_type: 'urn:cocoar:passkey', client_id: clientId, ceremony_id: ceremonyId,
    assertion: JSON.stringify(assertion.toJSON()), scope: 'openid offline_access'});
  return {begun, done, tokens};
})(%s)
"""


@pytest.fixture(scope="module")
def page(browser_world):
    """A tab on the server's own origin: a realm of localhost, where a browser allows WebAuthn without TLS."""
    origin = f"http://localhost:{browser_world.node.port}"
    browser_world.admin.run(
        call("put_realm", "browser", primary_domain="localhost", public_origin=origin),
        call("set_native_grants", "browser", enabled=True),
        call("put_client", "browser", "browser-app"),
        call("grant_permission", "browser", "browser-app", variadic=[
            "gt:urn:cocoar:otp", "gt:urn:cocoar:passkey", "gt:refresh_token",
            "scp:profile", "scp:email"]),
        call("put_web_origin", "browser", "browser-app", origin),
        call("put_user", "browser", "grace@mail.example"),
    )
    browser_world.settle()
    with chromium(PICTURES / "chromium-serve.log") as browser:
        page = Page(browser)
        page.open(origin + "/.well-known/openid-configuration")
        yield page


def test_a_browser_enrols_and_signs_in_against_serve(browser_world, page):
    """navigator.credentials.create and .get, whose JSON goes to the server as it is."""
    app = NativeApp(browser_world.node, browser_world.mailbox, "localhost", "browser-app")
    bearer = app.sign_in("grace@mail.example")["access_token"]
    enrolled = page.evaluate(ENROL % json.dumps(bearer))
    assert (enrolled["begun"], enrolled["done"]) == (200, 200), enrolled
    assert enrolled["answer"]["Message"] == "Passkey enrolled successfully."

    signed_in = page.evaluate(SIGN_IN % json.dumps("browser-app"))
    assert (signed_in["begun"], signed_in["done"]) == (200, 200), signed_in
    assert app.userinfo(signed_in["tokens"]["access_token"]).status == 200
    assert signed_in["tokens"]["refresh_token"]
    page.screenshot(PICTURES / "serve.png")
