// Passkeys of a form and of a button, beside a browser that takes time to end a dialog.

import { elapse, eventually, settle } from "./clock.mjs";
import { TOKENS, check, equal, outcome, run, site } from "./site.mjs";
import { addPasskey, passkeySupport, signInWithPasskey, signalPasskeys } from "../../clients/js/passkeys.js";

const CREDENTIAL = {
  id: "AQID", type: "public-key", getClientExtensionResults: () => ({}),
  response: { clientDataJSON: Uint8Array.of(1), authenticatorData: Uint8Array.of(2), signature: Uint8Array.of(3) } };

let events, open, pick, fail;
/** A dialog. There is one at a time, and its end comes a while after it was aborted. */
const dialog = ({ signal, mediation }) => new Promise((resolve, reject) => {
  check(!open, "two dialogs at once");
  let isOver = false;
  const end = (settled, value) => { isOver = true; open = undefined; settled(value); };
  open = mediation ?? "modal";
  events.push(`${open} opens`);
  pick = () => end(resolve, CREDENTIAL);
  fail = error => end(reject, error);
  signal.addEventListener("abort", async () => {
    await settle();
    if (isOver) return;
    events.push(`${open} ended`);
    fail(new DOMException("a text that may hold anything", "AbortError"));
  });
});
const page = Object.assign(new EventTarget(), { hidden: false });
const browser = {
  isConditionalMediationAvailable: async () => true,
  signalAllAcceptedCredentials: async ({ rpId }) => { events.push(`signal ${rpId}`); },
};
for (const [name, value] of Object.entries({
  document: page, PublicKeyCredential: browser, navigator: { credentials: { get: dialog, create: dialog } },
})) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

let ceremonies;
const here = more => {
  [events, ceremonies, open] = [[], 0, undefined];
  return site({
    "/connect/passkey/begin": () => ({
      ceremonyId: `c${++ceremonies}`, options: { challenge: "AAAA", timeout: 300_000 } }),
    "/connect/token": () => { events.push("signed in"); return TOKENS; }, ...more });
};
const opened = name => eventually(() => open === name, `no ${name}`);

