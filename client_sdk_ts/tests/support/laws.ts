/**
 * Exact laws of payloads, for tests in Python: jobs as JSON from stdin, laws as JSON to stdout.
 *
 * By `strings` every string of entropy bits is tried: the primitives run over a source that branches
 * into the bits that they keep; strings that begin with a rejected draw are left out, as it is drawn
 * again by a loop that remembers nothing.  By `paths` each draw branches into its outcomes with their
 * stated chances, and a path lighter than `leastMass` is left.  See tests/client_sdk in Python.
 */

import { readFileSync } from "node:fs";

import { bitLength, fromNumber, toHex } from "../../src/core/bytes.js";
import { gcd } from "../../src/core/exact.js";
import { ByteRandomness, type Randomness, type Ratio } from "../../src/core/randomness.js";
import { fraction, mechanismOf, readChannel, readValue, type WrittenChannel, type WrittenValue } from "./channels.js";

interface Job {
  mechanism: string;
  channel: WrittenChannel;
  values: WrittenValue[];
  by: "strings" | "paths";
  leastMass?: string;
}

type Sample = (randomness: Randomness) => string;
type Law = Map<string, Ratio>;

const REST = "rest"; // the mass that was not followed to its end

function ratio(numerator: bigint, denominator: bigint): Ratio {
  const shared = gcd(numerator, denominator);
  return { numerator: numerator / shared, denominator: denominator / shared };
}

function times(a: Ratio, b: Ratio): Ratio {
  return ratio(a.numerator * b.numerator, a.denominator * b.denominator);
}

function isBelow(a: Ratio, b: Ratio): boolean {
  return a.numerator * b.denominator < b.numerator * a.denominator;
}

function add(law: Law, outcome: string, mass: Ratio): void {
  const { numerator, denominator } = law.get(outcome) ?? { numerator: 0n, denominator: 1n };
  law.set(outcome, ratio(numerator * mass.denominator + mass.numerator * denominator, denominator * mass.denominator));
}

/** The string ends at a read that keeps so many bits. */
class NextRead {
  constructor(readonly bits: bigint) {}
}

/** A draw that needs so many reads has come to one more. */
class Rejected {}

/** The primitives over the bits that they keep of `words`, one a read. */
function bitString(words: readonly bigint[]): Randomness {
  let [taken, kept, reads] = [0, 0n, 0n];
  let thrown: unknown;
  const primitives = new ByteRandomness((size) => {
    if (!reads) throw (thrown = new Rejected());
    reads--;
    if (taken === words.length) throw (thrown = new NextRead(kept));
    return fromNumber(words[taken++]! << (BigInt(8 * size) - kept), size);
  });
  const draw = <T>(bits: bigint, most: bigint, primitive: () => T): T => {
    [kept, reads] = [bits, most];
    try {
      return primitive();
    } catch (error) {
      throw thrown ?? error; // an EntropyError of ours hides it
    }
  };
  return {
    uniform: (n) => draw(bitLength(n - 1n), 1n, () => primitives.uniform(n)),
    bernoulli: (p) => draw(bitLength(p.denominator - 1n), 1n, () => primitives.bernoulli(p)),
    bernoulliBits: (p, n) => draw(n, bitLength(p.denominator) - 1n, () => primitives.bernoulliBits(p, n)),
  };
}

function lawByStrings(sample: Sample, words: readonly bigint[] = []): Law {
  const law: Law = new Map();
  try {
    return law.set(sample(bitString(words)), { numerator: 1n, denominator: 1n });
  } catch (end) {
    if (end instanceof Rejected) return law;
    if (!(end instanceof NextRead)) throw end;
    const laws = Array.from({ length: 1 << Number(end.bits) }, (_, word) => lawByStrings(sample, [...words, BigInt(word)]));
    const accepted = laws.filter((each) => each.size);
    const share = { numerator: 1n, denominator: BigInt(accepted.length) };
    for (const each of accepted) for (const [outcome, mass] of each) add(law, outcome, times(mass, share));
    return law;
  }
}

/** The path ends at a draw with these chances. */
class Branch {
  constructor(readonly weights: readonly Ratio[]) {}
}

/** A Randomness that replays `choices`. */
function path(choices: readonly number[]): Randomness {
  let taken = 0;
  const choose = (weights: () => readonly Ratio[]): number => {
    if (taken === choices.length) throw new Branch(weights());
    return choices[taken++]!;
  };
  const coin = ({ numerator, denominator }: Ratio): [Ratio, Ratio] => [ratio(denominator - numerator, denominator), ratio(numerator, denominator)];
  return {
    uniform: (n) => BigInt(choose(() => Array.from({ length: Number(n) }, () => ratio(1n, n)))),
    bernoulli: (p) => choose(() => coin(p)) === 1,
    bernoulliBits: (p, n) => BigInt(choose(() => words(coin(p), Number(n)))),
  };
}

/** Returns the chance of every word of n independent bits. */
function words(coin: readonly [Ratio, Ratio], n: number): Ratio[] {
  let chances: Ratio[] = [ratio(1n, 1n)];
  for (let bit = 0; bit < n; bit++) chances = chances.flatMap((mass) => coin.map((side) => times(mass, side)));
  return chances;
}

function lawByPaths(sample: Sample, least: Ratio): Law {
  const law: Law = new Map();
  const todo: [choices: number[], mass: Ratio][] = [[[], ratio(1n, 1n)]];
  for (let next = todo.pop(); next; next = todo.pop()) {
    const [choices, mass] = next;
    if (isBelow(mass, least)) {
      add(law, REST, mass);
      continue;
    }
    try {
      add(law, sample(path(choices)), mass);
    } catch (end) {
      if (!(end instanceof Branch)) throw end;
      end.weights.forEach((weight, i) => {
        if (weight.numerator) todo.push([[...choices, i], times(mass, weight)]);
      });
    }
  }
  return law;
}

function laws(job: Job): Record<string, string>[] {
  const [mechanism, channel] = [mechanismOf(job.mechanism), readChannel(job.channel)];
  return job.values.map((value) => {
    const sample: Sample = (randomness) => toHex(mechanism.randomize(channel, readValue(value), randomness));
    const law = job.by === "strings" ? lawByStrings(sample) : lawByPaths(sample, fraction(job.leastMass ?? "0"));
    return Object.fromEntries([...law].map(([outcome, { numerator, denominator }]) => [outcome, `${numerator}/${denominator}`]));
  });
}

const jobs = JSON.parse(readFileSync(0, "utf8")) as Job[];
process.stdout.write(JSON.stringify(jobs.map(laws)));
