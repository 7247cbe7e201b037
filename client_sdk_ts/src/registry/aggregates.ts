/**
 * How the values of one epoch become the one value that is reported.
 *
 * An aggregate folds values into a state of bounded size, whatever comes, and merges two states.  But
 * for "last", the order does not matter.  A state is bytes of one length for all values of a domain,
 * so that a length says nothing.
 *
 * Numbers are kept exactly, as long as they fit: every number of JavaScript does, and sums of them.
 * What does not fit is rounded to the nearest 2^-64 of a step; the numbers of key-values to the
 * nearest 2^-60 of their range, far below what any report tells.
 *
 * Source: Metwally, Agrawal, El Abbadi, *Efficient computation of frequent and top-k elements in data
 *     streams*, ICDT 2005 (space saving), for "most_common".
 */

import { concat, fromNumber, toNumber } from "../core/bytes.js";
import { ZERO, clamp, exactly, isBelow, minus, over, plus, ratio, rounded, times } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { Encoded } from "../mechanisms/mechanism.js";
import type { Domain, Grid, Metric } from "./compiled.js";

/** How many values of an item there were, of the items of an epoch. */
export type Counts = ReadonlyMap<bigint, number>;

/** A state is private to its aggregate.  A sum can lie outside of its range. */
export type AggregateState = Encoded | Counts;

/** A value that was checked: a number as it was given, or what a mechanism randomizes. */
export type Checked = number | bigint | Encoded;

export interface Aggregator {
  /** Bytes of any state. */
  readonly size: number;
  /** Returns a value as `fold` takes it.  Throws InvalidValueError. */
  check(value: unknown): Checked;
  /**
   * Returns the state after `values`, at least one; of null before the first.
   *
   * It is exact, however many values come, and for memory only: what is kept was merged.  It may
   * change `state`.
   */
  fold(state: AggregateState | null, values: readonly Checked[]): AggregateState;
  /** Returns `state` and the `later` one as one; `state` is null if nothing is kept. */
  merge(state: AggregateState | null, later: AggregateState): AggregateState;
  /** Returns the value to report. */
  result(state: AggregateState): Encoded;
  /** Returns `state` as `size` bytes. */
  dump(state: AggregateState): Uint8Array;
  /** Returns the state that was dumped. */
  load(bytes: Uint8Array): AggregateState;
}

const REACH = 64n; // bits that a sum may lie outside its range before it is cut off
const DENOMINATOR = 192; // bytes; the smallest number has 135
const NUMERATOR = 204; // bytes, signed: of REACH, of domains of 2^24 steps, and a sign more
const ROUNDED = exactly(1n << 64n);
const PART = exactly(1n << 60n); // of the range of a key's number
const PAIR = 9; // bytes of a key: whether it is held, and its number
const ITEM = 4; // bytes
const COUNT = 4; // bytes
const MOST = 0xffff_ffff;
const MAX_COUNTED = 64; // different items of an epoch that are counted exactly

/** Returns the aggregate of `metric`, which has one. */
export function aggregatorOf({ name, domain, aggregate }: Metric): Aggregator {
  const last: Aggregator = {
    size: sizeOf(domain),
    check: (value) => {
      if (!domain.grid) return domain.encode(value, name);
      domain.grid.steps(value, name);
      return value as number | bigint;
    },
    fold: (_state, values) => encoded(domain, values.at(-1)!),
    merge: (_state, later) => later,
    result: (state) => state as Encoded,
    dump: (state) => dump(domain, state as Encoded),
    load: (bytes) => load(domain, bytes),
  };
  if (aggregate === "last") return last;
  return { ...last, ...(aggregate === "sum" ? sum(domain, domain.grid!) : aggregate === "most_common" ? mostCommon(domain) : largest(domain)) };
}

/** The largest number or item; of booleans, whether any was true. */
function largest(domain: Domain): Pick<Aggregator, "fold" | "merge"> {
  const merge: Aggregator["merge"] = (state, later) => (state && isBelow(rank(later), rank(state)) ? state : later);
  return { merge, fold: (state, values) => values.reduce<AggregateState | null>((most, value) => merge(most, encoded(domain, value)), state)! };
}

/**
 * The sum of all numbers as they were given, clamped to the range only when it is reported.
 *
 * The state is the position of the sum on the grid.  Far outside the range it is cut off.
 */
function sum(domain: Domain, { zero, step }: Grid): Pick<Aggregator, "fold" | "merge" | "result"> {
  const reach = exactly(BigInt(domain.size) << REACH);
  const cut = (number: Ratio): Encoded => ({ kind: "position", position: clamp(bounded(number), minus(ZERO, reach), reach) });
  return {
    fold: (state, values) => {
      let whole = 0n;
      const others = new Map<number, bigint>();
      for (const value of values as readonly (number | bigint)[]) {
        if (typeof value === "bigint" || Number.isSafeInteger(value)) whole += BigInt(value);
        else others.set(value, (others.get(value) ?? 0n) + 1n);
      }
      let steps = over(exactly(whole), step);
      for (const [value, count] of others) steps = rank(cut(plus(steps, over(times(exactly(value), exactly(count)), step))));
      return cut(plus(state ? rank(state) : zero, steps));
    },
    merge: (state, later) => (state ? cut(minus(plus(rank(state), rank(later)), zero)) : later),
    result: (state) => ({ kind: "position", position: clamp(rank(state), ZERO, exactly(domain.size - 1)) }),
  };
}

