// Postern's client: one session with its tokens, for all tabs.
//
// What the server did not decide changes nothing: a session ends here only when the user signs out, when the server
// says that it is over, when it has run out without a refresh token, or when its key is gone.

import { NONE, PosternError, forget, moment, pause, since } from "./core.js";
import {
  audienceOf, claimsOf, errorOf, failure, misuse, refusal, signedOut, tokensOf, unavailable, userOf, words,
} from "./answers.js";
import { REVOKE, TOKEN, Caller, pauses } from "./caller.js";
import { documents, endSession, inTurn } from "./keeper.js";

const SESSIONS = "/connect/sessions?current=true", ACCOUNT = "/connect/account";

const refreshes = new WeakMap();

/** The session of a client. */
export class Session extends Caller {
  // Access tokens: when they came, and which of them a server refused.
  #came = new Map();
  #refused = new Set();
  #flights = new Map();
  #revoking;

  answered(document) { if (document.revoke.length) this.#revokeSoon(); }

  async accessToken(audience = "default") {
    const document = await this.look(), { session, reason } = document;
    if (!session) throw signedOut(reason ?? "never");
    await this.key("session", document);
    const asked = audienceOf(audience, session.scope);
    const token = this.#usable(asked.name, document) ?? await this.#flight(session.id, asked);
    return { value: token.value, type: token.type, scope: token.scope, expiresAt: token.expires };
  }

  /** Callers of one audience share one refresh. */
  #flight(id, audience) {
    const name = `${id} ${audience.name}`, flights = this.#flights;
    if (!flights.has(name)) {
      flights.set(name, this.#exclusively(() => this.#refresh(id, audience)).finally(() => flights.delete(name)));
    }
    return flights.get(name);
  }

  /** Refreshes of one store run one after another. A tab may be frozen while it holds the lock: 5 s, then without. */
  #exclusively(body) {
    return inTurn(refreshes, this.platform.store ?? this.server, async () => {
      const { locks } = globalThis.navigator ?? NONE;
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
    const wait = this.#patience();
    let former;
    for (;;) {
      const document = await this.look(), { session, reason } = document;
      if (session?.id !== id) throw signedOut(session ? "byUser" : reason);
      const token = this.#usable(audience.name, document);
      if (token) return token;
      const sent = session.refresh;
      if (!sent && this.#usable("default", document)) throw misuse("another audience needs the scope offline_access");
      if (former && former !== sent) this.log("superseded");
      former = sent;
      const { tokens, ended, retryAfter } = await this.#present(sent, audience);
      if (tokens && this.#isNext(tokens, session)) {
        await this.#keep(tokens, id, sent, audience);
        return tokens;
      }
      if (!ended) await wait(retryAfter);
      else if (await this.#end(document => document.session?.id === id && document.session.refresh === sent, "ended")) {
        throw signedOut("ended");
      }
    }
  }

  /** Ends a session if it is the one that is meant. Who signed in meanwhile stays. - Resolves: whether it ended. */
  #end(isMeant, reason, forgets) {
    return this.edit(document => {
      if (!isMeant(document)) return false;
      endSession(document, reason);
      Object.assign(document, forgets);
      return true;
    });
  }

  /** Whether an ID token of a refresh is of the same session (OpenID Connect Core §12.2). */
  #isNext({ claims }, { idToken }) {
    const former = claimsOf(idToken);
    return !claims || (claims.sub === former.sub && claims.sid === former.sid && this.#isFor(claims));
  }

  #isFor({ aud }) { return [aud].flat().includes(this.clientId); }

  /** Waits before the next attempt, 20 s in all. */
  #patience() {
    const began = moment(), rest = pauses();
    return async retryAfter => {
      const wait = rest(retryAfter);
      if (since(began) + wait > 20_000) throw unavailable(retryAfter);
      this.log("retry");
      await pause(wait);
    };
  }

  /**
   * Presents a refresh token once (RFC 6749 §6).
   * @returns {Promise<any>} `{ tokens }`, `{ ended }` or `{ retryAfter }`
   */
  async #present(refreshToken, audience) {
    if (!refreshToken) return { ended: true };
    const form = [["grant_type", "refresh_token"], ["refresh_token", refreshToken], ...audience.form];
    const answer = await this.outcome({ path: TOKEN, proof: "session", form: [...form, ["client_id", this.clientId]] });
    const { status, ok, json, retryAfter } = answer;
    if (status === 400 && json?.error === "invalid_grant") return { ended: true };
    if (!ok && !answer.lost && status !== 429) throw refusal(answer);
    const tokens = tokensOf(answer);
    await this.learnTime(tokens?.claims);
    return { tokens, retryAfter };
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

  /** A call of an account endpoint. A token that it refuses is refreshed once. */
  async account(method, path, body, more) {
    if (!/^\/[^/]/.test(path)) throw misuse("the path must begin with one slash");
    const id = (await this.look()).session?.id;
    for (let first = true; ; first = false) {
      const token = await this.accessToken("account");
      const answer = await this.outcome({ method, path, token, proof: "session", body: body && (() => body), ...more });
      if (answer.lost) throw unavailable(answer.retryAfter);
      if (answer.ok) {
        const forgets = method === "DELETE" && { [SESSIONS]: {}, [ACCOUNT]: { hint: undefined } }[path];
        if (forgets) await this.#end(({ session }) => session?.id === id, "byUser", forgets);
        return answer.json;
      }
      if (!first || answer.status !== 401 || errorOf(answer) !== "invalid_token") throw refusal(answer);
      this.refuse(token.value);
    }
  }

  /**
   * Stores the session that a sign-in opened; the one in its place is revoked. `pending`: the request that is over with
   * it. `nonce`: what the ID token must have. `subject`: who must have signed in.
   */
  async establish(tokens, { pending, nonce, subject, adopted } = NONE) {
    const { claims, idToken, refresh } = tokens;
    if (!claims) throw unavailable();
    const wrong = !await this.#isOurs(claims, nonce) ? "invalid_response"
      : subject && subject !== claims.sub ? "different_user" : undefined;
    // What an adopted family was granted is not known: this answer has `openid` alone.
    const scope = adopted ? "" : tokens.scope, jkt = wrong ? undefined : await this.#bound(tokens);
    const failed = await this.edit(document => {
      const former = document.session && claimsOf(document.session.idToken);
      // The server gives a lost answer of a sign-in again: that is the same session, not one to revoke.
      const isSame = former?.sid === claims.sid;
      // A step-up is for the user who is signed in, and signs nobody in who has left meanwhile.
      const hasLeft = subject && subject !== former?.sub;
      const isOver = !isSame && pending && !document.pending.some(({ id }) => id === pending);
      if (wrong || hasLeft || isOver) {
        document.revoke.push(refresh ?? tokens.value);
        return wrong ? new PosternError(wrong, "The session is not the one that was asked for.", 200)
          : hasLeft ? signedOut(former ? "byUser" : document.reason) : failure("cancelled");
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
    const wait = this.#patience();
    for (;;) {
      const { tokens, ended, retryAfter } = await this.#present(refreshToken, { form: [["scope", "openid"]] });
      if (ended) throw signedOut("ended");
      if (tokens) return this.establish({ idToken, claims: claimsOf(idToken), ...tokens }, { adopted: true });
      await wait(retryAfter);
    }
  }

  async signOut(scope) {
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
    const path = "/connect/devices", proof = "device";
    try {
      const { json } = await this.accepted({ method: "GET", path: `${path}/self`, proof });
      await this.accepted({ method: "DELETE", path: `${path}/${encodeURIComponent(json.Id)}`, proof });
    } catch { /* It was none, or the server cannot be asked. */ }
    const isOver = await this.#end(
      ({ session }) => !session, "byUser", { key: undefined, hint: undefined, pending: [] });
    if (!isOver) return;
    // A damaged document may still have a key and tokens that can be read.
    await this.store.edit(`${this.name}.damaged`, () => null);
    if (!this.platform.store && !this.platform.key) await forget("keys", this.origin);
  }

  /** Tells the server about sessions that ended here. One attempt; what fails is tried with the next request. */
  #revokeSoon() {
    this.#revoking ??= (async () => {
      for (const token of (await this.look()).revoke) {
        const answer = await this.outcome({ path: REVOKE, form: [["token", token], ["client_id", this.clientId]] });
        // A page of something in between is no answer of the server.
        if (answer.lost || (answer.status !== 200 && !answer.json?.error) || answer.status === 429) return;
        await this.edit(document => { document.revoke = document.revoke.filter(one => one !== token); });
      }
    })().catch(() => {}).finally(() => { this.#revoking = undefined; });
  }
}
