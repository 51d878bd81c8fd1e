// A page on Postern's client modules. It is at app.localhost, the server at localhost, both on one port.
const origin = location.origin.replace("//app.", "//"), home = `${location.origin}/`, clientId = "demo-spa";
const $ = id => document.getElementById(id);
const say = (text, tone = "") => Object.assign($("notice"), { textContent: text, className: tone });
const unavailable = "The server does not answer. Nothing is lost: please try again.";
const TEXTS = {
  wrong_code: "This code is wrong or too old.", second_factor_wrong: "This code is wrong, or was used before.", unavailable,
  denied: "The sign-in was refused.", expired: "The request is over: please begin again.", network: unavailable,
  cancelled: "Nothing was chosen.", rate_limited: "Too many tries.", misuse: "This browser cannot do that.",
  foreign_redirect: "This browser did not ask for that answer. Nothing has changed.", names_needed: "A name is needed.",
  already_there: "This device has a passkey of yours.", address_proof_needed: "The address has to be proven first.",
  invalid_grant: "The server does not accept this any more.", key_in_use: "Another user trusts this browser.",
  never: "", byUser: "You are signed out.", ended: "Your session was ended.", keyLost: "The key of this browser is gone.",
};
const textOf = ({ code, details, retryAfter }) =>
  (TEXTS[details?.reason ?? code] ?? `The server refused: ${code}.`) + (retryAfter ? ` Again in ${retryAfter} s.` : "");

const [{ Postern }, keys, pages, { TrustedDevice }] = await Promise.all(
  ["client", "passkeys", "pages", "postern"].map(name => import(`${origin}/sdk/v1/${name}.js`)),
).catch(error => { say(unavailable, "bad"); throw error; });
const client = new Postern({ origin, clientId, redirectUri: home, scope: "openid offline_access" });
const account = (method, path, body) => client.account(method, `/connect/${path}`, body);

// A request under way, what a second factor completes, and what goes on after a newer sign-in.
let view, session, person, request, unfinished, after, enrolment, filling;
const show = (name, text = "", tone = "") => {
  for (const section of document.querySelectorAll("section")) section.hidden = section.id !== name;
  if (view && view !== name) $(name).querySelector(name === "in" ? "h1" : "input, h1").focus();
  view = name;
  say(text, tone);
};
const failed = async (error, body) => {
  unfinished = body;
  if (error.code === "second_factor_needed") return show("factor");
  const isTooOld = ["step_up_needed", "insufficient_user_authentication"].includes(error.code);
  if (!isTooOld || !person?.Email) throw error;
  after = { body, challenge: { levels: [], ...error.details } };
  return follow(await client.requestCode({ email: person.Email }), "This needs a sign-in of the last ten minutes.");
};
const run = async (body, factor) => {
  if (document.body.ariaBusy) return;
  document.body.ariaBusy = "true";
  say("");
  await body(factor).catch(error => failed(error, body)).catch(error => say(textOf(error), "bad"));
  document.body.ariaBusy = null;
};
const follow = (made, text) => {
  request = made;
  $("redeem").reset();
  $("address").textContent = made.address.email;
  $("number").textContent = made.matchNumber ?? "";
  show(made.kind, text);
  const wait = factor => client.wait(made, { secondFactor: factor });
  if (made.kind === "link") {
    wait().catch(error => error.code === "cancelled" || failed(error, wait).catch(() => enter(textOf(error), "bad")));
  }
};

const fill = () => keys.signInWithPasskey(client, { autofill: true, signal: (filling = new AbortController()).signal })
  .catch(error => error.code === "cancelled" || say(textOf(error), "bad"));
