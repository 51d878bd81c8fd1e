// Loads the client in a bare context, which has only ECMAScript, `fetch` and `setTimeout`, and signs in there.

import { randomFillSync } from "node:crypto";
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
  "/connect/account": { Id: "vector-user-1" },
};
const fetch = async (url, { method, headers, body }) => {
  requests.push({ url, method, headers, body });
  const path = url.replace(/^https:\/\/[^/]+/, "");
  return {
    status: 200, ok: true, headers: { get: () => null },
    text: async () => JSON.stringify(answers[path]), json: async () => answers[path] };
};
const context = vm.createContext({ fetch, setTimeout });
const modules = new Map();
const load = name => {
  if (!modules.has(name)) {
    const source = readFileSync(new URL(`../../clients/js/${name}`, import.meta.url), "utf8");
    modules.set(name, new vm.SourceTextModule(source, { context, identifier: name }));
  }
  return modules.get(name);
};
const module = load("client.js");
await module.link(specifier => load(specifier.slice(2)));
await module.evaluate();

const { Postern } = module.namespace;
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
