/** Cover: a set of items that is likelier to hold the own one, of a table of weighted sets. */

import { chance, type Channel, itemOf, type Mechanism, numbered, parameter } from "./mechanism.js";

interface WeightedSet {
  readonly weight: bigint;
  /** Item i is the bit 2^i. */
  readonly items: bigint;
}

const tables = /* @__PURE__ */ new WeakMap<Channel, readonly WeightedSet[]>();

export const cover: Mechanism = {
  name: "cover",
  randomize(channel, value, randomness) {
    const item = itemOf("cover", channel, value);
    const holds = randomness.bernoulli(chance(channel, "truth"));
    const reports: bigint[] = [];
    const below = [0n]; // the weight of the reports before each, and of all
    let [report, sum] = [0n, 0n];
    for (const { weight, items } of tables.get(channel) ?? setsOf(channel)) {
      if (has(items, item) === holds) {
        reports.push(report);
        below.push((sum += weight));
      }
      report++;
    }
    let [low, high] = [0n, BigInt(reports.length)];
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      const [start, split, end] = [below[Number(low)]!, below[Number(middle)]!, below[Number(high)]!];
      if (randomness.bernoulli({ numerator: split - start, denominator: end - start })) high = middle;
      else low = middle;
    }
    return numbered(channel, reports[Number(low)]!);
  },
};

function has(items: bigint, item: bigint): boolean {
  return ((items >> item) & 1n) === 1n;
}

/** Returns the sets of the table, and those that complete it, so that all items are covered alike. */
function setsOf(channel: Channel): readonly WeightedSet[] {
  const size = channel.domainSize;
  const bits = 8n * ((size + 7n) / 8n);
  const sets: WeightedSet[] = [];
  for (let rest = parameter(channel, "sets"); rest; rest >>= bits + 16n) {
    sets.unshift({ weight: (rest >> bits) & 0xffffn, items: rest & ((1n << bits) - 1n) });
  }
  const covered: bigint[] = [];
  for (let item = 0n; item < size; item++) {
    covered.push(sets.reduce((sum, { weight, items }) => (has(items, item) ? sum + weight : sum), 0n));
  }
  const most = covered.reduce((a, b) => (a > b ? a : b));
  covered.forEach((weight, item) => {
    if (weight < most) sets.push({ weight: most - weight, items: 1n << BigInt(item) });
  });
  tables.set(channel, sets);
  return sets;
}
