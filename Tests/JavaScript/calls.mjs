// The calls of refresh.json and sign-in.json.

import { PosternError } from "../../clients/js/client.js";

/** The errors that vectors have names for; others are refusals. */
const OWN = new Set([
  "wrong_code", "second_factor_needed", "second_factor_wrong", "denied", "expired", "step_up_needed",
  "address_proof_needed", "names_needed", "rate_limited", "unavailable", "signed_out", "cancelled", "misuse"]);

/** Makes the call that a step names. */
export const perform = (stage, { do: action, audience, email, firstName, totp, recoveryCode, ...step }) => {
  const { client } = stage, made = stage.made[step.of];
  const factor = totp ? { totpCode: totp } : recoveryCode ? { recoveryCode } : undefined;
  switch (action) {
  case "accessToken":
    return client.accessToken(audience?.scopes ? { ...audience, scope: audience.scopes.join(" ") } : audience);
  case "send": return client.fetch(step.url);
  case "signOut": return client.signOut(step.scope);
  case "adopt": return client.adopt(step.refreshToken);
  case "requestCode": return client.requestCode({ email }, firstName && { firstName });
  case "requestLink": return client.requestLink({ email });
  case "requestApproval": return client.requestApproval(step.hint);
  case "requestDeviceSignIn": return client.requestDeviceSignIn();
  case "resend": return client.resend(made);
  case "pending": return client.pending();
  case "forget": return client.forget(made);
  case "signIn": return client.signInWithCode(made, step.code, factor);
  case "wait": return client.wait(made, { secondFactor: factor });
  case "stepUp": return client.stepUpWithCode(step, made, step.code, factor);
  default: throw new Error(`unknown: ${action}`);
  }
};

/** A result as steps describe it. */
export const outcome = (stage, { do: action }, result) => {
  if (action === "accessToken") return { token: result.value };
  if (action === "send") return { status: result.status };
  if (action === "pending") return { pending: result.map(({ id }) => stage.names[id] ?? id) };
  if (["signOut", "forget"].includes(action)) return {};
  if (!result.kind) return { user: result.id };
  return result.kind === "code" ? { made: "code" }
    : { made: "signIn", matchNumber: result.matchNumber, userCode: result.userCode };
};

/** An error as steps describe it. */
export const failure = error => {
  if (!(error instanceof PosternError)) return { error: `no PosternError: ${error.stack}` };
  const { code, status, retryAfter, details: { reason, names } } = error;
  if (!OWN.has(code)) return { error: "refused", code, status };
  return { error: code.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), retryAfter, reason, names };
};
