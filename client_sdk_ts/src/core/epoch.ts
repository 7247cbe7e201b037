/** Epochs: the only notion of time that a report carries.  Whole seconds and days of UTC. */

import { InvalidParameterError } from "./errors.js";

export const DAY = 86_400; // seconds

/** Seconds. */
const LENGTHS: Readonly<Record<string, number>> = { "1h": 3_600, "1d": DAY, "7d": 7 * DAY, "28d": 28 * DAY };

/** Returns the epoch day, days since 1970-01-01 UTC, of Unix time `seconds`. */
export function dayOf(seconds: number): number {
  return Math.floor(seconds / DAY);
}

/** Returns the epoch day of a calendar day as 2026-12-31. */
export function dayOfDate(day: string): number {
  return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000);
}

/** Returns an epoch day as a calendar day. */
export function dateOf(day: number): string {
  return new Date(day * DAY * 1000).toISOString().slice(0, 10);
}

/** Returns the number of the epoch of length `every` that holds Unix time `seconds`; 0 for "once". */
export function epochOf(every: string, seconds: number): number {
  return every === "once" ? 0 : Math.floor((seconds + offset(every)) / length(every));
}

/** Returns the Unix time at which `epoch` begins; 0 for "once". */
export function epochStart(every: string, epoch: number): number {
  return every === "once" ? 0 : epoch * length(every) - offset(every);
}

/** Returns the beginning of `epoch` as people write it: a date, with the hour for "1h". */
export function epochLabel(every: string, epoch: number): string {
  if (every === "once") return every;
  const start = new Date(epochStart(every, epoch) * 1000).toISOString();
  return every === "1h" ? `${start.slice(0, 13)}:00Z` : start.slice(0, 10);
}

function length(every: string): number {
  const seconds = LENGTHS[every];
  if (seconds === undefined) throw new InvalidParameterError("every", every, "must be one of 1h, 1d, 7d, 28d, once");
  return seconds;
}

/** 1970-01-01 was a Thursday: by three days, epochs of 7d begin on Mondays, and one of 28d holds four whole. */
function offset(every: string): number {
  return length(every) > DAY ? 3 * DAY : 0;
}
