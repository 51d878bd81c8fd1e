// Ways to sign in and out that have no vectors: registration, providers, trusted devices, the end of an account.

import { settle } from "./clock.mjs";
import { TOKENS, check, claims, equal, outcome, run, site } from "./site.mjs";

const refusal = (json, headers = {}, status = 400) => Response.json(json, { status, headers });
const HANDLE = { AuthSession: "handle-1", ExpiresIn: 600, ResendAfter: 60 };

await run({
  "a registration": async () => {
    const { client, sent } = site({ "/api/account/native/register": HANDLE, "/connect/token": TOKENS });
    const request = await client.register({ phone: "+4312345", channel: "voice" }, { firstName: "Ada" });
    equal([request.kind, request.address], ["code", { phone: "+4312345", channel: "voice" }], "request");
    equal((await client.signInWithCode(request, "123456")).id, claims.sub, "user");
    equal(sent("/connect/token")[0].form.grant_type, "urn:cocoar:otp", "grant");
  },
  "a provider": async () => {
    let answer = TOKENS;
    const { client, sent } = site({
      "/connect/federated/begin": { auth_session: "handle-2", nonce: "nonce-1", expires_in: 600 },
      "/connect/token": () => answer });
    const { id, nonce, ...request } = await client.beginProvider("apple");
    check(id !== "handle-2" && nonce === "nonce-1" && request.provider === "apple", "no handle is shown");
    equal(await client.pending(), [], "it is no request for a code");
    answer = refusal({ error: "address_proof_required" });
    const proof = { identityToken: "jwt-1", lastName: "L" };
    equal((await outcome(client.signInWithProvider({ id }, proof))).code, "address_proof_needed", "code");
    answer = TOKENS;
    equal((await client.signInWithProvider({ id }, proof, { totpCode: "654321" })).id, claims.sub, "user");
    const { form } = sent("/connect/token")[1];
    equal(form, {
      scope: "openid offline_access", grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: "jwt-1", subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      auth_session: "handle-2", last_name: "L", totp_code: "654321", client_id: "vector-client" }, "form");
    equal((await outcome(client.signInWithProvider({ id }, proof))).code, "misuse", "once");
  },
  "a trusted device uses a nonce once": async () => {
    const nonces = [], { client } = site({
      "/connect/token": ({ proof }) => {
        const { nonce } = JSON.parse(Buffer.from(proof.split(".")[1], "base64url"));
        nonces.push(nonce ?? null);
        const headers = { "DPoP-Nonce": `nonce-${nonces.length}` };
        return nonce ? Response.json({ ...TOKENS, token_type: "DPoP" }) : refusal({ error: "use_dpop_nonce" }, headers);
      } }, { dpop: "auto" });
    for (const _ of [1, 2]) equal((await client.signInAsTrustedDevice()).id, claims.sub, "user");
    equal(nonces, [null, "nonce-1", null, "nonce-3"], "nonces");
  },
  "the end of the account, and of all sessions": async () => {
    for (const [path, hasHint] of [["/connect/account", false], ["/connect/sessions?current=true", true]]) {
      const { client, texts } = site({ "/connect/token": TOKENS, [path]: () => new Response(null, { status: 204 }) });
      await client.adopt("refresh-0");
      equal(await client.account("DELETE", path), undefined, path);
      equal(client.state, { signedIn: false, reason: "byUser" }, path);
      const [text] = texts.values();
      equal([JSON.parse(text).hint !== undefined, JSON.parse(text).revoke], [hasHint, []], path);
    }
  },
  "another path of the account ends nothing": async () => {
    const path = "/connect/sessions/1", { client } = site({ "/connect/token": TOKENS, [path]: {} });
    await client.adopt("refresh-0");
    await client.account("DELETE", path);
    check(client.state.signedIn, "signed in");
  },
  "listeners": async () => {
    const { client } = site({ "/connect/token": TOKENS, "/connect/revoke": {} }), seen = [];
    const leave = client.subscribe(({ signedIn }) => { seen.push(signedIn); });
    client.subscribe(({ signedIn }) => { seen.push(`other ${signedIn}`); });
    await client.ready;
    await client.adopt("refresh-0");
    await settle();
    leave();
    await client.signOut();
    await settle();
    equal(seen, [false, "other false", true, "other true", "other false"], "seen");
  },
});
