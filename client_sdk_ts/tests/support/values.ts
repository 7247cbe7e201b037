/** Values of JavaScript as tests/client_sdk_ts/device.py writes them: JSON, and objects with one key for the rest. */

const KINDS: Readonly<Record<string, (inner: any) => unknown>> = {
  $undefined: () => undefined,
  $number: Number,
  $bigint: BigInt,
  $set: (list: unknown[]) => new Set(list.map(revived)),
  $map: (entries: [unknown, unknown][]) => new Map(entries.map(([key, value]) => [revived(key), revived(value)])),
};

/** Returns the value that was written. */
export function revived(written: unknown): unknown {
  if (Array.isArray(written)) return written.map(revived);
  if (typeof written !== "object" || written === null) return written;
  const entries = Object.entries(written);
  const [key, inner] = entries[0] ?? ["", null];
  if (entries.length === 1 && Object.hasOwn(KINDS, key)) return KINDS[key]!(inner);
  return Object.fromEntries(entries.map(([name, value]) => [name, revived(value)]));
}
