/** Symmetric unary encoding: one bit an item, each flipped with the same chance. */

import { bitted, chance, itemOf, type Mechanism } from "./mechanism.js";

export const sue: Mechanism = {
  name: "sue",
  randomize(channel, value, randomness) {
    const item = itemOf("sue", channel, value);
    const flips = randomness.bernoulliBits(chance(channel, "flip"), channel.domainSize);
    return bitted(channel, flips ^ (1n << (channel.domainSize - 1n - item)), channel.domainSize);
  },
};
