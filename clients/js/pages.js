// Postern's client on the pages of the server: authorization code flow with PKCE (RFC 6749 §4.1, RFC 7636).
//
//     import { finishSignIn, signInOnPages } from "https://auth.example.com/sdk/v1/pages.js";

import { inside, misuse, sure } from "./answers.js";
import { NONE, PosternError, digest, encodeForm } from "./core.js";

const ANSWER = ["code", "state", "iss", "error", "error_description"];
const LIFE = 60 * 60_000, MOST = 5;

const leave = url => {
  location.assign(url);
  return new Promise(() => {});
};
/** An address of this site. */
const own = url => {
  if (url === undefined) return undefined;
  const { href } = new URL(url, location.href);
  // The origin of `blob:` is that of the page that made it.
  if (!href.startsWith(`${location.origin}/`)) throw misuse("returnTo must be of this origin");
  return href;
};

/**
 * Leaves for the page of the server. `returnTo`: where `finishSignIn` says to go on, of this origin.
 * - Rejects: `misuse` without `redirectUri`; `unavailable` where nothing can be kept while the page is away.
 */
export const signInOnPages = sure(async (postern, options = NONE) => {
  const client = inside.get(postern), { loginHint, prompt, maxAge, levels = [], locales = [] } = options;
  if (!client.redirectUri) throw misuse("give redirectUri, as it is registered for the client");
  const returnTo = own(options.returnTo);
  const [state, nonce, verifier] = [client.secret(), client.secret(), client.secret()];
  await client.editPages(pages => [...pages, { state, nonce, verifier, returnTo, at: Date.now() }].slice(-MOST));
  const key = await client.key("session", await client.look());
  const optional = [
    ["dpop_jkt", key && client.persistent ? await client.thumbprint(key) : undefined], ["login_hint", loginHint],
    ["prompt", prompt], ["max_age", maxAge], ["acr_values", levels.join(" ")], ["ui_locales", locales.join(" ")],
  ];
  const query = encodeForm([
    ["response_type", "code"], ["client_id", client.clientId], ["redirect_uri", client.redirectUri],
    ["scope", client.scope], ["state", state], ["nonce", nonce],
    ["code_challenge", await digest(verifier, client.server.tools)], ["code_challenge_method", "S256"],
    ...optional.filter(([, value]) => value || value === 0),
  ]);
  return leave(`${client.origin}/connect/authorize?${query}`);
});

/**
 * Signs in with the answer in the address, and takes it out of there before anything is sent.
 * - Resolves: who signed in and where to go on; `null` for an address without an answer.
 * - Rejects: `denied`; `foreign_redirect` for an answer that this browser did not ask for; `invalid_response`.
 */
export const finishSignIn = sure(async (postern, url) => {
  const client = inside.get(postern);
  if (url !== undefined && !/^https?:/i.test(url)) return null;
  const address = new URL(url ?? location.href), { searchParams } = address;
  const given = Object.fromEntries(ANSWER.map(name => [name, searchParams.getAll(name)]));
  if (!["code", "error", "state"].some(name => given[name].length)) return null;
  const home = client.redirectUri && new URL(client.redirectUri);
  if (home && (address.origin !== home.origin || address.pathname !== home.pathname)) return null;
  const isHere = globalThis.location?.href === address.href;
  for (const name of ANSWER) searchParams.delete(name);
  if (isHere) history.replaceState(history.state, "", address.href);

  const [state] = given.state;
  /** @type {any} */
  let asked;
  await client.editPages(pages => {
    asked = pages.find(one => one.state === state && one.at > Date.now() - LIFE);
    return pages.filter(one => one !== asked && one.at > Date.now() - LIFE);
  });
  const wrong = () => new PosternError("invalid_response", "The answer does not belong to this sign-in.");
  if ([given.state, given.iss, [...given.code, ...given.error]].some(({ length }) => length !== 1)) throw wrong();
  if (!asked) throw new PosternError("foreign_redirect", "This browser did not ask for the answer.");
  if (given.iss[0] !== await client.issuer()) throw wrong();
  const [error] = given.error;
  if (error) throw new PosternError(error === "access_denied" ? "denied" : error, given.error_description[0]);
  // Once only: a code that comes again ends the session that it opened.
  const tokens = await client.token([
    ["grant_type", "authorization_code"], ["code", given.code[0]], ["redirect_uri", client.redirectUri],
    ["code_verifier", asked.verifier],
  ]);
  return { user: await client.establish(tokens, { nonce: asked.nonce }), returnTo: asked.returnTo };
});

/** Signs out here and on the pages. `returnTo` must be registered for the client. */
export const signOutOnPages = sure(async (postern, { returnTo } = NONE) => {
  const client = inside.get(postern), { hint } = await client.look();
  await client.signOut();
  const home = returnTo && new URL(returnTo, location.href).href;
  const optional = [["id_token_hint", hint], ["post_logout_redirect_uri", home]].filter(([, value]) => value);
  return leave(`${client.origin}/connect/logout?${encodeForm([["client_id", client.clientId], ...optional])}`);
});
