// Postern's client with passkeys (WebAuthn Level 3).

import { bytesOf, failure, inside, misuse, sure } from "./answers.js";
import { NONE, base64url, pause } from "./core.js";

/** @type {any} What waits in the form or the dialog of a button: one at a time. */
let waiting;

export const passkeySupport = async () => {
  /** @type {any} */
  const browser = globalThis.PublicKeyCredential, available = Boolean(browser && navigator.credentials);
  return { available, autofill: available && Boolean(await browser.isConditionalMediationAvailable?.()) };
};

const withBytes = one => one && { ...one, id: bytesOf(one.id) };
const request = ({ challenge, user, allowCredentials, excludeCredentials, ...options }) => ({
  ...options, challenge: bytesOf(challenge), user: withBytes(user),
  allowCredentials: allowCredentials?.map(withBytes), excludeCredentials: excludeCredentials?.map(withBytes),
});
const answer = credential => {
  const { id, type, response, authenticatorAttachment } = credential, members = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (response[name]) members[name] = base64url(response[name]);
  }
  return {
    id, rawId: id, type, authenticatorAttachment: authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: { ...members, transports: response.getTransports?.() },
  };
};

const ensure = async (client, what) => {
  if (!client.platform.passkeys && !(await passkeySupport())[what]) throw misuse(`not ${what}: see passkeySupport`);
};
/** Aborts with another. */
const following = signal => {
  const stop = new AbortController();
  if (signal?.aborted) stop.abort();
  signal?.addEventListener("abort", () => stop.abort(), { signal: stop.signal });
  return stop;
};

/** Runs a dialog after the one before it, which takes time to abort. */
const dialog = async (client, method, options, { mediation, signal } = NONE) => {
  await ensure(client, "available");
  const { passkeys } = client.platform;
  while (waiting) {
    // The form gives way to a button, and not the other way round.
    if (!mediation || waiting.mediation) waiting.stop.abort();
    await waiting.end;
  }
  if (signal?.aborted) throw failure("cancelled");
  const stop = following(signal);
  const call = passkeys ? options : { publicKey: request(options), signal: stop.signal, mediation };
  const ran = (async () => (passkeys ?? navigator.credentials)[method](call))();
  const end = ran.catch(() => {}).then(() => { waiting = undefined; });
  waiting = { stop, mediation, end };
  try {
    const credential = await ran;
    if (!credential) throw { name: "AbortError" };
    return passkeys ? credential : answer(credential);
  } catch (error) {
    // Its text may hold anything.
    throw failure({
      NotAllowedError: "cancelled", AbortError: "cancelled", InvalidStateError: "already_there",
    }[error?.name] ?? "dialog_failed", { name: error?.name });
  } finally {
    await end;
    stop.abort();
  }
};

const begin = (client, form = NONE) => client.answerTo("/connect/passkey/begin", form);
const signIn = async (client, { ceremonyId: ceremony_id, options }, how, demand = NONE) => {
  const assertion = JSON.stringify(await dialog(client, "get", options, how));
  return client.signIn(
    { grant_type: "urn:cocoar:passkey", ceremony_id, assertion, ...demand.form },
    undefined, { repeats: client.dpop !== "off" && client.hasKey }, demand);
};

const byDialog = async (client, options, demand) => {
  for (let rp_id; ;) {
    const ceremony = await begin(client, { rp_id });
    try {
      return await signIn(client, ceremony, options, demand);
    } catch (error) {
      // After a move of domains the passkey of the former domain is asked for second.
      const former = ceremony.rpIds?.[1];
      if (error.code !== "cancelled" || !former || rp_id || options.signal?.aborted) throw error;
      rp_id = former;
    }
  }
};

/** Waits in the form; a new ceremony begins before the old one ends, while the page is seen. */
const byAutofill = async (client, signal) => {
  await ensure(client, "autofill");
  for (;;) {
    const ceremony = await begin(client), stop = following(signal);
    let isOver = false, isDue = false;
    pause(Math.max(10_000, (ceremony.options.timeout ?? 300_000) - 30_000)).then(async () => {
      while (!isOver && globalThis.document?.hidden) {
        await new Promise(seen => document.addEventListener("visibilitychange", seen, { once: true }));
      }
      isDue = !isOver;
      stop.abort();
    });
    try {
      return await signIn(client, ceremony, { mediation: "conditional", signal: stop.signal });
    } catch (error) {
      if (error.code !== "cancelled" || !isDue || signal?.aborted) throw error;
    } finally {
      isOver = true;
    }
  }
};

export const signInWithPasskey = sure((postern, options = NONE) =>
  options.autofill ? byAutofill(inside.get(postern), options.signal) : byDialog(inside.get(postern), options));

export const stepUpWithPasskey = sure(async (postern, challenge) => {
  const client = inside.get(postern);
  return byDialog(client, NONE, await client.demand(challenge));
});

export const addPasskey = sure(async (postern, { name, signal } = NONE) => {
  const client = inside.get(postern), path = "/connect/passkey/enroll";
  const { ceremonyId, options } = await client.account("POST", `${path}/begin`);
  const attestation = await dialog(client, "create", options, { signal });
  return client.account("POST", path, { ceremonyId, attestation, DisplayName: name }, { repeats: true });
});

/** Tells the browser which passkeys still count; but those of other domains. */
export const signalPasskeys = sure(async postern => {
  const signals = await inside.get(postern).account("GET", "/connect/passkey/signals");
  for (const [method, list = []] of [
    ["signalAllAcceptedCredentials", signals.allAcceptedCredentials],
    ["signalCurrentUserDetails", signals.currentUserDetails],
  ]) for (const one of list) await globalThis.PublicKeyCredential?.[method]?.(one).catch(() => {});
});
