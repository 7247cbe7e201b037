/**
 * Lists of retired metrics: what a developer stops on devices whose version still asks it.
 *
 * A device takes a list only under the public key of its own registry, so neither the collector nor
 * anybody on the way can write one; and it can only stop metrics.  What was retired once stays so.
 */

import { fromHex, utf8 } from "../core/bytes.js";
import type { State } from "../storage/state.js";

/** Characters; what a device reads of any answer is a little more. */
const MAX_LIST = 60_000;
/** Digests, which fit into it. */
const MAX_RETIRED = 4_000;
const MAX_ISSUED = 2 ** 40;
/** Begins what is signed, and nothing else that is. */
const PURPOSE = "hearsay retired metrics\n";

/** What a list says, and the Unix second at which it was issued. */
export interface Retirement {
  readonly issued: number;
  readonly digests: readonly string[];
}

/** Returns the list `text` if the holder of the public `key`, in hexadecimal, signed it, else null. */
export async function readRetirement(text: string, key: string): Promise<Retirement | null> {
  const form = parsed(text);
  if (!form) return null;
  const { issued, retired, version, signature } = form;
  const signed = utf8(PURPOSE + JSON.stringify({ issued, retired, version }));
  try {
    const imported = await crypto.subtle.importKey("raw", fromHex(key), "Ed25519", false, ["verify"]);
    return (await crypto.subtle.verify("Ed25519", imported, fromHex(signature), signed)) ? { issued, digests: retired } : null;
  } catch {
    return null; // what cannot be verified is not heeded
  }
}

/**
 * Adds what is retired by a list; returns how many reports and windows were deleted, or null if a
 * newer list is known.
 *
 * What waits of it is deleted.  Its charge stays, as there are no refunds; and an upload that is
 * sealed stays as it is, since the same bytes may have arrived.
 */
export function keepRetired(state: State, { issued, digests }: Retirement): { reports: number; windows: number } | null {
  const known = state.retired;
  if (known && issued < known.number) return null;
  const all = new Set([...(known?.digests ?? []), ...digests]);
  const before = [state.reports.length, state.windows.length] as const;
  state.retired = { number: issued, digests: [...all].sort() };
  state.reports = state.reports.filter(({ digest }) => !all.has(digest));
  state.windows = state.windows.filter(({ digest }) => !all.has(digest));
  return { reports: before[0] - state.reports.length, windows: before[1] - state.windows.length };
}

/** Returns the fields of a well-formed list, with any signature; null otherwise. */
function parsed(text: string): { version: number; issued: number; retired: string[]; signature: string } | null {
  let form: unknown;
  try {
    form = text.length > MAX_LIST ? null : JSON.parse(text);
  } catch {
    return null;
  }
  if (!form || typeof form !== "object" || Object.keys(form).sort().join() !== "issued,retired,signature,version") return null;
  const { version, issued, retired, signature } = form as Record<string, unknown>;
  const right =
    version === 1 && Number.isInteger(issued) && (issued as number) >= 0 && (issued as number) < MAX_ISSUED &&
    Array.isArray(retired) && retired.length <= MAX_RETIRED && retired.every((digest) => isHex(digest, 12)) &&
    isHex(signature, 128);
  return right ? { version, issued: issued as number, retired: retired as string[], signature: signature as string } : null;
}

const isHex = (text: unknown, digits: number): boolean =>
  typeof text === "string" && text.length === digits && /^[0-9a-f]*$/.test(text);
