/** What time brings about: windows end and are reported, and those that are scheduled open. */

import { epochStart } from "../core/epoch.js";
import type { Metric } from "../registry/compiled.js";
import type { State } from "../storage/state.js";
import { count, type Counts } from "./counts.js";
import type { Device } from "./parts.js";
import { attempt, begin, isIn, isRetired, report } from "./recorder.js";
import { openScheduled, takeEnded } from "./windows.js";

/** Reports the windows that ended by Unix time `now`, and opens those that are scheduled. */
export function tick(state: State, device: Device, now: number): Counts {
  const counts: Counts = new Map();
  const { registry, randomness, consent } = device;
  if (!consent.granted) return counts; // a denial erases in a change of its own
  const day = begin(state, device, now, counts);
  for (const { metric, epoch, value, days } of takeEnded(state, registry, now, day, counts)) {
    // a report counts as recorded in the last second of its epoch, and ages with it
    const pending = { metric, epoch, value, now: epochStart(metric.every, epoch + 1) - 1, count: 1 };
    if (isRetired(state, metric)) count(counts, "retired");
    else attempt(counts, [], pending, () => report(state, device, pending, day, days, counts));
  }
  const mayOpen = (metric: Metric, epoch: number): boolean => !isRetired(state, metric) && isIn(state, device, metric, epoch);
  openScheduled(state, registry, now, day, mayOpen, randomness, counts);
  return counts;
}
