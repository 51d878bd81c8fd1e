"use strict";

// A native app in a page: it keeps its tokens in memory and calls the endpoints any app calls.
const clientID = document.body.dataset.client;
const scope = "openid offline_access email";
const element = (id) => document.getElementById(id);
let session = null;
let authSession = null;

class Refused extends Error {}

/** Sends one request, shows it and its answer below, and returns the answer's JSON. */
async function call(method, path, { form, json, quiet } = {}) {
    const headers = {};
    let body;
    if (form) {
        body = new URLSearchParams(form);
    } else if (json) {
        headers["Content-Type"] = "application/json";
        body = JSON.stringify(json);
    }
    if (session && !form) headers.Authorization = `Bearer ${session.accessToken}`;
    const response = await fetch(path, { method, headers, body, credentials: "omit", cache: "no-store" });
    const text = await response.text();
    let answer = null;
    try { answer = JSON.parse(text); } catch { /* an empty body */ }
    if (!quiet) show(method, path, form || json, response, answer);
    if (!response.ok) {
        throw new Refused(answer?.error_description || answer?.Message || answer?.title || answer?.error || `The server answered ${response.status}.`);
    }
    return answer;
}

function show(method, path, request, response, answer) {
    const entry = document.createElement("details");
    const summary = entry.appendChild(document.createElement("summary"));
    summary.appendChild(document.createElement("code")).textContent = `${method} ${path}`;
    const status = summary.appendChild(document.createElement("b"));
    status.textContent = response.status;
    status.className = response.ok ? "" : "bad";
    for (const part of [request, answer]) {
        if (part) entry.appendChild(document.createElement("pre")).textContent = JSON.stringify(part, null, 2);
    }
    element("wire-empty").hidden = true;
    element("wire").prepend(entry);
}

function say(id, text, mood = "") {
    element(id).textContent = text;
    element(id).className = `result ${mood}`;
}

/** Runs a step: its buttons rest meanwhile, and whatever goes wrong is said beside it. */
function step(id, body) {
    return async (event) => {
        event?.preventDefault();
        const button = event?.submitter || event?.currentTarget;
        if (button) button.disabled = true;
        try {
            await body();
        } catch (error) {
            say(id, explain(error), "bad");
        } finally {
            if (button) button.disabled = false;
            refresh();
        }
    };
}

function explain(error) {
    switch (error.name) {
    case "NotAllowedError": return "The browser ended it: cancelled, timed out, or no passkey for this site.";
    case "InvalidStateError": return "This authenticator holds a passkey of yours already.";
    case "SecurityError": return `The browser refuses passkeys here: ${error.message}`;
    case "TypeError": return `The server does not answer: ${error.message}`;
    default: return error.message;
    }
}

