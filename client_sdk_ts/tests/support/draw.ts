/** Reads jobs as JSON from stdin and prints the payloads of each, in hexadecimal: for tests in Python. */

import { readFileSync } from "node:fs";

import { fromHex, toHex } from "../../src/core/bytes.js";
import { InvalidValueError } from "../../src/core/errors.js";
import { randomizeBy } from "../../src/mechanisms/longitudinal.js";
import { mechanismOf, readChannel, readValue, seeded, type WrittenChannel, type WrittenValue } from "./channels.js";

interface Job {
  mechanism: string;
  channel: WrittenChannel;
  seed: string;
  values: WrittenValue[];
  /** Of a policy that repeats payloads. */
  longitudinal?: "permanent" | "two_layer";
  secret?: string;
  digest?: string;
}

function payloads(job: Job): (string | null)[] {
  const [mechanism, channel, fresh] = [mechanismOf(job.mechanism), readChannel(job.channel), seeded(fromHex(job.seed))];
  const policy = { longitudinal: job.longitudinal ?? "fresh", mechanism, channel, digest: fromHex(job.digest ?? "") } as const;
  return job.values.map((value) => {
    try {
      return toHex(randomizeBy(policy, readValue(value), fromHex(job.secret ?? ""), fresh));
    } catch (error) {
      if (error instanceof InvalidValueError) return null;
      throw error;
    }
  });
}

const jobs = JSON.parse(readFileSync(0, "utf8")) as Job[];
process.stdout.write(JSON.stringify(jobs.map(payloads)));
