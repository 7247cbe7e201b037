/** Square wave: a bin near the position more often than any other. */

import { drawWindow, gcd, roundRatio } from "../core/exact.js";
import { chance, type Mechanism, numbered, parameter, positionOf } from "./mechanism.js";

export const square_wave: Mechanism = {
  name: "square_wave",
  randomize(channel, value, randomness) {
    const position = positionOf("square_wave", channel, value);
    const last = parameter(channel, "bins") - 1n;
    const numerator = position.numerator * last;
    const denominator = position.denominator * (channel.domainSize - 1n);
    const shared = gcd(numerator, denominator);
    const bin = roundRatio(numerator / shared, denominator / shared, randomness);
    const width = 2n * parameter(channel, "reach") + 1n;
    return numbered(channel, drawWindow(bin, last, width, chance(channel, "inside"), randomness));
  },
};
