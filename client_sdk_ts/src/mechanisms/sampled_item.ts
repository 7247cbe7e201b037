/** Sampled item: whether the set holds one item drawn at random, or the contrary. */

import { chance, itemsOf, type Mechanism, numbered } from "./mechanism.js";

export const sampled_item: Mechanism = {
  name: "sampled_item",
  randomize(channel, value, randomness) {
    const items = itemsOf("sampled_item", channel, value);
    const item = randomness.uniform(channel.domainSize);
    const yes = items.includes(item) !== randomness.bernoulli(chance(channel, "flip"));
    return numbered(channel, 2n * item + (yes ? 1n : 0n));
  },
};
