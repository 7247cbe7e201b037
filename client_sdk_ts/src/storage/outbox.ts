/**
 * The outbox: reports that wait to be sealed, bounded in number, bytes and age.
 *
 * Only perturbed payloads are stored.  A report carries no more of the device's segment than its metric
 * keeps apart, and reports of different segments never share an upload.  So an upload never tells a
 * dimension that none of its metrics asked for.
 *
 * The last reports that were acknowledged are kept, so that a device can show its user what it said.
 */

import type { State, WaitingReport } from "./state.js";

/** Reports; two weeks offline at 30 a day, under 100 kB. */
const MAX_REPORTS = 500;
/** Bytes of their payloads; only wide sketches come near it. */
const MAX_SIZE = 512 * 1024;
/** Acknowledged reports that a device can still show its user. */
const MAX_SENT = 100;
/** Days; a phone that was away for a fortnight still counts. */
export const MAX_REPORT_AGE = 14;

/**
 * Appends a report; returns how many of the oldest were dropped to make room.
 *
 * `segment` is the device's, `dimensions` are the ones that its metric keeps apart, and `day` is the epoch
 * day of recording.
 */
export function put(
  state: State,
  report: Pick<WaitingReport, "digest" | "epoch" | "payload" | "day">,
  segment: Readonly<Record<string, string>>,
  dimensions: readonly string[],
): number {
  const names = Object.keys(segment).filter((name) => dimensions.includes(name)).sort();
  state.reports.push({ ...report, segment: Object.fromEntries(names.map((name) => [name, segment[name]!])) });
  let size = state.reports.reduce((total, { payload }) => total + sizeOf(payload), 0);
  let dropped = 0;
  while (state.reports.length - dropped > MAX_REPORTS || size > MAX_SIZE) {
    size -= sizeOf(state.reports[dropped++]!.payload);
  }
  state.reports.splice(0, dropped);
  return dropped;
}

/** Drops what has waited more than MAX_REPORT_AGE days; returns how many reports that were. */
export function expire(state: State, day: number): number {
  const before = waiting(state);
  const oldest = day - MAX_REPORT_AGE;
  state.uploads = state.uploads.filter(({ sealedDay }) => sealedDay >= oldest);
  state.reports = state.reports.filter((report) => report.day >= oldest);
  return before - waiting(state);
}

/** Returns how many reports wait, sealed ones included. */
export function waiting(state: State): number {
  return state.uploads.reduce((total, { reports }) => total + reports, state.reports.length);
}

/** Deletes all that waits, and one-time tokens; returns how many reports that were. */
export function clear(state: State): number {
  const count = waiting(state);
  state.reports = [];
  state.uploads = [];
  delete state.tokens;
  return count;
}

/** Keeps the `reports` of an acknowledged upload; of all, the last 100. */
export function keepAcknowledged(
  state: State, reports: Iterable<Pick<WaitingReport, "digest" | "epoch" | "payload">>, day: number,
): void {
  for (const { digest, epoch, payload } of reports) state.sent.push({ digest, epoch, payload, day });
  state.sent.splice(0, state.sent.length - MAX_SENT);
}

/** Returns the bytes of base64url. */
const sizeOf = (payload: string): number => (payload.length * 3) >> 2;
