// Postern's client on the pages of the server.

import type { Postern, User } from "./client.js";
export interface PageOptions { returnTo?: string; loginHint?: string; prompt?: string; maxAge?: number; levels?: string[]; locales?: string[] }
export function signInOnPages(postern: Postern, options?: PageOptions): Promise<never>;                       // leaves the page
export function finishSignIn(postern: Postern, url?: string): Promise<{ user: User; returnTo?: string } | null>;   // null: no return
export function signOutOnPages(postern: Postern, options?: { returnTo?: string }): Promise<never>;
