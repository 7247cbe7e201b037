/** The compiled registry as a device holds it: see docs/design/compiled-registry.md. */

import type { Ratio } from "../core/randomness.js";
import type { Channel, Encoded } from "../mechanisms/mechanism.js";

export type Every = "1h" | "1d" | "7d" | "28d" | "once";
export type Aggregate = "sum" | "max" | "last" | "most_common" | "any";

/** Which values a metric takes. */
export interface Domain {
  readonly encodes: Encoded["kind"];
  /** Number of items, grid points or keys; of texts the most bytes. */
  readonly size: number;
  /** What can be made of the values of an epoch. */
  readonly aggregates: readonly Aggregate[];
  /** Of one number: its grid. */
  readonly grid?: Grid;
  /** Returns what a mechanism randomizes.  Throws InvalidValueError, of `what` and without the value. */
  encode(value: unknown, what: string): Encoded;
}

/** Numbers from 0 on, in steps. */
export interface Grid {
  readonly zero: Ratio;
  readonly step: Ratio;
  /** Returns how many steps a number is above the least, which may be outside of the range.  Throws as `encode`. */
  steps(value: unknown, what: string): Ratio;
}

/** A metric, read and checked. */
export interface Metric {
  readonly name: string;
  /** 12 hexadecimal digits: its name on the wire. */
  readonly digest: string;
  readonly title: string;
  readonly question: string;
  readonly explanation: string;
  readonly type: string;
  readonly every: Every;
  readonly longitudinal: "fresh" | "permanent" | "two_layer";
  readonly mechanism: string;
  readonly channel: Channel;
  /** In nano-epsilon, and delta in 1e-12. */
  readonly spent: { readonly report: number; readonly value: number | null; readonly delta: number };
  readonly segments: readonly string[];
  /** The last epoch day on which it is recorded. */
  readonly lastDay: number;
  readonly aggregate: Aggregate | null;
  readonly otherwise: Encoded | null;
  readonly domain: Domain;
  /** Returns what the mechanism randomizes.  Throws InvalidValueError, without the value. */
  encode(value: unknown): Encoded;
}

/** A registry, read and checked. */
export interface Registry {
  readonly app: string;
  readonly automation: "ignore" | "segment";
  readonly retireKey: string | null;
  readonly segments: Readonly<Record<string, readonly string[]>>;
  readonly panelWeek: number | null;
  readonly seats: Readonly<Record<string, readonly [low: bigint, high: bigint, lasts: "life" | "7d" | "28d"]>> | null;
  /** By name; the texts of the file hold under these. */
  readonly caps: Readonly<Record<string, string>>;
  readonly notice: string;
  readonly metrics: ReadonlyMap<string, Metric>;
}
