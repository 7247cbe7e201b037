/** Minimax mechanism: a window over outputs that lie unevenly. */

import { drawWindow } from "../core/exact.js";
import type { Randomness } from "../core/randomness.js";
import { chance, type Mechanism, numbered, parameter, type Position, positionOf } from "./mechanism.js";

export const minimax: Mechanism = {
  name: "minimax",
  randomize(channel, value, randomness) {
    const position = positionOf("minimax", channel, value);
    const width = parameter(channel, "width");
    const sums = windowSums(placesOf(parameter(channel, "distances")), width);
    const step = inputOf(position, sums, channel.domainSize - 1n, randomness);
    return numbered(channel, drawWindow(step, BigInt(sums.length) - 1n, width, chance(channel, "inside"), randomness));
  },
};

/** Rounds `x`, from 0 to `top`, to one of the inputs, which lie as their `sums` do, and keeps its expectation. */
function inputOf(x: Position, sums: readonly bigint[], top: bigint, randomness: Randomness): bigint {
  const whole = x.denominator * top;
  const place = -sums[0]! * (2n * x.numerator - whole);
  let [step, below, above] = [-1n, 0n, 0n];
  for (const sum of sums) {
    above = sum;
    if (sum * whole > place) break;
    below = sum;
    step++;
  }
  const rest = place - below * whole;
  return rest && randomness.bernoulli({ numerator: rest, denominator: (above - below) * whole }) ? step + 1n : step;
}

/** Returns what each output counts, from the lowest: a byte of `distances` and its mirror below 0. */
function placesOf(distances: bigint): bigint[] {
  const places: bigint[] = [];
  for (let rest = distances; rest; rest >>= 8n) {
    places.unshift(-(rest & 255n));
    places.push(rest & 255n);
  }
  return places;
}

/** Returns the sum of each `width` neighbours. */
function windowSums(places: readonly bigint[], width: bigint): bigint[] {
  const held: bigint[] = [];
  const sums: bigint[] = [];
  let sum = 0n;
  for (const place of places) {
    held.push(place);
    sum += place;
    if (BigInt(held.length) < width) continue;
    sums.push(sum);
    sum -= held.shift()!;
  }
  return sums;
}
