/** Hierarchy: the sign of the item's node in a row of a Hadamard matrix, at one level of a tree. */

import { isPositive, power } from "../core/exact.js";
import { chance, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

export const hierarchy: Mechanism = {
  name: "hierarchy",
  randomize(channel, value, randomness) {
    const item = itemOf("hierarchy", channel, value);
    const fanout = parameter(channel, "fanout");
    let levels = 1n;
    while (power(fanout, levels) < channel.domainSize) levels++;
    const level = 1n + randomness.uniform(levels);
    const row = randomness.uniform(power(fanout, level));
    const node = item / power(fanout, levels - level);
    const positive = isPositive(row, node) === randomness.bernoulli(chance(channel, "truth"));
    let start = 0n; // the first report of the level
    for (let above = 1n; above < level; above++) start += 2n * power(fanout, above);
    return numbered(channel, start + 2n * row + (positive ? 1n : 0n));
  },
};
