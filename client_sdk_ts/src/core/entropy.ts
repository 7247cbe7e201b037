/**
 * The system's entropy, taken a little ahead.
 *
 * A call of the system for each draw would take longer than all the rest.  What was taken ahead lives
 * in one closure, so no worker, process or page shares it; a byte is overwritten once it is read; and
 * what is left is thrown away at the end of the running task, so a snapshot of a process, which is
 * taken between tasks, holds none.
 */

import { EntropyError } from "./errors.js";
import type { ByteSource } from "./randomness.js";

const AHEAD = 2048; // bytes; a hundred draws, and a call of the system takes 15 µs
const MOST = 65_536; // bytes that getRandomValues gives at once

/** Returns a source of its own over the system's entropy. */
export function systemSource(fill: (bytes: Uint8Array<ArrayBuffer>) => unknown = systemFill): ByteSource {
  const ahead = new Uint8Array(AHEAD);
  let next = AHEAD;
  let ends = false; // whether the end of the running task is waited for
  const wipe = (): void => {
    ahead.fill(0);
    next = AHEAD;
    ends = false;
  };
  return (count) => {
    if (count > AHEAD) return filled(new Uint8Array(count), fill);
    if (next + count > AHEAD) {
      ahead.fill(0);
      next = AHEAD; // nothing of it is read if this fails
      filled(ahead, fill);
      next = 0;
      if (!ends) void Promise.resolve().then(wipe);
      ends = true;
    }
    const bytes = ahead.slice(next, next + count);
    ahead.fill(0, next, (next += count));
    return bytes;
  };
}

function systemFill(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

/** Fills `bytes`, which are zeros.  A system that leaves them so, as some substitutes do, has failed. */
function filled(bytes: Uint8Array<ArrayBuffer>, fill: (bytes: Uint8Array<ArrayBuffer>) => unknown): Uint8Array {
  try {
    for (let start = 0; start < bytes.length; start += MOST) fill(bytes.subarray(start, start + MOST));
  } catch (cause) {
    throw new EntropyError("the system gave no randomness; no report was made", { cause });
  }
  if (!bytes.some(Boolean)) throw new EntropyError("the system gave zeros for randomness; no report was made");
  return bytes;
}
