// Loads the client in a bare context, which has only ECMAScript, `fetch` and `setTimeout`, and signs in there.

import { createHash, createPublicKey, generateKeyPairSync, randomFillSync, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import vm from "node:vm";

import { file } from "./matching.mjs";

const ID_TOKEN = file("sign-in").id_tokens["vector-id-1"].jwt;
const requests = [];
const answers = {
  "/api/account/native/otp/request": { AuthSession: "handle-1", ExpiresIn: 600, ResendAfter: 60 },
  "/api/account/magic-link/request": { AuthSession: "handle-2", ExpiresIn: 600, ResendAfter: 60, MatchNumber: "42" },
  "/connect/token": {
    access_token: "access-1", token_type: "Bearer", expires_in: 900, refresh_token: "refresh-1", id_token: ID_TOKEN,
    scope: "openid offline_access orders" },
  "/connect/account": { Id: "vector-user-1" }, "/connect/revoke": {},
};
const fetch = async (url, { method, headers, body }) => {
  requests.push({ url, method, headers, body });
  const path = url.replace(/^https:\/\/[^/]+/, "");
  return {
    status: 200, ok: true, headers: { get: () => null },
    text: async () => JSON.stringify(answers[path]), json: async () => answers[path] };
};
// Without clearTimeout the limits of requests stay: they hold no process.
const context = vm.createContext({ fetch, setTimeout: (run, after) => setTimeout(run, after).unref() });
const modules = new Map();
const load = name => {
  if (!modules.has(name)) {
    const source = readFileSync(new URL(`../../clients/js/${name}`, import.meta.url), "utf8");
    modules.set(name, new vm.SourceTextModule(source, { context, identifier: name }));
  }
  return modules.get(name);
};
const open = async name => {
  const module = load(name);
  if (module.status === "unlinked") await module.link(specifier => load(specifier.slice(2)));
  await module.evaluate();
  return module.namespace;
};

const { Postern } = await open("client.js");
const settings = { origin: "https://auth.vectors.example", clientId: "vector-client" };
const check = (holds, text) => { if (!holds) throw new Error(text); };
const failure = call => { try { call(); } catch (error) { return error.code; } return undefined; };

check(failure(() => new Postern(settings)) === "misuse" && !requests.length, "without random: misuse, nothing is sent");
const kept = new Map();
const platform = {
  random: length => randomFillSync(new Uint8Array(length)),
  store: { get: async name => kept.get(name) ?? null, set: async (name, text) => { kept.set(name, text); } },
};
check(failure(() => new Postern({ ...settings, platform, dpop: "required" })) === "misuse", "no key: misuse");
const client = new Postern({ ...settings, platform });
check((await client.ready).signedIn === false, "nobody is signed in");
const code = await client.requestCode({ email: "ada@vectors.example" });
check((await client.signInWithCode(code, "123456")).id === "vector-user-1", "a code signs in");
check(client.state.persistent && !client.state.bound, "kept where the app says, not bound");
check((await client.account("GET", "/connect/account")).Id === "vector-user-1", "the account is read");
check((await client.accessToken({ scope: "orders" })).value === "access-1", "a refresh");
const link = await client.requestLink({ email: "ada@vectors.example" });
check(link.matchNumber === "42" && (await client.wait(link)).id === "vector-user-1", "a link signs in");
check((await new Postern({ ...settings, platform }).ready).signedIn, "the next start is signed in");
await client.signOut();
check((await client.adopt("refresh-0")).id === "vector-user-1", "a token is taken over");
check(requests.every(({ headers }) => !headers.DPoP), "no proofs");

// React Native: a key of the device's keystore, its random numbers and hashes, and passkeys by a native module.
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const { kty, crv, x, y } = publicKey.export({ format: "jwk" });
const asked = [];
Object.assign(context, { AbortController });
Object.assign(answers, {
  "/connect/passkey/begin": { ceremonyId: "ceremony-1", options: { challenge: "AAAA" } } });
answers["/connect/token"].token_type = "DPoP";
const native = {
  random: platform.random, sha256: async bytes => new Uint8Array(createHash("sha256").update(bytes).digest()),
  store: platform.store,
  key: {
    jwk: { kty, crv, x, y },
    sign: async bytes => new Uint8Array(sign("sha256", bytes, { key: privateKey, dsaEncoding: "ieee-p1363" })) },
  passkeys: { get: async options => { asked.push(options); return { id: "credential-1" }; }, create: async () => null },
};
const phone = new Postern({ ...settings, platform: native, dpop: "required" });
await phone.signOut();
requests.length = 0;
const { signInWithPasskey } = await open("passkeys.js");
check((await signInWithPasskey(phone)).id === "vector-user-1" && phone.state.bound, "a passkey signs in, bound");
check(asked[0].challenge === "AAAA", "the options are passed as they are");
await phone.account("GET", "/connect/account");
const proofs = requests.filter(({ url }) => !url.endsWith("/revoke")).map(({ headers }) => headers.DPoP);
check(proofs.every(Boolean) && new Set(proofs).size === 4, "each request has a proof of its own");
for (const proof of proofs) {
  const [header, payload, signature] = proof.split(".");
  const { jwk } = JSON.parse(Buffer.from(header, "base64url"));
  const key = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" };
  const signed = Buffer.from(`${header}.${payload}`);
  check(verify("sha256", signed, key, Buffer.from(signature, "base64url")), "its signature holds");
}
const { ath } = JSON.parse(Buffer.from(proofs[3].split(".")[1], "base64url"));
check(ath === createHash("sha256").update("access-1").digest("base64url"), "and names the token");
