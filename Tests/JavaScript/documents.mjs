// What a client keeps: documents of other formats, damaged ones, and no more than it needs.

import { elapse } from "./clock.mjs";
import { KEY } from "./matching.mjs";
import { ORIGIN, TOKENS, check, equal, outcome, run, site } from "./site.mjs";

const NAME = `postern:${ORIGIN}:vector-client`, DAMAGED = `${NAME}.damaged`;
const ANSWERS = {
  "/connect/token": TOKENS, "/connect/revoke": () => null, "/connect/passkey/begin": {},
  "/api/account/native/otp/request": { AuthSession: "h".repeat(200), ExpiresIn: 600, ResendAfter: 60 } };

await run({
  "a document of a newer format": async () => {
    const { make, texts, requests } = site(ANSWERS), text = JSON.stringify({ v: 99, session: { of: "another form" } });
    texts.set(NAME, text);
    const client = make();
    for (const call of [
      () => client.ready, () => client.accessToken(), () => client.signOut(), () => client.pending(),
    ]) {
      equal((await outcome(call())).code, "unavailable", String(call));
    }
    equal([texts.get(NAME), texts.has(DAMAGED), requests.length], [text, false, 0], "unchanged");
  },
  "a damaged document is set aside once": async () => {
    for (const text of ['{"v":1,"tok', "\u0000\u0001", '{"v":1,"tokens":7}', '{"v":1,"session":{}}', "[]]"]) {
      const { make, texts } = site(ANSWERS), kinds = [];
      texts.set(NAME, text);
      const client = make({ onLog: ({ kind }) => { kinds.push(kind); } });
      equal(await client.ready, { signedIn: false, reason: "keyLost" }, text);
      equal([texts.get(DAMAGED), kinds.filter(kind => kind === "store_damaged").length], [text, 1], text);
      texts.set(NAME, "{");
      await make().ready;
      equal(texts.get(DAMAGED), text, "the first is kept");
      await client.adopt("refresh-0");
      await client.signOut("forgettingThisDevice");
      check(!texts.get(DAMAGED), "it is gone with the device");
    }
  },
  "members that it does not know stay": async () => {
    const { make, texts } = site(ANSWERS);
    texts.set(NAME, JSON.stringify({ v: 1, future: { a: [1] } }));
    const client = make();
    await client.adopt("refresh-0");
    elapse(900);
    await client.accessToken();
    equal(JSON.parse(texts.get(NAME)).future, { a: [1] }, "future");
  },
  "no more than it needs": async () => {
    const { client, texts } = site(ANSWERS);
    for (let number = 0; number < 30; number++) await client.requestCode({ email: `${number}@vectors.example` });
    for (let number = 0; number < 9; number++) {
      await client.adopt("refresh-0");
      await client.signOut();
    }
    await client.adopt("refresh-0");
    for (let number = 0; number < 12; number++) await client.accessToken({ scope: `api-${number}` });
    const { pending, tokens, revoke } = JSON.parse(texts.get(NAME));
    equal([pending.length, tokens.length, revoke.length], [8, 8, 5], "kept");
    equal([pending[7].address.email, tokens[7].audience], ["29@vectors.example", "api api-11|"], "the newest");
    check(texts.get(NAME).length <= 64 * 1024, "64 KiB");
  },
  "clients of another server or name have documents of their own": async () => {
    const { client, make, texts } = site(ANSWERS);
    await client.adopt("refresh-0");
    const others = [make({ clientId: "another-client" }), make({ origin: "https://auth.other.example" })];
    for (const other of others) equal(await other.ready, { signedIn: false, reason: "never" }, "another");
    check((await make().ready).signedIn, "the same");
    equal([...texts.keys()], [NAME], "documents");
  },
  "a document with entries that are none is begun anew": async () => {
    for (const damage of [{ pending: [null] }, { tokens: [null] }, { revoke: [0] }]) {
      const { client, texts } = site(ANSWERS);
      texts.set(NAME, JSON.stringify({ v: 1, ...damage }));
      equal(await client.pending(), [], "pending");
      await client.adopt("refresh-0");
      equal((await client.accessToken()).value, "access-1", JSON.stringify(damage));
    }
  },
  "another key than that of the session": async () => {
    const { make, texts, requests } = site(ANSWERS, { dpop: "auto" });
    const session = { id: "s", idToken: TOKENS.id_token, refresh: "refresh-1", scope: "openid", jkt: "of-another-key" };
    for (const key of [KEY.private, undefined]) {
      texts.set(NAME, JSON.stringify({ v: 1, tokens: [], pending: [], revoke: [], session, key }));
      const client = make();
      check((await client.ready).signedIn, "signed in");
      const { code, details } = await outcome(client.accessToken());
      equal([code, details.reason, requests.length], ["signed_out", "keyLost", 0], "nothing is sent");
      equal(client.state, { signedIn: false, reason: "keyLost" }, "state");
      check(!JSON.parse(texts.get(NAME)).key, "no new key under that session");
    }
  },
});
