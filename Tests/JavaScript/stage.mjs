// Plays the steps of refresh.json and sign-in.json with the client, in virtual time.

import { createHash } from "node:crypto";

import { Postern } from "../../clients/js/client.js";
import { failure, outcome, perform } from "./calls.mjs";
import { elapse, eventually, matches, settle, time } from "./clock.mjs";
import { KEY, match } from "./matching.mjs";

const EMPTY = { v: 1, tokens: [], pending: [], revoke: [] };
/** The device of a case: what the client sees of it, and what steps do. */
class Stage {
  life = 0; sent = []; checked = 0; revoked = []; calls = {}; made = {}; names = {}; proofs = new Set(); states = [];

  constructor(file, { client: { scopes, key } = {}, store }) {
    Object.assign(time, { epoch: file.epoch, passed: 0, shift: 0, sleepers: [] });
    Object.assign(this, { file, scopes, dpop: key === "none" ? "off" : "auto" });
    const named = this.named(store);
    this.text = JSON.stringify({ ...EMPTY, ...(named.key !== false && { key: KEY.private }) });
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
    const proof = fields.get("DPoP");
    return new Promise((resolve, reject) => { this.sent.push({ request, proof, resolve, reject }); });
  }

  change({ session, access, hint }) {
    const document = JSON.parse(this.text);
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
    const { session, tokens = [], hint, pending = [], revoke = [], key, clock = 0 } = JSON.parse(this.text);
    return {
      session: this.sid(session) ?? null, refresh: session?.refresh ?? null, access: tokens.map(({ value }) => value),
      hint: hint ?? null, pending: pending.map(({ id }) => this.names[id] ?? id), revoke, key: Boolean(key), clock };
  }

  call(name, step) {
    const call = this.calls[name] = {};
    perform(this, step).then(result => {
      if (result?.kind && step.do !== "resend") [this.made[name], this.names[result.id]] = [result, name];
      call.outcome = outcome(this, step, result);
    }, error => { call.outcome = failure(error); });
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
    if (step.store) await matches(step.store, () => this.facts(), "store");
    if (step.states) await matches(step.states, () => this.states, "states");
    // An app is told by the calls alone that the store is locked.
    if (step.state === "locked") match("unavailable", await this.client.pending().catch(({ code }) => code), "state");
    else if (step.state) await matches(step.state, () => this.described(this.client.state), "state");
    if (step.other) this.change(step.other);
    for (const name of ["locked", "writeFails", "offline"]) if (name in step) this[name] = step[name];
    if (step.revoked) await matches([...step.revoked].sort(), () => [...this.revoked].sort(), "revoked");
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
    const hash = text => createHash("sha256").update(text).digest("base64url");
    match({
      jti: { $: "string" }, iat: { $: "any" }, nonce: { $: "any" }, ...(expected.nonce && { nonce: expected.nonce }),
      htm: request.method, htu: request.url.replace(/[?#].*/, ""),
      ...(token && { ath: hash(token) }),
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
    // A request that is under way has a limit of its own.
    const fits = () => next() >= least && next() <= most;
    await eventually(() => fits() || (maybe && this.sent.length > this.checked), () => `it waits ${next()} s`);
    if (fits()) elapse(passes ?? next());
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
  const [more] = stage.sent.slice(stage.checked);
  if (more) throw new Error(`a request too many: ${JSON.stringify(more.request)}`);
};
