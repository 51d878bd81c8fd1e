// The client modules at work, as the program `ClientDriver` of clients/swift is: commands are read from standard input,
// one JSON object a line, run side by side, and their outcomes printed.
//
//     {"id": 1, "method": "open", "arguments": {"origin": "http://localhost:8080", "client": "vector-app"}}
//     {"id": 1, "result": null}
//     {"id": 2, "error": {"case": "refused", "code": "invalid_scope", "status": 400}}
//     {"event": "ask", "number": 1, "what": "get", "value": {…}}

import { createInterface } from "node:readline";

import { inside } from "../../clients/js/answers.js";
import { Postern } from "../../clients/js/client.js";
import { finishSignIn, signInOnPages } from "../../clients/js/pages.js";
import { addPasskey, signInWithPasskey, stepUpWithPasskey } from "../../clients/js/passkeys.js";
import { failure } from "./calls.mjs";

const print = value => { process.stdout.write(`${JSON.stringify(value)}\n`); };

// What dialogs and browsers ask the person: told as events, answered by the command `answer`.
const asked = [];
const ask = (what, value) => new Promise((resolve, reject) => {
  print({ event: "ask", number: asked.push({ resolve, reject }) - 1, what, value });
});
const giveUp = () => Object.assign(new Error("given up"), { name: "NotAllowedError" });

let client, enrolment;

const open = ({ origin, client: clientId, scopes, key, redirect: redirectUri }) => {
  const texts = new Map();
  const store = { get: async name => texts.get(name) ?? null, set: async (name, text) => { texts.set(name, text); } };
  const passkeys = { create: options => ask("create", options), get: options => ask("get", options) };
  client = new Postern({
    origin, clientId, scope: scopes?.join(" "), redirectUri, dpop: key === "none" ? "off" : "auto",
    platform: { store, passkeys },
    onLog: ({ kind, at, ...detail }) => print({ event: "log", kind, detail }),
  });
};

const factor = ({ totp, recoveryCode }) =>
  totp ? { totpCode: totp } : recoveryCode ? { recoveryCode } : undefined;
const user = ({ id, sessionId: sessionID, methods, level }) => ({ id, sessionID, methods, level });
const account = (method, path, body) => client.account(method, `/connect/${path}`, body);

/** The page and its browser: where a page would be left for another, the person is asked. */
const onPages = async () => {
  // In the flow the issuer is asked for first; by themselves the modules ask when the browser is back.
  await inside.get(client).issuer();
  const left = new Promise(resolve => {
    globalThis.location = { origin: "https://app.a.example", href: "https://app.a.example/", assign: resolve };
  });
  await Promise.race([left, signInOnPages(client)]);
  const back = await ask("page", await left);
  return user((await finishSignIn(client, back)).user);
};

const COMMANDS = {
  open,
  answer: ({ number, value }) => { value === null ? asked[number].reject(giveUp()) : asked[number].resolve(value); },
  state: async () => ({ user: user((await client.ready, client.state).user) }),
  appInfo: () => client.appInfo(),
  requestCode: ({ email }) => client.requestCode({ email }),
  resendCode: ({ request }) => client.resend(request),
  signIn: async ({ request, code, ...more }) => user(await client.signInWithCode(request, code, factor(more))),
  requestLink: ({ email }) => client.requestLink({ email }),
  requestApproval: ({ hint }) => client.requestApproval(hint),
  wait: async ({ request, ...more }) => user(await client.wait(request, { secondFactor: factor(more) })),
  signInWithPasskey: async () => user(await signInWithPasskey(client)),
  signInOnPages: onPages,
  signInAsTrustedDevice: async () => user(await client.signInAsTrustedDevice()),
  adopt: async ({ refreshToken }) => user(await client.adopt(refreshToken)),
  stepUp: async ({ levels = [], maxAge, by, request, code }) => user(
    by === "code" ? await client.stepUpWithCode({ levels, maxAge }, request, code)
      : await stepUpWithPasskey(client, { levels, maxAge })),
  accessToken: async ({ audience }) => {
    const { value, scope } = await client.accessToken(audience && { scope: audience.join(" ") });
    return { value, scopes: scope.split(" ") };
  },
  send: async ({ url }) => ({ status: (await client.fetch(url)).status }),
  signOut: async ({ scope }) => { await client.signOut(scope); },

  account: () => account("GET", "account"),
  updateAccount: ({ changes }) => account("PATCH", "account", changes),
  deleteAccount: () => account("DELETE", "account"),
  addPasskey: async ({ name }) => (await addPasskey(client, { name })).Id,
  passkeys: () => account("GET", "passkey"),
  renamePasskey: ({ target, name }) => account("PATCH", `passkey/${target}`, { DisplayName: name }),
  removePasskey: ({ target }) => account("DELETE", `passkey/${target}`),
  beginTOTP: async () => { enrolment = await account("POST", "totp/enroll/begin"); return enrolment; },
  finishTOTP: ({ code }) => account("POST", "totp/enroll", { ceremonyId: enrolment.ceremonyId, code }),
  removeTOTP: () => account("DELETE", "totp"),
  sessions: async () => (await account("GET", "sessions")).map(one => ({ id: one.Id, isCurrent: one.Current })),
  endSession: ({ target }) => account("DELETE", `sessions/${target}`),
  endOtherSessions: () => account("DELETE", "sessions"),
  identifiers: async () => (await account("GET", "identifiers")).map(({ Id: id }) => ({ id })),
  beginIdentifier: ({ email: Email }) => account("POST", "identifiers/begin", { Email }),
  finishIdentifier: async ({ request: { AuthSession }, code: Code }) => {
    const { Id: id } = await account("POST", "identifiers", { AuthSession, Code });
    return { id };
  },
  makePrimary: ({ target }) => account("PATCH", `identifiers/${target}`, { Primary: true }),
  removeIdentifier: ({ target }) => account("DELETE", `identifiers/${target}`),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, arguments: given = {} } = JSON.parse(line);
  Promise.resolve(given).then(COMMANDS[method]).then(
    result => print({ id, result: result ?? null }),
    error => {
      const { error: name, ...members } = failure(error);
      print({ id, error: { case: name, ...error.details, ...members } });
    });
}
