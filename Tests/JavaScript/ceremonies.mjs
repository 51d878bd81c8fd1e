// ceremonies.json: options and credentials of passkeys on their way between server and platform.

import { Postern } from "../../clients/js/client.js";
import { base64url } from "../../clients/js/core.js";
import { addPasskey, signInWithPasskey } from "../../clients/js/passkeys.js";
import { match } from "./matching.mjs";
import { ORIGIN, TOKENS } from "./site.mjs";

const bytes = text => Uint8Array.from(Buffer.from(text, "base64url")).buffer;
const texts = value => value instanceof Uint8Array || value instanceof ArrayBuffer ? base64url(value)
  : Array.isArray(value) ? value.map(texts)
    : !value || typeof value !== "object" ? value
      : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, texts(one)]));

/** What a browser gives: bytes in place of texts. */
const ofBrowser = ({ id, type, authenticatorAttachment, clientExtensionResults, response: { transports, ...parts } }) => ({
  id, rawId: bytes(id), type, authenticatorAttachment, getClientExtensionResults: () => clientExtensionResults,
  response: {
    ...Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, bytes(text)])),
    ...(transports && { getTransports: () => transports }),
  },
});
/** Whether a browser can give it: no member that it does not know, and its id as it writes ids. */
const isOfBrowser = ({ id, unheard_of: unknown }) => !unknown && base64url(bytes(id)) === id;

/** What a dialog is asked, and what the server gets. */
const pass = async ({ do: what, options, credential }, passkeys) => {
  let sent;
  const fetch = async (url, { body } = {}) => {
    const path = url.slice(ORIGIN.length);
    if (path.endsWith("/begin")) return Response.json({ ceremonyId: "one", options });
    if (path === "/connect/passkey/enroll") sent = JSON.parse(body).attestation;
    const assertion = path === "/connect/token" && new URLSearchParams(body).get("assertion");
    if (assertion) sent = JSON.parse(assertion);
    return Response.json(path === "/connect/token" ? TOKENS : { Id: "passkey" });
  };
  const client = new Postern({ origin: ORIGIN, clientId: "vector-client", dpop: "off", platform: { fetch, passkeys } });
  if (what === "create") await client.adopt("refresh-0");
  await (what === "create" ? addPasskey : signInWithPasskey)(client);
  match(credential, sent, "credential");
};

/** The options and the credential pass, through the app's own dialog and through the browser's. */
export const passes = async (_, vector) => {
  const { options, credential } = vector;
  const own = async asked => { match(options, asked, "options"); return credential; };
  await pass(vector, { create: own, get: own });
  if (!isOfBrowser(credential)) return;
  const ask = async ({ publicKey }) => {
    const { challenge, user } = publicKey;
    if (![challenge, user?.id ?? challenge].every(one => one instanceof Uint8Array)) throw new Error("no bytes");
    match(options, texts(publicKey), "options");
    return ofBrowser(credential);
  };
  const former = ["navigator", "PublicKeyCredential"].map(name => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name, value] of [["navigator", { credentials: { create: ask, get: ask } }], ["PublicKeyCredential", {}]]) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
  }
  try {
    await pass(vector);
  } finally {
    for (const [name, descriptor] of former) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
  }
};
