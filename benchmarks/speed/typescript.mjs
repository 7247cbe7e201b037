/** Times the built package in Node: jobs as JSON from stdin, numbers as JSON to stdout.  See typescript.py. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

const [dist, mode] = process.argv.slice(2);
const load = (path) => import(`${dist}/${path}.js`);

const { ratioOf } = await load("core/exact");
const { systemSource } = await load("core/entropy");
const { ByteRandomness } = await load("core/randomness");
const { allMechanisms, allTypes } = await load("all");

const numbers = (entries) => Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, BigInt(text)]));
const chances = (entries) => Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, ratioOf(text)]));

function valueOf({ item, position, set, pairs, bytes }) {
  const fraction = (text) => {
    const [numerator, denominator] = text.split("/").map(BigInt);
    return { numerator, denominator };
  };
  if (item !== undefined) return { kind: "item", item: BigInt(item) };
  if (position !== undefined) return { kind: "position", position: fraction(position) };
  if (set !== undefined) return { kind: "set", items: set.map(BigInt) };
  if (pairs !== undefined) return { kind: "pairs", pairs: pairs.map(([key, at]) => [BigInt(key), fraction(at)]) };
  return { kind: "bytes", bytes: Uint8Array.from(Buffer.from(bytes, "hex")) };
}

/** Returns the seconds of processor time that so many reports of a job take. */
function randomize({ mechanism: name, channel: written, value: text, reports }) {
  const mechanism = allMechanisms.find((each) => each.name === name);
  const channel = {
    ...written,
    parameters: numbers(written.parameters),
    constants: chances(written.constants),
    domainSize: BigInt(written.domainSize),
  };
  const [value, randomness] = [valueOf(text), new ByteRandomness(systemSource())];
  const used = process.cpuUsage();
  for (let report = 0; report < reports; report++) mechanism.randomize(channel, value, randomness);
  const { user, system } = process.cpuUsage(used);
  return { processor: (user + system) / 1e6 };
}

/** Returns the milliseconds of calls of `record`, and of processor time that a report takes until it is written. */
async function record({ registry, name, values, calls, group, delay }) {
  const { Client, fileStore } = await load("node");
  const folder = mkdtempSync(join(tmpdir(), "hearsay-"));
  let now = Date.now();
  const used = process.cpuUsage();
  const client = new Client({
    ...{ endpoint: "https://collector.example", writeKey: "key", registry, mechanisms: allMechanisms, consent: "granted" },
    ...{ store: fileStore(folder), clock: () => now, caps: { week: "999999", metric_week: "999999", lifetime: "999999" } },
    transport: { send: async () => ({ status: 202, body: '{"accepted":0}' }) },
  });
  const times = [];
  for (let call = 0; call < calls; call++) {
    now += 86_400_000; // another epoch: each call makes a report
    const start = performance.now();
    client.record(name, values[call % values.length]);
    times.push(performance.now() - start);
    if (call % group === group - 1) await setTimeout(delay);
  }
  await client.close();
  const { user, system } = process.cpuUsage(used);
  rmSync(folder, { recursive: true });
  times.sort((a, b) => a - b);
  const { recorded } = client.stats();
  return { p50: times[calls >> 1], p99: times[Math.floor(calls * 0.99)], most: times.at(-1), recorded, processor: (user + system) / 1e3 / recorded };
}

/** Returns the milliseconds of calls in one turn, and the longest time for which the event loop stands still after them. */
async function burst({ registry, name, calls }) {
  const { Client, fileStore } = await load("node");
  const folder = mkdtempSync(join(tmpdir(), "hearsay-"));
  const client = new Client({
    ...{ endpoint: "https://collector.example", writeKey: "key", registry, mechanisms: allMechanisms, consent: "granted" },
    store: fileStore(folder),
  });
  const start = performance.now();
  for (let call = 0; call < calls; call++) client.record(name, 1);
  let [last, longest, done] = [performance.now(), 0, false];
  const loop = last - start;
  const beat = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!done) setImmediate(beat);
  };
  setImmediate(beat);
  await client.close();
  done = true;
  rmSync(folder, { recursive: true });
  return { loop, longest, recorded: client.stats().aggregated };
}

/** Returns the milliseconds of processor time until a new process has read and checked a registry. */
async function read({ registry }) {
  const { readRegistry } = await load("registry/read");
  const used = process.cpuUsage();
  const { metrics } = readRegistry(registry, allTypes);
  const { user, system } = process.cpuUsage(used);
  return { processor: (user + system) / 1e3, metrics: metrics.size };
}

const modes = { randomize, record, burst, read };
const jobs = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await Promise.all(jobs.map(modes[mode]))));
