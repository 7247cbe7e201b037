/** Optimized local hashing: a seed, and by randomized response the bucket to which it hashes the item. */

import { respond } from "../core/exact.js";
import { chance, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

export const olh: Mechanism = {
  name: "olh",
  randomize(channel, value, randomness) {
    const item = itemOf("olh", channel, value);
    const [prime, buckets] = [parameter(channel, "prime"), parameter(channel, "buckets")];
    const seed = randomness.uniform(prime * prime);
    const bucket = (((seed / prime) * item + (seed % prime)) % prime) % buckets;
    return numbered(channel, seed * buckets + respond(bucket, buckets, chance(channel, "truth"), randomness));
  },
  uniform(channel, randomness) {
    const [prime, buckets] = [parameter(channel, "prime"), parameter(channel, "buckets")];
    return numbered(channel, randomness.uniform(prime * prime * buckets));
  },
};
