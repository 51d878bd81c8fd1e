// Postern's client with passkeys (WebAuthn Level 3).

import type { Postern, StepUpChallenge, User } from "./client.js";
export function passkeySupport(): Promise<{ available: boolean; autofill: boolean }>;
/** `autofill`: waits until a passkey is picked in the form's own list. Rejects with `misuse` where there are none. */
export function signInWithPasskey(postern: Postern, options?: { autofill?: boolean; signal?: AbortSignal }): Promise<User>;
/** Signs the same user in again, as a server asked for (RFC 9470). */
export function stepUpWithPasskey(postern: Postern, challenge: StepUpChallenge): Promise<User>;
/** Rejects with `step_up_needed` ten minutes after the sign-in, and with `already_there`. */
export function addPasskey(postern: Postern, options?: { name?: string; signal?: AbortSignal }): Promise<{ Id: string }>;
/** Tells the browser's password manager which passkeys still count. */
export function signalPasskeys(postern: Postern): Promise<void>;
