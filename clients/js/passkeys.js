// Postern's client with passkeys (WebAuthn Level 3).
//
//     import { signInWithPasskey } from "https://auth.example.com/sdk/v1/passkeys.js";

import { bytesOf, inside, sure } from "./answers.js";
import { PosternError, base64url, pause } from "./core.js";

// A form that is filled in waits in the background, a button's dialog takes its place: one request at a time.
let waiting;

export const passkeySupport = async () => {
  const available = Boolean(globalThis.PublicKeyCredential && navigator.credentials);
  return { available, autofill: available && Boolean(await PublicKeyCredential.isConditionalMediationAvailable?.()) };
};

const listed = credentials => credentials?.map(one => ({ ...one, id: bytesOf(one.id) }));

/** What the browser takes, of the options that the server gives. */
const request = ({ challenge, user, allowCredentials, excludeCredentials, ...options }) => ({
  ...options, challenge: bytesOf(challenge), ...(user && { user: { ...user, id: bytesOf(user.id) } }),
  ...(allowCredentials && { allowCredentials: listed(allowCredentials) }),
  ...(excludeCredentials && { excludeCredentials: listed(excludeCredentials) }),
});

/** What the server takes, of the credential that the browser gives. */
const answer = credential => {
  const { id, rawId, type, response, authenticatorAttachment } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const bytes = parts.filter(name => response[name]).map(name => [name, base64url(response[name])]);
  return {
    id, rawId: base64url(rawId), type, authenticatorAttachment: authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: { ...Object.fromEntries(bytes), transports: response.getTransports?.() },
  };
};

/** Runs a dialog once the one before it has ended: to abort it takes time. */
const dialog = async (client, method, options, { mediation, signal } = {}) => {
  const { passkeys } = client.platform;
  if (!passkeys && !(await passkeySupport()).available) throw missing("passkeys");
  while (waiting) {
    // What waits in the form gives way to a button, and not the other way round.
    if (!mediation || waiting.mediation) waiting.stop.abort();
    await waiting.end;
  }
  if (signal?.aborted) throw cancelled();
  const stop = new AbortController(), abort = () => stop.abort();
  signal?.addEventListener("abort", abort);
  const own = waiting = { stop, mediation };
  const call = { publicKey: request(options), signal: stop.signal, ...(mediation && { mediation }) };
  const ran = passkeys ? passkeys[method](options) : navigator.credentials[method](call);
  own.end = Promise.resolve(ran).then(() => {}, () => {}).then(() => { if (waiting === own) waiting = undefined; });
  try {
    const credential = await ran;
    if (!credential) throw cancelled();
    return passkeys ? credential : answer(credential);
  } catch (error) {
    if (error instanceof PosternError) throw error;
    if (error?.name === "InvalidStateError") throw new PosternError("already_there", "There is one of this account.");
    if (["NotAllowedError", "AbortError"].includes(error?.name)) throw cancelled();
    // Nothing of its text, which may hold anything.
    throw new PosternError("dialog_failed", error?.name);
  } finally {
    signal?.removeEventListener("abort", abort);
    await own.end;
  }
};
const missing = what => new PosternError("misuse", `there are no ${what} here: see passkeySupport`);
const cancelled = () => new PosternError("cancelled", "It was given up.");

const begin = (client, form = []) => client.post("/connect/passkey/begin", form, { proof: "session" });

const finish = async (client, ceremony, credential, demand = {}) => {
  const tokens = await client.token([
    ["grant_type", "urn:cocoar:passkey"], ["ceremony_id", ceremony.ceremonyId],
    ["assertion", JSON.stringify(credential)], ["scope", client.scope], ...demand.form ?? [],
  ], { repeats: client.dpop !== "off" && client.hasKey });
  return client.establish(tokens, demand);
};

const byDialog = async (client, options, demand) => {
  let ceremony = await begin(client), credential;
  try {
    credential = await dialog(client, "get", ceremony.options, options);
  } catch (error) {
    // After a move of domains the passkey of the former domain is asked for second.
    const former = ceremony.rpIds?.[1];
    if (error.code !== "cancelled" || !former || options?.signal?.aborted) throw error;
    ceremony = await begin(client, [["rp_id", former]]);
    credential = await dialog(client, "get", ceremony.options, options);
  }
  return finish(client, ceremony, credential, demand);
};

/** Waits in the form's own list; a new ceremony begins before the old one ends, while the page is seen. */
const byAutofill = async (client, { signal } = {}) => {
  if (!client.platform.passkeys && !(await passkeySupport()).autofill) {
    throw missing("passkeys in forms");
  }
  for (;;) {
    const ceremony = await begin(client), renewing = new AbortController();
    const abort = () => renewing.abort();
    signal?.addEventListener("abort", abort);
    let isOver = false;
    const due = pause(Math.max(10_000, (ceremony.options.timeout ?? 300_000) - 30_000)).then(async () => {
      while (!isOver && globalThis.document?.hidden) {
        await new Promise(seen => document.addEventListener("visibilitychange", seen, { once: true }));
      }
      if (!isOver) renewing.isDue = true;
      renewing.abort();
    });
    try {
      const options = { mediation: "conditional", signal: renewing.signal };
      const credential = await dialog(client, "get", ceremony.options, options);
      return await finish(client, ceremony, credential);
    } catch (error) {
      if (error.code !== "cancelled" || !renewing.isDue || signal?.aborted) throw error;
    } finally {
      isOver = true;
      void due;
      signal?.removeEventListener("abort", abort);
    }
  }
};

/** Signs in. `autofill`: waits until a passkey is picked in the form. - Rejects: `cancelled`; `misuse` without any. */
export const signInWithPasskey = sure(async (postern, options = {}) =>
  options.autofill ? byAutofill(inside.get(postern), options) : byDialog(inside.get(postern), options));

/** Signs the present user in again, as a server asked for (RFC 9470). */
export const stepUpWithPasskey = sure(async (postern, challenge) => {
  const client = inside.get(postern);
  return byDialog(client, {}, await client.demand(challenge));
});

/** Adds a passkey to the account. - Rejects: `step_up_needed` after ten minutes; `already_there`; `cancelled`. */
export const addPasskey = sure(async (postern, { name, signal } = {}) => {
  const client = inside.get(postern), path = "/connect/passkey/enroll";
  const { ceremonyId, options } = await client.account("POST", `${path}/begin`);
  const attestation = await dialog(client, "create", options, { signal });
  return client.account("POST", path, { ceremonyId, attestation, DisplayName: name }, { repeats: true });
});

/** Tells the browser's password manager which passkeys still count, where it listens. */
export const signalPasskeys = sure(async postern => {
  const { PublicKeyCredential: browser } = globalThis;
  const { allAcceptedCredentials = [], currentUserDetails = [] }
    = await inside.get(postern).account("GET", "/connect/passkey/signals");
  // A browser refuses those of other domains.
  for (const one of allAcceptedCredentials) await browser?.signalAllAcceptedCredentials?.(one).catch(() => {});
  for (const one of currentUserDetails) await browser?.signalCurrentUserDetails?.(one).catch(() => {});
});
