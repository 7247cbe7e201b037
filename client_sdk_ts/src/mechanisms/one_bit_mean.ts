/** One-bit mean: whether the position is above a random point, or the contrary. */

import { drawWindow, roundTo } from "../core/exact.js";
import { chance, type Mechanism, numbered, parameter, positionOf } from "./mechanism.js";

export const one_bit_mean: Mechanism = {
  name: "one_bit_mean",
  randomize(channel, value, randomness) {
    const position = positionOf("one_bit_mean", channel, value);
    const points = parameter(channel, "points");
    const step = roundTo(position, points, channel.domainSize - 1n, randomness);
    const bit = randomness.uniform(points) < step ? 1n : 0n;
    return numbered(channel, drawWindow(bit, 1n, 1n, chance(channel, "inside"), randomness));
  },
};
