// Plays the steps of refresh.json and sign-in.json with the client, in virtual time.

import { Postern, PosternError } from "../../clients/js/client.js";
import { KEY, match } from "./matching.mjs";

// -- Virtual time, for the modules alone

const time = { epoch: 0, passed: 0, shift: 0, sleepers: [] };
const { setTimeout: later } = globalThis;
const settle = () => new Promise(resolve => later(resolve, 2));
Date.now = () => 1000 * (time.epoch + time.passed + time.shift);
Object.defineProperty(globalThis, "performance", { value: { now: () => 1000 * time.passed } });
globalThis.setTimeout = (run, after) => { time.sleepers.push({ run, due: time.passed + after / 1000 }); };
const elapse = seconds => {
  time.passed += seconds;
  const due = time.sleepers.filter(one => one.due <= time.passed + 1e-6);
  time.sleepers = time.sleepers.filter(one => !due.includes(one));
  due.forEach(one => one.run());
};
const eventually = async (holds, text) => {
  for (let tries = 0; !await holds(); tries++) {
    if (tries > 200) throw new Error(typeof text === "function" ? text() : text);
    await settle();
  }
};

/** The device of a case: what the client sees of it, and what steps do. */
class Stage {
  life = 0; sent = []; checked = 0; revoked = []; calls = {}; made = {}; names = {}; proofs = new Set(); states = [];

  constructor(file, { client: { scopes, key } = {}, store }) {
    Object.assign(time, { epoch: file.epoch, passed: 0, shift: 0, sleepers: [] });
    Object.assign(this, { file, scopes, dpop: key === "none" ? "off" : "auto" });
    const named = this.named(store);
    this.text = named.key === false ? null : JSON.stringify({ v: 1, tokens: [], pending: [], revoke: [], key: KEY.private });
    this.change(named);
    this.start();
  }

