/** Generalized randomized response: the item, or any other one. */

import { respond } from "../core/exact.js";
import { chance, itemOf, type Mechanism, numbered } from "./mechanism.js";

export const grr: Mechanism = {
  name: "grr",
  randomize(channel, value, randomness) {
    const item = itemOf("grr", channel, value);
    return numbered(channel, respond(item, channel.domainSize, chance(channel, "truth"), randomness));
  },
};
