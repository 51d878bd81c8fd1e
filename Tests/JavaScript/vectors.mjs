// Runs docs/vectors with the client: `node vectors.mjs [PART OF A NAME]`. Exits 1 if a case is red.

import { refusal, challengesOf } from "../../clients/js/answers.js";
import { Postern, stepUpChallenge } from "../../clients/js/client.js";
import { nonceOf, proof, signer, tools } from "../../clients/js/core.js";
import { finishSignIn } from "../../clients/js/pages.js";
import { passes } from "./ceremonies.mjs";
import { ECDSA, file, match } from "./matching.mjs";
import { plays } from "./stage.mjs";

// What a runner gives for a case that it does not run.
const LEFT = {};
// What the interface of the declarations does not have: links that an app is opened with, calls that are given up.
const isOffered = ({ steps = [] }) => !steps.some(step => step.do === "open" || step.cancel);

const makes = async ({ keys }, { key, method, url, token, nonce, time: at, expect }) => {
  const secret = await crypto.subtle.importKey("jwk", keys[key].private, ECDSA, false, ["sign"]);
  const parts = (await proof(signer(secret, keys[key].public), tools(), { method, url, token, nonce, at })).split(".");
  const [header, payload] = parts.map((part, index) => index < 2 && JSON.parse(Buffer.from(part, "base64url")));
  match(expect.header, header, "header");
  match({ ...expect.payload, jti: { $: "string" } }, payload, "payload");
  const open = await crypto.subtle.importKey("jwk", keys[key].public, ECDSA, false, ["verify"]);
  const [signature, signed] = [Buffer.from(parts[2], "base64url"), Buffer.from(parts.slice(0, 2).join("."))];
  const isRight = await crypto.subtle.verify(ECDSA, open, signature, signed);
  if (!isRight) throw new Error("the signature does not hold");
};

const GRANTS = {
  "urn:cocoar:otp": "wrong_code", "urn:cocoar:magic": "expired", "urn:openid:params:grant-type:ciba": "expired",
  refresh_token: "signed_out",
};
const CLASSES = {
  unavailable: "retry", rate_limited: "retry_after", signed_out: "sign_in", step_up_needed: "step_up",
  names_needed: "names",
  second_factor_needed: "second_factor", second_factor_wrong: "second_factor", wrong_code: "again", denied: "again",
  expired: "again", authorization_pending: "retry", slow_down: "retry", resend_too_soon: "retry",
  unmet_authentication_requirements: "step_up",
};

const classifies = (_, { status, body, text, grant, class: name, endpoints, ends_session: ends }) => {
  // Pages are for browsers; `/v3` and `/api/v0` for backends and other clients.
  const isForOthers = endpoints.some(path => path.startsWith("/v3") || path.includes("/api/v0"));
  if (status === 303 || body?.page || isForOthers) return LEFT;
  const json = body && { ...body, ...(text && { [body.title ? "detail" : "error_description"]: text }) };
  const headers = new Headers(text?.startsWith("WWW-Authenticate: ") ? { "WWW-Authenticate": text.slice(18) } : {});
  const retryAfter = status === 429 ? 7 : undefined;
  const answer = { status, ok: status < 300, json: json ?? undefined, headers, retryAfter };
  const { code } = refusal(answer, GRANTS[grant]), is = CLASSES[code];
  const fits = is ? is === name || (name === "fix" && status === 503) : ["again", "fix", "retry"].includes(name);
  if (!fits) throw new Error(`${code} is not ${name}`);
  if (code === "signed_out" && !ends) throw new Error("it signs out");
};

const reads = async ({ client }, { url, is }) => {
  if (is?.link || is?.possession) return LEFT;
  const requests = [];
  const fetch = async (target, init = {}) => {
    requests.push(init.body ?? target);
    return target.includes("/.well-known/") ? Response.json({ issuer: client.issuer })
      : Response.json({ error: "invalid_grant" }, { status: 400 });
  };
  const pages = JSON.stringify([{ state: client.state, nonce: "n", verifier: "v", at: Date.now() }]);
  const postern = new Postern({
    origin: client.origin, clientId: "vector-client", redirectUri: client.redirectURI,
    platform: { fetch, store: { get: async name => name.endsWith(".pages") ? pages : null, set: async () => {} } } });
  const outcome = await finishSignIn(postern, url).catch(error => error);
  const sent = requests.filter(one => one.includes("authorization_code"));
  const code = sent.length ? new URLSearchParams(sent[0]).get("code") ?? undefined : undefined;
  if (!is?.page) return match(null, outcome, "is");
  const expected = is.page.code ? "invalid_grant" : is.page.error ? "denied"
    : outcome.code === "foreign_redirect" ? "foreign_redirect" : "invalid_response";
  match({ code: is.page.code ?? { $: "absent" }, error: expected }, { code, error: outcome.code }, "page");
};

const asks = (_, { "WWW-Authenticate": fields, "DPoP-Nonce": nonces, is }) => {
  const headers = { get: name => ({ "WWW-Authenticate": fields, "DPoP-Nonce": nonces })[name]?.join(", ") || null };
  const found = challengesOf(headers).filter(one => ["dpop", "bearer"].includes(one[""]));
  const { "": scheme, error } = found.find(one => one.error) ?? found[0] ?? {};
  match(is.nonce, nonceOf({ headers }) ?? null, "nonce");
  match(is.scheme?.toLowerCase() ?? null, scheme ?? null, "scheme");
  match(is.error, error ?? null, "error");
  const challenge = stepUpChallenge({ status: 401, headers });
  if (challenge) match([is.levels, is.age], [challenge.levels, challenge.maxAge ?? null], "challenge");
  else if (is.error === "insufficient_user_authentication") throw new Error("it is a step-up");
};

const RUNS = {
  refresh: plays, "sign-in": plays, errors: classifies, links: reads, challenges: asks,
  proofs: (file, vector) => vector.do === "make" ? makes(file, vector) : LEFT, ceremonies: passes,
};
let red = 0;
for (const [name, run] of Object.entries(RUNS)) {
  const vectors = file(name);
  let ran = 0, left = 0;
  for (const vector of vectors.cases.filter(one => one.name.includes(process.argv[2] ?? ""))) {
    try {
      if (isOffered(vector) && await run(vectors, vector) !== LEFT) ran++;
      else left++;
    } catch (error) {
      red++;
      console.log(`${name}.json: ${vector.name}: ${error.message}`);
    }
  }
  console.log(`${name}.json: ${ran} green${left ? `, ${left} of what is not the client's` : ""}`);
}
process.exit(red ? 1 : 0);
