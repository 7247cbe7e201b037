/** JSON in the one form that digests and checksums are of: ASCII, keys sorted, and no blanks. */

import { toHex, utf8 } from "../core/bytes.js";
import { RegistryError } from "../core/errors.js";
import { sha256 } from "../core/hashing.js";

const DEEPEST = 16; // levels; a registry has 8

/**
 * Returns `value` as Python's json.dumps writes it with sorted keys and compact separators.
 *
 * Throws RegistryError: it is no JSON of whole numbers, or too deep.
 */
export function canonical(value: unknown, depth = 0): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "bigint" || Number.isInteger(value)) return String(BigInt(value as number));
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object" || depth === DEEPEST) {
    throw new RegistryError(`registry: must be JSON of whole numbers, at most ${DEEPEST} levels deep`);
  }
  const parts = Array.isArray(value)
    ? Array.from(value, (part) => canonical(part, depth + 1))
    : Object.keys(value).sort(byCodePoint).map((key) => `${quoted(key)}:${canonical((value as Record<string, unknown>)[key], depth + 1)}`);
  return Array.isArray(value) ? `[${parts.join()}]` : `{${parts.join()}}`;
}

/** Returns the SHA-256 of `text`, which is ASCII, in hexadecimal. */
export function digestOf(text: string): string {
  return toHex(sha256(utf8(text)));
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** JavaScript sorts by halves of surrogate pairs, and Python by what they stand for. */
function byCodePoint(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return (a.codePointAt(i) ?? -1) - (b.codePointAt(i) ?? -1);
}
