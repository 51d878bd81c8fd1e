// Postern's browser module, the part that every file of it needs: errors, bytes, the key of this browser, proofs, and
// one call. It speaks only to the origin that it is given.

/**
 * A call that failed. `code` is the server's `error` (or the title of its problem), or one of this module's own:
 * `network` (no answer), `origin_not_registered` (the server answers, but not to pages of this origin), `server_error`
 * (an answer of another form), or one that a method names.
 * `status` is the HTTP status, 0 without an answer; `details` has the members of the answer, and `retryAfter`.
 */
export class PosternError extends Error {
  constructor(code, message, status = 0, details = {}) {
    super(message || code);
    Object.assign(this, { name: "PosternError", code, status, details });
  }
}

// -- Texts and bytes

export const base64url = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
const utf8 = text => new TextEncoder().encode(text);
export const digest = async text => base64url(await crypto.subtle.digest("SHA-256", utf8(text)));
/** Digits as a person types them, as ASCII: of any script, with blanks, hyphens and marks that cannot be seen. */
export const typedDigits = text => String(text ?? "")
  .replace(/[\p{White_Space}\p{Dash}\p{Default_Ignorable_Code_Point}]/gu, "")
  .replace(/\p{Nd}/gu, digit => {
    let place = 0; // in its run: every script has its ten digits in order
    while (/\p{Nd}/u.test(String.fromCodePoint(digit.codePointAt(0) - place - 1))) place++;
    return place % 10;
  });
export const seconds = () => Math.floor(Date.now() / 1000);
export const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

// -- The store: IndexedDB of the page's origin, or memory

// Keys by server and, for 15 minutes, the transactions that a link may lead back to.
// Without IndexedDB both live as long as the page.
const memory = { keys: new Map(), transactions: new Map() };
let opened;

const database = () => opened ??= new Promise((resolve, reject) => {
  const request = indexedDB.open("postern", 1);
  request.onupgradeneeded = () => Object.keys(memory).forEach(name => request.result.createObjectStore(name));
  request.onsuccess = () => {
    // A newer version of this file may bring another database.
    request.result.onversionchange = () => { request.result.close(); opened = undefined; };
    resolve(request.result);
  };
  request.onerror = request.onblocked = reject;
});

/** Runs `body(store)` in one transaction; does nothing where IndexedDB does not work. */
const stored = async (name, body) => {
  try {
    const transaction = (await database()).transaction(name, "readwrite");
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onerror = transaction.onabort = reject;
      body(transaction.objectStore(name));
    });
  } catch { /* Memory it is. */ }
};

/** The value under a name; else `made`, which is then kept. Of two pages that ask at once, both get the same. */
export const keep = async (name, key, made) => {
  const map = memory[name];
  let value = map.get(key) ?? made;
  if (!map.has(key)) {
    await stored(name, store => {
      store.get(key).onsuccess = ({ target }) => {
        value = target.result ?? made;
        if (made && value === made) store.put(made, key);
      };
    });
  }
  if (value) map.set(key, value);
  return value;
};

export const forget = async (name, key) => {
  memory[name].delete(key);
  await stored(name, store => store.delete(key));
};

/** Forgets transactions that are over. */
export const sweep = () => stored("transactions", store => {
  store.openCursor().onsuccess = ({ target: { result: cursor } }) => {
    if (cursor?.value.at < Date.now() - 15 * 60_000) cursor.delete();
    cursor?.continue();
  };
});

// -- The server

/** A server, and the key of this browser for it. */
export class Server {
  #key;
  // The server's time in the form that proofs need; good for minutes.
  #nonce;
  // Whether it ever answered a page of this origin.
  #isOpen = false;

  constructor(origin) { this.origin = origin; }

  /** A nonce that came by another way than a header. */
  learn(nonce) { this.#nonce = nonce ?? this.#nonce; }

  /** The key of this browser for the server. Its private half is not extractable. */
  #deviceKey() {
    return this.#key ??= (async () => {
      const ECDSA = { name: "ECDSA", namedCurve: "P-256" };
      const pair = await keep("keys", this.origin)
        ?? await keep("keys", this.origin, await crypto.subtle.generateKey(ECDSA, false, ["sign"]));
      const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
      return { sign: pair.privateKey, jwk: { kty, crv, x, y } };
    })().catch(error => { this.#key = undefined; throw error; });
  }

  /** A compact JWS by the key of this browser, with the public key in its header. */
  async signed(typ, payload) {
    const { sign, jwk } = await this.#deviceKey();
    const part = members => base64url(utf8(JSON.stringify(members)));
    const input = `${part({ typ, alg: "ES256", jwk })}.${part(payload)}`;
    const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, sign, utf8(input));
    return `${input}.${base64url(signature)}`;
  }

  /** A proof of possession (RFC 9449 §4.2). `token`: the one that goes with it. */
  async #proof(method, path, nonce, token) {
    return this.signed("dpop+jwt", {
      jti: base64url(crypto.getRandomValues(new Uint8Array(16))), htm: method, htu: this.origin + path,
      iat: seconds(), ...(nonce && { nonce }), ...(token && { ath: await digest(token) }),
    });
  }

  /**
   * One call. `proves` adds the header `DPoP`; `body` gets a function that makes a proof for a member of the body.
   * A refused nonce consumed nothing, so that the call is repeated, once.
   */
  async call(method, path, { token, scheme = "DPoP", proves = true, body, form, signal, query = "" } = {}) {
    for (let first = true; ; first = false) {
      const nonce = this.#nonce;
      const prove = () => this.#proof(method, path, nonce, token);
      const headers = {};
      if (token) headers.Authorization = `${scheme} ${token}`;
      if (proves) headers.DPoP = await prove();
      if (form) headers["Content-Type"] = "application/x-www-form-urlencoded";
      if (body) headers["Content-Type"] = "application/json";
      const content = form ? new URLSearchParams(form).toString() : body && JSON.stringify(await body(prove));
      let response, text;
      try {
        response = await fetch(this.origin + path + query, {
          method, headers, body: content, signal,
          credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
        });
        text = await response.text();
      } catch (error) {
        if (signal?.aborted) throw error;
        throw await this.#whyNot() ?? noAnswer();
      }
      this.#isOpen = true;
      this.learn(response.headers.get("DPoP-Nonce"));
      let answer = {};
      try {
        answer = JSON.parse(text) ?? answer;
      } catch { /* Empty, or of another form: its status counts. */ }
      const retryAfter = Number(response.headers.get("Retry-After"));
      if (retryAfter) answer.retryAfter = retryAfter;
      if (response.ok) return answer;
      if (first && answer.error === "use_dpop_nonce" && this.#nonce !== nonce) continue;
      throw new PosternError(
        answer.error ?? answer.title ?? "server_error",
        answer.error_description ?? answer.message ?? answer.detail ?? answer.Message, response.status, answer);
    }
  }

  /**
   * A browser hides why a page gets no answer. Where a document for every origin arrives, and one for registered
   * origins does not, this page's origin is not registered; no repetition helps.
   */
  async #whyNot() {
    if (this.#isOpen) return undefined;
    const arrives = path => fetch(this.origin + path, { credentials: "omit", cache: "no-store" })
      .then(() => true, () => false);
    if (!await arrives("/.well-known/openid-configuration") || await arrives("/api/app-info")) return undefined;
    return new PosternError("origin_not_registered", `Pages of ${location.origin} may not call ${this.origin}. `
      + "An administrator registers the origin for the client: admin.put_web_origin.");
  }
}

/** Nothing came back. */
export const noAnswer = () => new PosternError("network", "The server did not answer.");
