/** Exponential mechanism over ordered items: items near the true one are likelier than far ones. */

import { ceiling } from "../core/exact.js";
import { chance, type Channel, itemOf, type Mechanism, numbered } from "./mechanism.js";

const UNIT = 1n << 128n; // the weight of the true item

const tables = /* @__PURE__ */ new WeakMap<Channel, readonly bigint[]>();

export const exponential: Mechanism = {
  name: "exponential",
  randomize(channel, value, randomness) {
    const item = itemOf("exponential", channel, value);
    const sums = tables.get(channel) ?? sumsOf(channel);
    /** Returns the weight of the items before `end`. */
    const weightBelow = (end: bigint): bigint =>
      end > item
        ? sums[Number(item)]! + sums[Number(end - 1n - item)]! - UNIT
        : sums[Number(item)]! - sums[Number(item - end)]!;
    let [low, high] = [0n, channel.domainSize];
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      const below = weightBelow(low);
      const numerator = weightBelow(middle) - below;
      if (randomness.bernoulli({ numerator, denominator: weightBelow(high) - below })) high = middle;
      else low = middle;
    }
    return numbered(channel, low);
  },
};

/** Returns the weights of the distances 0 … k summed, for every k; each is the one before times `decay`. */
function sumsOf(channel: Channel): readonly bigint[] {
  const { numerator, denominator } = chance(channel, "decay");
  const sums: bigint[] = [];
  let [weight, sum] = [UNIT, 0n];
  for (let distance = 0n; distance < channel.domainSize; distance++) {
    sums.push((sum += weight));
    weight = ceiling(weight * numerator, denominator);
  }
  tables.set(channel, sums);
  return sums;
}
