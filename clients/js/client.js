// Postern's client for web pages and other JavaScript: sign-in by code, link, approval and trusted device, one session
// for all tabs, and access tokens.
//
//     import { Postern } from "https://auth.example.com/sdk/v1/client.js";

import { NONE, PosternError, moment, nonceOf, pause, proof, since } from "./core.js";
import {
  claimsOf, errorOf, failure, inside, misuse, originOf, signedOut, span, stepUpChallenge, sure, unavailable,
} from "./answers.js";
import { tell } from "./keeper.js";
import { Requests } from "./requests.js";

export { PosternError, stepUpChallenge };

/** Members of a form, without those that have no value. */
const given = members => Object.entries(members).filter(([, value]) => value);
const factorOf = ({ totpCode, recoveryCode } = NONE) => given({ totp_code: totpCode, recovery_code: recoveryCode });

/** How a request is waited for: grant, and the member that has its handle. */
const POLLS = {
  link: ["urn:cocoar:magic", "auth_session"], approval: ["urn:openid:params:grant-type:ciba", "auth_req_id"],
  device: ["urn:ietf:params:oauth:grant-type:device_code", "device_code"],
};

/** What the modules of a client share: the session, and the ways to sign in. */
class Machine extends Requests {
  #polls = new Map();

  changedElsewhere({ pending }, isOther) {
    for (const id of this.#polls.keys()) {
      if (isOther || !pending.some(one => one.id === id)) this.#endPoll(id, failure("cancelled"));
    }
  }

  async forget({ id }) {
    await this.drop(id);
    this.#endPoll(id, failure("cancelled"));
  }

  // -- Signing in

  signInWithCode(request, code, factor) { return this.#byCode(request, code, factor); }

  async #byCode(request, code, factor, demand = NONE) {
    if (!String(code ?? "").trim()) throw misuse("the code is empty");
    const found = await this.pendingOf(request, "code", "registration");
    // Without a handle the code is one of a request that is over.
    if (!found) throw failure("wrong_code");
    return this.signIn(
      { grant_type: "urn:cocoar:otp", auth_session: found.handle, otp_code: code, ...demand.form }, factor,
      { grant: "wrong_code", repeats: true }, { pending: found.id, ...demand });
  }

  /** Asks for tokens, and keeps the session that they open. */
  async signIn(form, factor, options, expected) {
    const tokens = await this.token([...given({ scope: this.scope, ...form }), ...factorOf(factor)], options);
    return this.establish(tokens, expected);
  }

  /** What a step-up has to reach: levels, and the person of the session. */
  async demand({ levels }) {
    const { session, reason = "never" } = await this.look();
    if (!session) throw signedOut(reason);
    return { subject: claimsOf(session.idToken).sub, form: { acr_values: levels.join(" ") } };
  }

  async stepUpWithCode(challenge, request, code, factor) {
    return this.#byCode(request, code, factor, await this.demand(challenge));
  }

  async appInfo() { return (await this.accepted({ method: "GET", path: "/api/app-info" })).json; }

  async requestApproval(hint) {
    const { auth_req_id: handle, expires_in: life, interval, match_number: matchNumber }
      = await this.answerTo("/connect/bc-authorize", { scope: this.scope, login_hint: hint });
    return this.begin("approval", handle, life, { interval, matchNumber });
  }

  async requestDeviceSignIn() {
    const { device_code: handle, expires_in: life, interval, ...more }
      = await this.answerTo("/connect/device_authorization", { scope: this.scope });
    const pages = {
      userCode: more.user_code, verificationUrl: more.verification_uri,
      completeVerificationUrl: more.verification_uri_complete,
    };
    return this.begin("device", handle, life, { interval, pages });
  }

  async beginProvider(provider) {
    const { auth_session: handle, nonce, expires_in: life }
      = await this.answerTo("/connect/federated/begin", { provider });
    const { id, expiresAt } = await this.begin("provider", handle, life);
    return { id, provider, nonce, expiresAt };
  }

  async answerTo(path, form) { return (await this.post(path, given(form))).json ?? NONE; }

  async signInAsTrustedDevice(factor) {
    if (!this.hasKey) throw misuse("a trusted device needs WebCrypto");
    // The nonce of such a proof signs in once, so this is sent once.
    return this.signIn({ grant_type: "urn:postern:device" }, factor, { proof: "device", spends: true });
  }

  async signInWithProvider(request, { identityToken, authorizationCode, firstName, lastName }, factor) {
    const found = await this.pendingOf(request, "provider");
    if (!found) throw misuse("the request is over: begin with beginProvider");
    return this.signIn({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: identityToken, subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      auth_session: found.handle, authorization_code: authorizationCode, first_name: firstName, last_name: lastName,
    }, factor, { repeats: true }, { pending: found.id });
  }

  /** Waits until a request was confirmed elsewhere. Callers share the polls. */
  async wait(request, { secondFactor, signal } = NONE) {
    const found = await this.pendingOf(request, "link", "approval", "device");
    if (!found) throw failure("expired");
    if (signal?.aborted) throw failure("cancelled");
    const { id } = found;
    const poll = this.#polls.get(id) ?? {
      waiting: new Set(), pause: 0, at: moment(),
      interval: Math.min(60_000, Math.max(1000, span(found.interval ?? 5) ?? 5000)) };
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
  #endPoll(id, outcome) {
    const poll = this.#polls.get(id);
    poll?.stop?.abort();
    const isError = outcome instanceof Error;
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
        this.#endPoll(id, outcome);
      }
    }
  }

  async #pollOnce(id, poll, signal) {
    let found;
    try {
      found = (await this.look()).pending.find(one => one.id === id);
      if (!found) throw failure("expired");
      const { kind, handle } = found, [grant_type, member] = POLLS[kind];
      const form = { grant_type, [member]: handle, scope: kind === "link" && this.scope };
      return { outcome: await this.signIn(form, poll.factor, { grant: "expired", signal }, { pending: id }) };
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
      if (["denied", "expired"].includes(code) && !signal.aborted) await this.drop(id).catch(() => {});
      return { outcome: error instanceof PosternError ? error : unavailable() };
    }
  }

  // -- Requests to APIs

  /** Sends a request with an access token; once more after a nonce or with a fresh token, never for a lost answer. */
  async fetch(input, init = NONE, audience) {
    const headers = new Headers(init.headers);
    const url = globalThis.location ? new URL(input, location.href).href : String(input), origin = originOf(url);
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
        const method = (init.method ?? "GET").toUpperCase(), nonce = server.nonce(origin), at = this.time(document);
        headers.set("DPoP", await proof(key, server.tools, { method, url, token, nonce, at }));
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

  constructor(options) {
    this.#machine = new Machine(options);
    inside.set(this, this.#machine);
    this.ready = sure(async () => {
      await this.#machine.look();
      return this.state;
    })();
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
}

// The calls, as `client.d.ts` declares them, for a page that has no view of what is behind them.
for (const name of [
  "appInfo", "requestCode", "register", "requestLink", "resend", "requestApproval", "requestDeviceSignIn", "wait",
  "pending", "forget", "signInWithCode", "signInAsTrustedDevice", "beginProvider", "signInWithProvider", "adopt",
  "stepUpWithCode", "accessToken", "fetch", "account", "signOut",
]) {
  Postern.prototype[name] = sure(function (...call) { return inside.get(this)[name](...call); });
}
