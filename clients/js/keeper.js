// Postern's client: the document that is kept, and the key beside it.

import {
  ECDSA, PosternError, Server, base64url, browserKey, digest, signer, stored, transact,
} from "./core.js";
import { claimsOf, last, misuse, originOf, signedOut, unavailable, userOf, words } from "./answers.js";

const sample = () => ({ v: 1, tokens: [], pending: [], revoke: [] });

/** Ends the session here. `revoking`: the server is still to be told. */
export const endSession = (document, reason, revoking) => {
  const token = document.session?.refresh ?? last(document.tokens)?.value;
  if (revoking && token) document.revoke.push(token);
  Object.assign(document, { session: undefined, tokens: [], reason });
};

const desks = new WeakMap();
export const refreshes = new WeakMap();
/** Runs one body after another of the same owner. */
export const inTurn = (turns, owner, body) => {
  const turn = (turns.get(owner) ?? Promise.resolve()).then(body);
  turns.set(owner, turn.catch(() => {}));
  return turn;
};

/** Documents in IndexedDB. `change` gets the text of one, and gives the next text; `null` is none. */
export const documents = {
  async edit(name, change) {
    let failure;
    try {
      await transact("documents", (store, transaction) => {
        store.get(name).onsuccess = ({ target }) => {
          try {
            const former = target.result ?? null, text = change(former);
            if (text === null) store.delete(name);
            else if (text !== former) store.put(text, name);
          } catch (error) {
            failure = error;
            transaction.abort();
          }
        };
      });
    } catch (error) {
      throw failure ?? error;
    }
  },
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

/** Whether a value outlives the page. */
const isKept = async (name, key) => {
  let found = false;
  await stored(name, store => { store.get(key).onsuccess = ({ target }) => { found = target.result !== undefined; }; });
  return found;
};

/** Whatever the app does with it, the client goes on. */
export const tell = (listener, news) => { if (listener) Promise.resolve(news).then(listener); };

/** A client's document and key. */
export class Keeper {
  #listeners = new Set();
  #opened;
  #channel;
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
    this.hasDigest = Boolean(platform.sha256 ?? crypto?.subtle);
    this.hasKey = platform.key ? this.hasDigest : Boolean(crypto?.subtle);
    if (dpop === "required" && !this.hasKey) throw misuse("without WebCrypto: give platform.key and platform.sha256");
    Object.assign(this, options, { origin: originOf(origin), scope, dpop, platform });
    this.server = new Server(this.origin, platform);
    this.name = `postern:${this.origin}:${clientId}`;
  }

  log(kind, details) { tell(this.onLog, { kind, at: Date.now(), ...details }); }

  /** 256 random bits. */
  secret() { return base64url(this.server.tools.random(32)); }

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
            const isWhole = v === 1 && [tokens, pending, revoke].every(Array.isArray);
            if (!isWhole || (session && !claimsOf(session.idToken))) throw new TypeError();
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
    for (const listener of this.#listeners) tell(listener, state);
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
    else if (platform.store) key = hasKey && (kept || !session?.jkt) ? await this.#ownKey(kept) : undefined;
    else if (hasKey) key = await browserKey(this.origin);
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

  async #ownKey(kept) {
    const jwk = kept ?? await this.#makeKey();
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
}
