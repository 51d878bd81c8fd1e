// Answers of every kind: a promise rejects with a PosternError, and nothing that was kept is lost.

import { AuthenticatorBuilder, TrustedDevice } from "../../clients/js/postern.js";
import { elapse, eventually, settle, time } from "./clock.mjs";
import { DEEP, TOKENS, check, claims, equal, outcome, run, site, withClaims } from "./site.mjs";

const MIB = 1 << 20;
const json = (text, status = 200) => new Response(text, { status, headers: { "Content-Type": "application/json" } });
const JUNK = {
  empty: () => json(""), page: () => new Response("<html>Sign in to the Wi-Fi</html>"), number: () => json("7"),
  null: () => json("null"), list: () => json("[]"), object: () => json("{}"), half: () => json('{"access_token":"a'),
  large: () => json(`{"a":"${"x".repeat(2 * MIB)}"}`),
  deep: () => json("[".repeat(100_000)), lost: () => null, gateway: () => new Response("<html>", { status: 502 }),
  list_scope: () => json(JSON.stringify({ ...TOKENS, scope: ["openid"] })),
  number_scope: () => json(JSON.stringify({ ...TOKENS, scope: 5 })),
  object_refresh: () => json(JSON.stringify({ ...TOKENS, refresh_token: { a: 1 } })),
  list_token: () => json(JSON.stringify({ ...TOKENS, access_token: ["access-1"] })),
  types: () => json(JSON.stringify({ ...TOKENS, access_token: 7, expires_in: "soon" })),
  bare: () => json(JSON.stringify({ ...TOKENS, id_token: "a.b.c" })),
  long: () => json(JSON.stringify({ ...TOKENS, expires_in: 1e12 })),
};

/** Seconds until a call ends, and what it gave. */
const timed = async call => {
  const began = time.passed;
  let ended;
  const done = outcome(call).finally(() => { ended = true; });
  for (await settle(); !ended; await settle()) {
    if (time.passed - began > 100) throw new Error("it never ends");
    elapse(0.5);
  }
  return { ...await done, seconds: time.passed - began };
};
/** Surroundings with ECMAScript, `fetch` and `setTimeout` alone. */
const bare = async body => {
  const { AbortController, clearTimeout } = globalThis;
  Object.assign(globalThis, { AbortController: undefined, clearTimeout: undefined });
  await body().finally(() => Object.assign(globalThis, { AbortController, clearTimeout }));
};
const silence = () => new Promise(() => {});

