/**
 * Exact fractions.  A `Ratio` is always in lowest terms, with a positive denominator.
 *
 * A number of JavaScript is a fraction whose denominator is a power of two, and is taken as that.
 */

import type { Ratio } from "./randomness.js";

export const ZERO: Ratio = { numerator: 0n, denominator: 1n };

/** Returns the greatest common divisor; positive unless both are 0. */
export function gcd(a: bigint, b: bigint): bigint {
  while (b) [a, b] = [b, a % b];
  return a < 0n ? -a : a;
}

/** Returns a fraction in lowest terms.  The denominator is not 0. */
export function ratio(numerator: bigint, denominator = 1n): Ratio {
  const shared = denominator < 0n ? -gcd(numerator, denominator) : gcd(numerator, denominator);
  return { numerator: numerator / shared, denominator: denominator / shared };
}

/** Returns a finite number as what it is exactly. */
export function exactly(number: number | bigint): Ratio {
  if (typeof number === "bigint" || Number.isInteger(number)) return { numerator: BigInt(number), denominator: 1n };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const high = view.getUint32(0);
  const exponent = (high >>> 20) & 0x7ff; // below 1075, as it is no integer; 0 means 1, without the hidden bit
  const digits = (BigInt((high & 0xfffff) | (exponent && 0x100000)) << 32n) | BigInt(view.getUint32(4));
  return ratio(number < 0 ? -digits : digits, 1n << BigInt(1075 - (exponent || 1)));
}

export function plus(a: Ratio, b: Ratio): Ratio {
  return ratio(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator);
}

export function minus(a: Ratio, b: Ratio): Ratio {
  return plus(a, { numerator: -b.numerator, denominator: b.denominator });
}

export function times(a: Ratio, b: Ratio): Ratio {
  return ratio(a.numerator * b.numerator, a.denominator * b.denominator);
}

/** Returns a / b; b is not 0. */
export function over(a: Ratio, b: Ratio): Ratio {
  return ratio(a.numerator * b.denominator, a.denominator * b.numerator);
}

/** Whether a < b. */
export function isBelow(a: Ratio, b: Ratio): boolean {
  return a.numerator * b.denominator < b.numerator * a.denominator;
}

/** Returns `number`, or the end of the range that it lies beyond. */
export function clamp(number: Ratio, low: Ratio, high: Ratio): Ratio {
  return isBelow(number, low) ? low : isBelow(high, number) ? high : number;
}

/** Returns the nearest whole number, and of two the even one. */
export function rounded({ numerator, denominator }: Ratio): bigint {
  const twice = 2n * denominator;
  const places = 2n * numerator + denominator;
  const rest = ((places % twice) + twice) % twice;
  const nearest = (places - rest) / twice;
  return rest || !(nearest & 1n) ? nearest : nearest - 1n;
}
