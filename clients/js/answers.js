// Postern's client: what answers of a server say, and the errors that they stand for.

import { LETTERS, NONE, PosternError } from "./core.js";

/** What `passkeys.js` and `pages.js` use of a `Postern`. */
export const inside = new WeakMap();

/** A function that rejects with a `PosternError` and nothing else. */
export const sure = work => async function (...call) {
  try {
    return await work.apply(this, call);
  } catch (error) {
    throw error instanceof PosternError ? error : misuse(`not as declared: ${error?.name}`);
  }
};

/** The bytes of base64url; `undefined` for what is none. */
export const bytesOf = text => {
  const bytes = [];
  let bits = 0, count = 0;
  for (const letter of text) {
    const value = LETTERS.indexOf(letter);
    if (value < 0) return undefined;
    bits = (bits << 6 | value) & 0xffff;
    count += 6;
    if (count >= 8) bytes.push(bits >> (count -= 8) & 255);
  }
  return Uint8Array.from(bytes);
};
export const hex = bytes => Array.from(bytes, byte => (byte + 256).toString(16).slice(1)).join("");

/** @type {any} */
const CODES = {
  // Not what every object has.
  __proto__: null,
  access_denied: "denied", expired_token: "expired", address_proof_required: "address_proof_needed",
  // Descriptions may change but for these two.
  "Two-factor authentication is required; supply totp_code.": "second_factor_needed",
  "The two-factor code is invalid.": "second_factor_wrong",
};

export const failure = (code, details, status) => new PosternError(code, "", status, details);
export const misuse = text => new PosternError("misuse", text);
export const unavailable = (retryAfter, status) => failure("unavailable", { retryAfter }, status);
export const signedOut = reason => failure("signed_out", { reason });
export const words = text => (text ?? "").split(" ").filter(Boolean);
/** A length of time in milliseconds; `undefined` for what is none, and for more than ten years. */
export const span = value => value >= 0 && value <= 315_360_000 ? 1000 * value : undefined;

const TCHAR = "\\w!#$%&'*+.^`|~-";
// A parameter, or a scheme with what Negotiate and the like have in place of parameters.
const PART = new RegExp(
  `[\\s,]*([${TCHAR}]+)(?:[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([${TCHAR}]+))`
  + `|[ \\t]+(?:[/${TCHAR}]*=*[ \\t]*(?=,|$))?)?[\\s,]*`, "sy");

/** The challenges of `WWW-Authenticate` (RFC 9110 §11.6.1); none if it is malformed or over 8 KiB. */
export const challengesOf = headers => {
  const field = headers.get("WWW-Authenticate") ?? "", found = [];
  for (PART.lastIndex = 0; PART.lastIndex < field.length;) {
    const [, name, quoted, value = quoted] = field.length <= 8192 && PART.exec(field) || [];
    const challenge = found[found.length - 1];
    if (!name || (value !== undefined && !challenge)) return [];
    if (value === undefined) found.push(Object.assign(Object.create(null), { "": name.toLowerCase() }));
    else challenge[name.toLowerCase()] ??= value.replace(/\\(.)/gs, "$1");
  }
  return found;
};

/** `error` of the body, else of a challenge. */
export const errorOf = ({ json, headers }) => json?.error ?? challengesOf(headers).find(({ error }) => error)?.error;

/** What a 401 asks for (RFC 9470 §3); `null` if it is something else. */
export const stepUpChallenge = ({ status, headers }) => {
  const asked = status === 401
    && challengesOf(headers).find(({ error }) => error === "insufficient_user_authentication");
  return asked ? {
    levels: words(asked.acr_values), ...(/^\d{1,15}$/.test(asked.max_age) && { maxAge: Number(asked.max_age) }),
  } : null;
};