await run({
  "the button's dialog opens after the form's has ended": async () => {
    const { client } = here();
    const waits = outcome(signInWithPasskey(client, { autofill: true }));
    await opened("conditional");
    const pressed = outcome(signInWithPasskey(client));
    await opened("modal");
    equal((await waits).code, "cancelled", "the form's");
    pick();
    check((await pressed).value.id, "the button signs in");
    equal(events, ["conditional opens", "conditional ended", "modal opens", "signed in"], "events");
  },
  "a button that is pressed twice": async () => {
    const { client } = here();
    const calls = [1, 2].map(() => outcome(signInWithPasskey(client)));
    equal((await calls[0]).code, "cancelled", "the first");
    await opened("modal");
    pick();
    check((await calls[1]).value.id, "the second signs in");
    equal(events, ["modal opens", "modal ended", "modal opens", "signed in"], "events");
  },
  "the form's waits for the button's": async () => {
    const { client } = here();
    const pressed = outcome(signInWithPasskey(client));
    await opened("modal");
    const stop = new AbortController();
    const waits = outcome(signInWithPasskey(client, { autofill: true, signal: stop.signal }));
    await eventually(() => ceremonies === 2, "no second one");
    for (let turn = 0; turn < 5; turn++) await settle();
    equal(events, ["modal opens"], "meanwhile");
    pick();
    check((await pressed).value.id, "the button signs in");
    await opened("conditional");
    stop.abort();
    equal((await waits).code, "cancelled", "the app gives it up");
  },
  "a new ceremony before the old one ends": async () => {
    const { client, sent } = here();
    const waits = outcome(signInWithPasskey(client, { autofill: true }));
    await opened("conditional");
    elapse(269);
    await settle();
    equal(ceremonies, 1, "begun");
    elapse(1);
    await eventually(() => events.length === 3, "no second one");
    equal([ceremonies, events], [2, ["conditional opens", "conditional ended", "conditional opens"]], "begun");
    pick();
    check((await waits).value.id, "it signs in");
    const [{ form }] = sent("/connect/token");
    equal([form.ceremony_id, form.grant_type], ["c2", "urn:cocoar:passkey"], "sent");
    equal(JSON.parse(form.assertion).response, {
      clientDataJSON: "AQ", authenticatorData: "Ag", signature: "Aw" }, "assertion");
  },
  "none while the page is hidden": async () => {
    const { client } = here();
    const waits = outcome(signInWithPasskey(client, { autofill: true }));
    await opened("conditional");
    page.hidden = true;
    elapse(600);
    for (let turn = 0; turn < 5; turn++) await settle();
    equal([ceremonies, events], [1, ["conditional opens"]], "hidden");
    page.hidden = false;
    page.dispatchEvent(new Event("visibilitychange"));
    await eventually(() => events.length === 3, "no second one");
    equal(ceremonies, 2, "one more");
    pick();
    check((await waits).value.id, "it signs in");
  },
  "the passkey of a former domain is asked for second": async () => {
    let begun = 0;
    const { client, sent } = here({ "/connect/passkey/begin": () => ({
      ceremonyId: `c${++begun}`, options: { challenge: "AAAA" }, rpIds: ["new.example", "old.example"] }) });
    const pressed = outcome(signInWithPasskey(client));
    await opened("modal");
    fail(new DOMException("", "NotAllowedError"));
    await eventually(() => begun === 2 && open, "no second one");
    pick();
    check((await pressed).value.id, "it signs in");
    equal(sent("/connect/passkey/begin").map(({ form }) => form.rp_id ?? null), [null, "old.example"], "asked");
  },
  "what a dialog fails with, without its text": async () => {
    for (const [name, code] of [
      ["NotAllowedError", "cancelled"], ["AbortError", "cancelled"], ["InvalidStateError", "already_there"],
      ["SecurityError", "dialog_failed"],
    ]) {
      const { client } = here();
      const pressed = outcome(signInWithPasskey(client));
      await opened("modal");
      fail(new DOMException("secret", name));
      const error = await pressed;
      check(error.code === code && !JSON.stringify(error).includes("secret"), `${name}: ${JSON.stringify(error)}`);
    }
  },
  "a passkey is added with the options as they are": async () => {
    const { client, sent } = here({
      "/connect/passkey/enroll/begin": { ceremonyId: "e1", options: {
        challenge: "AAAA", user: { id: "AQ", name: "ada" }, excludeCredentials: [{ id: "Ag", type: "public-key" }] } },
      "/connect/passkey/enroll": { Id: "p1" } });
    await client.adopt("refresh-0");
    const adding = outcome(addPasskey(client, { name: "Laptop" }));
    await opened("modal");
    pick();
    equal((await adding).value, { Id: "p1" }, "added");
    equal(sent("/connect/passkey/enroll").length, 1, "sent");
  },
  "the browser hears which passkeys count": async () => {
    const { client } = here({ "/connect/passkey/signals": { allAcceptedCredentials: [{ rpId: "a" }, { rpId: "b" }] } });
    await client.adopt("refresh-0");
    await signalPasskeys(client);
    equal(events, ["signed in", "signal a", "signal b"], "signals");
  },
  "where there are none": async () => {
    const { client } = here(), { PublicKeyCredential } = globalThis;
    globalThis.PublicKeyCredential = undefined;
    try {
      equal(await passkeySupport(), { available: false, autofill: false }, "support");
      for (const autofill of [true, false]) {
        const { code, message } = await outcome(signInWithPasskey(client, { autofill }));
        check(code === "misuse" && message.includes("passkeySupport"), message);
      }
    } finally {
      globalThis.PublicKeyCredential = PublicKeyCredential;
    }
  },
  "this stage sees two dialogs at once": async () => {
    const { signal } = new AbortController();
    here();
    void dialog({ signal });
    equal(await dialog({ signal }).catch(error => error.message), "two dialogs at once", "seen");
    pick();
  },
});
