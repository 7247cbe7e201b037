/**
 * What was recorded and is not yet written: one sum a metric and epoch, in memory.
 *
 * However fast values come, they take no more room than their metrics have epochs.
 */

import { dateOf, DAY, dayOf, epochOf, epochStart } from "../core/epoch.js";
import { ExpiredMetricError, InvalidParameterError, UnknownMetricError } from "../core/errors.js";
import type { Reason } from "../core/reasons.js";
import type { Stats } from "../core/stats.js";
import type { ConsentSwitch } from "../privacy/consent.js";
import type { Aggregator } from "../registry/aggregates.js";
import type { Metric, Registry } from "../registry/compiled.js";
import { MAX_WALL } from "../storage/trusted_clock.js";
import type { Parts } from "./parts.js";
import type { Pending, Settled } from "./recorder.js";

/** Metrics and epochs that wait; only a clock that jumps makes as many. */
const MAX_SLOTS = 1_000;
/** Days before a metric's last one in which developers are warned. */
const EXPIRES_SOON = 30;

/** One metric in one of its epochs. */
interface Slot {
  readonly metric: Metric;
  readonly aggregator: Aggregator | null;
  readonly epoch: number;
  /** Of its sum. */
  readonly key: string;
  /** Unix times. */
  readonly start: number;
  readonly end: number;
  /** What becomes of any further value, if this process knows: it has its one report, or none. */
  settled?: Reason;
}

type Sum = { -readonly [key in keyof Pending]: Pending[key] };

/** The values of one client that wait to be written. */
export class Inbox {
  readonly #slots = new Map<string, Slot>(); // by the name of their metric; the latest of each
  #sums = new Map<string, Sum>();

  constructor(
    private readonly registry: Registry,
    private readonly consent: ConsentSwitch,
    private readonly stats: Stats,
    private readonly parts: Parts,
  ) {}

  /** How many reports and windows wait to be written. */
  get size(): number {
    return this.#sums.size;
  }

  /**
   * Takes `value` of the metric called `name` at Unix time `now`; returns whether there is anything to write.
   *
   * Throws ConsentError, UnknownMetricError, ExpiredMetricError, InvalidValueError, InvalidParameterError.
   */
  put(name: unknown, value: unknown, now: number): boolean {
    this.consent.require();
    const slot = this.#slot(name, now);
    const { aggregator, epoch, key, metric } = slot;
    const checked = aggregator ? aggregator.check(value) : metric.encode(value);
    const sum = this.#sums.get(key);
    if (slot.settled) {
      this.stats.add(slot.settled);
    } else if (!sum && this.#sums.size >= MAX_SLOTS) {
      this.stats.add("queue_full");
    } else if (sum) {
      if (aggregator) sum.value = aggregator.fold(sum.value, [checked]);
      sum.count++;
      sum.now = now;
    } else {
      const first = aggregator ? aggregator.fold(null, [checked]) : (checked as Pending["value"]);
      this.#sums.set(key, { metric, value: first, epoch, now, count: 1 });
    }
    return !slot.settled;
  }

  /** Removes and returns up to `most` of what waits. */
  take(most: number): Pending[] {
    const taken = [...this.#sums].slice(0, most);
    for (const [key] of taken) this.#sums.delete(key);
    return taken.map(([, sum]) => sum);
  }

  /** Remembers why all others of these slots are refused. */
  settle(settled: Settled): void {
    for (const [{ metric, epoch }, reason] of settled) {
      const slot = this.#slots.get(metric.name);
      if (slot?.epoch === epoch) slot.settled = reason;
    }
  }

  /** Forgets all that waits, and what a secret drew; returns how many values that were. */
  clear(): number {
    for (const slot of this.#slots.values()) if (slot.settled === "not_in_panel") delete slot.settled;
    const counts = [...this.#sums.values()].map((sum) => sum.count);
    this.#sums = new Map();
    return counts.reduce((all, more) => all + more, 0);
  }

  #slot(name: unknown, now: number): Slot {
    if (typeof name !== "string") throw new UnknownMetricError(typeof name);
    const known = this.#slots.get(name);
    if (known && known.start <= now && now < known.end) return known;
    const metric = this.registry.metrics.get(name);
    if (!metric) throw new UnknownMetricError(name);
    // not a number would stop all that wait beside it
    if (!(Math.abs(now) < MAX_WALL)) throw new InvalidParameterError("clock", now, `must be below ${MAX_WALL} seconds`);
    const { aggregate, every, lastDay } = metric;
    if (lastDay < dayOf(now)) throw new ExpiredMetricError(name, dateOf(lastDay));
    if (lastDay - dayOf(now) <= EXPIRES_SOON) {
      this.stats.warn(`metrics.${name}.expires`,
        `metrics.${name}.expires=${dateOf(lastDay)}: is near, and nothing is recorded after it: renew or remove it`);
    }
    const epoch = epochOf(every, now);
    const once = every === "once";
    const slot: Slot = {
      metric,
      aggregator: aggregate ? this.parts.aggregates!.aggregatorOf(metric) : null,
      epoch,
      key: `${metric.digest} ${epoch}`, // made once, as values may come in bursts
      start: once ? -Infinity : epochStart(every, epoch),
      end: Math.min(once ? Infinity : epochStart(every, epoch + 1), (lastDay + 1) * DAY),
    };
    this.#slots.set(name, slot);
    return slot;
  }
}
