// A program that uses everything that the client modules declare.

import { Postern, PosternError, stepUpChallenge } from "./client.js";
import type {
  AccessToken, Audience, CodeRequest, PendingSignIn, SessionState, StepUpChallenge, User,
} from "./client.js";
import { finishSignIn, signInOnPages, signOutOnPages } from "./pages.js";
import { addPasskey, passkeySupport, signInWithPasskey, signalPasskeys, stepUpWithPasskey } from "./passkeys.js";

const client = new Postern({
  origin: "https://id.example.com", clientId: "garden-web", scope: "openid", redirectUri: "https://app.example.com/",
  storage: "page", dpop: "required", onLog: event => console.log(event.kind, event.at),
  platform: {
    random: length => new Uint8Array(length), sha256: async bytes => bytes,
    store: { get: async () => null, set: async () => {} }, lock: async (_, body) => body(),
  },
});

export const everything = async (signal: AbortSignal): Promise<void> => {
  const state: SessionState = await client.ready;
  if (state.signedIn) console.log(state.user.id, state.bound); else console.log(state.reason);
  client.subscribe(next => console.log(next.signedIn))();
  console.log((await client.appInfo()).Registration);
  const code: CodeRequest = await client.requestCode({ email: "ada@example.com" }, { firstName: "Ada" });
  const again: CodeRequest = await client.resend(await client.register({ phone: "+431", channel: "voice" }));
  const user: User = await client.signInWithCode(code, "123456", { totpCode: "654321" });
  const link: PendingSignIn = await client.requestLink({ email: user.email ?? "" });
  await client.wait(link, { signal, secondFactor: { recoveryCode: "x" } });
  await client.wait(await client.requestApproval("ada@example.com"));
  await client.wait(await client.requestDeviceSignIn());
  for (const request of await client.pending()) await client.forget(request);
  await client.signInAsTrustedDevice();
  await client.signInWithProvider(await client.beginProvider("apple"), { identityToken: "x", lastName: "L" });
  await client.adopt("prt_x");
  const audience: Audience = { scope: "orders:read", resource: "https://api.example.com" };
  const token: AccessToken = await client.accessToken(audience);
  const init = { method: "POST", body: token.type };
  const answer: Response = await client.fetch("https://api.example.com/", init, audience);
  const challenge: StepUpChallenge | null = stepUpChallenge(answer);
  if (challenge) await client.stepUpWithCode(challenge, again, "123456");
  if (challenge) await stepUpWithPasskey(client, challenge);
  console.log((await passkeySupport()).autofill, (await addPasskey(client, { name: "Laptop", signal })).Id);
  await signInWithPasskey(client, { autofill: true, signal });
  await signalPasskeys(client);
  await client.account("DELETE", "/connect/sessions");
  console.log((await finishSignIn(client))?.returnTo);
  try {
    await client.signOut("forgettingThisDevice");
  } catch (error) {
    if (error instanceof PosternError && error.code === "rate_limited") console.log(error.retryAfter, error.details);
  }
  await signOutOnPages(client, { returnTo: "/" });
  await signInOnPages(client, { returnTo: "/", levels: ["urn:postern:acr:2"], maxAge: 600 });
};
