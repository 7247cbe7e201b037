/** What mechanisms draw by, in whole numbers alone: see docs/design/compiled-registry.md. */

import type { Randomness, Ratio } from "./randomness.js";

/** Returns a number of a compiled registry: `a/b` in hexadecimal, or 32 digits in units of 2^-128. */
export function ratioOf(text: string): Ratio {
  const [top, bottom] = text.split("/");
  const numerator = BigInt(`0x${top}`);
  const denominator = bottom === undefined ? 1n << 128n : BigInt(`0x${bottom}`);
  const shared = gcd(numerator, denominator);
  return { numerator: numerator / shared, denominator: denominator / shared };
}

export function gcd(a: bigint, b: bigint): bigint {
  while (b) [a, b] = [b, a % b];
  return a;
}

/** Returns base to the n.  The operator is avoided: some compilers make Math.pow of it, which knows no bigints. */
export function power(base: bigint, n: bigint): bigint {
  let product = 1n;
  for (let i = 0n; i < n; i++) product *= base;
  return product;
}

/** Returns n (n-1) … (n-k+1). */
export function perm(n: bigint, k: bigint): bigint {
  let product = 1n;
  for (let i = 0n; i < k; i++) product *= n - i;
  return product;
}

/** Returns the quotient of numbers above 0, rounded up. */
export function ceiling(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}

/** Returns how many binary digits of `bits` are 1. */
export function ones(bits: bigint): bigint {
  let count = 0n;
  for (const digit of bits.toString(2)) if (digit === "1") count++;
  return count;
}

/** Returns whether an even number of digits is 1 in both: the sign of a Hadamard matrix. */
export function isPositive(row: bigint, column: bigint): boolean {
  let even = true;
  for (let both = row & column; both; both &= both - 1n) even = !even;
  return even;
}

/** Returns `symbol`, one of so many, with chance `truth`, else another. */
export function respond(symbol: bigint, symbols: bigint, truth: Ratio, randomness: Randomness): bigint {
  if (randomness.bernoulli(truth)) return symbol;
  const other = randomness.uniform(symbols - 1n);
  return other >= symbol ? other + 1n : other;
}

/** Rounds `x`, from 0 to `top`, to a step of 0 … steps, and keeps its expectation. */
export function roundTo(x: Ratio, steps: bigint, top: bigint, randomness: Randomness): bigint {
  const shared = gcd(steps, top);
  return roundRatio(x.numerator * (steps / shared), x.denominator * (top / shared), randomness);
}

/** Rounds a/b up with the chance of what is left over, else down. */
export function roundRatio(a: bigint, b: bigint, randomness: Randomness): bigint {
  const rest = a % b;
  return a / b + (rest && randomness.bernoulli({ numerator: rest, denominator: b }) ? 1n : 0n);
}

/** Returns one of the `width` symbols from `step` on with chance `inside`, else one of the `steps` others. */
export function drawWindow(step: bigint, steps: bigint, width: bigint, inside: Ratio, randomness: Randomness): bigint {
  if (randomness.bernoulli(inside)) return step + randomness.uniform(width);
  const other = randomness.uniform(steps);
  return other >= step ? other + width : other;
}

/** Returns true with chance e^(-n/d), 0 <= n <= d: Canonne et al., NeurIPS 2020, Algorithm 1. */
export function bernoulliExp(n: bigint, d: bigint, randomness: Randomness): boolean {
  let odd = true;
  for (let k = 1n; randomness.bernoulli({ numerator: n, denominator: d * k }); k++) odd = !odd;
  return odd;
}

/** Returns x with a chance proportional to e^(-|x| s/t): Canonne et al., Algorithm 2. */
export function drawLaplace(t: bigint, s: bigint, randomness: Randomness): bigint {
  for (;;) {
    const u = randomness.uniform(t);
    if (!bernoulliExp(u, t, randomness)) continue;
    let v = 0n;
    while (bernoulliExp(1n, 1n, randomness)) v++;
    const magnitude = (u + t * v) / s;
    const negative = randomness.uniform(2n) === 1n;
    if (magnitude || !negative) return negative ? -magnitude : magnitude; // minus zero would count zero twice
  }
}

/** Returns what times `a` is 1 modulo a prime, by Euclid's algorithm. */
export function inverse(a: bigint, prime: bigint): bigint {
  let [r, s, x, y] = [prime, a, 0n, 1n];
  while (s) {
    const q = r / s;
    [r, s, x, y] = [s, r - q * s, y, x - q * y];
  }
  return x < 0n ? x + prime : x;
}
