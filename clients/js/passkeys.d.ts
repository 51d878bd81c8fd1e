// Postern's client with passkeys (WebAuthn Level 3).

import type { Postern, StepUpChallenge, User } from "./client.js";
export function passkeySupport(): Promise<{ available: boolean; autofill: boolean }>;
export function signInWithPasskey(postern: Postern, options?: { autofill?: boolean; signal?: AbortSignal }): Promise<User>;
export function stepUpWithPasskey(postern: Postern, challenge: StepUpChallenge): Promise<User>;
export function addPasskey(postern: Postern, options?: { name?: string; signal?: AbortSignal }): Promise<{ Id: string }>;
export function signalPasskeys(postern: Postern): Promise<void>;
