// Postern's client for web pages and other JavaScript: sign-in by code, link, approval and trusted device, one session
// for all tabs, and access tokens.
//
//     import { Postern } from "https://auth.example.com/sdk/v1/client.js";

import { PosternError, base64url, moment, nonceOf, pause, proof, since, utf8 } from "./core.js";
import {
  claimsOf, errorOf, failure, hex, inside, misuse, originOf, refusal, signedOut, span, stepUpChallenge, sure,
  unavailable,
} from "./answers.js";
import { tell } from "./keeper.js";
import { Session } from "./session.js";

export { PosternError, stepUpChallenge };

const LINK = "urn:cocoar:magic", CODE = "urn:cocoar:otp";

const factorOf = ({ totpCode, recoveryCode } = {}) =>
  totpCode ? [["totp_code", totpCode]] : recoveryCode ? [["recovery_code", recoveryCode]] : [];

/** As the app sees a request: no handle. */
const shown = ({ id, kind, address, expires: expiresAt, resend: resendAt, sendsLeft, matchNumber, pages = {} }) => ({
  kind: kind === "registration" ? "code" : kind, id, address, expiresAt, resendAt, sendsLeft, matchNumber, ...pages,
});

/** What the modules of a client share: the session, and the ways to sign in. */
class Machine extends Session {
  #polls = new Map();

  changedElsewhere({ pending }, isOther) {
    for (const id of this.#polls.keys()) {
      if (isOther || !pending.some(one => one.id === id)) this.endPoll(id, failure("cancelled"));
    }
  }

  // -- Requests under way

  /** Makes a request, and stores it. `handle` is what the server knows it by: a secret. */
  async begin(kind, handle, life, members) {
    if (!handle || span(life) === undefined) throw unavailable();
    const made = { id: this.secret(), kind, handle, expires: Date.now() + span(life), ...members };
    await this.edit(document => { document.pending.push(made); });
    return shown(made);
  }

  async pendingOf({ id }, ...kinds) {
    const found = (await this.look()).pending.find(one => one.id === id);
    if (found && !kinds.includes(found.kind)) throw misuse("the request is for another method");
    return found;
  }

  async pending() {
    const { pending } = await this.look();
    return pending.filter(({ kind, expires }) => kind !== "provider" && expires > Date.now()).map(shown);
  }

  async forget({ id }) {
    await this.#drop(id);
    this.endPoll(id, failure("cancelled"));
  }

