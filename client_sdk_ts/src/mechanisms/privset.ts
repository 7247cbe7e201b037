/** PrivSet: a random subset, encoded by a polynomial, that meets the set of the device more often than not. */

import { bitLength } from "../core/bytes.js";
import { inverse, perm, power } from "../core/exact.js";
import type { Randomness } from "../core/randomness.js";
import { chance, itemsOf, type Mechanism, numbered, parameter } from "./mechanism.js";

export const privset: Mechanism = {
  name: "privset",
  randomize(channel, value, randomness) {
    const items = itemsOf("privset", channel, value);
    const [pad, prime, width] = [parameter(channel, "pad"), parameter(channel, "prime"), parameter(channel, "width")];
    const points = cut(items, pad, randomness);
    for (let dummy = channel.domainSize; BigInt(points.length) < pad; dummy++) points.push(dummy);
    const missing = power(prime - width, pad);
    const meets = randomness.bernoulli(chance(channel, "truth"));
    const rank = randomness.uniform(meets ? power(prime, pad) - missing : missing);
    const values = meets ? meeting(rank, pad, prime, width) : digits(rank, prime - width, pad).map((y) => width + y);
    const coefficients = through(points, values, randomness.uniform(prime), prime);
    return numbered(channel, coefficients.reduceRight((number, c) => (number << bitLength(prime)) | c, 0n));
  },
};

/** Returns the items, of too many so many that are drawn at random, as they rise. */
function cut(given: readonly bigint[], pad: bigint, randomness: Randomness): bigint[] {
  const [items, held] = [[...given], BigInt(given.length)];
  if (held <= pad) return items;
  let rest = randomness.uniform(perm(held, pad));
  for (let place = 0n; place < pad; place++) {
    const other = place + (rest % (held - place));
    rest /= held - place;
    [items[Number(place)], items[Number(other)]] = [items[Number(other)]!, items[Number(place)]!];
  }
  return items.slice(0, Number(pad)).sort((a, b) => (a < b ? -1 : 1));
}

/** Returns the values of this rank among all tuples with a value below `width`. */
function meeting(rank: bigint, pad: bigint, prime: bigint, width: bigint): bigint[] {
  const values: bigint[] = [];
  for (let left = pad - 1n; ; left--) {
    const every = power(prime, left);
    if (rank < width * every) return [...values, rank / every, ...digits(rank % every, prime, left)];
    const met = every - power(prime - width, left);
    rank -= width * every;
    values.push(width + rank / met);
    rank %= met;
  }
}

/** Returns a number in so many digits, highest first. */
function digits(number: bigint, base: bigint, count: bigint): bigint[] {
  const lowestFirst: bigint[] = [];
  for (; count; [number, count] = [number / base, count - 1n]) lowestFirst.push(number % base);
  return lowestFirst.reverse();
}

/** Returns the coefficients, lowest first, of the polynomial of these values: Newton's, one point after another. */
function through(points: readonly bigint[], values: readonly bigint[], leading: bigint, prime: bigint): bigint[] {
  let [polynomial, product]: [bigint[], bigint[]] = [[], [1n]];
  points.forEach((point, place) => {
    const scale = inverse(at(product, point, prime), prime);
    polynomial = plus(polynomial, product, (values[place]! - at(polynomial, point, prime)) * scale, prime);
    product = plus([0n, ...product], product, -point, prime);
  });
  return plus(polynomial, product, leading, prime);
}

/** Returns the value of a polynomial, from 0 on. */
function at(coefficients: readonly bigint[], point: bigint, prime: bigint): bigint {
  return coefficients.reduceRight((value, c) => (value * point + c) % prime, 0n);
}

/** Returns `a` plus `scale` times `b`, each coefficient from 0 on; `a` may be shorter. */
function plus(a: readonly bigint[], b: readonly bigint[], scale: bigint, prime: bigint): bigint[] {
  const longer = a.length ? [...a] : [0n];
  while (longer.length !== b.length && b[longer.length] !== undefined) longer.push(0n);
  return longer.map((c, place) => (((c + scale * (b[place] ?? 0n)) % prime) + prime) % prime);
}
