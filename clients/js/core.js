// Postern's modules, what each of them needs: errors, bytes, the store and the key of this browser, proofs, one call.
// It touches no document, and speaks only to the origin that it is given.

import { keep } from "./store.js";

export * from "./store.js";

/** @type {any} Nothing given. */
export const NONE = {};

/**
 * A call that failed. `code`: the server's `error`, the title of its problem, or one that a method names; `postern.js`
 * has `network`, `server_error` (an answer of another form) and `origin_not_registered`. `status`: 0 without an answer.
 * `details`: the members of the answer. `retryAfter`: seconds.
 */
export class PosternError extends Error {
  constructor(code, message, status = 0, details = NONE) {
    super(message || code);
    Object.assign(this, { name: "PosternError", code, status, details, retryAfter: details.retryAfter });
  }
}

// -- Texts and bytes, also without btoa, TextEncoder or URLSearchParams

export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

export const base64url = bytes => {
  const all = new Uint8Array(bytes);
  let text = "";
  for (let at = 0; at < all.length; at += 3) {
    const bits = all[at] << 16 | all[at + 1] << 8 | all[at + 2];
    const letters = Math.min(4, all.length - at + 1);
    for (let place = 0; place < letters; place++) text += LETTERS[bits >> 18 - 6 * place & 63];
  }
  return text;
};

// A half of a surrogate pair has no encoding.
export const escape = text => encodeURIComponent(String(text).replace(/[\ud800-\udfff]/gu, "\ufffd"));
export const encodeForm = members => members.map(([name, value]) => `${escape(name)}=${escape(value)}`).join("&");
export const utf8 = text => Uint8Array.from(
  escape(text).match(/%..|./g) ?? [], part => part[1] ? parseInt(part.slice(1), 16) : part.charCodeAt(0));

// -- Time

export const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
// The clock of the day is set by people, the other one may stop while the device sleeps.
export const moment = () => ({ day: Date.now(), up: (globalThis.performance ?? Date).now() });
/** Milliseconds since a moment. */
export const since = ({ day, up }) => {
  const { day: today, up: now } = moment();
  return Math.max(today - day, now - up);
};

// -- Keys and proofs

/** What the modules take from their surroundings, unless a platform has its own. */
export const tools = ({ fetch, random, sha256 } = NONE) => ({
  fetch: fetch ?? ((url, init) => globalThis.fetch(url, init)),
  random: random ?? (length => crypto.getRandomValues(new Uint8Array(length))),
  sha256: sha256 ?? (async bytes => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))),
});
export const digest = async (text, { sha256 } = tools()) => base64url(await sha256(utf8(text)));

export const ECDSA = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** A key that signs ES256, of a private key and the JWK of its public half. */
export const signer = (secret, { kty, crv, x, y }) =>
  ({ jwk: { kty, crv, x, y }, sign: async bytes => new Uint8Array(await crypto.subtle.sign(ECDSA, secret, bytes)) });

/** The key of this browser for a server. It cannot be exported. */
export const browserKey = async origin => {
  const pair = await keep("keys", origin)
    ?? await keep("keys", origin, await crypto.subtle.generateKey(ECDSA, false, ["sign"]));
  return signer(pair.privateKey, /** @type {any} */ (await crypto.subtle.exportKey("jwk", pair.publicKey)));
};

/** A compact JWS by a key. */
const sign = async (key, typ, payload) => {
  const part = members => base64url(utf8(JSON.stringify(members)));
  const input = `${part({ typ, alg: "ES256", jwk: key.jwk })}.${part(payload)}`;
  return `${input}.${base64url(await key.sign(utf8(input)))}`;
};