  #drop(id) {
    return this.edit(document => { document.pending = document.pending.filter(one => one.id !== id); });
  }

  /** Asks for a message with a code or a link. */
  async ask(kind, address, { firstName: FirstName, lastName: LastName } = {}) {
    const { email, phone, channel = "sms" } = address;
    if (!email && !phone) throw misuse("an address has email or phone");
    const asked = email ? { Email: email } : { Phone: phone, ...(kind !== "link" && { Channel: channel }) };
    const { handle, life, ...members } = await this.#message(kind, { ...asked, FirstName, LastName });
    return this.begin(kind, handle, life, { address, ...members });
  }

  /** Asks again. Sooner than `resendAt` nothing is sent, and the same request comes back. */
  async resend(request) {
    const former = await this.pendingOf(request, "code", "registration", "link");
    if (!former) throw misuse("the request is over: ask anew");
    const { life, ...made } = await this.#message(former.kind, { ...former.asked, AuthSession: former.handle });
    const { address, id, kind } = former;
    const due = former.resend > Date.now() && { resend: former.resend, expires: former.expires };
    const renewed = { id, kind, address, expires: Date.now() + span(life), ...made, ...due };
    await this.edit(document => {
      const others = document.pending.filter(one => one.id !== id);
      if (others.length === document.pending.length) throw failure("cancelled");
      document.pending = [...others, renewed];
    });
    return shown(renewed);
  }

  async #message(kind, members) {
    const { hint: IdTokenHint } = await this.look();
    const path = {
      registration: "/api/account/native/register", link: "/api/account/magic-link/request",
    }[kind] ?? "/api/account/native/otp/request";
    let answer, Challenge;
    for (;;) {
      const body = { ...members, ClientId: this.clientId, IdTokenHint, Challenge };
      answer = await this.outcome({ path, proof: "session", body: () => body });
      if (answer.ok) break;
      if (answer.lost) throw unavailable(answer.retryAfter);
      const work = !Challenge && answer.status === 400 && answer.json?.error === "challenge_required";
      Challenge = work && await this.#solve(answer.json.Challenge);
      if (!Challenge) throw refusal(answer);
    }
    const { AuthSession: handle, ExpiresIn: life, ResendAfter, ...more } = answer.json ?? {};
    const { SendsLeft: sendsLeft, Interval: interval, MatchNumber: matchNumber } = more;
    const { AuthSession, ...asked } = members, wait = span(ResendAfter);
    if (!handle || span(life) === undefined || wait === undefined) throw unavailable();
    return { asked, handle, life, resend: Date.now() + wait, sendsLeft, interval, matchNumber };
  }

  /** Work that the server asks of strangers: the number whose SHA-256, behind a salt, is given (ALTCHA, version 1). */
  async #solve({ algorithm, challenge, salt, signature, maxnumber } = {}) {
    const { sha256 } = this.server.tools;
    const isOurs = algorithm === "SHA-256" && maxnumber <= 5_000_000 && salt?.length <= 1024;
    if (!this.hasDigest || !isOurs) return undefined;
    for (let from = 0; from <= maxnumber; from += 500) {
      const tried = await Promise.all(Array.from({ length: 500 }, (_, at) => sha256(utf8(`${salt}${from + at}`))));
      const found = tried.findIndex(hash => hex(hash) === challenge);
      if (found >= 0) {
        const answer = { algorithm, challenge, number: from + found, salt, signature };
        return base64url(utf8(JSON.stringify(answer)));
      }
    }
    return undefined;
  }

  // -- Signing in

  async signInWithCode(request, code, factor, demand = {}) {
    if (!String(code ?? "").trim()) throw misuse("the code is empty");
    const found = await this.pendingOf(request, "code", "registration");
    // Without a handle the code is one of a request that is over.
    if (!found) throw failure("wrong_code");
    const tokens = await this.token([
      ["grant_type", CODE], ["auth_session", found.handle], ["otp_code", code], ["scope", this.scope],
      ...factorOf(factor), ...demand.form ?? [],
    ], { grant: "wrong_code", repeats: true });
    return this.establish(tokens, { pending: found.id, ...demand });
  }

  /** What a step-up has to reach: levels, and the person of the session. */
  async demand({ levels }) {
    const { session, reason = "never" } = await this.look();
    if (!session) throw signedOut(reason);
    return { subject: claimsOf(session.idToken).sub, form: levels.length ? [["acr_values", levels.join(" ")]] : [] };
  }

  async stepUpWithCode(challenge, request, code, factor) {
    return this.signInWithCode(request, code, factor, await this.demand(challenge));
  }

  async appInfo() { return (await this.accepted({ method: "GET", path: "/api/app-info" })).json; }

  async requestApproval(hint) {
    const { auth_req_id: handle, expires_in: life, interval, match_number: matchNumber }
      = await this.post("/connect/bc-authorize", [["scope", this.scope], ["login_hint", hint]]);
    return this.begin("approval", handle, life, { interval, matchNumber });
  }

  async requestDeviceSignIn() {
    const { device_code: handle, expires_in: life, interval, ...more }
      = await this.post("/connect/device_authorization", [["scope", this.scope]]);
    const pages = {
      userCode: more.user_code, verificationUrl: more.verification_uri,
      completeVerificationUrl: more.verification_uri_complete,
    };
    return this.begin("device", handle, life, { interval, pages });
  }

  async beginProvider(provider) {
    const { auth_session: handle, nonce, expires_in: life }
      = await this.post("/connect/federated/begin", [["provider", provider]]);
    const { id, expiresAt } = await this.begin("provider", handle, life);
    return { id, provider, nonce, expiresAt };
  }

  async signInAsTrustedDevice(factor) {
    if (!this.hasKey) throw misuse("a trusted device needs WebCrypto");
    // The nonce of such a proof signs in once, so this is sent once.
    const form = [["grant_type", "urn:postern:device"], ["scope", this.scope], ...factorOf(factor)];
    return this.establish(await this.token(form, { proof: "device", spends: true }));
  }

  async signInWithProvider(request, { identityToken, authorizationCode, firstName, lastName }, factor) {
    const found = await this.pendingOf(request, "provider");
    if (!found) throw misuse("the request is over: begin with beginProvider");
    const optional = [["authorization_code", authorizationCode], ["first_name", firstName], ["last_name", lastName]];
    const tokens = await this.token([
      ["grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"], ["subject_token", identityToken],
      ["subject_token_type", "urn:ietf:params:oauth:token-type:id_token"], ["auth_session", found.handle],
      ["scope", this.scope], ...optional.filter(([, value]) => value), ...factorOf(factor),
    ], { repeats: true });
    return this.establish(tokens, { pending: found.id });
  }

  /** Waits until a request was confirmed elsewhere. Callers share the polls. */
  async wait(request, { secondFactor, signal } = {}) {
    const found = await this.pendingOf(request, "link", "approval", "device");
    if (!found) throw failure("expired");
    if (signal?.aborted) throw failure("cancelled");
    const { id } = found;
    const poll = this.#polls.get(id) ?? {
      waiting: new Set(), interval: 1000 * Math.min(60, Math.max(1, found.interval ?? 5)), pause: 0, at: moment() };
    this.#polls.set(id, poll);
    if (secondFactor) poll.factor = secondFactor;
    return new Promise((resolve, reject) => {
      const caller = { resolve, reject };
      poll.waiting.add(caller);
      signal?.addEventListener("abort", () => {
        poll.waiting.delete(caller);
        if (!poll.waiting.size) poll.stop?.abort();
        reject(failure("cancelled"));
      });
      if (!poll.stop || poll.stop.signal.aborted) this.#run(id, poll);
    });
  }

  /** Ends the waiting for a request with a user or an error. */
  endPoll(id, outcome) {
    const poll = this.#polls.get(id);
    poll?.stop?.abort();
    const isError = outcome instanceof PosternError;
    for (const { resolve, reject } of poll?.waiting ?? []) (isError ? reject : resolve)(outcome);
    poll?.waiting.clear();
  }

  async #run(id, poll) {
    const { signal } = poll.stop = globalThis.AbortController ? new AbortController()
      : { signal: { aborted: false }, abort() { this.signal.aborted = true; } };
    while (!signal.aborted) {
      const rest = poll.pause - since(poll.at);
      if (rest > 0) {
        await pause(rest);
        continue;
      }
      const { outcome, least = 0 } = await this.#pollOnce(id, poll, signal);
      // Only now: the next poll arrives later than this one's answer, whatever the network does.
      Object.assign(poll, { at: moment(), pause: Math.max(poll.interval, 1000 * least) });
      if (outcome && !signal.aborted) {
        poll.factor = undefined;
        this.endPoll(id, outcome);
      }
    }
  }

  async #pollOnce(id, poll, signal) {
    let found;
    try {
      found = (await this.look()).pending.find(one => one.id === id);
      if (!found) throw failure("expired");
      const { kind, handle } = found;
      const form = kind === "link" ? [["grant_type", LINK], ["auth_session", handle], ["scope", this.scope]]
        : kind === "approval" ? [["grant_type", "urn:openid:params:grant-type:ciba"], ["auth_req_id", handle]]
          : [["grant_type", "urn:ietf:params:oauth:grant-type:device_code"], ["device_code", handle]];
      const tokens = await this.token([...form, ...factorOf(poll.factor)], { grant: "expired", signal });
      return { outcome: await this.establish(tokens, { pending: id }) };
    } catch (error) {
      const { code, retryAfter: least = 0 } = error;
      if (code === "authorization_pending") return {};
      if (code === "slow_down") {
        poll.interval = Math.min(poll.interval + 5000, 60_000);
        return {};
      }
      // What was confirmed in its last moment can be polled for a minute more.
      const goesOn = found && Date.now() + 1000 * least < found.expires + 60_000;
      if (["unavailable", "rate_limited"].includes(code) && goesOn) return { least };
      if (["denied", "expired"].includes(code) && !signal.aborted) await this.#drop(id).catch(() => {});
      return { outcome: error };
    }
  }

  // -- Requests to APIs

  /** Sends a request with an access token; once more after a nonce or with a fresh token, never for a lost answer. */
  async fetch(input, init = {}, audience) {
    const headers = new Headers(init.headers);
    const { href: url } = globalThis.location ? new URL(input, location.href) : { href: String(input) };
    const origin = originOf(url);
    if (!origin) throw misuse("an access token needs https, and no password in the URL");
    if (headers.has("Authorization")) throw misuse("the request has Authorization already");
    if (init.mode === "no-cors") throw misuse("mode no-cors drops Authorization");
    if (init.body?.getReader) throw misuse("a stream cannot be sent twice");
    const { server } = this;
    let hadNonce, hadFresh;
    for (;;) {
      const { value: token, type } = await this.accessToken(audience);
      headers.set("Authorization", `${type} ${token}`);
      if (type === "DPoP") {
        const document = await this.look(), key = await this.key("session", document);
        const at = Date.now() / 1000 + (document.clock ?? 0), method = (init.method ?? "GET").toUpperCase();
        headers.set("DPoP", await proof(key, server.tools, { method, url, token, nonce: server.nonce(origin), at }));
      } else {
        headers.delete("DPoP");
      }
      let response;
      try {
        response = await server.tools.fetch(url, { redirect: "error", ...init, headers });
      } catch {
        throw init.signal?.aborted ? failure("cancelled") : unavailable();
      }
      const nonce = nonceOf(response);
      server.learn(nonce, origin);
      if (response.status !== 401) return response;
      const asked = stepUpChallenge(response);
      if (asked) throw failure("step_up_needed", asked, 401);
      const error = errorOf(response) ?? await response.clone().json().then(({ error }) => error, () => undefined);
      if (error === "use_dpop_nonce" && type === "DPoP" && nonce && !hadNonce) hadNonce = true;
      else if (error === "invalid_token" && !hadFresh) this.refuse(hadFresh = token);
      else return response;
    }
  }
}

