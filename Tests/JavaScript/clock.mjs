// Virtual time for the client modules.

import { match } from "./matching.mjs";

export const time = { epoch: 0, passed: 0, shift: 0, sleepers: [] };
const { setTimeout: later } = globalThis;
export const settle = () => new Promise(resolve => later(resolve, 2));
Date.now = () => 1000 * (time.epoch + time.passed + time.shift);
Object.defineProperty(globalThis, "performance", { value: { now: () => 1000 * time.passed } });
globalThis.setTimeout = (run, after) => {
  const sleeper = { run, due: time.passed + after / 1000 };
  time.sleepers.push(sleeper);
  return sleeper;
};
globalThis.clearTimeout = sleeper => { time.sleepers = time.sleepers.filter(one => one !== sleeper); };
export const elapse = seconds => {
  time.passed += seconds;
  const due = time.sleepers.filter(one => one.due <= time.passed + 1e-6);
  time.sleepers = time.sleepers.filter(one => !due.includes(one));
  due.forEach(one => one.run());
};
export const eventually = async (holds, text) => {
  for (let tries = 0; !await holds(); tries++) {
    if (tries > 200) throw new Error(typeof text === "function" ? text() : text);
    await settle();
  }
};

/** Waits until a value is as expected. */
export const matches = (expected, value, name) => eventually(() => {
  try {
    return match(expected, value(), name, true) ?? true;
  } catch {
    return false;
  }
}, () => `${name}: ${JSON.stringify(value())}`);
