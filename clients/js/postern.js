// Postern's browser module: proof of a phone number (AuthenticatorBuilder) and trusted devices (TrustedDevice).
//
//     import { AuthenticatorBuilder, TrustedDevice } from "https://auth.example.com/sdk/v1/postern.js";
//
// It speaks only to the server that it came from. Whether a number is proven, the page's backend asks.

import { NONE, PosternError, Server, digest, forget, keep, noAnswer, pause, sweep } from "./core.js";

export { PosternError };

const SERVER = new URL(import.meta.url).origin;
const server = new Server(SERVER);

/** What the finish step of a code, or the retry step of a link, resolves with. */
export const OtpFinishResultType = Object.freeze({ OnSuccess: 0, OnResendOtp: 1, OnMobileNumberChange: 2 });

// A browser may send a request twice after a broken connection: the second copy finds its proof used.
const isLost = error => error.status >= 500 || ["network", "invalid_dpop_proof"].includes(error.code);

// -- Proof of a phone number

/** A step is a function or an object with the method `execute`. */
const run = async (step, ...values) => typeof step === "function" ? step(...values) : step.execute(...values);

/** A number of `OtpFinishResultType`, by itself or as the member `resultType`. */
const choice = result => typeof result === "number" ? result : result?.resultType ?? OtpFinishResultType.OnSuccess;

/** What the next step is told about a failure. */
const notice = error => error.code === "invalid_dpop_proof" ? notice(noAnswer())
  : { ...error.details, code: error.code, message: error.message };

/** Whether a transaction goes on once the person did something else. */
const isMendable = error => error?.status === 429 || [
  "otp_invalid", "invalid_request", "resend_too_soon", "send_limit", "phone_change_not_allowed",
].includes(error?.code);

/** Whether the same message may be asked for a little later. */
const isTooSoon = error => error.code === "resend_too_soon" || error.status === 429;

const isOver = state => ["passed", "required", "failed", "redeemed"].includes(state);

/** The server's side of one transaction. */
class Transaction {
  constructor(authToken, authId) {
    this.authToken = authToken;
    this.authId = authId;
  }

  /** Begins it, and pins it to the key of this browser. The token brings the first nonce along. */
  static async open(authToken) {
    try {
      const payload = authToken.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
      server.learn(JSON.parse(atob(payload)).nonce);
    } catch { /* Not a token: the server says so. */ }
    const made = new Transaction(authToken);
    await made.reopen();
    await sweep();
    await keep("transactions", made.authId, { authToken, at: Date.now() });
    return made;
  }

  /** What the server knows of it: `state`, `channels`, `phoneNumberNeeded`, `sendsLeft`. */
  async reopen() {
    this.known = await this.ask("open", {});
    this.authId = this.known.authId;
    return this.known;
  }

  async call(step, members, signal) {
    const path = `/connect/possession/${step}`;
    return server.call("POST", path, { token: this.authToken, body: () => members, signal, wait: members.wait });
  }

  /** A call that changes nothing when it is repeated: for half a minute of a broken network it is. */
  async ask(step, members, signal) {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.call(step, members, signal);
      } catch (error) {
        const most = error.code === "invalid_dpop_proof" ? 1 : 5;
        if (signal?.aborted || failures === most || !isLost(error)) throw error;
        await pause(1000 * Math.max(2 ** failures, error.details.retryAfter ?? 0));
      }
    }
  }

  /** Asks for a message. A lost answer is not repeated: each message counts. */
  async send(channel, phoneNumber) {
    try {
      const sent = await this.call("send", { channel, ...(phoneNumber && { phoneNumber }) });
      this.known.sendsLeft = sent.sendsLeft;
      return sent;
    } catch (error) {
      // Asked again sooner, the server refuses again.
      if (isTooSoon(error)) {
        this.dueAt = Date.now() + 1000 * (error.details.resendAfter ?? error.details.retryAfter ?? 1);
      }
      throw error;
    }
  }

  /** Waits until it is over. - Returns: its last state. */
  async end(signal) {
    for (;;) {
      const asked = Date.now();
      const { state, retryAfter = 0 } = await this.ask("result", { wait: 25 }, signal);
      if (isOver(state)) return state;
      // A server that cannot hold the answer says so.
      await pause(Math.max(1000 * retryAfter, 1000 - (Date.now() - asked)));
      signal.throwIfAborted();
    }
  }

  /** The state that a failure tells, or the server after a lost answer; nothing while it goes on. */
  async stateAfter(error) {
    if (error?.code === "possession_failed") return "failed";
    if (error?.code === "transaction_over") return error.details.state;
    if (!(error instanceof PosternError) || !isLost(error)) return undefined;
    const { state } = await this.ask("result", { wait: 0 });
    return isOver(state) ? state : undefined;
  }

  async cancel() {
    try {
      await this.call("cancel", {});
    } catch { /* It ends by itself after 15 minutes. */ }
  }
}

