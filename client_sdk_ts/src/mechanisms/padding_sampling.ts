/** Padding and sampling: one item of a set that was filled up with dummies. */

import { respond } from "../core/exact.js";
import { chance, itemsOf, type Mechanism, numbered, parameter } from "./mechanism.js";
import { drawUnary } from "./oue.js";

export const padding_sampling: Mechanism = {
  name: "padding_sampling",
  randomize(channel, value, randomness) {
    const items = itemsOf("padding_sampling", channel, value);
    const [pad, size, held] = [parameter(channel, "pad"), channel.domainSize, BigInt(items.length)];
    const slot = randomness.uniform(held > pad ? held : pad);
    const item = items[Number(slot)];
    if (parameter(channel, "unary")) return drawUnary(channel, item ?? size, size + 1n, randomness);
    return numbered(channel, respond(item ?? size + slot, size + pad, chance(channel, "truth"), randomness));
  },
};
