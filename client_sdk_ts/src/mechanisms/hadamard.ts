/** Hadamard response: a row of a Hadamard matrix, and the sign of the item in it, or the other sign. */

import { bitLength } from "../core/bytes.js";
import { isPositive } from "../core/exact.js";
import { chance, itemOf, type Mechanism, numbered } from "./mechanism.js";

export const hadamard: Mechanism = {
  name: "hadamard",
  randomize(channel, value, randomness) {
    const item = itemOf("hadamard", channel, value);
    const row = randomness.uniform(1n << bitLength(channel.domainSize - 1n));
    const positive = isPositive(row, item) === randomness.bernoulli(chance(channel, "truth"));
    return numbered(channel, 2n * row + (positive ? 1n : 0n));
  },
};
