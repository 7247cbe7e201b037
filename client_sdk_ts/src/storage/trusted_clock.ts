/**
 * Trusted time: what caps are counted in.  It never runs backwards, nor faster than the wall clock.
 *
 * The wall clock can be set.  In Node trusted time therefore advances, between two charges, by the
 * least of what the wall clock and the time since boot allow.  After a reboot it advances by the time
 * since it and by time off, within a credit: each hour that the machine runs earns three and a quarter,
 * up to a weekend.  A clock that is set while the machine runs gains nothing; one that is set at
 * reboot after reboot gains at most five caps of a week in seven days.
 *
 * A browser has no clock that outlives its pages and cannot be set.  There trusted time is the farthest
 * that the wall clock has ever been, so time off always counts in full.  A clock that is set back stands
 * still until it has caught up, so setting it back and right again gains nothing, however often.  What
 * remains possible: who sets the clock of their device ahead has the budget of one week early, and once
 * it is put right no other before the clock has come there by itself.  Who leaves it ahead, and sets it
 * ahead week by week, has the budgets of all these weeks; the cap for life holds whatever anybody does
 * with clocks.
 *
 * Trusted dates begin with the wall clock's, so seven dates of an honest clock are never more than
 * seven trusted ones, however much time off was lost.
 */

import { DAY } from "../core/epoch.js";
import type { State } from "./state.js";

/** How long the machine has run. */
export interface Uptime {
  /** Names the boot; empty if the system does not. */
  readonly boot: string;
  /** Milliseconds since the boot, sleep included; negative: the platform does not tell. */
  readonly up: number;
}

/** Reads it now. */
export type Uptimes = () => Uptime;

/** Milliseconds; what a machine ran after it counts as time off. */
export const SAVE_EVERY = 600_000;
/** Seconds from 1970 either way; some 35,000 years. */
export const MAX_WALL = 2 ** 40;

const MS_OF_DAY = 1000 * DAY;
/** Hours of credit that an hour earns; 40 hours make a week. */
const EARNED = 3.25;
/** Milliseconds; from an afternoon to the Monday after it. */
const MOST_CREDIT = 3 * MS_OF_DAY;

/** For platforms that do not tell, as browsers. */
export const noUptime: Uptimes = () => ({ boot: "", up: -1 });

/** Returns the trusted epoch day at Unix time `wall`, in seconds, without changing anything. */
export function trustedDay(state: State, wall: number, uptime: Uptime): number {
  return read(state, wall, uptime)[0].day;
}

/**
 * Returns the trusted epoch day at Unix time `wall`, in seconds, and keeps how far it has come.
 *
 * It is kept when either clock has moved by SAVE_EVERY or the wall clock backwards, when a day has begun, and after a
 * reboot: what is refused should cost no writing.  A day that was charged is never followed by the day
 * before: of weeks, only those to the present day are looked at.
 */
export function advance(state: State, wall: number, uptime: Uptime): number {
  const [now, isWorthKeeping] = read(state, wall, uptime);
  if (isWorthKeeping) state.clock = now;
  return now.day;
}

type Reading = NonNullable<State["clock"]>;

/** Returns what the clocks show now, and whether it should be kept. */
function read(state: State, seconds: number, { boot, up: now }: Uptime): [Reading, boolean] {
  const [wall, up, measured] = [whole(1000 * seconds), whole(now), now >= 0];
  const last = state.clock;
  if (!last) return [first(state, { day: 0, trusted: wall, credit: 0, wall, up, boot }), true];
  const foreign = measured !== last.up >= 0; // kept by another platform: there it is begun anew
  const rebooted = !foreign && (boot && last.boot ? boot !== last.boot : up < last.up);
  const ran = foreign ? 0 : rebooted ? up : up - last.up;
  const shown = measured ? wall - last.wall : wall - last.trusted;
  const off = rebooted ? Math.min(last.credit, Math.max(0, shown - ran)) : 0;
  const passed = measured ? Math.min(shown, ran + off) : shown;
  // a correction of seconds is followed back, so that trusted time does not get ahead of the wall's
  const followed = passed >= 0 || (measured && !foreign && passed > -SAVE_EVERY);
  const trusted = last.trusted + (followed ? passed : 0);
  const credit = Math.min(MOST_CREDIT, last.credit - off + whole(EARNED * Math.max(0, ran)));
  // a date of the wall clock, as many before it as trusted time is days behind, a part for a whole
  const day = Math.max(last.day, whole(wall / MS_OF_DAY) + whole((trusted - wall) / MS_OF_DAY));
  const moved = shown >= SAVE_EVERY || ran >= SAVE_EVERY || (shown < 0 && measured);
  const isWorthKeeping = foreign || rebooted || day > last.day || moved;
  return [{ day, trusted, credit, wall, up, boot }, isWorthKeeping];
}

/** Returns the reading to begin with: `fresh`, of the wall clock, or after damage of the ledger. */
function first({ ledger }: State, fresh: Reading): Reading {
  const days = Object.values(ledger).flatMap(({ costs }) => costs.map(({ last }) => last));
  if (!days.length) return { ...fresh, day: whole(fresh.wall / MS_OF_DAY) };
  const day = Math.max(...days); // charges without a reading: damage
  return { ...fresh, day, trusted: day * MS_OF_DAY };
}

const whole = Math.floor;
