/** What every mechanism is: a name on the wire and one function of integers. */

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
}
