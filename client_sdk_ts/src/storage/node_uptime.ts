/** The time since boot, sleep included, in Node: a clock that cannot be set. */

import { readFileSync } from "node:fs";
import { uptime } from "node:os";

import type { Uptimes } from "./trusted_clock.js";

let boot: string | undefined;

/** Returns how long this machine has run. */
export const nodeUptime: Uptimes = () => {
  boot ??= bootId();
  return { boot, up: Math.floor(1000 * uptime()) };
};

/** Returns what Linux calls this boot; empty elsewhere. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return "";
  }
}
