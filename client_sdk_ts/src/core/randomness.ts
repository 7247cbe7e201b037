/**
 * The only source of randomness: exact integer primitives over a byte source.
 *
 * The bytes that a primitive reads are specified in docs/design/compiled-registry.md, because vectors
 * and permanent responses depend on them.
 */

/** Returns exactly as many bytes as are asked for, never the same twice.  Throws EntropyError. */
export type ByteSource = (count: number) => Uint8Array;

/** A chance in lowest terms. */
export interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** What a mechanism may draw.  A mechanism has no other access to chance. */
export interface Randomness {
  /** A number in [0, n), each with chance exactly 1/n. */
  uniform(n: bigint): bigint;
  /** True with chance exactly p. */
  bernoulli(p: Ratio): boolean;
  /** n independent bits, each 1 with chance exactly p, as one number. */
  bernoulliBits(p: Ratio, n: number): bigint;
}
