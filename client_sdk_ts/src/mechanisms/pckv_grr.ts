/** PCKV-GRR: a drawn pair of key and sign, kept or replaced by any other symbol. */

import { respond } from "../core/exact.js";
import { drawPair } from "./key_value.js";
import { chance, type Mechanism, numbered, parameter } from "./mechanism.js";

export const pckv_grr: Mechanism = {
  name: "pckv_grr",
  randomize(channel, value, randomness) {
    const [key, plus] = drawPair("pckv_grr", channel, value, randomness);
    const size = channel.domainSize;
    const symbol = plus && key < size ? key : size + key;
    const symbols = 2n * size + parameter(channel, "pad");
    return numbered(channel, respond(symbol, symbols, chance(channel, "truth"), randomness));
  },
};