const enter = async (...news) => {
  after = undefined;
  $("secret").textContent = $("recovery").textContent = "";
  $("enroll").hidden = true;
  $("device").hidden = !localStorage.device;
  const isNew = !view;
  show("out", ...news);
  const [open] = isNew ? (await client.pending()).reverse() : [], { autofill } = await keys.passkeySupport();
  if (open) follow(open);
  else if (autofill) fill();
};
const list = (id, path, items, name) => $(id).replaceChildren(...items.map(item => {
  const row = $("row").content.cloneNode(true), [button] = row.querySelectorAll("button");
  row.querySelector("b").textContent = item[name];
  row.querySelector("small").textContent = `since ${new Date(item.CreatedAt).toLocaleString()}${item.Current ? ", this one" : ""}`;
  Object.assign(button, { textContent: "Remove", ariaLabel: `Remove ${item[name]}`, hidden: item.Current });
  button.onclick = () => run(() => account("DELETE", `${path}/${item.Id}`).then(() => inside("Removed.")));
  return row;
}));
const inside = async (...news) => {
  const lists = ["account", "passkey", "devices", "sessions"].map(path => account("GET", path));
  const [own, passkeys, devices, sessions] = await Promise.all(lists), { user, bound } = client.state;
  if (!user) return;
  person = own;
  $("name").textContent = `Hello, ${person.FirstName ?? person.Email ?? person.Phone}`;
  $("facts").textContent = `Signed in by ${user.methods.join(", ")}${bound ? ", bound to a key of this browser" : ""}.`;
  [$("begin").hidden, $("end").hidden] = [person.HasTotp, !person.HasTotp];
  $("trust").hidden = devices.some(({ Id }) => Id === localStorage.device);
  list("passkeys", "passkey", passkeys, "DisplayName");
  list("devices", "devices", devices, "DisplayName");
  list("sessions", "sessions", sessions, "ClientName");
  show("in", ...news);
};

const actions = {
  ask: (_, way) => client[way]({ email: $("email").value }).then(made => follow(made)),
  redeem: async factor => {
    if (!after) return client.signInWithCode(request, $("typed").value, factor);
    const { body, challenge } = after;
    await client.stepUpWithCode(challenge, request, $("typed").value, factor);
    after = undefined;
    return body();
  },
  passkey: () => keys.signInWithPasskey(client).catch(error => { fill(); throw error; }),
  pages: () => pages.signInOnPages(client, { loginHint: $("email").value }),
  device: factor => client.signInAsTrustedDevice(factor),
  resend: async () => {
    const isEarly = request.resendAt > Date.now();
    follow(await client.resend(request), isEarly ? "The last mail is on its way." : "Another mail is on its way.");
  },
  back: async () => {
    after = undefined;
    for (const one of await client.pending()) await client.forget(one);
    return client.state.signedIn ? inside() : enter();
  },
  addPasskey: () => keys.addPasskey(client).then(() => inside("The passkey was added.")),
  beginTotp: async () => {
    enrolment = await account("POST", "totp/enroll/begin");
    if (enrolment.uri.startsWith("otpauth:")) $("uri").href = enrolment.uri;
    $("secret").textContent = enrolment.secret.replace(/.{4}/g, "$& ");
    $("enroll").hidden = false;
    $("first").focus();
  },
  enroll: async () => {
    const { ceremonyId } = enrolment, code = $("first").value.replace(/\s/g, "");
    const { recoveryCodes } = await account("POST", "totp/enroll", { ceremonyId, code });
    $("enroll").hidden = true;
    $("recovery").textContent = `Recovery codes, shown this once:\n${recoveryCodes.join("\n")}`;
    return inside("The authenticator app will be asked for.");
  },
  endTotp: () => account("DELETE", "totp").then(() => inside("The authenticator app is not asked for any more.")),
  trust: async () => {
    const { value, type } = await client.accessToken("account"), device = new TrustedDevice({ clientId });
    const { Id } = await device.enroll({ access_token: value, token_type: type }, { displayName: "Demo app" });
    localStorage.device = Id;
    return inside("This browser can sign you in by itself.");
  },
  signOut: () => client.signOut(),
  signOutEverywhere: () => client.signOut("everywhere"),
  signOutPages: () => pages.signOutOnPages(client, { returnTo: home }),
  forget: () => {
    delete localStorage.device;
    return client.signOut("forgettingThisDevice");
  },
};

for (const one of document.querySelectorAll("[data-at]")) one.href = origin + one.dataset.at;
document.onclick = ({ target }) => target.dataset.do && run(actions[target.dataset.do]);
document.onsubmit = event => {
  const { target, submitter } = event, second = $("second").value.trim();
  event.preventDefault();
  if (target.id === "confirm") run(unfinished, /^\d{6}$/.test(second) ? { totpCode: second } : { recoveryCode: second });
  else run(factor => actions[target.id](factor, submitter?.value));
};
onpageshow = ({ persisted }) => persisted && location.reload();

let news = await pages.finishSignIn(client).then(() => undefined, error => [textOf(error), "bad"]);
client.subscribe(({ user, reason }) => {
  if (view && session === user?.sessionId) return;
  session = user?.sessionId;
  filling?.abort();
  (user ? inside : enter)(...news ?? [TEXTS[reason]]).catch(error => show(user ? "in" : "out", textOf(error), "bad"));
  news = undefined;
});
