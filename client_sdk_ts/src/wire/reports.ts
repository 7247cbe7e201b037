/**
 * Uploads: the wire format, version 1, as a device writes it.
 *
 * An upload is `{v, id, sealed, segment, columns: [{metric, epoch, payloads}]}` in compact ASCII JSON,
 * where bytes are base64url without padding.  It is padded with spaces at the end to one of
 * SIZE_CLASSES: a length would reveal how many reports there are and their metrics.
 */

import { fromBase64url, fromHex, toBase64url, toHex } from "../core/bytes.js";

const VERSION = 1;

/** Bytes of a padded body. */
export const SIZE_CLASSES = [1_024, 4_096, 16_384, 65_536] as const;
export const MAX_BODY = 65_536;

/** One payload of one metric for one epoch: all that ever leaves a device. */
export interface Report {
  /** The digest in hexadecimal. */
  readonly digest: string;
  readonly epoch: number;
  /** In base64url. */
  readonly payload: string;
}

/** Returns an upload as JSON, padded to the next of SIZE_CLASSES; beyond the last as it is. */
export function sealPadded(
  id: string, sealedDay: number, segment: Readonly<Record<string, string>>, reports: readonly Report[],
): string {
  const columns = columnsOf(reports).map(({ digest, epoch, payload }) =>
    ({ metric: toBase64url(fromHex(digest)), epoch, payloads: payload }));
  const sorted = Object.fromEntries(Object.entries(segment).sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify({ v: VERSION, id, sealed: sealedDay, segment: sorted, columns });
  const body = text.replace(/[\x7f-\uffff]/g, (letter) =>
    `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return body.padEnd(SIZE_CLASSES.find((size) => body.length <= size) ?? 0);
}

/** Returns the reports of an upload that `sealPadded` wrote, a column as one. */
export function reportsOf(body: string): Report[] {
  const { columns } = JSON.parse(body) as { columns: { metric: string; epoch: number; payloads: string }[] };
  return columns.map(({ metric, epoch, payloads }) =>
    ({ digest: toHex(fromBase64url(metric)!), epoch, payload: payloads }));
}

/** Groups by metric and epoch, sorted, payloads too: the order of recording does not show. */
function columnsOf(reports: readonly Report[]): Report[] {
  const groups = new Map<string, { digest: string; epoch: number; payloads: string[] }>();
  for (const { digest, epoch, payload } of reports) {
    const key = `${digest} ${epoch}`;
    const group = groups.get(key) ?? { digest, epoch, payloads: [] };
    group.payloads.push(toHex(fromBase64url(payload)!));
    groups.set(key, group);
  }
  return [...groups.values()]
    .sort((a, b) => (a.digest === b.digest ? a.epoch - b.epoch : a.digest < b.digest ? -1 : 1))
    .map(({ digest, epoch, payloads }) =>
      ({ digest, epoch, payload: toBase64url(fromHex(payloads.sort().join(""))) }));
}
