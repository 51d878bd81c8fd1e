// A browser's surroundings for the modules of pages and passkeys, in virtual time, and a server of canned answers.

import { Postern } from "../../clients/js/client.js";
import { file } from "./matching.mjs";

export const ORIGIN = "https://auth.vectors.example", HOME = "https://app.vectors.example";
export const { jwt: ID_TOKEN, claims } = file("sign-in").id_tokens["vector-id-1"];
export const TOKENS = {
  access_token: "access-1", token_type: "Bearer", expires_in: 900, refresh_token: "refresh-1", id_token: ID_TOKEN,
  scope: "openid offline_access" };

/** The same ID token with other claims. In them `DEEP` stands for 6,000 lists in each other. */
export const DEEP = "6,000 lists";
export const withClaims = changes => {
  const [header, , signature] = ID_TOKEN.split("."), lists = "[".repeat(6000) + "]".repeat(6000);
  const payload = JSON.stringify({ ...claims, ...changes }).replaceAll(JSON.stringify(DEEP), lists);
  return [header, Buffer.from(payload).toString("base64url"), signature].join(".");
};

export const check = (holds, text) => { if (!holds) throw new Error(text); };
export const equal = (actual, expected, text) =>
  check(JSON.stringify(actual) === JSON.stringify(expected), `${text}: ${JSON.stringify(actual)}`);

/** What a call gave: its value, or the code of its error, which is a PosternError. */
export const outcome = call => call.then(value => ({ value }), error => {
  check(error.name === "PosternError", `no PosternError: ${error.stack}`);
  return { code: error.code, message: error.message, details: error.details };
});

/** A client whose requests are kept, and answered by path: JSON, a function that makes it, or `null` for nothing. */
export const site = (answers, options = {}) => {
  const requests = [], texts = new Map();
  const fetch = async (url, { body, headers = {}, signal } = {}) => {
    const path = url.slice(ORIGIN.length);
    requests.push({ path, form: Object.fromEntries(new URLSearchParams(body)) });
    const given = answers[path] ?? (path.startsWith("/.well-known/") ? { issuer: ORIGIN } : undefined);
    const answer = typeof given === "function" ? await given({ proof: headers.DPoP, signal }) : given;
    if (!answer) throw new TypeError("lost");
    return answer instanceof Response ? answer : Response.json(answer);
  };
  const store = { get: async name => texts.get(name) ?? null, set: async (name, text) => { texts.set(name, text); } };
  const make = more => new Postern({
    origin: ORIGIN, clientId: "vector-client", redirectUri: `${HOME}/signed-in`, dpop: "off",
    platform: { fetch, store }, ...options, ...more });
  let client;
  return {
    get client() { return client ??= make(); }, make, requests, texts,
    sent: path => requests.filter(one => one.path === path) };
};

/** Runs named cases: those with a part of a name that is given. Exits 1 if one is red. */
export const run = async cases => {
  for (const [name, body] of Object.entries(cases).filter(([name]) => name.includes(process.argv[2] ?? ""))) {
    try {
      await body();
    } catch (error) {
      console.log(`${name}: ${error.stack}`);
      process.exitCode = 1;
    }
  }
  console.log(`${Object.keys(cases).length} cases`);
};
