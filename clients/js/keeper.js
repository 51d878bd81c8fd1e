// Postern's client: the document that is kept, and the key beside it.

import {
  ECDSA, NONE, PosternError, Server, base64url, browserKey, digest, recall, signer, stored, transact,
} from "./core.js";
import { claimsOf, misuse, originOf, signedOut, unavailable, userOf, words } from "./answers.js";

/** The document of a text. - Throws: `unavailable` for one of a newer format; anything else for a damaged one. */
const read = text => {
  const document = { v: 1, tokens: [], pending: [], revoke: [], ...JSON.parse(text ?? "{}") };
  const { v, tokens, pending, revoke, session } = document;
  if (v > 1) throw unavailable();
  const isWhole = v === 1 && [tokens, pending, revoke].every(list => Array.isArray(list) && list.every(Boolean));
  if (!isWhole || (session && !claimsOf(session.idToken))) throw new TypeError();
  return document;
};

/** Ends the session here. `revoking`: the server is still to be told. */
export const endSession = (document, reason, revoking) => {
  const [last] = document.tokens.slice(-1), token = document.session?.refresh ?? last?.value;
  if (revoking && token) document.revoke.push(token);
  Object.assign(document, { session: undefined, tokens: [], reason });
};

const desks = new WeakMap();
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
    }).catch(error => { throw failure ?? error; });
  },
};

/** A store of texts as one of documents. */
const ofTexts = texts => ({
  edit: (name, change) => inTurn(desks, texts, async () => {
    const former = await texts.get(name) ?? null, text = change(former);
    if (text !== former) await texts.set(name, text);
  }),
});

/** Whatever the app does with it, the client goes on. */
export const tell = (listener, news) => { if (listener) Promise.resolve(news).then(listener); };

/** A client's document and key. */
export class Keeper {
  // The options.
  origin; clientId; scope; redirectUri; storage; dpop; platform; onLog;
  #listeners = new Set();
  #opened;
  #channel;
  /** @type {any} */
  state = { signedIn: false, reason: "never" };

  constructor(options) {
    const { origin, clientId, scope = "openid offline_access", dpop = "auto", platform = NONE } = options;
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
    // The app's, or memory until the document is opened.
    const texts = new Map();
    this.store = ofTexts(platform.store ?? {
      get: async name => texts.get(name), set: async (name, text) => { texts.set(name, text); } });
    this.persistent = Boolean(platform.store);
  }

  log(kind, details) { tell(this.onLog, { kind, at: Date.now(), ...details }); }

  /** 256 random bits. */
  secret() { return base64url(this.server.tools.random(32)); }

  /** Finds a place for the document: where the app says, or beside a key that cannot be read. */
  #open() {
    return this.#opened ??= (async () => {
      const { platform, storage, dpop, hasKey, origin } = this;
      if (platform.store || !hasKey || storage === "page" || dpop === "off") return;
      if (!platform.key) await browserKey(origin);
      await stored("keys", keys => {
        keys.get(origin).onsuccess = ({ target }) => { this.persistent = target.result !== undefined; };
      });
      if (!this.persistent) return;
      this.store = documents;
      if (!globalThis.BroadcastChannel) return;
      this.#channel = new BroadcastChannel(this.name);
      this.#channel.onmessage = () => this.#lookAgain().catch(() => {});
    })();
  }

  /** `isOther`: somebody signed in in another tab. */
  changedElsewhere(_document, _isOther) {}

  /** Another tab may have signed in or out, have forgotten the device, or have given a request up. */
  async #lookAgain() {
    const { user } = this.state;
    const document = await this.look();
    if (!document.session) recall("keys", this.origin);
    this.changedElsewhere(document, this.state.user && this.state.user.sessionId !== user?.sessionId);
  }

  /** The document as the store has it now. */
  look() { return this.edit(document => document); }

  /**
   * Changes the document. `change` may run more than once, each time on what the store has then.
   * - Rejects: `unavailable` when nothing was changed; what `change` throws.
   */
  async edit(change) {
    /** @type {any} */
    let result, document, damaged, isChanged;
    try {
      await this.#open();
      await this.store.edit(this.name, text => {
        damaged = undefined;
        try {
          document = read(text);
        } catch (error) {
          if (error instanceof PosternError) throw error;
          document = { ...read(null), reason: "keyLost" };
          damaged = text;
        }
        const before = JSON.stringify(document);
        result = change(document);
        const { tokens, pending, revoke } = document;
        Object.assign(document, { tokens: tokens.slice(-8), pending: pending.slice(-8), revoke: revoke.slice(-5) });
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
    this.#publish(document);
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
    const place = this.platform.store ? this.store : documents;
    await place.edit(`${this.name}.pages`, text => {
      let pages = [];
      try {
        pages = JSON.parse(text ?? "[]");
      } catch { /* Damaged: the sign-in begins anew. */ }
      return JSON.stringify(change(pages));
    }).catch(() => { throw unavailable(); });
  }

  /**
   * The key, made and stored at its first use; `undefined` where nothing needs one.
   * - Rejects: `signed_out` with `keyLost` when the session's key is gone: a bound session never gets another one.
   */
  async key(purpose, document) {
    const { session, key: kept } = document, { platform, hasKey, dpop } = this;
    if (!purpose || (purpose !== "device" && dpop === "off" && !session?.jkt)) return undefined;
    let key;
    if (hasKey && platform.store) key = platform.key ?? await this.#ownKey(kept, session);
    else if (hasKey) key = platform.key ?? await browserKey(this.origin);
    if (!session?.jkt || (key && session.jkt === await this.thumbprint(key))) return key;
    this.log("key_lost");
    await this.edit(document => {
      if (document.session?.id !== session.id) return;
      document.key = undefined;
      endSession(document, "keyLost");
    });
    throw signedOut("keyLost");
  }

  thumbprint({ jwk: { kty, crv, x, y } }) { return digest(JSON.stringify({ crv, kty, x, y }), this.server.tools); }

  /** A key that is kept in the document, where the app stores it. */
  async #ownKey(kept, session) {
    const { subtle } = globalThis.crypto;
    if (!kept && session?.jkt) return undefined;
    if (!kept) {
      const { privateKey } = await subtle.generateKey(ECDSA, true, ["sign"]);
      const { kty, crv, x, y, d } = await subtle.exportKey("jwk", privateKey);
      this.log("key_made");
      kept = await this.edit(document => document.key ??= { kty, crv, x, y, d });
    }
    return signer(await subtle.importKey("jwk", kept, ECDSA, false, ["sign"]), kept);
  }
}
