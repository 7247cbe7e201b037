/**
 * When to upload: at chance times, so that neither an app's use nor a collector's return shows.
 *
 * Each upload has a time of its own: a device waits some random hours before the next one, and only
 * the same bytes may be repeated sooner.  So the times of uploads do not show that they are of one
 * device.  A process claims its pass: until an answer is known, the claim names the upload that may
 * be on its way.  All times are Unix seconds; these functions alter `times`.
 */

import type { Randomness } from "../core/randomness.js";
import type { Times } from "../storage/state.js";

const HOUR = 3_600;
/** Seconds on average; few enough wake-ups for a battery. */
export const UPLOAD_EVERY = 4 * HOUR;
/** Uploads that may wait before each more no longer shortens the time between. */
const MOST_LOTS = 4;
/** Seconds after which an upload without an answer may be repeated. */
export const CLAIM = 120;
/** Seconds; the ceiling after one failure, doubled by each further one. */
const FIRST_BACKOFF = 30;
/**
 * Seconds; passes of the schedule have a ceiling of their own after two failures: a fleet that waits
 * for its collector must not return within a minute.
 */
const FIRST_SPREAD = 2 * HOUR;
/** Seconds; a collector that returns is found the same day. */
const MAX_BACKOFF = 6 * HOUR;
/** Seconds; what is added by chance makes it a day at most. */
const MAX_RETRY_AFTER = 18 * HOUR;
/** Seconds; no collector can silence a device for longer. */
const LONGEST = 24 * HOUR;
/**
 * Seconds.  A pass that fell due while nothing ran must not show the start of the application: it
 * waits a random part of this, of half of it if the application ended before that, and so on.
 */
export const FIRST_REST = HOUR;
/** Seconds; applications that live shorter send at their end. */
export const SHORTEST_REST = 60;
/** Unix time; a number beyond it is none that was ever planned. */
const LATEST = 2 ** 40;

export const noTimes = (): Times =>
  ({ next: 0, notBefore: 0, repeatAfter: 0, failures: 0, rests: 0, claim: "" });

/** Returns when the next pass is due: of another upload, or of the same. */
export function due(times: Times, now: number): number {
  const next = sane(times.next, now);
  const departure = times.claim ? Math.min(next, sane(times.repeatAfter, now)) : next;
  return Math.max(departure, sane(times.notBefore, now));
}

/** Returns the seconds until the next pass is due. */
export const wait = (times: Times, now: number): number => Math.max(0, due(times, now) - now);

/** Returns the seconds for which nothing at all may be sent. */
export const backoff = (times: Times, now: number): number =>
  Math.max(0, sane(times.notBefore, now) - now);

/** Whether the time of another upload has come, and not only of what is claimed. */
export const mayDepart = (times: Times, now: number): boolean =>
  Math.max(sane(times.next, now), sane(times.notBefore, now)) <= now;

/** Puts the next pass between a half and one and a half of UPLOAD_EVERY ahead, sooner for several `lots`. */
export function plan(times: Times, now: number, randomness: Randomness, lots = 1): void {
  const ahead = UPLOAD_EVERY / 2 + chance(randomness, UPLOAD_EVERY);
  times.next = now + ahead / Math.min(Math.max(lots, 1), MOST_LOTS);
  times.rests = 0;
}

/** Notes that an upload is on its way; without an answer it is due again. */
export function claim(times: Times, now: number, id: string): void {
  times.claim = id;
  times.repeatAfter = now + CLAIM;
  times.rests = 0;
}

/** Forgets the failures, and the upload that was answered for good. */
export function release(times: Times): void {
  if (times.failures || times.claim) {
    times.failures = times.notBefore = 0;
    times.claim = "";
  }
}

/**
 * Waits `retryAfter` seconds and a random part of a time that grows with each failure.
 *
 * Devices that came back to the second could be recognized by the wait that each was given.  If the
 * upload was `unseen`, another one may follow as soon as the same.
 */
export function postpone(
  times: Times, now: number, retryAfter: number, randomness: Randomness, unseen = false,
): void {
  const requested = retryAfter > 0 ? Math.min(retryAfter, MAX_RETRY_AFTER) : 0;
  const ceiling = Math.max(doubled(FIRST_BACKOFF, times.failures), Math.floor(Math.floor(requested) / 4));
  times.notBefore = times.repeatAfter = now + requested + chance(randomness, ceiling);
  if (times.failures) {
    const spread = chance(randomness, doubled(FIRST_SPREAD, times.failures - 1));
    times.repeatAfter = Math.max(times.repeatAfter, now + spread);
  }
  if (unseen) {
    times.next = times.repeatAfter;
    times.claim = "";
  }
  times.failures++;
}

/** Returns until when a process waits that found a pass overdue. */
export function rest(times: Times, now: number, randomness: Randomness): number {
  const longest = Math.max(SHORTEST_REST, FIRST_REST >> Math.min(times.rests, 16));
  times.rests++;
  return now + chance(randomness, longest);
}

function chance(randomness: Randomness, ceiling: number): number {
  return Number(randomness.uniform(BigInt(1_000 * ceiling + 1))) / 1_000;
}

const doubled = (first: number, times: number): number => Math.min(MAX_BACKOFF, first << Math.min(times, 16));

/** Returns `until`; `now` if that is later than anything that is ever planned, or damaged. */
function sane(until: number, now: number): number {
  // a longer wait was computed before the clock was set back
  return !(until >= 0 && until < LATEST) ? 0 : until - now <= LONGEST ? until : now;
}
