// Postern's client, the part below the sign-ins: the document that is kept, the key, calls, and one session with its
// tokens for all tabs.
//
// What the server did not decide changes nothing: a session ends here only when the user signs out, when the server says
// that it is over, when it has run out without a refresh token, or when its key is gone.

import {
  ECDSA, PosternError, Server, base64url, browserKey, bytesOf, digest, documents, forget, isKept, moment, pause, signer,
  since,
} from "./core.js";

const TOKEN = "/connect/token", REVOKE = "/connect/revoke", DEVICE = "/connect/devices";
const SESSIONS = "/connect/sessions?current=true";
/** Scopes that speak of the person only: a token of them alone opens the account endpoints. */
const IDENTITY = /^(openid|offline_access|profile|email|phone|address|roles|groups|entitlements)$/;
// Descriptions may change but for these two, which are a part of the interface.
const FACTOR_MISSING = "Two-factor authentication is required; supply totp_code.";
const FACTOR_WRONG = "The two-factor code is invalid.";

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
const last = list => list[list.length - 1];
const words = text => (text ?? "").split(" ").filter(Boolean);
/** A length of time in milliseconds; `undefined` for what is none, and for more than ten years. */
export const span = value => value >= 0 && value <= 315_360_000 ? 1000 * value : undefined;

// -- Answers

const TCHAR = "!#$%&'*+.^_`|~\\w-";

/** The challenges of `WWW-Authenticate` (RFC 9110 §11.6.1); none if it is malformed or over 8 KiB. */
const challenges = field => {
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
  if (status === 429) return failure("rate_limited", { retryAfter: retryAfter ?? json.retryAfterSeconds ?? 60 }, status);
  if (ok || status === 408 || status >= 500) return failure("unavailable", { retryAfter }, status);
  const asked = error === "insufficient_user_authentication" && stepUpChallenge(answer);
  if (asked) return failure("step_up_needed", asked, status);
  if (status === 400) {
    if (error === "invalid_grant") {
      const code = text === FACTOR_MISSING ? "second_factor_needed" : text === FACTOR_WRONG ? "second_factor_wrong" : grant;
      if (code) return failure(code, code === "signed_out" ? { reason: "ended" } : json, status);
    }
    const code = { access_denied: "denied", expired_token: "expired", address_proof_required: "address_proof_needed" }[error];
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
    return more.length === 1 && claims.iss && claims.sub && claims.sid && (claims.auth_time ?? claims.iat) ? claims : undefined;
  } catch {
    return undefined;
  }
};

const userOf = claims => ({
  id: claims.sub, sessionId: claims.sid, email: claims.email, emailVerified: claims.email_verified ?? false,
  phone: claims.phone_number, phoneVerified: claims.phone_number_verified ?? false, name: claims.name,
  authenticatedAt: 1000 * (claims.auth_time ?? claims.iat), methods: claims.amr ?? [], level: claims.acr, claims,
});

/** A success of the token endpoint (RFC 6749 §5.1); `undefined` if it is not what 200 promises. */
const tokensOf = ({ ok, json = {} }) => {
  const { access_token: value, expires_in: life, id_token: idToken, refresh_token: refresh, scope = "" } = json;
  const type = { bearer: "Bearer", dpop: "DPoP" }[String(json.token_type).toLowerCase()];
  const claims = idToken === undefined ? undefined : claimsOf(idToken);
  if (!ok || !/^[!-~]+$/.test(value) || !type || !(life > 0 && life <= 366 * 86_400) || (idToken && !claims)) return undefined;
  return { value, type, scope, refresh, idToken, claims, issued: Date.now(), expires: Date.now() + 1000 * life };
};

/** Growing pauses: 0.5, 1, 2, 4, then 8 s, each a fifth more or less. */
const pauses = () => {
  let next = 500;
  return retryAfter => {
    const rest = Math.max(next * (0.8 + 0.4 * Math.random()), 1000 * (retryAfter ?? 0));
    next = Math.min(2 * next, 8000);
    return rest;
  };
};

