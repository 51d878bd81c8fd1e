// Postern's client for JavaScript. Every promise rejects with PosternError and nothing else. Times are milliseconds since
// 1970, unless they say otherwise.

export interface Options {
  origin: string;                         // of the realm or App
  clientId: string;
  scope?: string;                         // of a sign-in; default "openid offline_access"
  redirectUri?: string;                   // of the pages
  storage?: "persistent" | "page";        // default "persistent"
  dpop?: "auto" | "required" | "off";     // default "auto"
  platform?: Platform;
  onLog?: (event: { kind: string; at: number; [detail: string]: string | number | boolean }) => void;
}
/** What the module takes from its surroundings; what is left out is the browser's. */
export interface Platform {
  fetch?: typeof fetch;
  random?: (length: number) => Uint8Array;
  sha256?: (bytes: Uint8Array) => Promise<Uint8Array>;
  store?: { get(name: string): Promise<string | null>; set(name: string, value: string | null): Promise<void> };
  key?: { jwk: { kty: "EC"; crv: "P-256"; x: string; y: string }; sign(bytes: Uint8Array): Promise<Uint8Array> };
  lock?: <T>(name: string, body: () => Promise<T>) => Promise<T>;
  passkeys?: { create(options: object): Promise<object>; get(options: object): Promise<object> };
}
export type Address = { email: string } | { phone: string; channel?: "sms" | "voice" | "whatsapp" };
export type Names = { firstName?: string; lastName?: string };
export type SecondFactor = { totpCode: string } | { recoveryCode: string };
export interface CodeRequest { kind: "code"; id: string; address: Address; expiresAt: number; resendAt: number; sendsLeft?: number }
export interface PendingSignIn {
  kind: "link" | "approval" | "device"; id: string; matchNumber?: string; expiresAt: number; resendAt?: number;
  userCode?: string; verificationUrl?: string; completeVerificationUrl?: string;
}
export interface User {
  id: string; sessionId: string; email?: string; emailVerified: boolean; phone?: string; phoneVerified: boolean; name?: string;
  authenticatedAt: number; methods: string[]; level?: string; claims: Record<string, unknown>;
}
export type SessionState =
  | { signedIn: true; user: User; persistent: boolean; bound: boolean }
  | { signedIn: false; reason: "never" | "byUser" | "ended" | "keyLost" };
export type Audience = "default" | "account" | { scope: string; resource?: string };
export interface AccessToken { value: string; type: "Bearer" | "DPoP"; scope: string; expiresAt: number }
export interface StepUpChallenge { levels: string[]; maxAge?: number }

export class Postern {
  constructor(options: Options);
  readonly ready: Promise<SessionState>;
  readonly state: SessionState;                                       // after `ready`
  subscribe(listener: (state: SessionState) => void): () => void;     // the present one first
  appInfo(): Promise<Record<string, unknown>>;                        // the server's members

  requestCode(address: Address, names?: Names): Promise<CodeRequest>;
  register(address: Address, names?: Names): Promise<CodeRequest>;
  resend<R extends CodeRequest | PendingSignIn>(request: R): Promise<R>;
  signInWithCode(request: CodeRequest, code: string, secondFactor?: SecondFactor): Promise<User>;
  requestLink(address: Address, names?: Names): Promise<PendingSignIn>;
  requestApproval(hint: string): Promise<PendingSignIn>;
  requestDeviceSignIn(): Promise<PendingSignIn>;
  wait(pending: PendingSignIn, options?: { secondFactor?: SecondFactor; signal?: AbortSignal }): Promise<User>;
  pending(): Promise<(CodeRequest | PendingSignIn)[]>;
  forget(request: CodeRequest | PendingSignIn): Promise<void>;
  signInAsTrustedDevice(secondFactor?: SecondFactor): Promise<User>;
  beginProvider(provider: string): Promise<{ id: string; provider: string; nonce: string; expiresAt: number }>;
  signInWithProvider(request: { id: string }, proof: { identityToken: string; authorizationCode?: string } & Names, secondFactor?: SecondFactor): Promise<User>;
  adopt(refreshToken: string, idToken?: string): Promise<User>;
  stepUpWithCode(challenge: StepUpChallenge, request: CodeRequest, code: string, secondFactor?: SecondFactor): Promise<User>;

  accessToken(audience?: Audience): Promise<AccessToken>;
  fetch(input: string | URL, init?: RequestInit, audience?: Audience): Promise<Response>;
  account(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<any>;  // an account endpoint: the server's members; undefined for 204
  signOut(scope?: "thisSession" | "everywhere" | "forgettingThisDevice"): Promise<void>;
}
export function stepUpChallenge(response: Response): StepUpChallenge | null;

export class PosternError extends Error {
  readonly code: ErrorCode | string;      // one of ErrorCode, else the server's `error` or problem title
  readonly status: number;                // 0 without an answer
  readonly retryAfter?: number;           // seconds
  readonly details: Record<string, unknown>;
}
export type ErrorCode = "wrong_code" | "second_factor_needed" | "second_factor_wrong" | "denied" | "expired" | "step_up_needed"
  | "address_proof_needed" | "names_needed" | "rate_limited" | "unavailable" | "signed_out" | "foreign_redirect" | "cancelled" | "misuse";
