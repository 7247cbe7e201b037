/** Duchi's bit: one end of the range or the other. */

import { drawWindow, roundTo } from "../core/exact.js";
import { chance, type Mechanism, numbered, positionOf } from "./mechanism.js";

export const duchi: Mechanism = {
  name: "duchi",
  randomize(channel, value, randomness) {
    const end = roundTo(positionOf("duchi", channel, value), 1n, channel.domainSize - 1n, randomness);
    return numbered(channel, drawWindow(end, 1n, 1n, chance(channel, "inside"), randomness));
  },
};
