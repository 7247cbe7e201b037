/** Hybrid mechanism: a public coin, then the piecewise mechanism or Duchi's bit. */

import { drawWindow, roundTo } from "../core/exact.js";
import { chance, type Mechanism, numbered, parameter, positionOf } from "./mechanism.js";
import { drawPiecewise } from "./piecewise.js";

export const hybrid: Mechanism = {
  name: "hybrid",
  randomize(channel, value, randomness) {
    const position = positionOf("hybrid", channel, value);
    const steps = parameter(channel, "steps");
    const both = steps > 1n; // else there is the bit alone
    if (both && randomness.bernoulli(chance(channel, "coin"))) {
      return numbered(channel, drawPiecewise(channel, position, randomness));
    }
    const end = roundTo(position, 1n, channel.domainSize - 1n, randomness);
    const bit = drawWindow(end, 1n, 1n, chance(channel, "truth"), randomness);
    return numbered(channel, (both ? steps + parameter(channel, "width") : 0n) + bit);
  },
};
