/** Subset selection: a set of items that holds the true one more often than not. */

import { bitLength } from "../core/bytes.js";
import { ones, perm } from "../core/exact.js";
import type { Randomness, Ratio } from "../core/randomness.js";
import { bitted, chance, type Channel, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

const RANKS = 1n << 64n; // more subsets are reported as bits
const MOST_SINGLY = 32n; // items; larger subsets are drawn sooner as bits
const SINGLES = 12n; // places; so few are raised sooner one at a time than by coins
const DIGITS = 2n; // of a coin's chance after its leading zeros

export const subset_selection: Mechanism = {
  name: "subset_selection",
  randomize(channel, value, randomness) {
    const item = itemOf("subset_selection", channel, value);
    const size = parameter(channel, "subset_size");
    const isRanked = choose(channel.domainSize, size) <= RANKS;
    const holds = randomness.bernoulli(chance(channel, "truth"));
    const missing = holds ? size - 1n : size;
    if (!isRanked && size > MOST_SINGLY) return drawLong(channel, item, missing, randomness);
    const subset = drawItems(missing, channel.domainSize - 1n, randomness).map((i) => (i >= item ? i + 1n : i));
    if (holds) subset.push(item);
    return isRanked ? numbered(channel, rankOf(subset)) : bitsOf(channel, subset);
  },
};

/** Returns so many of the items below `others`, by Floyd's algorithm over the digits of one number. */
function drawItems(count: bigint, others: bigint, randomness: Randomness): bigint[] {
  const places = new Set<bigint>();
  let digits = randomness.uniform(perm(others, count));
  for (let last = others - count; last < others; last++) {
    const place = digits % (last + 1n);
    digits /= last + 1n;
    places.add(places.has(place) ? last : place);
  }
  return [...places];
}

/** Returns the rank of a subset in the combinatorial number system. */
function rankOf(subset: bigint[]): bigint {
  let [rank, i] = [0n, 0n];
  for (const item of subset.sort((a, b) => (a < b ? -1 : 1))) rank += choose(item, ++i);
  return rank;
}

function bitsOf(channel: Channel, subset: readonly bigint[]): Uint8Array {
  let bits = 0n;
  for (const item of subset) bits |= 1n << (channel.domainSize - 1n - item);
  return bitted(channel, bits, channel.domainSize);
}

function choose(n: bigint, k: bigint): bigint {
  return perm(n, k) / perm(k, k);
}

/** Returns a subset that was drawn as bits of all items but `item`, which it holds if a place is left for it. */
function drawLong(channel: Channel, item: bigint, size: bigint, randomness: Randomness): Uint8Array {
  const others = channel.domainSize - 1n;
  const bits = drawSubset(size, others, randomness);
  const after = others - item; // items, the low bits
  const own = size < parameter(channel, "subset_size") ? 1n : 0n;
  const high = ((bits >> after) << 1n) | own;
  return bitted(channel, (high << after) | (bits & ((1n << after) - 1n)), channel.domainSize);
}

/** Returns n bits with `size` ones, uniform over all such numbers: coins set most, single draws the rest. */
function drawSubset(size: bigint, n: bigint, randomness: Randomness): bigint {
  let [bits, missing] = [0n, size];
  while (missing > SINGLES) {
    bits |= randomness.bernoulliBits(chanceOf(missing, n - size + missing), n);
    missing = size - ones(bits);
  }
  while (missing) {
    const place = 1n << randomness.uniform(n);
    if (!(bits & place) === missing < 0n) continue; // it cannot be lowered, or raised
    bits ^= place;
    missing += missing < 0n ? 1n : -1n;
  }
  return bits;
}

/** Returns missing/open, rounded down to few binary digits. */
function chanceOf(missing: bigint, open: bigint): Ratio {
  const shift = DIGITS + bitLength(open / missing) - 1n;
  return { numerator: (missing << shift) / open, denominator: 1n << shift };
}