  /** Names of ID tokens are their texts. */
  named(value) {
    if (typeof value === "string") return this.file.id_tokens[value]?.jwt ?? value;
    if (!value || typeof value !== "object") return value;
    return Array.isArray(value) ? value.map(one => this.named(one))
      : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.named(one)]));
  }

  start() {
    const life = ++this.life;
    const alive = () => { if (life !== this.life || this.locked) throw new Error("locked"); };
    this.client = new Postern({
      origin: this.file.origin, clientId: this.file.clientId, scope: this.scopes, dpop: this.dpop,
      platform: {
        fetch: (url, init) => life === this.life ? this.send(url, init) : new Promise(() => {}),
        store: {
          get: async name => { alive(); return name.endsWith("damaged") ? null : this.text; },
          set: async (name, text) => {
            alive();
            if (this.writeFails) throw new Error("disk full");
            if (!name.endsWith("damaged")) this.text = text;
          },
        },
      },
    });
    let isFirst = true;
    this.client.subscribe(state => { isFirst ? isFirst = false : this.states.push(this.described(state)); });
  }

  described({ signedIn, user, reason }) { return signedIn ? `signedIn:${user.id}` : `signedOut:${reason}`; }

  send(url, { method = "GET", headers = {}, body }) {
    const fields = new Headers(headers), type = fields.get("Content-Type") ?? "";
    const form = type.includes("form") ? Object.fromEntries(new URLSearchParams(body)) : undefined;
    if (url.endsWith("/connect/revoke")) {
      if (this.offline) throw new TypeError("offline");
      this.revoked.push(form.token);
      return new Response("", { status: 200 });
    }
    const request = { method, url, authorization: fields.get("Authorization") ?? undefined, form };
    if (type.includes("json")) request.json = JSON.parse(body);
    return new Promise((resolve, reject) => { this.sent.push({ request, proof: fields.get("DPoP"), resolve, reject }); });
  }

  change({ session, access, hint }) {
    const document = JSON.parse(this.text ?? '{"v":1,"tokens":[],"pending":[],"revoke":[]}');
    const audience = name => name?.scopes ? `api ${[...name.scopes].sort().join(" ")}|${name.resource ?? ""}` : name;
    if (session) {
      document.session = {
        id: this.sid(document.session) === this.sid(session) ? document.session.id : `of ${this.sid(session)}`,
        idToken: session.idToken,
        refresh: session.refresh ?? undefined, scope: this.scopes ?? "openid offline_access",
        jkt: session.bound ? KEY.thumbprint : undefined };
    }
    if (access) {
      document.tokens = access.map(({ value, audience: name, issued, expires }) => ({
        audience: audience(name), value, scope: "", type: document.session.jkt ? "DPoP" : "Bearer",
        issued: 1000 * (time.epoch + issued), expires: 1000 * (time.epoch + expires) }));
    }
    if (hint) document.hint = hint;
    this.text = JSON.stringify(document);
  }

  sid(session) {
    return session && Object.values(this.file.id_tokens).find(({ jwt }) => jwt === session.idToken).claims.sid;
  }

  facts() {
    const { session, tokens = [], hint, pending = [], revoke = [], key, clock = 0 } = JSON.parse(this.text) ?? {};
    return {
      session: this.sid(session) ?? null, refresh: session?.refresh ?? null, access: tokens.map(({ value }) => value),
      hint: hint ?? null, pending: pending.map(({ id }) => this.names[id] ?? id), revoke, key: Boolean(key), clock };
  }

  call(name, step) {
    const call = this.calls[name] = {};
    this.perform(step).then(result => {
      if (result?.kind && step.do !== "resend") [this.made[name], this.names[result.id]] = [result, name];
      call.outcome = this.outcome(step, result);
    }, error => { call.outcome = this.failure(error); });
  }

  perform({ do: action, audience, url, scope, refreshToken, email, firstName, hint, of, code, totp, recoveryCode, levels, maxAge }) {
    const { client } = this, made = this.made[of];
    const factor = totp ? { totpCode: totp } : recoveryCode ? { recoveryCode } : undefined;
    switch (action) {
    case "accessToken":
      return client.accessToken(audience?.scopes ? { scope: audience.scopes.join(" "), resource: audience.resource } : audience);
    case "send": return client.fetch(url);
    case "signOut": return client.signOut(scope);
    case "adopt": return client.adopt(refreshToken);
    case "requestCode": return client.requestCode({ email }, firstName && { firstName });
    case "requestLink": return client.requestLink({ email });
    case "requestApproval": return client.requestApproval(hint);
    case "requestDeviceSignIn": return client.requestDeviceSignIn();
    case "resend": return client.resend(made);
    case "pending": return client.pending();
    case "forget": return client.forget(made);
    case "signIn": return client.signInWithCode(made, code, factor);
    case "wait": return client.wait(made, { secondFactor: factor });
    case "stepUp": return client.stepUpWithCode({ levels, maxAge }, made, code, factor);
    default: throw new Error(`unknown: ${action}`);
    }
  }

  outcome({ do: action }, result) {
    if (action === "accessToken") return { token: result.value };
    if (action === "send") return { status: result.status };
    if (action === "pending") return { pending: result.map(({ id }) => this.names[id] ?? id) };
    if (["signOut", "forget"].includes(action)) return {};
    if (!result.kind) return { user: result.id };
    return result.kind === "code" ? { made: "code" }
      : { made: "signIn", matchNumber: result.matchNumber, userCode: result.userCode };
  }

  failure(error) {
    if (!(error instanceof PosternError)) return { error: `no PosternError: ${error.stack}` };
    const { code, status, retryAfter, details: { reason, names } } = error;
    const own = /^(wrong_code|second_factor_(needed|wrong)|denied|expired|step_up_needed|address_proof_needed|names_needed|rate_limited|unavailable|signed_out|cancelled|misuse)$/;
    if (!own.test(code)) return { error: "refused", code, status };
    return { error: code.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), retryAfter, reason, names };
  }

  async play(step) {
    if (step.call) this.call(step.call, step);
    if (step.request) await this.request(step.request);
    if (step.answer) this.answer(step);
    if (step.pause) await this.pause(step);
    if (step.pass) elapse(step.pass);
    if (step.wall) time.shift += step.wall;
    if (step.result) {
      const { result, ...expected } = step, call = this.calls[result];
      await eventually(() => call.outcome, "the call has not ended");
      match(expected, call.outcome, "result");
    }
    for (const [name, value] of [["store", () => this.facts()], ["states", () => this.states]]) {
      if (step[name]) await eventually(() => { try { match(step[name], value(), name, true); return true; } catch { return false; } },
        () => `${name}: ${JSON.stringify(value())}`);
    }
    if (step.state === "locked") await this.client.pending().then(() => { throw new Error("not locked"); }, () => {});
    else if (step.state) await eventually(() => this.described(this.client.state) === step.state, () => JSON.stringify(this.client.state));
    if (step.other) this.change(step.other);
    for (const name of ["locked", "writeFails", "offline"]) if (name in step) this[name] = step[name];
    if (step.revoked) await eventually(() => String([...this.revoked].sort()) === String([...step.revoked].sort()), () => `revoked: ${this.revoked}`);
    if (step.restart) {
      time.sleepers = [];
      for (const request of this.sent) request.isAnswered = true;
      this.start();
    }
    for (let turn = 0; turn < 3; turn++) await settle();
  }

  async request({ proof: expected, ...members }) {
    await eventually(() => this.sent.length > this.checked, "no such request was sent");
    const { request, proof } = this.sent[this.checked++];
    match(members, request, "request");
    if (Boolean(expected) !== Boolean(proof)) throw new Error("a proof too many or too few");
    if (!proof) return;
    const [header, claims] = proof.split(".").map((part, at) => at < 2 && JSON.parse(Buffer.from(part, "base64url")));
    if (this.proofs.has(claims.jti)) throw new Error("the proof is not new");
    this.proofs.add(claims.jti);
    const token = request.authorization?.split(" ")[1];
    match({
      jti: { $: "string" }, iat: { $: "any" }, nonce: { $: "any" }, ...(expected.nonce && { nonce: expected.nonce }),
      htm: request.method, htu: request.url.replace(/[?#].*/, ""),
      ...(token && { ath: Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(token))).toString("base64url") }),
    }, claims, "proof");
    match({ typ: "dpop+jwt", alg: "ES256", jwk: KEY.public }, header, "proof");
    const [least, most] = expected.iat ?? [-Infinity, Infinity], issued = claims.iat - time.epoch;
    if (issued < least || issued > most) throw new Error(`iat is ${issued}`);
  }

  answer({ answer, to, after = 0 }) {
    elapse(after);
    const open = to ? this.sent[to - 1] : this.sent.find(({ isAnswered }) => !isAnswered);
    open.isAnswered = true;
    if (answer === "lost") return open.reject(new TypeError("lost"));
    const { status, headers = {}, json, text = "" } = answer;
    open.resolve(new Response(json ? JSON.stringify(json) : text || null, { status, headers }));
  }

  async pause({ pause: [least, most], maybe, passes }) {
    const next = () => Math.min(...time.sleepers.map(({ due }) => due)) - time.passed;
    await eventually(() => time.sleepers.length || (maybe && this.sent.length > this.checked), "the client does not wait");
    if (!time.sleepers.length) return;
    if (next() < least || next() > most) throw new Error(`it waits ${next()} s`);
    elapse(passes ?? next());
  }
}

export const plays = async (file, vector) => {
  const stage = new Stage(file, vector);
  await settle();
  for (const [at, step] of vector.steps.entries()) {
    try {
      await stage.play(stage.named(step));
    } catch (error) {
      throw new Error(`step ${at + 1}, ${JSON.stringify(step).slice(0, 200)}: ${error.message}`);
    }
  }
  if (stage.sent.length > stage.checked) throw new Error(`a request too many: ${JSON.stringify(stage.sent[stage.checked].request)}`);
};
