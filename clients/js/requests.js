// Postern's client: requests under way, each a code, a link or a confirmation that is awaited.

import { NONE, base64url, utf8 } from "./core.js";
import { failure, hex, misuse, refusal, span, unavailable } from "./answers.js";
import { Session } from "./session.js";

/** As the app sees a request: no handle. */
const shown = ({ id, kind, address, expires: expiresAt, resend: resendAt, sendsLeft, matchNumber, pages = {} }) => ({
  kind: kind === "registration" ? "code" : kind, id, address, expiresAt, resendAt, sendsLeft, matchNumber, ...pages,
});

/** The requests of a client. */
export class Requests extends Session {
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

  drop(id) {
    return this.edit(document => { document.pending = document.pending.filter(one => one.id !== id); });
  }

  /** Asks for a message with a code or a link. */
  async #ask(kind, address, { firstName: FirstName, lastName: LastName } = NONE) {
    const { email, phone, channel = "sms" } = address;
    if (!email && !phone) throw misuse("an address has email or phone");
    const asked = email ? { Email: email } : { Phone: phone, ...(kind !== "link" && { Channel: channel }) };
    const { handle, life, ...members } = await this.#message(kind, { ...asked, FirstName, LastName });
    return this.begin(kind, handle, life, { address, ...members });
  }
  requestCode(address, names) { return this.#ask("code", address, names); }
  register(address, names) { return this.#ask("registration", address, names); }
  requestLink(address, names) { return this.#ask("link", address, names); }

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
    const { AuthSession: handle, ExpiresIn: life, ResendAfter, Interval: interval, ...more } = answer.json ?? NONE;
    const { AuthSession, ...asked } = members, wait = span(ResendAfter);
    if (!handle || span(life) === undefined || wait === undefined) throw unavailable();
    return {
      asked, handle, life, interval, resend: Date.now() + wait,
      sendsLeft: more.SendsLeft, matchNumber: more.MatchNumber,
    };
  }

  /** Work that the server asks of strangers: the number whose SHA-256, behind a salt, is given (ALTCHA, version 1). */
  async #solve({ algorithm, challenge, salt, signature, maxnumber } = NONE) {
    const { sha256 } = this.server.tools, isSmall = maxnumber <= 5_000_000 && salt?.length <= 1024;
    if (!this.hasDigest || algorithm !== "SHA-256" || !isSmall) return undefined;
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
}
