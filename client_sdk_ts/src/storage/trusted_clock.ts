/**
 * Trusted time: what caps are counted in.  It never runs backwards, nor faster than the wall clock.
 *
 * The wall clock can be set.  In Node trusted time therefore advances, between two charges, by the
 * least of what the wall clock and the time since boot allow; after a reboot, by no more than the time
 * since it.  Over any history of jumps and reboots it is at most the true time that has passed, and
 * caps a week apart are a true week apart.  The price: while a machine is switched off, no trusted time
 * passes.
 *
 * A browser has no clock that outlives its pages and cannot be set.  There trusted time is the farthest
 * that the wall clock has ever been.  A clock that is set back stands still until it has caught up, so
 * setting it back and right again gains nothing, however often.  What remains possible: who sets the
 * clock of their device ahead has the budget of one week early, and once it is put right no other
 * before the clock has come there by itself.  Who leaves it ahead, and sets it ahead week by week, has
 * the budgets of all these weeks; the cap for life holds whatever anybody does with clocks.
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

/** Milliseconds; what is lost at most when a machine is switched off. */
export const SAVE_EVERY = 600_000;
/** Seconds from 1970 either way; some 35,000 years. */
export const MAX_WALL = 2 ** 40;

const MS_OF_DAY = 1000 * DAY;

/** For platforms that do not tell, as browsers. */
export const noUptime: Uptimes = () => ({ boot: "", up: -1 });

/** Returns the trusted epoch day at Unix time `wall`, in seconds, without changing anything. */
export function trustedDay(state: State, wall: number, uptime: Uptime): number {
  return whole((begin(state, wall) + Math.max(0, passed(state, wall, uptime))) / MS_OF_DAY);
}

/**
 * Returns the trusted epoch day at Unix time `wall`, in seconds, and keeps how far it has come.
 *
 * It is kept when SAVE_EVERY has passed, when a day has begun, and when a clock went backwards: what is
 * refused should cost no writing.  A day that was charged is never followed by the day before: of weeks,
 * only those to the present day are looked at.
 */
export function advance(state: State, wall: number, uptime: Uptime): number {
  const since = passed(state, wall, uptime);
  const before = begin(state, wall);
  const trusted = before + Math.max(0, since);
  const day = whole(trusted / MS_OF_DAY);
  const unread = !state.clock || state.clock.up < 0 !== uptime.up < 0;
  if (unread || since >= SAVE_EVERY || day > whole(before / MS_OF_DAY) || (since < 0 && uptime.up >= 0)) {
    state.clock = { trusted, wall: whole(1000 * wall), up: whole(uptime.up), boot: uptime.boot };
  }
  return day;
}

/** Returns the trusted time from which to go on, in milliseconds. */
function begin({ clock, ledger }: State, wall: number): number {
  if (clock) return clock.trusted;
  const days = Object.values(ledger).flatMap(({ costs }) => costs.map(({ last }) => last));
  // charges without a reading: damage
  return days.length ? Math.max(...days) * MS_OF_DAY : whole(1000 * wall);
}

/** Returns the milliseconds that surely passed; negative if a clock went backwards. */
function passed({ clock }: State, seconds: number, { boot, up }: Uptime): number {
  const wall = whole(1000 * seconds);
  if (!clock) return 0;
  if (up < 0) return wall - clock.trusted;
  if (clock.up < 0) return 0; // by another platform: it is begun anew
  const ran = whole(up) - clock.up;
  const goesOn = boot === clock.boot && (boot || ran >= 0);
  return Math.min(wall - clock.wall, goesOn ? ran : whole(up));
}

const whole = Math.floor;
