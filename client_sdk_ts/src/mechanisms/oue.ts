/** Optimized unary encoding: the item's own bit is a coin, the others are seldom raised. */

import type { Randomness } from "../core/randomness.js";
import { bitted, chance, type Channel, itemOf, type Mechanism } from "./mechanism.js";

export const oue: Mechanism = {
  name: "oue",
  randomize(channel, value, randomness) {
    return drawUnary(channel, itemOf("oue", channel, value), channel.domainSize, randomness);
  },
};

/** Returns the report of `symbol`, one of so many. */
export function drawUnary(channel: Channel, symbol: bigint, symbols: bigint, randomness: Randomness): Uint8Array {
  const own = 1n << (symbols - 1n - symbol);
  const others = randomness.bernoulliBits(chance(channel, "flip"), symbols) & ~own;
  return bitted(channel, randomness.uniform(2n) < 1n ? others | own : others, symbols);
}
