/** PCKV-UE: plus, minus or nothing for every key; the drawn key keeps its sign more often. */

import type { Ratio } from "../core/randomness.js";
import { drawPair } from "./key_value.js";
import { bitted, chance, type Mechanism } from "./mechanism.js";

const FAIR: Ratio = { numerator: 1n, denominator: 2n };

export const pckv_ue: Mechanism = {
  name: "pckv_ue",
  randomize(channel, value, randomness) {
    const [key, plus] = drawPair("pckv_ue", channel, value, randomness);
    const size = channel.domainSize;
    let shown = randomness.bernoulliBits(chance(channel, "shown"), size);
    let signs = randomness.bernoulliBits(FAIR, size);
    const isShown = randomness.bernoulli(FAIR);
    const isPlus = randomness.bernoulli(chance(channel, "kept")) === plus;
    if (key < size) {
      const own = 1n << (size - 1n - key);
      shown = isShown ? shown | own : shown & ~own;
      signs = isPlus ? signs | own : signs & ~own;
    }
    return bitted(channel, ((shown & signs) << size) | (shown & ~signs), 2n * size);
  },
};
