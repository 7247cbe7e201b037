/** Times the built package in Node: jobs as JSON from stdin, numbers as JSON to stdout.  See typescript.py. */

import { readFileSync } from "node:fs";

const [dist, mode] = process.argv.slice(2);
const load = (path) => import(`${dist}/${path}.js`);

const { ratioOf } = await load("core/exact");
const { systemSource } = await load("core/entropy");
const { ByteRandomness } = await load("core/randomness");
const { allMechanisms } = await load("mechanisms/index");

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

/** Returns the seconds that so many reports of a job take, by the clock and of processor time. */
function randomize({ mechanism: name, channel: written, value: text, reports }) {
  const mechanism = allMechanisms.find((each) => each.name === name);
  const channel = {
    ...written,
    parameters: numbers(written.parameters),
    constants: chances(written.constants),
    domainSize: BigInt(written.domainSize),
  };
  const [value, randomness] = [valueOf(text), new ByteRandomness(systemSource())];
  const [start, used] = [performance.now(), process.cpuUsage()];
  for (let report = 0; report < reports; report++) mechanism.randomize(channel, value, randomness);
  const { user, system } = process.cpuUsage(used);
  return { seconds: (performance.now() - start) / 1e3, processor: (user + system) / 1e6 };
}

const modes = { randomize };
const jobs = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(jobs.map(modes[mode])));
