// Sign-in on the pages of the server: what is sent, what the address keeps, and which answers count.

import { elapse, eventually } from "./clock.mjs";
import { HOME, ORIGIN, TOKENS, check, claims, equal, outcome, run, site, withClaims } from "./site.mjs";
import { finishSignIn, signInOnPages, signOutOnPages } from "../../clients/js/pages.js";

let left, order;
const place = { href: `${HOME}/`, origin: HOME, assign: url => { left = new URL(url); } };
const own = { state: null, replaceState: (_, __, url) => { place.href = url; order.push("address"); } };
for (const [name, value] of Object.entries({ location: place, history: own })) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

/** A client, and a function that begins a sign-in: the parameters that were sent. */
const here = (answer = () => ({ ...TOKENS, id_token: withClaims({ nonce: here.nonce }) })) => {
  order = [];
  const made = site({
    "/connect/token": () => { order.push("token"); return answer(); }, "/connect/revoke": new Response("") });
  made.begin = async (options, client = made.client) => {
    left = undefined;
    void signInOnPages(client, options);
    while (!left) await new Promise(resolve => { setImmediate(resolve); });
    const parameters = Object.fromEntries(left.searchParams);
    here.nonce = parameters.nonce;
    return parameters;
  };
  made.come = async (query, client = made.client) => {
    place.href = `${HOME}/signed-in?${query}`;
    return outcome(finishSignIn(client));
  };
  return made;
};
const iss = `iss=${encodeURIComponent(ORIGIN)}`;

