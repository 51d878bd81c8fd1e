// Postern's client: what answers of a server say, and the errors that they stand for.

import { LETTERS, PosternError } from "./core.js";

/** What `passkeys.js` and `pages.js` use of a `Postern`. */
export const inside = new WeakMap();

/** A function that rejects with a `PosternError` and nothing else. */
export const sure = work => async (...call) => {
  try {
    return await work(...call);
  } catch (error) {
    throw error instanceof PosternError ? error : new PosternError("misuse", `not as declared: ${error?.name}`);
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

// Descriptions may change but for these two, which are a part of the interface.
const FACTOR = {
  "Two-factor authentication is required; supply totp_code.": "second_factor_needed",
  "The two-factor code is invalid.": "second_factor_wrong",
};
const OWN = { access_denied: "denied", expired_token: "expired", address_proof_required: "address_proof_needed" };

const TEXTS = {
  wrong_code: "The code is wrong or over.", expired: "The request is over.", denied: "The person refused.",
  second_factor_needed: "A second factor is needed.", second_factor_wrong: "The second factor is wrong.",
  step_up_needed: "A newer or stronger sign-in is needed.", signed_out: "Nobody is signed in.",
  address_proof_needed: "The address has to be proven first.", names_needed: "Names are missing.",
  rate_limited: "Too many requests.", unavailable: "The server could not be asked.", cancelled: "It was given up.",
};
export const failure = (code, details, status) => new PosternError(code, TEXTS[code], status, details);
export const misuse = text => new PosternError("misuse", text);
export const unavailable = retryAfter => failure("unavailable", { retryAfter });
export const signedOut = reason => failure("signed_out", { reason });
export const last = list => list[list.length - 1];
export const words = text => (text ?? "").split(" ").filter(Boolean);
/** A length of time in milliseconds; `undefined` for what is none, and for more than ten years. */
export const span = value => value >= 0 && value <= 315_360_000 ? 1000 * value : undefined;

const TCHAR = "!#$%&'*+.^_`|~\\w-";

/** The challenges of `WWW-Authenticate` (RFC 9110 §11.6.1); none if it is malformed or over 8 KiB. */
export const challenges = field => {
  const found = [];
  let at = 0;
  const take = pattern => {
    const matcher = new RegExp(pattern, "sy");
    matcher.lastIndex = at;
    const taken = matcher.exec(field);
    if (taken) at = matcher.lastIndex;
    return taken;
  };
  while (field?.length <= 8192) {
    take("[\\s,]*");
    if (at === field.length) return found;
    const word = take(`[${TCHAR}]+`)?.[0].toLowerCase();
    if (!word) break;
    if (take("[ \\t]*=[ \\t]*")) {
      const value = take('"((?:[^"\\\\]|\\\\.)*)"') ?? take(`([${TCHAR}]+)`);
      if (!value || !found.length) break;
      last(found)[word] ??= value[1].replace(/\\(.)/gs, "$1");
    } else {
      found.push(Object.assign(Object.create(null), { "": word }));
      // Credentials without names, such as those of Negotiate.
      if (take("[ \\t]+")) take(`[/${TCHAR}]*=*[ \\t]*(?=,|$)`);
    }
  }
  return [];
};
export const challengesOf = headers => challenges(headers.get("WWW-Authenticate"));

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
  const { status, ok, json = {}, retryAfter } = answer;
  const { error, title, Message } = json;
  const text = json.error_description ?? json.message ?? json.detail;
  if (status === 429) {
    return failure("rate_limited", { retryAfter: retryAfter ?? json.retryAfterSeconds ?? 60 }, status);
  }
  if (ok || status === 408 || status >= 500) return failure("unavailable", { retryAfter }, status);
  const asked = error === "insufficient_user_authentication" && stepUpChallenge(answer);
  if (asked) return failure("step_up_needed", asked, status);
  if (status === 400) {
    if (error === "invalid_grant") {
      const code = FACTOR[text] ?? grant;
      if (code) return failure(code, code === "signed_out" ? { reason: "ended" } : json, status);
    }
    const code = OWN[error];
    if (code) return failure(code, json, status);
    const [, name] = /^(Firstname|Lastname) is required\.$/.exec(error) ?? [];
    if (name || error === "registration_incomplete") {
      return failure("names_needed", { names: name ? [name] : json.fields ?? ["Firstname", "Lastname"] }, status);
    }
  }
  return new PosternError(String(error ?? title ?? Message ?? status), text, status, json);
};

export const hex = bytes => Array.from(bytes, byte => (byte + 256).toString(16).slice(1)).join("");

/** The claims of an ID token; `undefined` for what is none. It came over TLS: its signature needs no check. */
export const claimsOf = jwt => {
  try {
    const [, payload, ...more] = jwt.split(".");
    const claims = JSON.parse(decodeURIComponent(hex(bytesOf(payload)).replace(/../g, "%$&")));
    const { iss, sub, sid, auth_time: signedIn, iat } = claims;
    return more.length === 1 && iss && sub && sid && (signedIn ?? iat) ? claims : undefined;
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
export const tokensOf = ({ ok, json = {} }) => {
  const { access_token: value, expires_in: life, id_token: idToken, refresh_token: refresh, scope = "" } = json;
  const type = { bearer: "Bearer", dpop: "DPoP" }[String(json.token_type).toLowerCase()];
  const claims = idToken === undefined ? undefined : claimsOf(idToken);
  const isToken = /^[!-~]+$/.test(value), lives = life > 0 && life <= 366 * 86_400;
  if (!ok || !isToken || !type || !lives || (idToken && !claims)) return undefined;
  return { value, type, scope, refresh, idToken, claims, issued: Date.now(), expires: Date.now() + 1000 * life };
};

const isSecure = (scheme, host) =>
  scheme === "https" || /^(.+\.)?localhost$|^127\.0\.0\.1$|^\[::1\]$/.test(host);
/** Scheme, host and port of a URL. */
export const originOf = url => {
  const [, scheme, host, port] = /^(https?):\/\/([\w.-]+|\[[\da-f:.]+\])(?::(\d+))?(?=[/?#]|$)/i.exec(url) ?? [];
  if (!host || !isSecure(scheme.toLowerCase(), host.toLowerCase())) return undefined;
  const preset = scheme.length === 5 ? "443" : "80";
  return `${scheme}://${host}`.toLowerCase().replace(/\.$/, "") + (port && port !== preset ? `:${port}` : "");
};