const audienceOf = (audience, granted) => {
  if (typeof audience === "object") {
    const { scope, resource } = audience;
    const form = [["scope", scope], ...(resource ? [["resource", resource]] : [])];
    return { name: `api ${words(scope).sort().join(" ")}|${resource ?? ""}`, form };
  }
  return audience === "account" && !words(granted).every(scope => IDENTITY.test(scope))
    ? { name: "account", form: [["scope", "openid"]] } : { name: "default", form: [] };
};

const isSecure = (scheme, host) => scheme === "https" || /^(.+\.)?localhost$|^127\.0\.0\.1$|^\[::1\]$/.test(host);
/** Scheme, host and port of a URL. */
export const originOf = url => {
  const [, scheme, host, port] = /^(https?):\/\/([\w.-]+|\[[\da-f:.]+\])(?::(\d+))?(?=[/?#]|$)/i.exec(url) ?? [];
  if (!host || !isSecure(scheme.toLowerCase(), host.toLowerCase())) return undefined;
  const preset = scheme.length === 5 ? "443" : "80";
  return `${scheme}://${host}`.toLowerCase().replace(/\.$/, "") + (port && port !== preset ? `:${port}` : "");
};

// -- The document of a client

const sample = () => ({ v: 1, tokens: [], pending: [], revoke: [] });

/** Ends the session here. `revoking`: the server is still to be told. */
const endSession = (document, reason, revoking) => {
  const token = document.session?.refresh ?? last(document.tokens)?.value;
  if (revoking && token) document.revoke.push(token);
  Object.assign(document, { session: undefined, tokens: [], reason });
};

const desks = new WeakMap(), refreshes = new WeakMap();
/** Runs one body after another of the same owner. */
const inTurn = (turns, owner, body) => {
  const turn = (turns.get(owner) ?? Promise.resolve()).then(body);
  turns.set(owner, turn.catch(() => {}));
  return turn;
};

/** A store of texts as one of documents. */
const ofTexts = texts => ({
  edit: (name, change) => inTurn(desks, texts, async () => {
    const former = await texts.get(name), text = change(former);
    if (text !== former) await texts.set(name, text);
  }),
});
const inMemory = () => {
  const texts = new Map();
  return ofTexts({ get: async name => texts.get(name) ?? null, set: async (name, text) => { texts.set(name, text); } });
};

// -- The client

/** A client's document, key, calls and session. */
export class Session {
  // Access tokens: when they came, and which of them a server refused.
  #came = new Map();
  #refused = new Set();
  #flights = new Map();
  #listeners = new Set();
  #opened;
  #channel;
  #revoking;
  state = { signedIn: false, reason: "never" };

  constructor(options) {
    const { origin, clientId, scope = "openid offline_access", dpop = "auto", platform = {} } = options;
    const { crypto } = globalThis;
    if (originOf(origin) === undefined || /[^/:]\/./.test(origin)) {
      throw misuse("origin must be like https://id.example.com; http is for this device only");
    }
    if (!clientId) throw misuse("clientId is empty");
    if (!words(scope).includes("openid")) throw misuse("scope must have openid: the ID token says who is signed in");
    if (!platform.random && !crypto?.getRandomValues) throw misuse("platform.random is needed here");
    this.hasKey = platform.key ? Boolean(platform.sha256 ?? crypto?.subtle) : Boolean(crypto?.subtle);
    if (dpop === "required" && !this.hasKey) throw misuse("there is no WebCrypto: give platform.key and platform.sha256");
    Object.assign(this, options, { origin: originOf(origin), scope, dpop, platform });
    this.server = new Server(this.origin, platform);
    this.name = `postern:${this.origin}:${clientId}`;
  }

  log(kind, details) { this.onLog?.({ kind, at: Date.now(), ...details }); }

  /** 256 random bits. */
  secret() { return base64url(this.server.tools.random(32)); }

  // -- Store and key

  /** Finds a place for the document: beside a key that cannot be read, or where the app says. */
  #open() {
    return this.#opened ??= (async () => {
      const { platform, storage = "persistent", dpop, hasKey } = this;
      this.store = platform.store ? ofTexts(platform.store) : undefined;
      this.persistent = Boolean(this.store);
      if (!this.store && hasKey && storage === "persistent" && dpop !== "off") {
        if (!platform.key) await browserKey(this.origin);
        if (await isKept("keys", this.origin)) [this.store, this.persistent] = [documents, true];
      }
      this.store ??= inMemory();
      if (this.store === documents && globalThis.BroadcastChannel) {
        this.#channel = new BroadcastChannel(this.name);
        this.#channel.onmessage = () => this.#lookAgain();
      }
    })();
  }

  /** `isOther`: somebody signed in in another tab. */
  changedElsewhere(_document, _isOther) {}

  /** Another tab changed the document: it may have signed in or out, or given a request up. */
  async #lookAgain() {
    const { user } = this.state;
    const document = await this.look().catch(() => undefined);
    if (!document) return;
    const isOther = this.state.user && this.state.user.sessionId !== user?.sessionId;
    this.changedElsewhere(document, isOther);
  }

  /** The document as the store has it now. */
  look() { return this.edit(document => document); }

  /**
   * Changes the document. `change` may run more than once, each time on what the store has then.
   * - Rejects: `unavailable` when nothing was changed; what `change` throws.
   */
  async edit(change) {
    let result, next, damaged, isChanged;
    try {
      await this.#open();
      await this.store.edit(this.name, text => {
        damaged = undefined;
        let document = sample();
        if (text !== null) {
          try {
            document = { ...document, ...JSON.parse(text) };
            const { v, tokens, pending, revoke, session } = document;
            if (v > 1) throw unavailable();
            if (v !== 1 || ![tokens, pending, revoke].every(Array.isArray) || (session && !claimsOf(session.idToken))) throw 0;
          } catch (error) {
            if (error instanceof PosternError) throw error;
            document = { ...sample(), reason: "keyLost" };
            damaged = text;
          }
        }
        const before = JSON.stringify(document);
        result = change(document);
        const { tokens, pending, revoke } = document;
        Object.assign(document, { tokens: tokens.slice(-8), pending: pending.slice(-8), revoke: revoke.slice(-5) });
        next = document;
        const after = JSON.stringify(document);
        // What could not be read again would cost key and session.
        if (after.length > 1 << 20) throw unavailable();
        isChanged = after !== before || damaged !== undefined;
        return isChanged ? after : text;
      });
      if (damaged !== undefined) {
        this.log("store_damaged");
        await this.store.edit(`${this.name}.damaged`, text => text ?? damaged);
      }
    } catch (error) {
      if (error instanceof PosternError) throw error;
      this.log("store_locked");
      throw unavailable();
    }
    this.#publish(next);
    if (isChanged) this.#channel?.postMessage("changed");
    return result;
  }

  #publish({ session, reason = "never" }) {
    const state = session ? {
      signedIn: true, user: userOf(claimsOf(session.idToken)), persistent: this.persistent, bound: Boolean(session.jkt),
    } : { signedIn: false, reason };
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    const { signedIn, user } = this.state;
    this.state = state;
    if (state.signedIn !== signedIn || state.user?.sessionId !== user?.sessionId) {
      this.log(state.signedIn ? "signed_in" : "signed_out", state.signedIn ? {} : { reason });
    }
    for (const listener of this.#listeners) listener(state);
  }

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Changes the sign-ins on pages that were begun. They outlive the page, also where tokens do not. */
  async editPages(change) {
    await this.#open();
    const text = former => JSON.stringify(change(JSON.parse(former ?? "[]")));
    const places = [this.platform.store ? this.store : documents, this.store];
    for (const place of globalThis.indexedDB || this.platform.store ? places : [this.store]) {
      try {
        return await place.edit(`${this.name}.pages`, text);
      } catch (error) {
        if (place === this.store) throw unavailable();
      }
    }
  }

  /**
   * The key, made and stored at its first use; `undefined` where nothing needs one.
   * - Rejects: `signed_out` with `keyLost` when the session's key is gone: a bound session never gets another one.
   */
  async key(purpose, document) {
    const { session, key: kept } = document, { platform, hasKey, dpop } = this;
    if (!purpose || (purpose !== "device" && dpop === "off" && !session?.jkt)) return undefined;
    let key;
    if (platform.key) key = platform.key;
    else if (platform.store && hasKey && (kept || !session?.jkt)) key = await this.#ownKey(kept ?? await this.#makeKey());
    else if (hasKey && !platform.store) key = await browserKey(this.origin);
    if (session?.jkt && (!key || session.jkt !== await this.thumbprint(key))) throw await this.#loseKey(document);
    return key;
  }

  thumbprint({ jwk: { kty, crv, x, y } }) { return digest(JSON.stringify({ crv, kty, x, y }), this.server.tools); }

  async #makeKey() {
    const { crypto: { subtle } } = globalThis;
    const made = await subtle.exportKey("jwk", (await subtle.generateKey(ECDSA, true, ["sign"])).privateKey);
    const { kty, crv, x, y, d } = made;
    this.log("key_made");
    return this.edit(document => document.key ??= { kty, crv, x, y, d });
  }

  async #ownKey(jwk) {
    return signer(await globalThis.crypto.subtle.importKey("jwk", jwk, ECDSA, false, ["sign"]), jwk);
  }

  async #loseKey({ session }) {
    this.log("key_lost");
    await this.edit(document => {
      if (document.session?.id !== session.id) return;
      document.key = undefined;
      endSession(document, "keyLost");
    });
    return signedOut("keyLost");
  }

  // -- Calls

  /**
   * Makes a call. This looks into the store before each attempt, gives each a proof of its own, answers a request for a
   * nonce once, and sends again for 45 s what was lost, if the call says so.
   * - Resolves: the answer, a refusal too; or `{ lost, retryAfter }` when nothing was decided.
   */
  async outcome(call) {
    const { method = "POST", path, token, repeats, signal } = call;
    const began = moment(), rest = pauses();
    let hadNonce, hadProof;
    for (;;) {
      const document = await this.look();
      const sent = moment();
      let answer;
      try {
        const key = await this.key(call.proof, document);
        const { value, type } = token ?? {};
        answer = await this.server.attempt(method, path, {
          ...call, token: value, scheme: type, key: type === "Bearer" ? undefined : key,
          at: Date.now() / 1000 + (document.clock ?? 0),
        });
      } catch (error) {
        if (error instanceof PosternError) throw error;
        throw signal?.aborted ? failure("cancelled") : unavailable();
      }
      this.log("request", {
        method, path: path.replace(/\?.*/s, ""), status: answer?.status ?? 0, ms: Math.round(since(sent)) });
      if (answer && path !== REVOKE) this.#revokeSoon(document);
      const error = [400, 401].includes(answer?.status) && call.proof && errorOf(answer);
      if (error === "use_dpop_nonce") {
        if (!answer.nonce || hadNonce) return { lost: true };
        this.log("nonce");
        hadNonce = true;
        continue;
      }
      let isLost = !answer || answer.status === 408 || answer.status >= 500;
      if (error === "invalid_dpop_proof") {
        // HTTP stacks repeat requests by themselves; the copy then finds its proof used.
        if (method !== "POST" || path === TOKEN) {
          if (hadProof) return answer;
          hadProof = true;
          continue;
        }
        isLost = true;
      }
      if (!isLost) return answer;
      const why = !answer && await this.server.whyNot();
      if (why) throw why;
      const retryAfter = answer?.retryAfter, wait = rest(retryAfter);
      if (!repeats || since(began) + wait >= 45_000) return { lost: true, retryAfter };
      this.log("retry");
      await pause(wait);
    }
  }

  /** The same. - Rejects: what a refusal means; `unavailable` when nothing was decided. */
  async accepted(call) {
    const answer = await this.outcome(call);
    if (answer.lost) throw unavailable(answer.retryAfter);
    if (!answer.ok) throw refusal(answer, call.grant);
    return answer;
  }

  /** A call of the server with a form or JSON, to which the client's name is added. */
  async post(path, members, more) {
    const form = Array.isArray(members) && [...members, ["client_id", this.clientId]];
    const body = form ? { form } : { body: () => ({ ...members, ClientId: this.clientId }) };
    return (await this.accepted({ path, proof: "session", ...body, ...more })).json ?? {};
  }

  async token(form, options) {
    const answer = await this.accepted({
      path: TOKEN, proof: "session", form: [...form, ["client_id", this.clientId]], ...options });
    const tokens = tokensOf(answer);
    if (!tokens) throw unavailable();
    await this.#learnTime(tokens.claims);
    return tokens;
  }

  /** Keeps the difference of the clocks when it is more than half of what a proof may be off (RFC 9449 §11.1). */
  async #learnTime({ iat } = {}) {
    const offset = Math.round(iat - Date.now() / 1000);
    if (!(Math.abs(offset) < 3_155_760_000)) return;
    await this.edit(document => {
      if (Math.abs(offset - (document.clock ?? 0)) <= 30) return;
      document.clock = Math.abs(offset) > 30 ? offset : undefined;
      this.log("clock", { offset });
    }).catch(() => {});
  }

  /** A call of an account endpoint. A token that it refuses is refreshed once. */
  async account(method, path, body, more) {
    if (!/^\/[^/]/.test(path)) throw misuse("the path must begin with one slash");
    for (let first = true; ; first = false) {
      const token = await this.accessToken("account");
      const call = { method, path, token, proof: token.type === "DPoP" && "session", body: body && (() => body), ...more };
      const answer = await this.outcome(call);
      if (answer.lost) throw unavailable(answer.retryAfter);
      if (answer.ok) {
        if (method === "DELETE" && [SESSIONS, "/connect/account"].includes(path)) await this.#ended(token, path !== SESSIONS);
        return answer.json;
      }
      if (!first || answer.status !== 401 || errorOf(answer) !== "invalid_token") throw refusal(answer);
      this.#refused.add(token.value);
    }
  }

  /** A call has ended the session of a token at the server. Who signed in meanwhile stays. */
  async #ended({ value }, withHint) {
    await this.edit(document => {
      if (!document.tokens.some(token => token.value === value)) return;
      endSession(document, "byUser");
      if (withHint) document.hint = undefined;
    });
  }

  // -- Tokens

  async accessToken(audience = "default") {
    const document = await this.look();
    const { session, reason } = document;
    if (!session) throw signedOut(reason ?? "never");
    await this.key("session", document);
    const asked = audienceOf(audience, session.scope);
    const token = this.#usable(asked.name, document) ?? await this.#flight(session.id, asked);
    const { value, type, scope, expires: expiresAt } = token;
    return { value, type, scope, expiresAt };
  }

  /** Callers of one audience share one refresh. */
  #flight(id, audience) {
    const name = `${id} ${audience.name}`;
    if (!this.#flights.has(name)) {
      this.#flights.set(name, this.#exclusively(() => this.#refresh(id, audience))
        .finally(() => this.#flights.delete(name)));
    }
    return this.#flights.get(name);
  }

  /** Refreshes of one store run one after another. A tab may be frozen while it holds the lock: after 5 s without it. */
  #exclusively(body) {
    return inTurn(refreshes, this.platform.store ?? this.server, async () => {
      const { locks } = globalThis.navigator ?? {};
      const lock = this.platform.lock
        ?? (this.store === documents && locks && ((name, body) => locks.request(name, body)));
      let running;
      const once = () => running ??= body();
      if (lock) await Promise.race([lock(this.name, once).catch(() => {}), pause(5000)]);
      return once();
    });
  }

  /** The token of an audience, if it is still good. */
  #usable(name, { tokens, session }) {
    const token = tokens.find(one => one.audience === name);
    if (!token || this.#refused.has(token.value)) return undefined;
    const { issued, expires } = token, came = this.#came.get(token.value);
    // Another tab received it. The clock may have been set since.
    if (!came && issued > Date.now()) return undefined;
    const left = came ? expires - issued - since(came) : expires - Date.now();
    // Without a refresh token it is the only one there is.
    return left > 0 && left >= (session.refresh ? Math.min(60_000, (expires - issued) / 3) : 0) ? token : undefined;
  }

  /** A server refused an access token before its end. */
  refuse(token) { this.#refused.add(token); }

  #remember({ value }) {
    if (this.#came.size > 100) this.#came.clear();
    this.#came.set(value, moment());
  }

  /** Refreshes until the server decides or 20 s are over, always with the newest token that the store has. */
  async #refresh(id, audience) {
    const began = moment(), rest = pauses();
    let former;
    for (;;) {
      const document = await this.look();
      const { session, reason } = document;
      if (session?.id !== id) throw signedOut(session ? "byUser" : reason);
      const token = this.#usable(audience.name, document);
      if (token) return token;
      const sent = session.refresh;
      if (!sent) throw await this.#runOut(id, document);
      if (former && former !== sent) this.log("superseded");
      former = sent;
      const outcome = await this.#present(sent, audience);
      const { tokens, retryAfter } = outcome;
      if (tokens && this.#isNext(tokens, session)) {
        await this.#keep(tokens, id, sent, audience);
        return tokens;
      }
      if (outcome.ended) {
        const isOver = await this.edit(document => {
          if (document.session?.id !== id || document.session.refresh !== sent) return false;
          endSession(document, "ended");
          return true;
        });
        if (isOver) throw signedOut("ended");
      } else {
        await this.#wait(began, rest, retryAfter);
      }
    }
  }

  /** Whether an ID token of a refresh is of the same session (OpenID Connect Core §12.2). */
  #isNext({ claims }, { idToken }) {
    const former = claimsOf(idToken);
    return !claims || (claims.sub === former.sub && claims.sid === former.sid && this.#isFor(claims));
  }

  #isFor({ aud }) { return [aud].flat().includes(this.clientId); }

  async #wait(began, rest, retryAfter) {
    const wait = rest(retryAfter);
    if (since(began) + wait > 20_000) throw unavailable(retryAfter);
    this.log("retry");
    await pause(wait);
  }

  /** Presents a refresh token once (RFC 6749 §6). - Resolves: `{ tokens }`, `{ ended }` or `{ retryAfter }`. */
  async #present(refreshToken, audience) {
    const form = [["grant_type", "refresh_token"], ["refresh_token", refreshToken], ...audience.form];
    const answer = await this.outcome({ path: TOKEN, proof: "session", form: [...form, ["client_id", this.clientId]] });
    const { status, ok, json, retryAfter } = answer;
    if (status === 400 && json?.error === "invalid_grant") return { ended: true };
    const tokens = ok && tokensOf(answer);
    if (!tokens && (ok || answer.lost || status === 429)) return { retryAfter };
    if (!tokens) throw refusal(answer);
    await this.#learnTime(tokens.claims);
    return { tokens };
  }

  /** Stores what a refresh brought, before anybody sees the access token. */
  async #keep(tokens, id, sent, audience) {
    const jkt = await this.#bound(tokens);
    const reason = await this.edit(document => {
      const { session } = document;
      if (session?.id !== id) {
        if (tokens.refresh) document.revoke.push(tokens.refresh);
        return session ? "byUser" : document.reason;
      }
      // Another tab may have stored a newer generation meanwhile: it stays.
      if (session.refresh === sent) {
        session.refresh = tokens.refresh ?? sent;
        session.jkt = jkt ?? session.jkt;
        if (tokens.idToken) document.hint = session.idToken = tokens.idToken;
      }
      this.#put(document, tokens, audience);
    });
    if (reason) {
      this.#revokeSoon();
      throw signedOut(reason);
    }
    this.#remember(tokens);
    this.log("refresh", { audience: audience.name });
  }

  #put(document, { value, type, scope, issued, expires }, { name: audience }) {
    document.tokens = [
      ...document.tokens.filter(one => one.audience !== audience), { audience, value, type, scope, issued, expires }];
  }

  async #bound({ type }) {
    const key = type === "DPoP" && await this.key("device", await this.look());
    return key ? this.thumbprint(key) : undefined;
  }

  /** The session has no refresh token. */
  async #runOut(id, document) {
    if (this.#usable("default", document)) return misuse("another audience needs the scope offline_access");
    await this.edit(document => { if (document.session?.id === id) endSession(document, "ended"); });
    return signedOut("ended");
  }

  // -- Sessions

  /**
   * Stores the session that a sign-in opened; the one in its place is revoked. `pending`: the request that is over with
   * it. `nonce`: what the ID token must have. `subject`: who must have signed in.
   */
  async establish(tokens, { pending, nonce, subject, adopted } = {}) {
    const { claims, idToken, refresh } = tokens;
    if (!claims) throw unavailable();
    const wrong = !await this.#isOurs(claims, nonce) ? "invalid_response"
      : subject && subject !== claims.sub ? "different_user" : undefined;
    if (wrong) {
      await this.edit(document => { document.revoke.push(refresh ?? tokens.value); });
      this.#revokeSoon();
      throw new PosternError(wrong, "The session is not the one that was asked for.", 200);
    }
    // What an adopted family was granted is not known: this answer has `openid` alone.
    const scope = adopted ? "" : tokens.scope, jkt = await this.#bound(tokens);
    const failed = await this.edit(document => {
      const former = document.session && claimsOf(document.session.idToken);
      // The server gives a lost answer of a sign-in again: that is the same session, not one to revoke.
      const isSame = former?.sid === claims.sid;
      // A step-up is for the user who is signed in, and signs nobody in who has left meanwhile.
      const hasLeft = subject && subject !== former?.sub;
      if (hasLeft || (!isSame && pending && !document.pending.some(({ id }) => id === pending))) {
        document.revoke.push(refresh ?? tokens.value);
        return hasLeft ? signedOut(former ? "byUser" : document.reason) : failure("cancelled");
      }
      endSession(document, undefined, former && !isSame);
      document.session = { id: this.secret(), idToken, refresh, scope, jkt };
      document.hint = idToken;
      this.#put(document, tokens, audienceOf(adopted ? "account" : "default", scope));
      document.pending = document.pending.filter(({ id }) => id !== pending);
      return undefined;
    });
    this.#revokeSoon();
    if (failed) throw failed;
    this.#remember(tokens);
    return userOf(claims);
  }

  async #isOurs(claims, expected) {
    const { iss, nonce } = claims;
    if (!this.#isFor(claims) || (expected && nonce !== expected)) return false;
    return iss === this.origin || iss === (await this.look()).issuer || iss === await this.issuer(true);
  }

  /** `issuer` of the server: the realm's, also at the host of an App. */
  async issuer(anew) {
    const known = !anew && (await this.look()).issuer;
    if (known) return known;
    const { json } = await this.accepted({ method: "GET", path: "/.well-known/openid-configuration" });
    if (!json?.issuer) throw unavailable();
    return this.edit(document => document.issuer = json.issuer);
  }

  async adopt(refreshToken, idToken) {
    if (!refreshToken) throw misuse("refreshToken is empty");
    const began = moment(), rest = pauses();
    for (;;) {
      const { tokens, ended, retryAfter } = await this.#present(refreshToken, { form: [["scope", "openid"]] });
      if (ended) throw signedOut("ended");
      if (tokens) return this.establish({ idToken, claims: claimsOf(idToken), ...tokens }, { adopted: true });
      await this.#wait(began, rest, retryAfter);
    }
  }

  async signOut(scope = "thisSession") {
    if (scope === "everywhere") {
      await this.account("DELETE", SESSIONS);
      return;
    }
    await this.edit(document => endSession(document, "byUser", document.session));
    this.#revokeSoon();
    if (scope === "forgettingThisDevice") await this.#forgetDevice();
    await this.#revoking;
  }

  async #forgetDevice() {
    try {
      const { json } = await this.accepted({ method: "GET", path: `${DEVICE}/self`, proof: "device" });
      await this.accepted({ method: "DELETE", path: `${DEVICE}/${encodeURIComponent(json.Id)}`, proof: "device" });
    } catch { /* It was none, or the server cannot be asked. */ }
    const isOver = await this.edit(document => {
      // Somebody may have signed in meanwhile.
      if (document.session) return false;
      Object.assign(document, { key: undefined, hint: undefined, pending: [] });
      return true;
    });
    if (!isOver) return;
    // A damaged document may still have a key and tokens that can be read.
    await this.store.edit(`${this.name}.damaged`, () => null);
    if (!this.platform.store && !this.platform.key) await forget("keys", this.origin);
  }

  /** Tells the server about sessions that ended here. One attempt; what fails is tried with the next request. */
  #revokeSoon(document) {
    if (this.#revoking || document?.revoke.length === 0) return;
    this.#revoking = (async () => {
      for (const token of (await this.look()).revoke) {
        const form = [["token", token], ["client_id", this.clientId]];
        const answer = await this.outcome({ path: REVOKE, form });
        // A page of something in between is no answer of the server.
        if (answer.lost || (answer.status !== 200 && !answer.json?.error) || answer.status === 429) return;
        await this.edit(document => { document.revoke = document.revoke.filter(one => one !== token); });
      }
    })().catch(() => {}).finally(() => { this.#revoking = undefined; });
  }
}