await run({
  "what is sent": async () => {
    const { begin } = here();
    const { state, nonce, code_challenge: challenge, ...sent } = await begin({
      returnTo: "/basket", loginHint: "ada@vectors.example", prompt: "login", maxAge: 0, levels: ["a", "b"],
      locales: ["de"] });
    check([state, nonce, challenge].every(text => /^[\w-]{43}$/.test(text)), "256 bits each");
    equal([left.origin + left.pathname, sent], [`${ORIGIN}/connect/authorize`, {
      response_type: "code", client_id: "vector-client", redirect_uri: `${HOME}/signed-in`,
      scope: "openid offline_access", code_challenge_method: "S256", login_hint: "ada@vectors.example",
      prompt: "login", max_age: "0", acr_values: "a b", ui_locales: "de" }], "sent");
  },
  "an answer signs in once, and leaves the address first": async () => {
    const { begin, come, client } = here();
    const { state } = await begin({ returnTo: "/basket?id=1" });
    const { value } = await come(`keep=1&code=c&state=${state}&${iss}#there`);
    equal([value.user.id, value.returnTo], [claims.sub, `${HOME}/basket?id=1`], "value");
    equal([place.href, order], [`${HOME}/signed-in?keep=1#there`, ["address", "token"]], "address");
    equal(await outcome(finishSignIn(client)), { value: null }, "a reload");
    equal((await come(`code=c&state=${state}&${iss}`)).code, "foreign_redirect", "the way back");
    equal(order.filter(one => one === "token").length, 1, "sent");
  },
  "two tabs that are finished crosswise": async () => {
    const { begin, come, make, client } = here();
    const other = make(), asked = [await begin({ returnTo: "/a" }), await begin({ returnTo: "/b" }, other)];
    here.nonce = asked[0].nonce;
    equal((await come(`code=c&state=${asked[0].state}&${iss}`, other)).value.returnTo, `${HOME}/a`, "the first");
    here.nonce = asked[1].nonce;
    equal((await come(`code=d&state=${asked[1].state}&${iss}`, client)).value.returnTo, `${HOME}/b`, "the second");
  },
  "answers that do not count": async () => {
    for (const [query, code] of [
      ["code=c&state=unknown&ISS", "foreign_redirect"],
      ["code=c&state=STATE&iss=https%3A%2F%2Fother.example", "invalid_response"],
      ["code=c&state=STATE", "invalid_response"], ["code=c&code=d&state=STATE&ISS", "invalid_response"],
      ["code=c&state=STATE&state=STATE&ISS", "invalid_response"],
      ["code=c&error=x&state=STATE&ISS", "invalid_response"],
      ["error=access_denied&state=STATE&ISS", "denied"], ["error=server_error&state=STATE&ISS", "server_error"],
      ["state=STATE&ISS", "invalid_response"], ["code=c&ISS", "invalid_response"],
    ]) {
      const { begin, come, sent, client } = here(), { state } = await begin();
      const { code: got } = await come(query.replaceAll("STATE", state).replace("ISS", iss));
      check(got === code && !sent("/connect/token").length && !client.state.signedIn, `${query}: ${got}`);
      check(!/[?&](code|state|iss|error)=/.test(place.href), place.href);
    }
  },
  "an ID token of another sign-in is revoked": async () => {
    const foreign = { ...TOKENS, id_token: withClaims({ nonce: "another" }) };
    const { begin, come, sent, client } = here(() => foreign), { state } = await begin();
    equal((await come(`code=c&state=${state}&${iss}`)).code, "invalid_response", "code");
    await eventually(() => sent("/connect/revoke").length === 1, "not revoked");
    check(!client.state.signedIn, "signed out");
  },
  "a code whose answer is lost is sent once": async () => {
    const { begin, come, sent } = here(() => null), { state } = await begin();
    equal((await come(`code=c&state=${state}&${iss}`)).code, "unavailable", "code");
    equal(sent("/connect/token").length, 1, "sent");
  },
  "five are kept, for an hour": async () => {
    const { begin, come } = here(), asked = [];
    for (let number = 0; number < 6; number++) asked.push(await begin());
    equal((await come(`code=c&state=${asked[0].state}&${iss}`)).code, "foreign_redirect", "the sixth before");
    here.nonce = asked[1].nonce;
    check((await come(`code=c&state=${asked[1].state}&${iss}`)).value.user, "the fifth before");
    elapse(3601);
    equal((await come(`code=c&state=${asked[5].state}&${iss}`)).code, "foreign_redirect", "after an hour");
  },
  "addresses that are no answer": async () => {
    const { client } = here();
    for (const url of [`${HOME}/`, `${HOME}/signed-in`, `${HOME}/other?code=c&state=s`,
      "https://else.example/signed-in?code=c&state=s", "garden:/signed-in?code=c", "not an address"]) {
      equal(await outcome(finishSignIn(client, url)), { value: null }, url);
    }
  },
  "where to go on is of this origin": async () => {
    const { client } = here();
    for (const returnTo of ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "data:text/html,x",
      `blob:${HOME}/0b9d3c1e`, "https://ada@app.vectors.example/"]) {
      equal((await outcome(signInOnPages(client, { returnTo }))).code, "misuse", returnTo);
    }
    equal((await outcome(signInOnPages(here().make({ redirectUri: undefined })))).code, "misuse", "no redirectUri");
  },
  "where nothing outlives the page it is not left": async () => {
    const { make, requests } = here(), client = make({ platform: { fetch: () => check(false, "a request") } });
    left = undefined;
    equal((await outcome(signInOnPages(client))).code, "unavailable", "code");
    equal([left, requests.length], [undefined, 0], "left");
  },
  "a damaged list of them is begun anew": async () => {
    const { begin, come, client, texts } = here();
    texts.set(`postern:${ORIGIN}:vector-client.pages`, "[{");
    const { state } = await begin();
    check((await come(`code=c&state=${state}&${iss}`, client)).value.user, "it signs in");
  },
  "signing out there": async () => {
    const { client, sent } = here();
    await client.adopt("refresh-0");
    left = undefined;
    void signOutOnPages(client, { returnTo: "/bye" });
    while (!left) await new Promise(resolve => { setImmediate(resolve); });
    equal(Object.fromEntries(left.searchParams), {
      client_id: "vector-client", id_token_hint: withClaims({ nonce: here.nonce }),
      post_logout_redirect_uri: `${HOME}/bye` }, "sent");
    check(!client.state.signedIn && sent("/connect/revoke").length === 1, "signed out here");
  },
});
