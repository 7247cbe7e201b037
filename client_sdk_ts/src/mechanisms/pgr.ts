/** Projective geometry response: a point that is orthogonal to the item's more often than not. */

import { inverse, power } from "../core/exact.js";
import type { Randomness } from "../core/randomness.js";
import { chance, type Channel, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

export const pgr: Mechanism = {
  name: "pgr",
  randomize(channel, value, randomness) {
    const item = itemOf("pgr", channel, value);
    return numbered(channel, drawPoint(channel, item, channel.domainSize, randomness));
  },
  uniform(channel, randomness) {
    return numbered(channel, randomness.uniform(pointsFor(parameter(channel, "order"), channel.domainSize)));
  },
};

/** Returns how many points a space of so many digits has that has one for every item. */
export function pointsFor(order: bigint, items: bigint): bigint {
  return pointsOf(order, digitsFor(order, items));
}

/** Returns a point for `item`, one of so many. */
export function drawPoint(channel: Channel, item: bigint, items: bigint, randomness: Randomness): bigint {
  const order = parameter(channel, "order");
  let lower = 1n; // what the item's leading 1 stands for
  for (; item >= lower; lower *= order) item -= lower;
  const orthogonal = randomness.bernoulli(chance(channel, "truth"));
  const vectors = power(order, digitsFor(order, items) - 1n);
  const digits = orthogonal ? 1n + randomness.uniform(vectors - 1n) : randomness.uniform(vectors);
  const product = orthogonal ? 0n : 1n + randomness.uniform(order - 1n);
  const low = digits % lower;
  const digit = (((product - dot(low, item, order)) % order) + order) % order;
  return pointOf(((digits / lower) * order + digit) * lower + low, order);
}

function pointsOf(order: bigint, digits: bigint): bigint {
  return (power(order, digits) - 1n) / (order - 1n);
}

/** Returns the fewest digits, two at least, with a point for every item. */
function digitsFor(order: bigint, items: bigint): bigint {
  let digits = 2n;
  while (pointsOf(order, digits) < items) digits++;
  return digits;
}

function dot(a: bigint, b: bigint, order: bigint): bigint {
  let sum = 0n;
  for (; b; [a, b] = [a / order, b / order]) sum += (a % order) * (b % order);
  return sum;
}

/** Returns the point of the digits of `vector`, which are divided by the first one that is not 0. */
function pointOf(vector: bigint, order: bigint): bigint {
  let [leading, point] = [1n, 0n]; // what the first digit stands for, and the points with a later one
  for (; vector >= leading * order; leading *= order) point += leading;
  const scale = inverse(vector / leading, order);
  let tail = vector % leading;
  for (let place = 1n; tail; [tail, place] = [tail / order, place * order]) point += (((tail % order) * scale) % order) * place;
  return point;
}
