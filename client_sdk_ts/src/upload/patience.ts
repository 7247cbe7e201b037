/** Waiting for an answer, but not for ever. */

import { TransportError } from "../core/errors.js";
import type { Answer } from "./transport.js";

export const LATE = Symbol();

/** Returns what `promise` becomes, or LATE after so many milliseconds, for which a process waits if that is `held`. */
export async function within<T>(promise: Promise<T>, timeout: number, held = false): Promise<T | typeof LATE> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, Math.min(timeout, 2 ** 31 - 1), LATE);
    if (!held) (timer as { unref?: () => void }).unref?.();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the answer.  Throws TransportError: there was none so long. */
export async function inTime(answer: Promise<Answer>, timeout: number): Promise<Answer> {
  const result = await within(answer, timeout);
  if (result === LATE) throw new TransportError("no answer: timeout");
  return result;
}
