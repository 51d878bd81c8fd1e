// A page on Postern's client modules. It is at app.localhost, the server at localhost, both on one port.
const origin = location.origin.replace("//app.", "//"), home = `${location.origin}/`, clientId = "demo-spa";
const $ = id => document.getElementById(id);
const say = (text, tone = "") => Object.assign($("notice"), { textContent: text, className: tone });
const TEXTS = {
  foreign_redirect: "This browser did not ask for that answer. Nothing has changed.", cancelled: "Nothing was chosen.",
  unavailable: "The server does not answer. Nothing is lost.", already_there: "This device has a passkey of yours.",
  address_proof_needed: "The address has to be proven first.", second_factor_wrong: "This code is wrong or used.",
  key_in_use: "Another user trusts this browser.", invalid_grant: "This is not accepted any more.",
  wrong_code: "This code is wrong or too old.", step_up_needed: "A newer sign-in is needed.",
  keyLost: "The key of this browser is gone.", misuse: "This browser cannot do that.", expired: "The request is over.",
  denied: "The sign-in was refused.", names_needed: "A name is needed.", ended: "Your session was ended.",
  rate_limited: "Too many tries.", byUser: "You are signed out.",
};
const textOf = ({ code, name, details, retryAfter }) =>
  (TEXTS[details?.reason ?? code] ?? `That failed: ${code ?? name}`) + (retryAfter ? ` Again in ${retryAfter} s.` : "");

const modules = ["client", "passkeys", "pages", "postern"].map(name => import(`${origin}/sdk/v1/${name}.js`));
const [{ Postern }, keys, pages, { TrustedDevice }] = await Promise.all(modules)
  .catch(error => { say(TEXTS.unavailable, "bad"); throw error; });
const client = new Postern({ origin, clientId, redirectUri: home });
const account = (method, path, body) => client.account(method, `/connect/${path}`, body);
// `request` is under way, `unfinished` wants a second factor, `after` goes on after a newer sign-in.
let view, session, person, request, unfinished, after, begun, filling;
const show = (name, ...news) => {
  for (const section of document.querySelectorAll("section")) section.hidden = section.id !== name;
  if (view && view !== name) ($(name).querySelector("form:not([hidden]) input") ?? $(name).querySelector("h1")).focus();
  view = name;
  say(...news);
};
const failed = async (error, body) => {
  if (error.code === "second_factor_needed") {
    unfinished = body;
    return show("factor", "");
  }
  if (!/^(step_up_needed|insufficient_user_authentication)$/.test(error.code) || !person?.Email) throw error;
  after = { body, challenge: { levels: [], ...error.details } };
  return follow(await client.requestCode({ email: person.Email }), "This needs a sign-in of the last ten minutes.");
};
const run = async body => {
  if (document.body.ariaBusy) return;
  document.body.ariaBusy = "true";
  say("");
  await body().catch(error => failed(error, body)).catch(error => say(textOf(error), "bad"));
  document.body.ariaBusy = null;
};
const follow = (made, news = "") => {
  request = made;
  $("redeem").reset();
  $("address").textContent = made.address.email;
  $("number").textContent = made.matchNumber ?? "";
  show(made.kind, news);
  if (made.kind !== "link") return;
  const wait = secondFactor => client.wait(made, { secondFactor });
  wait().catch(error => error.code === "cancelled" || failed(error, wait).catch(() => enter(textOf(error), "bad")));
};
const fill = () => keys.signInWithPasskey(client, { autofill: true, signal: (filling = new AbortController()).signal })
  .catch(error => /^(cancelled|misuse)$/.test(error.code) || say(textOf(error), "bad")); // misuse: no lists here