/** A proof of possession (RFC 9449 §4.2) at a time in seconds. */
export const proof = async (key, tools, { method, url, token, nonce, at }) => sign(key, "dpop+jwt", {
  jti: base64url(tools.random(16)), htm: method, htu: url.replace(/[?#].*$/s, ""), iat: Math.floor(at),
  ...(nonce && { nonce }), ...(token && { ath: await digest(token, tools) }),
});

/** The `DPoP-Nonce` of an answer, if it is exactly one (RFC 9449 §8.1). */
export const nonceOf = ({ headers }) =>
  /^[!#-+\--[\]-~]{1,256}$/.exec(headers.get("DPoP-Nonce")?.trim() ?? "")?.[0];

// -- The server

/**
 * What `body(signal)` resolves with. What is not there after some seconds is aborted, where that is possible.
 * - Rejects: with nothing when the time is over.
 */
const within = async (seconds, signal, body) => {
  const stop = globalThis.AbortController && new AbortController();
  const abort = () => stop?.abort(signal.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener?.("abort", abort);
  let timer;
  try {
    return await Promise.race([
      body(stop?.signal), new Promise((_, reject) => { timer = setTimeout(reject, 1000 * seconds); })]);
  } catch (error) {
    // Not after an answer: who looks on may read a copy of it.
    stop?.abort();
    throw error;
  } finally {
    globalThis.clearTimeout?.(timer);
    signal?.removeEventListener?.("abort", abort);
  }
};

const MIB = 1 << 20;

/** The text of an answer; `undefined` if it is over a mebibyte: where it comes in parts, the rest is not read. */
const textOf = async response => {
  const reader = globalThis.TextDecoder && response.body?.getReader?.();
  if (!reader) {
    const text = await response.text();
    return text.length > MIB ? undefined : text;
  }
  const decoder = new TextDecoder();
  let text = "", length = 0;
  for (let part; !(part = await reader.read()).done;) {
    length += part.value.length;
    if (length > MIB) {
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
};

/** A server, and the key of this browser for it. */
export class Server {
  #nonces = new Map();
  #hasAnswered = false;
  #isSilent = false;

  constructor(origin, platform) {
    this.origin = origin;
    this.tools = tools(platform);
  }

  /** A nonce of an origin is used for a minute. */
  learn(nonce, origin = this.origin) { if (nonce) this.#nonces.set(origin, { nonce, came: moment() }); }

  nonce(origin = this.origin) {
    const { nonce, came } = this.#nonces.get(origin) ?? NONE;
    return came && since(came) < 60_000 ? nonce : undefined;
  }

  /** A compact JWS by the key of this browser. */
  async signed(typ, payload) { return sign(await browserKey(this.origin), typ, payload); }

  /**
   * One attempt. `key`: for the header `DPoP`. `body` gets a function that makes a proof for a member of it, by
   * `proofKey`. `at`: the time of a proof. `spends`: its nonce is used once only. `wait`: seconds, as in a query, that
   * the server may hold its answer, which then has 15 s more.
   * - Resolves: `undefined` without an answer.
   */
  async attempt(method, path, options) {
    const { token, scheme = "DPoP", key, proofKey = key, body, form, signal, at, spends } = options;
    const { nonce = this.nonce(), wait = /[?&]wait=(\d\d?)(?!\d)/.exec(path)?.[1] ?? 0 } = options;
    const url = this.origin + path;
    const prove = () => proof(proofKey, this.tools, { method, url, token, nonce, at: at ?? Date.now() / 1000 });
    const headers = {};
    if (token) headers.Authorization = `${scheme} ${token}`;
    if (key) headers.DPoP = await prove();
    if (form) headers["Content-Type"] = "application/x-www-form-urlencoded";
    if (body) headers["Content-Type"] = "application/json";
    const content = form ? encodeForm(form) : body && JSON.stringify(await body(prove));
    if (spends) this.#nonces.delete(this.origin);
    let came;
    try {
      came = await within(15 + Number(wait), signal, async signal => {
        const response = await this.tools.fetch(url, {
          method, headers, body: content, ...(signal && { signal }),
          credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
        });
        return { response, text: await textOf(response) };
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      this.#isSilent = !error;
      return undefined;
    }
    this.#hasAnswered = true;
    const { response, text } = came;
    const given = nonceOf(response), field = response.headers.get("Retry-After")?.trim();
    this.learn(given);
    if (text === undefined) return undefined;
    let json;
    try {
      json = JSON.parse(text);
    } catch { /* Empty, or of another form: its status counts. */ }
    return {
      status: response.status, ok: response.ok, headers: response.headers, nonce: given,
      json: json && typeof json === "object" ? json : undefined,
      retryAfter: /^\d{1,9}$/.test(field) ? Number(field) : undefined,
    };
  }

  /** One call with the key of this browser. A refused nonce consumed nothing, so that it is repeated, once. */
  async call(method, path, { proves = true, body, ...options } = NONE) {
    const proofKey = proves || body?.length ? await browserKey(this.origin) : undefined;
    for (let first = true; ; first = false) {
      const nonce = this.nonce();
      const key = proves ? proofKey : undefined;
      const answer = await this.attempt(method, path, { ...options, body, nonce, proofKey, key });
      if (!answer) throw await this.whyNot() ?? noAnswer();
      const { json = {}, retryAfter } = answer;
      if (retryAfter) json.retryAfter = retryAfter;
      if (answer.ok) return json;
      if (first && json.error === "use_dpop_nonce" && answer.nonce && answer.nonce !== nonce) continue;
      throw new PosternError(
        json.error ?? json.title ?? "server_error",
        json.error_description ?? json.message ?? json.detail ?? json.Message, answer.status, json);
    }
  }

  /** A browser hides why: where what is for every origin arrives, and not what is for registered ones, it is that. */
  async whyNot() {
    if (this.#hasAnswered || this.#isSilent || !globalThis.location) return undefined;
    // One that is late is not refused.
    const arrives = path => within(5, undefined, signal =>
      this.tools.fetch(this.origin + path, { credentials: "omit", cache: "no-store", ...(signal && { signal }) }))
      .then(() => true, error => !error);
    if (!await arrives("/.well-known/openid-configuration") || await arrives("/api/app-info")) return undefined;
    return new PosternError("origin_not_registered", `Pages of ${location.origin} may not call ${this.origin}. `
      + "An administrator registers the origin for the client: admin.put_web_origin.");
  }
}

/** Nothing came back. */
export const noAnswer = () => new PosternError("network", "The server did not answer.");