/** One client of one realm or App. Make one, and keep it. */
export class Postern {
  #machine;
  #run = sure(work => work(this.#machine));

  constructor(options) {
    this.#machine = new Machine(options);
    inside.set(this, this.#machine);
    this.ready = this.#run(machine => machine.look()).then(() => this.state);
    this.ready.catch(() => {});
  }

  get state() { return this.#machine.state; }

  subscribe(listener) {
    let leave = () => {}, isGone = false;
    const begin = () => {
      if (isGone) return;
      tell(listener, this.state);
      leave = this.#machine.subscribe(listener);
    };
    this.ready.then(begin, begin);
    return () => { isGone = true; leave(); };
  }

  appInfo() { return this.#run(machine => machine.appInfo()); }
  requestCode(address, names) { return this.#run(machine => machine.ask("code", address, names)); }
  register(address, names) { return this.#run(machine => machine.ask("registration", address, names)); }
  requestLink(address, names) { return this.#run(machine => machine.ask("link", address, names)); }
  resend(request) { return this.#run(machine => machine.resend(request)); }
  requestApproval(hint) { return this.#run(machine => machine.requestApproval(hint)); }
  requestDeviceSignIn() { return this.#run(machine => machine.requestDeviceSignIn()); }
  wait(pending, options) { return this.#run(machine => machine.wait(pending, options)); }
  pending() { return this.#run(machine => machine.pending()); }
  forget(request) { return this.#run(machine => machine.forget(request)); }
  signInWithCode(...call) { return this.#run(machine => machine.signInWithCode(...call.slice(0, 3))); }
  signInAsTrustedDevice(factor) { return this.#run(machine => machine.signInAsTrustedDevice(factor)); }
  beginProvider(provider) { return this.#run(machine => machine.beginProvider(provider)); }
  signInWithProvider(...call) { return this.#run(machine => machine.signInWithProvider(...call)); }
  adopt(refreshToken, idToken) { return this.#run(machine => machine.adopt(refreshToken, idToken)); }

  stepUpWithCode(challenge, ...call) { return this.#run(machine => machine.stepUpWithCode(challenge, ...call)); }
  accessToken(audience) { return this.#run(machine => machine.accessToken(audience)); }
  fetch(input, init, audience) { return this.#run(machine => machine.fetch(input, init, audience)); }
  account(method, path, body) { return this.#run(machine => machine.account(method, path, body)); }
  signOut(scope) { return this.#run(machine => machine.signOut(scope)); }
}