function payload(jwt) {
    const bytes = Uint8Array.from(atob(jwt.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
}

/** Keeps the tokens, and says whose they are and how the user proved it. */
async function signedIn(tokens) {
    session = { accessToken: tokens.access_token, email: "…", methods: payload(tokens.id_token).amr.join(", ") };
    session.email = (await call("GET", "/connect/userinfo")).email;
    refresh();
    return session;
}

function refresh() {
    element("session").textContent = session ? `Signed in as ${session.email} (amr ${session.methods}).` : "Not signed in.";
    element("session").parentElement.classList.toggle("in", session !== null);
    element("sign-out").hidden = session === null;
    element("enrol-passkey").disabled = session === null || !window.PublicKeyCredential?.parseCreationOptionsFromJSON;
    element("sign-in").disabled = !window.PublicKeyCredential?.parseRequestOptionsFromJSON;
    element("redeem-code").disabled = authSession === null;
}

const newestCode = async (email) => (await call("GET", "/dev/outbox.json", { quiet: true }))
    .find((mail) => mail.code && mail.to.toLowerCase() === email.toLowerCase());

/** The code that comes into the dev outbox after `before`, or nothing within five seconds. */
async function delivered(email, before) {
    for (let tries = 0; tries < 50; tries += 1) {
        const mail = await newestCode(email);
        if (mail && JSON.stringify(mail) !== JSON.stringify(before)) return mail.code;
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return null;
}

element("ask").addEventListener("submit", step("code-result", async () => {
    const email = element("email").value.trim();
    say("code-result", "Asking for a code …");
    const before = await newestCode(email);
    const receipt = await call("POST", "/api/account/native/otp/request", { json: { Email: email, ClientId: clientID } });
    authSession = receipt.AuthSession;
    const code = await delivered(email, before);
    element("code").value = code || "";
    if (code) say("code-result", `The dev outbox has the code ${code}.`, "good");
    else say("code-result", "No mail came: is this the address of a user of the realm?", "bad");
}));

element("redeem").addEventListener("submit", step("code-result", async () => {
    const tokens = await call("POST", "/connect/token", { form: {
        grant_type: "urn:cocoar:otp", client_id: clientID, auth_session: authSession, otp_code: element("code").value.trim(), scope,
    } });
    authSession = null;
    element("code").value = "";
    say("code-result", `Signed in (amr ${(await signedIn(tokens)).methods}).`, "good");
    say("enrol-result", "");
    await list();
}));

element("enrol").addEventListener("submit", step("enrol-result", async () => {
    say("enrol-result", "Creating a passkey …");
    const begun = await call("POST", "/connect/passkey/enroll/begin");
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(begun.options);
    const credential = await navigator.credentials.create({ publicKey });
    const name = element("name").value.trim();
    await call("POST", "/connect/passkey/enroll", { json: {
        ceremonyId: begun.ceremonyId, attestation: credential.toJSON(), ...(name && { DisplayName: name }),
    } });
    element("name").value = "";
    say("enrol-result", "Passkey enrolled.", "good");
    await list();
}));

element("sign-in").addEventListener("click", step("sign-in-result", async () => {
    say("sign-in-result", "Asking the browser for a passkey …");
    const begun = await call("POST", "/connect/passkey/begin", { form: { client_id: clientID } });
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(begun.options);
    const credential = await navigator.credentials.get({ publicKey });
    const tokens = await call("POST", "/connect/token", { form: {
        grant_type: "urn:cocoar:passkey", client_id: clientID, ceremony_id: begun.ceremonyId,
        assertion: JSON.stringify(credential.toJSON()), scope,
    } });
    say("sign-in-result", `Signed in (amr ${(await signedIn(tokens)).methods}).`, "good");
    say("enrol-result", "");
    await list();
}));

async function list() {
    const passkeys = await call("GET", "/connect/passkey");
    element("passkeys").replaceChildren(...passkeys.map(item));
    say("list-result", passkeys.length === 0 ? "None yet." : "");
}

function item(passkey) {
    const entry = document.createElement("li");
    const text = entry.appendChild(document.createElement("div"));
    text.appendChild(document.createElement("strong")).textContent = passkey.DisplayName;
    const when = (at) => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    text.appendChild(document.createElement("small")).textContent = [
        `for ${passkey.RpId}`, `created ${when(passkey.CreatedAt)}`,
        passkey.LastUsedAt ? `used ${when(passkey.LastUsedAt)}` : "not used yet",
        passkey.DeviceBound ? "stays on its device" : passkey.BackedUp ? "synchronised" : "may be synchronised",
    ].join(" · ");
    const button = entry.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "quiet danger";
    button.textContent = "Delete";
    button.setAttribute("aria-label", `Delete ${passkey.DisplayName}`);
    button.addEventListener("click", step("list-result", async () => {
        await call("DELETE", `/connect/passkey/${passkey.Id}`);
        await list();
        say("list-result", `Deleted ${passkey.DisplayName}. The authenticator still holds its half, which no longer opens anything.`, "good");
    }));
    return entry;
}

element("sign-out").addEventListener("click", step("list-result", async () => {
    const token = session.accessToken;
    await call("POST", "/connect/revoke", { form: { client_id: clientID, token } });
    session = null;
    element("passkeys").replaceChildren();
    for (const id of ["code-result", "sign-in-result"]) say(id, "");
    say("enrol-result", "Sign in first: enrolment needs a sign-in of the last ten minutes.");
    say("list-result", "Sign in to see them.");
}));

element("origin").textContent = location.origin;
if (!window.PublicKeyCredential?.parseCreationOptionsFromJSON) {
    say("enrol-result", "This browser has no passkeys here: it needs WebAuthn Level 3 and a secure context.", "bad");
}
refresh();
