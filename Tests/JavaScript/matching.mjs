// What stands in place of a value in docs/vectors.

import { readFileSync } from "node:fs";

export const file = name =>
  JSON.parse(readFileSync(new URL(`../../docs/vectors/${name}.json`, import.meta.url), "utf8"));
export const KEY = file("proofs").keys["vector-key-1"];
export const ECDSA = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Compares as README.md of the vectors says. - Throws: where they differ. */
export const match = (expected, actual, place, isPart = false) => {
  const differs = () => { throw new Error(`${place}: ${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`); };
  if (expected?.$ === "any") return;
  if (expected?.$ === "absent") return actual === undefined || differs();
  if (expected?.$ === "string") return typeof actual === "string" || differs();
  if (expected?.$ === "match") return new RegExp(`^(?:${expected.pattern})$`, "u").test(actual) || differs();
  if (expected?.$ === "number") return actual >= expected.min && actual <= expected.max || differs();
  if (!expected || typeof expected !== "object") return Object.is(expected, actual) || differs();
  if (!actual || typeof actual !== "object" || Array.isArray(expected) !== Array.isArray(actual)) differs();
  for (const name of Object.keys(expected)) match(expected[name], actual[name], `${place}.${name}`);
  if (!isPart) for (const name of Object.keys(actual)) if (!(name in expected) && actual[name] !== undefined) differs();
};
