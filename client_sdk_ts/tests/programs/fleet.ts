/**
 * Many simulated devices in one process, each with a ledger in memory: each records one value of each
 * metric and sends it.  Prints the counts of all.  Input: JSON of FleetOptions.
 */

import { readFileSync } from "node:fs";

import { Client, memoryStore, noOptOuts } from "../../src/node.js";
import { everything } from "../../src/all.js";
import type { Ratio } from "../../src/core/randomness.js";
import type { Mechanism } from "../../src/mechanisms/mechanism.js";

interface FleetOptions {
  endpoint: string;
  writeKey: string;
  /** Path of a compiled registry. */
  registry: string;
  devices: number;
  /** Device i lives i modulo this many days ago. */
  days: number;
  /** By metric: the devices of a day record these in turn. */
  values: Record<string, unknown[]>;
  segment: Record<string, string>;
  /** A planted bug: the mechanism of this name tells the truth as often as it should lie. */
  planted: string | null;
}

const AT_ONCE = 16;

const options = JSON.parse(readFileSync(0, "utf8")) as FleetOptions;
const { days, devices, endpoint, segment, values, writeKey } = options;
const registry: unknown = JSON.parse(readFileSync(options.registry, "utf8"));
const mechanisms = everything.map((mechanism) => ("randomize" in mechanism && mechanism.name === options.planted ? flipped(mechanism) : mechanism));
const counts: Record<string, number> = {};
let next = 0;

function flipped(mechanism: Mechanism): Mechanism {
  return {
    ...mechanism,
    randomize: (channel, value, randomness) => {
      const { numerator, denominator } = channel.constants["truth"] as Ratio;
      const truth = { numerator: denominator - numerator, denominator };
      return mechanism.randomize({ ...channel, constants: { ...channel.constants, truth } }, value, randomness);
    },
  };
}

async function live(): Promise<void> {
  for (let device; (device = next++) < devices;) {
    const now = (): number => Date.now() - (device % days) * 86_400_000;
    const client = new Client({
      clock: now, uptime: () => ({ boot: "one", up: now() }),
      endpoint, writeKey, registry, mechanisms, segment,
      consent: "granted", store: memoryStore(), optOuts: noOptOuts, caps: { metric_week: "999", week: "999" },
    });
    for (const [name, list] of Object.entries(values)) client.record(name, list[Math.floor(device / days) % list.length]);
    await client.close(60_000);
    for (const [reason, count] of Object.entries(client.stats())) counts[reason] = (counts[reason] ?? 0) + count;
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, live));
console.log(JSON.stringify(Object.fromEntries(Object.entries(counts).filter(([, count]) => count))));
