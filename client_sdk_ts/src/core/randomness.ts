/**
 * The only source of randomness: exact integer primitives over a byte source.
 *
 * The bytes that a primitive reads are specified in docs/design/compiled-registry.md, because vectors
 * and permanent responses depend on them.
 */

import { bitLength, toNumber } from "./bytes.js";
import { EntropyError, InvalidParameterError } from "./errors.js";

/** Returns exactly as many bytes as are asked for, never the same twice.  Throws EntropyError. */
export type ByteSource = (count: number) => Uint8Array;

/** A probability, in lowest terms if it is from a compiled registry. */
export interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** What a mechanism may draw.  A mechanism has no other access to chance. */
export interface Randomness {
  /** A number in [0, n), each with chance exactly 1/n. */
  uniform(n: bigint): bigint;
  /** True with chance exactly p, by a number below its denominator as it stands. */
  bernoulli(p: Ratio): boolean;
  /** n independent bits, each 1 with chance exactly p, as one number. */
  bernoulliBits(p: Ratio, n: bigint): bigint;
}

/** The primitives over a byte source. */
export class ByteRandomness implements Randomness {
  constructor(private readonly read: ByteSource) {}

  /** By rejection; two reads at most on average.  Throws EntropyError. */
  uniform(n: bigint): bigint {
    if (n < 1n) throw new InvalidParameterError("n", "...", "must be at least 1");
    const bits = bitLength(n - 1n);
    for (;;) {
      const drawn = this.#word(bits);
      if (drawn < n) return drawn;
    }
  }

  bernoulli(p: Ratio): boolean {
    return this.uniform(p.denominator) < p.numerator;
  }

  /** Compares n uniform numbers with p together, digit by digit, until no comparison is open. */
  bernoulliBits(p: Ratio, n: bigint): bigint {
    let rest = p.numerator;
    let open = (1n << n) - 1n;
    let below = 0n;
    while (open && rest) {
      const word = this.#word(n);
      rest <<= 1n;
      if (rest >= p.denominator) {
        rest -= p.denominator;
        below |= open & ~word;
        open &= word;
      } else {
        open &= ~word;
      }
    }
    return below; // what is still open equals p in every digit, so it is not below p
  }

  /** Returns the next number of so many bits; the lowest bits of its last byte are dropped. */
  #word(bits: bigint): bigint {
    const size = (bits + 7n) >> 3n;
    let drawn: Uint8Array;
    try {
      drawn = this.read(Number(size));
    } catch (cause) {
      throw new EntropyError("the byte source failed; no report was made", { cause });
    }
    if (BigInt(drawn.length) !== size) throw new EntropyError("the byte source came up short; no report was made");
    return toNumber(drawn) >> (-bits & 7n);
  }
}