const enter = async (...news) => {
  const open = view ? undefined : (await client.pending()).pop();
  $("secret").textContent = $("recovery").textContent = "";
  $("enroll").hidden = true;
  $("device").hidden = !localStorage.device;
  show("out", ...news);
  if (open) follow(open);
  else fill();
};
const list = (path, items) => $(path).replaceChildren(...items.map(item => {
  const row = $("row").content.cloneNode(true), [button] = row.querySelectorAll("button");
  const name = item.DisplayName ?? item.ClientName, since = new Date(item.CreatedAt).toLocaleString();
  row.querySelector("b").textContent = name;
  row.querySelector("small").textContent = `since ${since}${item.Current ? ", this one" : ""}`;
  Object.assign(button, { ariaLabel: `Remove ${name} of ${since}`, hidden: item.Current });
  button.onclick = () => run(() => account("DELETE", `${path}/${item.Id}`).then(() => inside("Removed.")));
  return row;
}));
const inside = async (...news) => {
  const paths = ["passkey", "devices", "sessions"], { user, bound } = client.state;
  const [own, ...lists] = await Promise.all(["account", ...paths].map(path => account("GET", path)));
  if (user.sessionId !== client.state.user?.sessionId) return;
  person = own;
  $("name").textContent = `Hello, ${person.FirstName ?? person.Email ?? person.Phone}`;
  $("facts").textContent = `Signed in by ${user.methods.join(", ")}${bound ? ", bound to a key of this browser" : ""}.`;
  [$("begin").hidden, $("end").hidden] = [person.HasTotp, !person.HasTotp];
  $("trust").hidden = lists[1].some(({ Id }) => Id === localStorage.device);
  paths.forEach((path, at) => list(path, lists[at]));
  show("in", ...news);
};

const actions = {
  ask: (_, way) => client[way]({ email: $("email").value }).then(made => follow(made)),
  redeem: async factor => {
    const { body, challenge } = after ?? {}, code = $("typed").value;
    if (!body) return client.signInWithCode(request, code, factor);
    await client.stepUpWithCode(challenge, request, code, factor);
    return body();
  },
  confirm: () => unfinished({ [$("second").value.trim().length > 8 ? "recoveryCode" : "totpCode"]: $("second").value }),
  passkey: () => keys.signInWithPasskey(client).catch(error => { fill(); throw error; }),
  pages: () => pages.signInOnPages(client, { loginHint: $("email").value }),
  device: factor => client.signInAsTrustedDevice(factor),
  resend: () => client.resend(request).then(made => follow(made, "The mail is on its way.")),
  back: async () => {
    for (const one of await client.pending()) await client.forget(one);
    return client.state.signedIn ? inside("") : enter("");
  },
  addPasskey: () => keys.addPasskey(client).then(() => inside("The passkey was added.")),
  beginTotp: async () => {
    begun = await account("POST", "totp/enroll/begin");
    if (begun.uri.startsWith("otpauth:")) $("uri").href = begun.uri;
    $("secret").textContent = begun.secret.replace(/.{4}/g, "$& ");
    $("enroll").hidden = false;
    $("first").focus();
  },
  enroll: async () => {
    const proof = { ceremonyId: begun.ceremonyId, code: $("first").value };
    const { recoveryCodes } = await account("POST", "totp/enroll", proof);
    $("enroll").hidden = true;
    $("recovery").textContent = `Recovery codes, shown this once:\n${recoveryCodes.join("\n")}`;
    return inside("The authenticator app will be asked for.");
  },
  endTotp: () => account("DELETE", "totp").then(() => inside("The authenticator app is not asked for any more.")),
  trust: async () => {
    const { value, type } = await client.accessToken("account"), tokens = { access_token: value, token_type: type };
    localStorage.device = (await new TrustedDevice({ clientId }).enroll(tokens, { displayName: "Demo app" })).Id;
    return inside("This browser can sign you in by itself.");
  },
  signOut: () => client.signOut(),
  signOutEverywhere: () => client.signOut("everywhere"),
  signOutPages: () => pages.signOutOnPages(client, { returnTo: home }),
  forget: async () => { localStorage.clear(); await client.signOut("forgettingThisDevice"); },
};

for (const one of document.querySelectorAll("[data-at]")) one.href = origin + one.dataset.at;
document.onclick = ({ target }) => target.dataset.do && run(actions[target.dataset.do]);
document.onsubmit = event => {
  event.preventDefault();
  run(factor => actions[event.target.id](factor, event.submitter?.value));
};
onpageshow = ({ persisted }) => persisted && location.reload(); // It left for the pages, and the person came back.
let news = await pages.finishSignIn(client).then(() => undefined, error => [textOf(error), "bad"]);
client.subscribe(({ user, reason }) => {
  if (view && session === user?.sessionId) return;
  session = user?.sessionId;
  after = undefined;
  filling?.abort();
  (user ? inside : enter)(...news ?? [TEXTS[reason] ?? ""])
    .catch(error => error.code === "signed_out" || show(user ? "in" : "out", textOf(error), "bad"));
  news = undefined;
});