/**
 * The item that came most often; of several, the first in the order of the domain.
 *
 * The state is a count by item.  If it has MAX_COUNTED different ones, a new one takes the place and
 * the count of the rarest, so that whatever comes often enough is always kept.
 */
function mostCommon(domain: Domain): Omit<Aggregator, "check"> {
  const size = Math.min(domain.size, MAX_COUNTED) * (ITEM + COUNT);
  /** Returns the most common first, and of several the first one. */
  const sorted = (counts: Counts): [item: bigint, count: number][] => [...counts].sort(([a, m], [b, n]) => n - m || Number(a - b));
  return {
    size,
    fold: (state, values) => {
      const counts = (state ?? new Map()) as Map<bigint, number>;
      for (const value of values) counts.set(itemOf(value), (counts.get(itemOf(value)) ?? 0) + 1);
      return counts;
    },
    merge: (state, later) => {
      const counts = new Map((state ?? []) as Counts);
      for (const [item, count] of later as Counts) {
        if (!counts.has(item) && counts.size === MAX_COUNTED) {
          const [rarest, least] = sorted(counts).at(-1)!;
          counts.delete(rarest);
          counts.set(item, least);
        }
        counts.set(item, Math.min((counts.get(item) ?? 0) + count, MOST));
      }
      return counts;
    },
    result: (state) => ({ kind: "item", item: sorted(state as Counts)[0]![0] }),
    dump: (state) => {
      const cells = [...(state as Counts)].sort(([a], [b]) => Number(a - b));
      return filled(size, ...cells.flatMap(([item, count]) => [fromNumber(item, ITEM), fromNumber(BigInt(count), COUNT)]));
    },
    load: (bytes) => {
      const cells = pieces(bytes, ITEM + COUNT).map((cell) => [toNumber(cell.slice(0, ITEM)), Number(toNumber(cell.slice(ITEM)))] as const);
      return new Map(cells.filter(([item, count]) => item || count));
    },
  };
}

/** Returns the bytes that any value of `domain` takes. */
function sizeOf({ encodes, size }: Domain): number {
  return { item: ITEM, set: (size + 7) >> 3, bytes: 1 + size, pairs: PAIR * size, position: NUMERATOR + DENOMINATOR }[encodes];
}

function dump(domain: Domain, value: Encoded): Uint8Array {
  const size = sizeOf(domain);
  switch (value.kind) {
    case "item":
      return fromNumber(value.item, size);
    case "set":
      return fromNumber(value.items.reduce((bits, item) => bits | (1n << item), 0n), size);
    case "bytes":
      return filled(size, Uint8Array.of(value.bytes.length), value.bytes);
    case "position": {
      const { numerator, denominator } = bounded(value.position);
      return concat(fromNumber(BigInt.asUintN(8 * NUMERATOR, numerator), NUMERATOR), fromNumber(denominator, DENOMINATOR));
    }
    case "pairs": {
      const bytes = new Uint8Array(size);
      for (const [key, position] of value.pairs) {
        bytes.set([1, ...fromNumber(rounded(times(position, PART)), PAIR - 1)], PAIR * Number(key));
      }
      return bytes;
    }
  }
}

function load({ encodes: kind, size }: Domain, bytes: Uint8Array): Encoded {
  switch (kind) {
    case "item":
      return { kind, item: toNumber(bytes) };
    case "set": {
      const bits = toNumber(bytes);
      return { kind, items: Array.from({ length: size }, (_, item) => BigInt(item)).filter((item) => (bits >> item) & 1n) };
    }
    case "bytes":
      return { kind, bytes: bytes.slice(1, 1 + bytes[0]!) };
    case "position": {
      const numerator = BigInt.asIntN(8 * NUMERATOR, toNumber(bytes.slice(0, NUMERATOR)));
      return { kind, position: ratio(numerator, toNumber(bytes.slice(NUMERATOR))) };
    }
    case "pairs": {
      const pairs = pieces(bytes, PAIR).map((cell, key) => [BigInt(key), over(exactly(toNumber(cell.slice(1))), PART)] as const);
      return { kind, pairs: pairs.filter((_, key) => bytes[PAIR * key]) };
    }
  }
}

/** Returns `number`, rounded if it is too long to be kept exactly. */
function bounded(number: Ratio): Ratio {
  return number.denominator >> BigInt(8 * DENOMINATOR) ? over(exactly(rounded(times(number, ROUNDED))), ROUNDED) : number;
}

function encoded(domain: Domain, value: Checked): Encoded {
  return domain.grid ? domain.encode(value, "aggregate") : (value as Encoded);
}

function itemOf(value: Checked): bigint {
  return (value as Extract<Encoded, { kind: "item" }>).item;
}

/** Returns the position of a number, or what orders items. */
function rank(state: AggregateState): Ratio {
  return "position" in state ? state.position : exactly(itemOf(state as Encoded));
}

/** Returns `parts` and zeros behind them. */
function filled(size: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(size);
  all.set(concat(...parts));
  return all;
}

function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: bytes.length / size }, (_, i) => bytes.slice(i * size, (i + 1) * size));
}