/** The error that an answer without success stands for. `grant` is what `invalid_grant` means to its call. */
export const refusal = (answer, grant) => {
  const { status, ok, json = NONE, retryAfter } = answer;
  const { error } = json, text = json.error_description ?? json.message ?? json.detail;
  if (status === 429) {
    return failure("rate_limited", { retryAfter: retryAfter ?? json.retryAfterSeconds ?? 60 }, status);
  }
  if (ok || status === 408 || status >= 500) return unavailable(retryAfter, status);
  const asked = error === "insufficient_user_authentication" && stepUpChallenge(answer);
  if (asked) return failure("step_up_needed", asked, status);
  if (status === 400) {
    const code = error === "invalid_grant" ? CODES[text] ?? grant : CODES[error];
    if (code) return failure(code, code === "signed_out" ? { reason: "ended" } : json, status);
    const [, name] = /^(Firstname|Lastname) is required\.$/.exec(error) ?? [];
    if (name || error === "registration_incomplete") {
      return failure("names_needed", { names: name ? [name] : json.fields ?? ["Firstname", "Lastname"] }, status);
    }
  }
  return new PosternError(String(error ?? json.title ?? json.Message ?? status), text, status, json);
};

/** Whether a value can be written as JSON again: at some depth of its own a platform gives up. */
const isFlat = (value, levels = 64) => typeof value !== "object" || !value
  || (levels > 0 && Object.values(value).every(one => isFlat(one, levels - 1)));

/** The claims of an ID token; `undefined` for what is none. It came over TLS: its signature needs no check. */
export const claimsOf = jwt => {
  try {
    const [, payload, ...more] = jwt.split(".");
    const claims = JSON.parse(decodeURIComponent(hex(bytesOf(payload)).replace(/../g, "%$&")));
    const { iss, sub, sid, auth_time: signedIn, iat } = claims;
    const isWhole = [iss, sub, sid].every(one => one && typeof one === "string")
      && [iat, signedIn ?? iat].every(Number.isFinite);
    return more.length === 1 && isWhole && isFlat(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
};

export const userOf = claims => ({
  id: claims.sub, sessionId: claims.sid, email: claims.email, emailVerified: claims.email_verified ?? false,
  phone: claims.phone_number, phoneVerified: claims.phone_number_verified ?? false, name: claims.name,
  authenticatedAt: 1000 * (claims.auth_time ?? claims.iat), methods: claims.amr ?? [], level: claims.acr, claims,
});

/** A success of the token endpoint (RFC 6749 §5.1); `undefined` if it is not what 200 promises. */
export const tokensOf = ({ ok, json = NONE }) => {
  const { access_token: value, expires_in: life, id_token: idToken, refresh_token: refresh, scope = "" } = json;
  const isText = [value, scope, refresh ?? ""].every(text => typeof text === "string");
  const type = { bearer: "Bearer", dpop: "DPoP" }[String(json.token_type).toLowerCase()];
  const claims = claimsOf(idToken), issued = Date.now();
  const isFit = isText && /^[!-~]+$/.test(value) && life > 0 && life <= 366 * 86_400;
  const isWhole = ok && type && isFit && (claims || !idToken);
  return isWhole ? { value, type, scope, refresh, idToken, claims, issued, expires: issued + 1000 * life } : undefined;
};

/** Scheme, host and port of a URL; `undefined` without TLS, but for this device, and for one with a password. */
export const originOf = url => {
  const [, scheme, host, port]
    = /^(https?):\/\/([\w.-]+|\[[\da-f:.]+\])(?::(\d+))?(?=[/?#]|$)/.exec(String(url).toLowerCase()) ?? [];
  if (scheme !== "https" && !/^(.+\.)?localhost$|^127\.0\.0\.1$|^\[::1\]$/.test(host)) return undefined;
  const preset = scheme === "https" ? "443" : "80";
  return `${scheme}://${host}`.replace(/\.$/, "") + (port && port !== preset ? `:${port}` : "");
};

/** Scopes that speak of the person only: a token of them alone opens the account endpoints. */
const IDENTITY = /^(openid|offline_access|profile|email|phone|address|roles|groups|entitlements)$/;
/** The audience of an access token: a name, and what a refresh asks for. */
export const audienceOf = (audience, granted) => {
  if (typeof audience === "object") {
    const { scope, resource } = audience;
    const form = [["scope", scope], ...(resource ? [["resource", resource]] : [])];
    return { name: `api ${words(scope).sort().join(" ")}|${resource ?? ""}`, form };
  }
  return audience === "account" && !words(granted).every(scope => IDENTITY.test(scope))
    ? { name: "account", form: [["scope", "openid"]] } : { name: "default", form: [] };
};