await run({
  "a server that is silent holds no call and no refresh": async () => {
    const silent = async isBare => {
      const signals = [];
      let answer = () => TOKENS;
      const { client, make } = site({
        "/connect/token": call => answer(call), "/api/app-info": silence, "/connect/revoke": silence,
        "/connect/account": silence });
      await client.adopt("refresh-0");
      elapse(900);
      answer = ({ signal }) => { signals.push(signal); return silence(); };
      const { code, seconds } = await timed(client.accessToken());
      check(code === "unavailable" && seconds >= 15 && seconds < 40, `${code} after ${seconds} s`);
      check(client.state.signedIn, "signed in");
      check(signals.every(signal => isBare ? !signal : signal.aborted), "given up");
      answer = () => TOKENS;
      equal((await timed(make().accessToken())).value?.value, "access-1", "the next refresh");
      if (!isBare) equal(time.sleepers, [], "no timer stays");
      for (const call of [() => client.appInfo(), () => client.account("GET", "/connect/account")]) {
        const { code, seconds } = await timed(call());
        equal([code, seconds], ["unavailable", 15], "a call");
      }
      equal((await timed(client.signOut())).seconds, 15, "a sign-out");
    };
    await silent(false);
    await bare(() => silent(true));
  },
  "an answer that stops halfway": async () => {
    const { client } = site({ "/api/app-info": () => new Response(new ReadableStream({
      start: to => to.enqueue(new TextEncoder().encode('{"a":')) })) });
    const { code, seconds } = await timed(client.appInfo());
    equal([code, seconds], ["unavailable", 15], "a call");
  },
  "a lost answer of a sign-in is asked for again while 45 s last": async () => {
    const { client, sent } = site({
      "/api/account/native/otp/request": { AuthSession: "h", ExpiresIn: 600, ResendAfter: 0 },
      "/connect/token": silence });
    const request = await client.requestCode({ email: "ada@vectors.example" });
    const { code, seconds } = await timed(client.signInWithCode(request, "123456"));
    check(code === "unavailable" && seconds >= 45 && seconds < 50, `${code} after ${seconds} s`);
    equal([sent("/connect/token").length, (await client.pending()).length], [3, 1], "sent, pending");
  },
  "an answer that the server may hold has so much longer": async () => {
    const path = "/connect/approvals?wait=25", { client } = site({ "/connect/token": TOKENS, [path]: silence });
    await client.adopt("refresh-0");
    equal((await timed(client.account("GET", path))).seconds, 40, "of an account");
    const signals = [], { fetch } = globalThis;
    const known = { authId: "a", state: "new", channels: ["link"], sendsLeft: 3 };
    const held = async seconds => {
      await eventually(() => signals.length, "no request");
      const [signal] = signals.splice(0);
      elapse(seconds - 1);
      await settle();
      check(!signal.aborted, `given up before ${seconds} s`);
      elapse(1);
      await settle();
      check(signal.aborted, `not given up after ${seconds} s`);
    };
    globalThis.fetch = async (url, { signal }) => {
      if (url.endsWith("/open") || url.endsWith("/send")) return Response.json(known);
      signals.push(signal);
      return silence();
    };
    const device = new TrustedDevice({ clientId: "vector-client" }), seen = [];
    for (const [wait, seconds] of [[25, 40], [0, 15]]) {
      const call = outcome(device.approvals({ wait })).then(({ code }) => seen.push(code));
      await held(seconds);
      await call;
    }
    equal(seen, ["network", "network"], "codes");
    const builder = new AuthenticatorBuilder().withInstantLinkFallback(async () => ({}), silence);
    builder.build().authenticate("x").catch(() => {});
    await held(40);
    globalThis.fetch = fetch;
  },
  "an API takes the time that it needs": async () => {
    let ended, give;
    const { make } = site({}), fetch = async url => url.startsWith("https://api.")
      ? new Promise(resolve => { give = resolve; }) : Response.json(TOKENS);
    const patient = make({ platform: { fetch } });
    await patient.adopt("refresh-0");
    const call = patient.fetch("https://api.vectors.example/").finally(() => { ended = true; });
    await eventually(() => give, "no request");
    elapse(600);
    await settle();
    check(!ended, "it ended");
    give(new Response("late"));
    equal(await (await call).text(), "late", "answer");
  },
  "an answer has at most a mebibyte": async () => {
    for (const [length, is] of [[MIB - 8, "value"], [MIB + 8, "unavailable"]]) {
      const { client } = site({ "/api/app-info": () => json(`{"a":"${"x".repeat(length - 8)}"}`) });
      const { value, code } = await outcome(client.appInfo());
      equal(value ? "value" : code, is, length);
    }
  },
  "no more than a mebibyte is read": async () => {
    let given = 0, isOver;
    const part = new TextEncoder().encode("€".repeat(1 << 14));
    const body = new ReadableStream({
      pull: to => { given < 100 ? to.enqueue(part) : to.close(); given++; }, cancel: () => { isOver = true; } });
    const { client } = site({ "/api/app-info": () => new Response(body) });
    equal((await outcome(client.appInfo())).code, "unavailable", "code");
    check(isOver && given < 25, `${given} parts`);
  },
  "text in parts that divide a letter": async () => {
    const bytes = new TextEncoder().encode('{"a":"\u{1f511}ä€"}');
    const body = new ReadableStream({
      start: to => { bytes.forEach(one => to.enqueue(Uint8Array.of(one))); to.close(); } });
    const { client } = site({ "/api/app-info": () => new Response(body) });
    equal((await client.appInfo()).a, "\u{1f511}ä€", "text");
  },
  "where an answer comes whole, it has at most a mebibyte too": async () => {
    for (const [length, is] of [[MIB - 8, "value"], [MIB + 8, "unavailable"]]) {
      const whole = json(`{"a":"${"x".repeat(length - 8)}"}`);
      Object.defineProperty(whole, "body", { value: undefined });
      const { value, code } = await outcome(site({ "/api/app-info": () => whole }).client.appInfo());
      equal(value ? "value" : code, is, length);
    }
  },
  "a refresh with an answer that is none": async () => {
    const foreign = { ...TOKENS, id_token: withClaims({ sid: "of another session" }) };
    for (const [name, junk] of Object.entries({ ...JUNK, foreign: () => foreign })) {
      let answer = () => TOKENS;
      const { client } = site({ "/connect/token": () => answer() });
      await client.adopt("refresh-0");
      elapse(900);
      answer = junk;
      let ended;
      const call = outcome(client.accessToken()).finally(() => { ended = true; });
      while (!ended) {
        await new Promise(resolve => { setImmediate(resolve); });
        elapse(0.5);
      }
      check((await call).code === "unavailable" && client.state.signedIn, `${name}: ${JSON.stringify(await call)}`);
      answer = () => TOKENS;
      equal((await client.accessToken()).value, "access-1", `${name}, later`);
    }
  },
  "a sign-in with an answer that is none": async () => {
    for (const [name, junk] of Object.entries(JUNK)) {
      let asks = true;
      const { client } = site({
        "/api/account/native/otp/request": () => asks ? { AuthSession: "h", ExpiresIn: 600, ResendAfter: 0 } : junk(),
        "/connect/token": junk });
      const request = await client.requestCode({ email: "ada@vectors.example" });
      let ended;
      const call = outcome(client.signInWithCode(request, "123456")).finally(() => { ended = true; });
      while (!ended) {
        await new Promise(resolve => { setImmediate(resolve); });
        elapse(1);
      }
      check((await call).code === "unavailable" && !client.state.signedIn, `${name}: ${JSON.stringify(await call)}`);
      equal((await client.pending()).length, 1, `${name}: it stays pending`);
      asks = false;
      const { code } = await outcome(client.requestCode({ email: "ada@vectors.example" }));
      equal(code, "unavailable", name);
    }
  },
  "a wait with an answer that is none": async () => {
    const odd = { toString: 1 }, answer = { AuthSession: "h", ExpiresIn: 600, ResendAfter: 0, Interval: 1 };
    for (const [members, status, code] of [
      [{ error: odd }, 400, "unavailable"], [{ error: "x", error_description: odd }, 400, "unavailable"],
      [{ ...TOKENS, token_type: odd }, 200, "unavailable"], [{ error: "constructor" }, 400, "constructor"],
      [{ error: "__proto__" }, 400, "__proto__"],
      [{ error: "invalid_grant", error_description: "constructor" }, 400, "expired"],
    ]) {
      const { client } = site({
        "/api/account/magic-link/request": answer, "/connect/token": () => json(JSON.stringify(members), status) });
      const request = await client.requestLink({ email: "ada@vectors.example" });
      equal((await outcome(client.wait(request))).code, code, JSON.stringify(members));
      check(!client.state.signedIn, "signed in");
    }
  },
  "an ID token whose claims cannot be kept is none": async () => {
    const odd = { toString: 1, valueOf: 1 };
    for (const changes of [
      { deep: DEEP }, { address: { deep: [DEEP] } }, { iat: odd }, { auth_time: odd }, { sub: odd }, { sid: ["x"] },
    ]) {
      let answer = { ...TOKENS, id_token: withClaims(changes) };
      const { client, texts } = site({
        "/api/account/native/otp/request": { AuthSession: "h", ExpiresIn: 600, ResendAfter: 0 },
        "/connect/token": () => answer, "/connect/revoke": {} });
      const [name] = Object.keys(changes), request = await client.requestCode({ email: "ada@vectors.example" });
      equal((await outcome(client.signInWithCode(request, "123456"))).code, "unavailable", `${name}, a sign-in`);
      check(![...texts.values()].some(text => text.includes(answer.id_token)), `${name} is kept`);
      equal(await client.ready, { signedIn: false, reason: "never" }, `${name}, state`);
      answer = TOKENS;
      equal((await outcome(client.signInWithCode(request, "123456"))).value?.id, claims.sub, `${name}, later`);
      answer = { ...TOKENS, id_token: withClaims(changes) };
      elapse(900);
      equal((await timed(client.accessToken())).code, "unavailable", `${name}, a refresh`);
      answer = TOKENS;
      equal((await client.accessToken()).value, "access-1", `${name}, the next refresh`);
    }
  },
  "polls are a second apart at least": async () => {
    for (const Interval of ["x", {}, -1, 0, [[]]]) {
      const { client, sent } = site({
        "/api/account/magic-link/request": { AuthSession: "h", ExpiresIn: 600, ResendAfter: 0, Interval },
        "/connect/token": async () => {
          await new Promise(resolve => { setImmediate(resolve); });
          return json('{"error":"authorization_pending"}', 400);
        } });
      const request = await client.requestLink({ email: "ada@vectors.example" });
      client.wait(request).catch(() => {});
      for (let turn = 0; turn < 50; turn++) await new Promise(resolve => { setImmediate(resolve); });
      equal(sent("/connect/token").length, 1, JSON.stringify(Interval));
      await client.forget(request);
    }
  },
  "calls that are not as declared": async () => {
    const { client, requests } = site({});
    for (const call of [
      () => client.requestCode(), () => client.requestCode({}), () => client.signInWithCode(), () => client.wait(),
      () => client.resend({}), () => client.signInWithCode({ id: "x" }, " "), () => client.adopt(""),
      () => client.account("GET", "//evil.example/"), () => client.account("GET", "https://evil.example/"),
      () => client.signInWithProvider({ id: "x" }, {}), () => client.fetch("http://api.example/"),
    ]) equal((await outcome(call())).code, "misuse", String(call));
    equal(requests.length, 0, "sent");
  },
  "what a constructor refuses": async () => {
    for (const options of [
      { origin: "http://id.example.com" }, { origin: "https://id.example.com/path" }, 
      { origin: "ftp://id.example.com" }, { origin: "x" }, { origin: "https://ada@id.example.com" },
      { clientId: "" }, { scope: "offline_access" }, { origin: undefined },
    ]) {
      let error;
      try { site({}).make(options); } catch (thrown) { error = thrown; }
      check(error?.code === "misuse", JSON.stringify(options));
    }
    for (const host of ["localhost:8080", "app.localhost", "127.0.0.1:1", "[::1]:1"]) {
      site({}).make({ origin: `http://${host}` });
    }
  },
});
