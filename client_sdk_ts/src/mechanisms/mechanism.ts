/** What every mechanism is: a name on the wire and one function of integers. */

import { fromNumber } from "../core/bytes.js";
import { InvalidValueError } from "../core/errors.js";
import type { Randomness, Ratio } from "../core/randomness.js";

/** An exact position in a range of numbers, from 0 to domainSize - 1. */
export type Position = Ratio;

/** What a mechanism randomizes: an item, a position, sorted items, keys with positions, or bytes. */
export type Encoded =
  | { readonly kind: "item"; readonly item: bigint }
  | { readonly kind: "position"; readonly position: Position }
  | { readonly kind: "set"; readonly items: readonly bigint[] }
  | { readonly kind: "pairs"; readonly pairs: readonly (readonly [key: bigint, position: Position])[] }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array };

/** What of a metric of a compiled registry the draws need. */
export interface Channel {
  /** Parameters by name. */
  readonly parameters: Readonly<Record<string, bigint>>;
  /** Chances by name; of some mechanisms several. */
  readonly constants: Readonly<Record<string, Ratio | readonly Ratio[]>>;
  readonly domainSize: bigint;
  /** Bytes of a payload. */
  readonly payloadSize: number;
}

/** A mechanism.  One file, and one vector file in tests/vectors. */
export interface Mechanism {
  readonly name: string;
  /** Returns a payload.  Throws InvalidValueError: outside of the domain; nothing was drawn. */
  randomize(channel: Channel, value: Encoded, randomness: Randomness): Uint8Array;
  /** Returns a payload that says nothing of any item, drawn alike from all; left out where there is none. */
  uniform?(channel: Channel, randomness: Randomness): Uint8Array;
}

/** Returns a constant of the channel. */
export function chance(channel: Channel, name: string): Ratio {
  return channel.constants[name] as Ratio;
}

/** Returns a parameter of the channel. */
export function parameter(channel: Channel, name: string): bigint {
  return channel.parameters[name]!;
}

/** Returns a payload that is a number. */
export function numbered(channel: Channel, report: bigint): Uint8Array {
  return fromNumber(report, channel.payloadSize);
}

/** Returns a payload of so many bits, filled up with zeros. */
export function bitted(channel: Channel, bits: bigint, count: bigint): Uint8Array {
  return numbered(channel, bits << (-count & 7n));
}

/** Returns the item of `value`.  Throws InvalidValueError. */
export function itemOf(mechanism: string, channel: Channel, value: Encoded): bigint {
  if (value.kind !== "item") return refuse(mechanism, "an item");
  return requireItem(mechanism, channel, value.item);
}

/** Returns the position of `value`.  Throws InvalidValueError. */
export function positionOf(mechanism: string, channel: Channel, value: Encoded): Position {
  if (value.kind !== "position") return refuse(mechanism, "a position");
  return requirePosition(mechanism, channel.domainSize - 1n, value.position);
}

/** Returns the items of `value`, which rise.  Throws InvalidValueError. */
export function itemsOf(mechanism: string, channel: Channel, value: Encoded): readonly bigint[] {
  if (value.kind !== "set") return refuse(mechanism, "a set");
  requireRising(mechanism, channel, value.items);
  return value.items;
}

export function requireRising(mechanism: string, channel: Channel, items: readonly bigint[]): void {
  let last = -1n;
  for (const item of items) {
    if (requireItem(mechanism, channel, item) <= last) refuse(mechanism, "items that rise");
    last = item;
  }
}

export function requirePosition(mechanism: string, top: bigint, position: Position): Position {
  const { numerator, denominator } = position;
  if (denominator < 1n || numerator < 0n || numerator > top * denominator) refuse(mechanism, "a position in the range");
  return position;
}

function requireItem(mechanism: string, channel: Channel, item: bigint): bigint {
  if (typeof item !== "bigint" || item < 0n || item >= channel.domainSize) refuse(mechanism, "an item of the domain");
  return item;
}

/** Throws InvalidValueError, without the value. */
export function refuse(mechanism: string, what: string): never {
  throw new InvalidValueError(mechanism, `must be ${what}`);
}
