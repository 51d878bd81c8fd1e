// Postern's client: one call of the server.

import { PosternError, moment, pause, since } from "./core.js";
import { errorOf, failure, refusal, tokensOf, unavailable } from "./answers.js";
import { Keeper } from "./keeper.js";

export const TOKEN = "/connect/token", REVOKE = "/connect/revoke";

/** Growing pauses: 0.5, 1, 2, 4, then 8 s, each a fifth more or less. */
export const pauses = () => {
  let next = 500;
  return (retryAfter = 0) => {
    const rest = Math.max(next * (0.8 + 0.4 * Math.random()), 1000 * retryAfter);
    next = Math.min(2 * next, 8000);
    return rest;
  };
};

/** The calls of a client. */
export class Caller extends Keeper {
  /** The server has answered: it can be reached. */
  answered(_document) {}

  /**
   * Makes a call. Each attempt looks into the store and has a proof of its own. A request for a nonce is answered once;
   * what was lost is sent again for 45 s if the call `repeats`.
   * @returns {Promise<any>} the answer, a refusal too; or `{ lost, retryAfter }` when nothing was decided
   */
  async outcome(call) {
    const { method = "POST", path, token, repeats, signal } = call;
    const began = moment(), rest = pauses();
    let hadNonce, hadProof;
    for (;;) {
      const document = await this.look(), sent = moment();
      let answer;
      try {
        const key = await this.key(call.proof, document);
        answer = await this.server.attempt(method, path, {
          ...call, token: token?.value, scheme: token?.type, key: token?.type === "Bearer" ? undefined : key,
          at: this.time(document),
        });
      } catch (error) {
        if (error instanceof PosternError) throw error;
        throw signal?.aborted ? failure("cancelled") : unavailable();
      }
      // Without query, and without the code that a device shows.
      const shown = path.replace(/\?.*/s, "").replace(/^(\/connect\/device\/).*/s, "$1…");
      this.log("request", { method, path: shown, status: answer?.status ?? 0, ms: Math.round(since(sent)) });
      if (answer && path !== REVOKE) this.answered(document);
      const error = [400, 401].includes(answer?.status) && call.proof && errorOf(answer);
      if (error === "use_dpop_nonce") {
        if (!answer.nonce || hadNonce) return { lost: true };
        this.log("nonce");
        hadNonce = true;
        continue;
      }
      // HTTP stacks repeat requests by themselves; the copy then finds its proof used.
      const isCopy = error === "invalid_dpop_proof";
      if (isCopy && (method !== "POST" || path === TOKEN)) {
        if (hadProof) return answer;
        hadProof = true;
        continue;
      }
      if (answer && !isCopy && answer.status !== 408 && answer.status < 500) return answer;
      const why = !answer && await this.server.whyNot();
      if (why) throw why;
      const retryAfter = answer?.retryAfter, wait = rest(retryAfter);
      if (!repeats || since(began) + wait >= 45_000) return { lost: true, retryAfter };
      this.log("retry");
      await pause(wait);
    }
  }

  /** The same. - Rejects: what a refusal means; `unavailable` when nothing was decided. */
  async accepted(call) {
    const answer = await this.outcome(call);
    if (answer.lost) throw unavailable(answer.retryAfter);
    if (!answer.ok) throw refusal(answer, call.grant);
    return answer;
  }

  /** A form with the client's name. - Resolves: the answer. */
  post(path, form, options) {
    return this.accepted({ path, proof: "session", form: [...form, ["client_id", this.clientId]], ...options });
  }

  async token(form, options) {
    const tokens = tokensOf(await this.post(TOKEN, form, options));
    if (!tokens) throw unavailable();
    await this.learnTime(tokens.claims);
    return tokens;
  }

  /** Seconds by the clock of the server. */
  time({ clock = 0 }) { return Date.now() / 1000 + clock; }

  /** Keeps the difference of the clocks when it is more than half of what a proof may be off (RFC 9449 §11.1). */
  async learnTime(claims) {
    const offset = Math.round(claims?.iat - Date.now() / 1000);
    if (!(Math.abs(offset) < 3_155_760_000)) return;
    await this.edit(document => {
      if (Math.abs(offset - (document.clock ?? 0)) <= 30) return;
      document.clock = Math.abs(offset) > 30 ? offset : undefined;
      this.log("clock", { offset });
    }).catch(() => {});
  }
}
