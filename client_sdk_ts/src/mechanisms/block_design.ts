/** Block design: a block of points that holds the item's more often than not. */

import { inverse } from "../core/exact.js";
import { chance, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

export const block_design: Mechanism = {
  name: "block_design",
  randomize(channel, value, randomness) {
    const item = itemOf("block_design", channel, value);
    const [size, prime] = [parameter(channel, "block_size"), parameter(channel, "prime")];
    const holds = randomness.bernoulli(chance(channel, "truth"));
    const step = 1n + randomness.uniform(prime - 1n);
    const place = holds ? randomness.uniform(size) : size + randomness.uniform(prime - size);
    const point = place ? (step * inverse(place, prime)) % prime : 0n;
    return numbered(channel, (step - 1n) * prime + ((item - point + prime) % prime));
  },
};