/** What an `authenticate` of this page waits for. */
const waitedFor = new Set();

/** Builds an authenticator. Every step may be a function or an object with the method `execute`. */
export class AuthenticatorBuilder {
  #steps = {};

  /** `step({authId})`: runs at the end, so that the page asks its backend what came of it. */
  withAuthFinishStep(step) { return this.#with({ finish: step }); }

  /**
   * `start(phoneNumberNeeded, error?)` resolves with `{phoneNumber}` or nothing, once the person agrees to a message.
   * `finish(error?)` resolves with `{input: {otp}, resultType}`.
   */
  withOtpFallback(start, finish) { return this.#with({ otpStart: start, otpFinish: finish }); }

  /**
   * `start` as above. `retry(error?)` resolves with `OnResendOtp` or `OnMobileNumberChange` for another message; with
   * anything else it is not asked again.
   */
  withInstantLinkFallback(start, retry) { return this.#with({ linkStart: start, linkRetry: retry }); }

  /**
   * `show({matchNumber})`: displays the two digits that the person types on the page behind the link. Needed for links
   * where the realm has `link_match` on, else `authenticate` rejects with `misuse`.
   */
  withMatchNumber(show) { return this.#with({ showNumber: show }); }

  /** `"secondary"`: the phone is another device than this one, so that a link is preferred to a code. */
  withRole(role) { return this.#with({ role }); }

  /** Without effect, as the next: a page cannot ask the mobile network, and nothing is collected about the device. */
  withMobileAuthImplementation() { return this; }
  withDeviceContext() { return this; }

  build() { return new Authenticator({ ...this.#steps }); }

  #with(steps) {
    Object.assign(this.#steps, steps);
    return this;
  }
}

/** Made by `AuthenticatorBuilder`. */
class Authenticator {
  #steps;

  constructor(steps) { this.#steps = steps; }

  /** Whether this browser runs on a phone or tablet. */
  isMobileWeb() {
    const { userAgent, userAgentData, maxTouchPoints } = /** @type {any} */ (navigator);
    return Boolean(userAgentData?.mobile) || /Android|iPhone|iPad|iPod|Mobile/.test(userAgent)
      // An iPad calls itself a Macintosh.
      || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
  }

  /**
   * Runs the transaction of an authToken to its end. The finish step runs at every end that the server decided.
   * - Resolves: `{authId, state}`; `passed`, or `required` where the backend has to prove the number itself.
   * - Rejects: `possession_failed` after a failure; what a step rejected with, after the transaction was cancelled.
   */
  async authenticate(authToken) {
    const transaction = await Transaction.open(authToken);
    const { authId, known } = transaction;
    waitedFor.add(authId);
    try {
      const state = isOver(known.state) ? known.state : await this.#ask(transaction);
      await this.#finish(authId);
      if (state === "failed") {
        throw new PosternError("possession_failed", "The phone number was not proven.", 0, { authId, state });
      }
      return { authId, state };
    } finally {
      waitedFor.delete(authId);
      await forget("transactions", authId);
    }
  }

  /**
   * Ends the transaction whose link was opened in this browser: on the page that the link led to, with its address.
   * The finish step runs here if no `authenticate` of this page waits.
   * - Resolves: `{authId, state}`. - Rejects: `redirect_invalid`, `redirect_unknown`: then nothing has changed.
   */
  async finishInstantLink(redirectUrl) {
    const [authId, ...more] = new URL(redirectUrl, location.href).searchParams.getAll("authId");
    if (!authId || more.length) throw new PosternError("redirect_invalid", "The address has not one authId.");
    const kept = await keep("transactions", authId);
    if (!kept) throw new PosternError("redirect_unknown", "This sign-in was not started in this browser.");
    const transaction = new Transaction(kept.authToken, authId);
    let state;
    try {
      ({ state } = await transaction.call("finish", { redirectUrl }));
    } catch (error) {
      state = await transaction.stateAfter(error);
      if (!state) throw error;
    }
    if (!waitedFor.has(authId)) await this.#finish(authId);
    return { authId, state };
  }

  async #finish(authId) {
    if (this.#steps.finish) await run(this.#steps.finish, { authId });
  }

  /** Asks the person. - Returns: the last state. A step that rejects cancels the transaction. */
  async #ask(transaction) {
    const { otpFinish, linkStart, role } = this.#steps;
    const offered = transaction.known.channels ?? [];
    const [code, link] = [otpFinish && offered.includes("otp"), linkStart && offered.includes("link")];
    try {
      if (link && (role === "secondary" || !code)) return await this.#byLink(transaction);
      if (code) return await this.#byCode(transaction);
      throw new PosternError("channel_not_available", `No step was given for: ${offered.join(", ")}.`);
    } catch (error) {
      const state = await transaction.stateAfter(error);
      if (state) return state;
      await transaction.cancel();
      throw error;
    }
  }

  /**
   * Runs a start step until a message is sent; a number that is needed or refused is asked for again. `changes`: the
   * step gives another number, and hears that it has to wait. Else the person has agreed, and this waits.
   */
  async #start(transaction, channel, start, isNeeded, changes = false) {
    let asks = true;
    let input, error;
    for (;;) {
      if (asks) input = await run(start, isNeeded, error);
      asks = true;
      const { sendsLeft } = transaction.known;
      try {
        await this.#untilDue(transaction);
        return await transaction.send(channel, input?.phoneNumber);
      } catch (failure) {
        if (isLost(failure)) {
          const known = await transaction.reopen();
          // Only the answer is lost. That of a link has the number to show, so that another link is needed.
          if (channel === "otp" && known.sendsLeft < sendsLeft) return {};
        } else if (isTooSoon(failure)) {
          asks = changes;
        } else if (String(failure.code).startsWith("phone_number_")) {
          isNeeded = true;
        } else {
          throw failure;
        }
        error = notice(failure);
      }
    }
  }

  /** Waits until the server takes another message. What was sent before may end the transaction meanwhile. */
  async #untilDue(transaction) {
    const rest = (transaction.dueAt ?? 0) - Date.now();
    if (rest <= 0) return;
    const waiting = new AbortController();
    const end = transaction.end(waiting.signal);
    end.catch(() => {});
    try {
      const state = await Promise.race([end, pause(rest)]);
      if (state) throw new PosternError("transaction_over", "The transaction is over.", 0, { state });
    } finally {
      waiting.abort();
    }
  }

  async #byCode(transaction) {
    const { otpStart, otpFinish } = this.#steps;
    const { state, phoneNumberNeeded } = transaction.known;
    // After a reload the message is there already.
    if (state !== "sent") await this.#start(transaction, "otp", otpStart, phoneNumberNeeded);
    for (let error; ;) {
      const result = await run(otpFinish, error);
      error = undefined;
      try {
        switch (choice(result)) {
        case OtpFinishResultType.OnResendOtp:
          await transaction.send("otp");
          break;
        case OtpFinishResultType.OnMobileNumberChange:
          await this.#start(transaction, "otp", otpStart, true, true);
          break;
        default:
          return (await transaction.call("check", { otp: result.input?.otp ?? result.otp })).state;
        }
      } catch (failure) {
        // A lost try may have counted. The state says what is so, and the person what comes next.
        const state = await transaction.stateAfter(failure);
        if (state) return state;
        if (!isMendable(failure) && !isLost(failure)) throw failure;
        error = notice(failure);
      }
    }
  }

  async #byLink(transaction) {
    const { linkStart, showNumber } = this.#steps;
    const { state, phoneNumberNeeded } = transaction.known;
    let sent = state === "linked" ? {} : await this.#start(transaction, "link", linkStart, phoneNumberNeeded);
    for (let error; ;) {
      const { matchNumber } = sent;
      if (matchNumber && !showNumber) {
        throw new PosternError("misuse", "The page behind the link asks for two digits that this page has to display: "
          + "add withMatchNumber(show), or switch link_match off (admin.put_possession_client).");
      }
      if (matchNumber) await run(showNumber, { matchNumber });
      const { state, type } = await this.#endOrRetry(transaction, error);
      if (state) return state;
      [sent, error] = [{}, undefined];
      try {
        sent = type === OtpFinishResultType.OnMobileNumberChange
          ? await this.#start(transaction, "link", linkStart, true, true) : await transaction.send("link");
      } catch (failure) {
        if (!isMendable(failure) && !isLost(failure)) throw failure;
        error = notice(failure);
      }
    }
  }

  /** Waits for the end of the transaction, or until the retry step asks for another message. */
  async #endOrRetry(transaction, error) {
    const { linkRetry } = this.#steps;
    const waiting = new AbortController();
    const end = transaction.end(waiting.signal).then(state => ({ state }));
    end.catch(() => {});
    try {
      if (!linkRetry) return await end;
      return await Promise.race([end, run(linkRetry, error).then(result => {
        const type = choice(result);
        // The person has nothing to ask for: the link may still be opened.
        return type === OtpFinishResultType.OnSuccess ? end : { type };
      })]);
    } finally {
      waiting.abort();
    }
  }
}

// -- Trusted devices

/** Digits as a person types them, as ASCII. */
export const typedDigits = text => String(text ?? "")
  .replace(/[\p{White_Space}\p{Dash}\p{Default_Ignorable_Code_Point}]/gu, "")
  .replace(/\p{Nd}/gu, digit => {
    let place = 0; // Every script has its ten digits in order.
    while (/\p{Nd}/u.test(String.fromCodePoint(digit.codePointAt(0) - place - 1))) place++;
    return String(place % 10);
  });

let discovered;

/** The issuer, which approvals are addressed to. */
const issuer = () => discovered ??= server.call("GET", "/.well-known/openid-configuration", { proves: false })
  .then(answer => answer.issuer)
  .catch(error => { discovered = undefined; throw error; });

const signed = async (typ, members) =>
  server.signed(typ, { aud: await issuer(), iat: Math.floor(Date.now() / 1000), ...members });

/** An access token as text, or the answer of the token endpoint. A bound one must be bound to this browser's key. */
const access = tokens => typeof tokens === "string" ? { token: tokens, scheme: "Bearer", proves: false }
  : { token: tokens.access_token, scheme: tokens.token_type, proves: tokens.token_type === "DPoP" };

/** This browser as a trusted device: it answers requests to sign in, signs in by itself, and adopts others. */
export class TrustedDevice {
  #clientID;

  /** `clientId`: the client through which the device is added and signs in. */
  constructor({ clientId } = NONE) { this.#clientID = clientId; }

  /** Makes this browser a trusted device of the user who signed in within ten minutes. */
  async enroll(tokens, { displayName, pushHandle } = NONE) {
    const body = async prove => ({ Proof: await prove(), DisplayName: displayName, PushHandle: pushHandle });
    return server.call("POST", "/connect/devices", { ...access(tokens), body });
  }

  /** This browser as the server knows it; `null` while it is no trusted device. */
  async self() {
    try {
      return await server.call("GET", "/connect/devices/self");
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  /**
   * What waits for an answer: `{Approvals, QuietUntil?, ProbationUntil?, retryAfter?}`.
   * `wait`: seconds, up to 25, that the server may hold an empty answer. `signal` ends the call.
   */
  async approvals({ wait = 0, signal } = NONE) {
    const query = wait ? `?wait=${Math.min(25, Math.floor(wait))}` : "";
    return server.call("GET", `/connect/approvals${query}`, { signal });
  }

  /**
   * Answers an item of `approvals()`, exactly as it was displayed. `decision`: `approve`, `deny` or `report`.
   * `matchNumber`: the two digits that the person typed. A repeated answer changes nothing.
   */
  async answer(approval, decision, matchNumber) {
    const response = await signed("postern-approval+jwt", {
      approval_id: approval.Id, challenge: approval.Challenge, decision,
      client_id: approval.ClientId, event: approval.Event, binding_message: approval.BindingMessage,
      ...(decision === "approve" && approval.MatchRequired && { match_number: typedDigits(matchNumber) }),
    });
    const body = () => ({ Response: response });
    return server.call("POST", `/connect/approvals/${approval.Id}`, { proves: false, body });
  }

  /** Offers this browser to a trusted device: display `QrText` as a QR code and `CheckCode`, then ask `self()`. */
  async offer({ displayName } = NONE) {
    const body = () => ({ ClientId: this.#clientID, DisplayName: displayName });
    return server.call("POST", "/connect/devices/offer", { body });
  }

  /**
   * Adopts the device that displays `qrText`. `ask(offer)` displays what is offered (`DisplayName`, `ClientName`,
   * `Source`) and resolves with the four digits of the other screen; if it rejects, nothing is adopted.
   */
  async adopt(tokens, qrText, ask) {
    const [, host, offer] = /^postern-device:(.+):([^:]+)$/.exec(qrText) ?? [];
    if (host !== new URL(SERVER).hostname) throw new PosternError("invalid_offer", "The code is not of this server.");
    const by = access(tokens);
    const body = () => ({ Offer: offer });
    const offered = await server.call("POST", "/connect/devices/inspect", { ...by, body });
    const digits = await ask(offered);
    const approval = await signed("postern-adopt+jwt", {
      offer: await digest(offer), jkt: offer.slice(4).split(".")[0], check_code: typedDigits(digits),
    });
    const adopted = () => ({ Offer: offer, Approval: approval });
    return server.call("POST", "/connect/devices/adopt", { ...by, body: adopted });
  }

  /** Signs its user in. - Resolves: the answer of the token endpoint; the tokens are bound to this browser's key. */
  async signIn({ scope = "openid", totpCode, resource } = NONE) {
    const form = [["grant_type", "urn:postern:device"], ["client_id", this.#clientID], ["scope", scope]];
    if (totpCode) form.push(["totp_code", totpCode]);
    for (const one of [resource ?? []].flat()) form.push(["resource", one]);
    return server.call("POST", "/connect/token", { form });
  }

  /** Ends the trust in this browser. - Resolves: whether it was trusted. */
  async remove() {
    const device = await this.self();
    if (!device) return false;
    await server.call("DELETE", `/connect/devices/${device.Id}`);
    return true;
  }
}
