/**
 * A device of JSON lines, for tests and for `hearsay audit --device`: one line in, one line out.
 *
 *     node device.js metrics.json
 *     {"metric": "plan", "value": "pro"}                                  ->  {"payload": "02"}
 *     {"metric": "plan", "value": "pro", "entropy": "00ff"}               ->  drawn from SHAKE-256 of these bytes
 *     {"metric": "plan", "value": "pro", "secret": "<64 digits>"}         ->  permanent responses are drawn from this
 *     {"metric": "plan", "value": "gold"}                                 ->  {"error": "plan: takes one of ..."}
 *     {"metric": "plan", "value": "pro", "encode": true}                  ->  {"encoded": {"item": "1"}}
 *
 * Without a secret each line has one of its own.  Values that JSON has not are written as tests/client_sdk_ts/device.py does.
 */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { fromHex, toHex } from "../../src/core/bytes.js";
import { systemSource } from "../../src/core/entropy.js";
import { UnknownMetricError } from "../../src/core/errors.js";
import { ByteRandomness } from "../../src/core/randomness.js";
import { randomizeBy } from "../../src/mechanisms/longitudinal.js";
import { allTypes } from "../../src/all.js";
import { readRegistry } from "../../src/registry/read.js";
import { mechanismOf, seeded, writeValue } from "../support/channels.js";
import { revived } from "../support/values.js";

interface Line {
  metric: string;
  value: unknown;
  entropy?: string;
  secret?: string;
  encode?: boolean;
}

const registry = readRegistry(readFileSync(process.argv[2]!, "utf8"), allTypes);
const system = systemSource();

function answer({ metric: name, value, entropy, secret, encode }: Line): object {
  const metric = registry.metrics.get(name);
  if (!metric) throw new UnknownMetricError(name);
  const encoded = metric.encode(revived(value));
  if (encode) return { encoded: writeValue(encoded) };
  const { longitudinal, channel } = metric;
  const policy = { longitudinal, channel, mechanism: mechanismOf(metric.mechanism), digest: fromHex(metric.digest) };
  const fresh = entropy === undefined ? new ByteRandomness(system) : seeded(fromHex(entropy));
  const own = secret === undefined ? system(32) : fromHex(secret);
  return { payload: toHex(randomizeBy(policy, encoded, own, fresh)) };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answered: object;
  try {
    answered = answer(JSON.parse(line) as Line);
  } catch (error) {
    answered = { error: (error as Error).message };
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`);
}
