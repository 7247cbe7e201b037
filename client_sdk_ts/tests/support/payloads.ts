/** The payloads of jobs that tests in Python write; a browser runs this too. */

import { fromHex, toHex } from "../../src/core/bytes.js";
import { systemSource } from "../../src/core/entropy.js";
import { InvalidValueError } from "../../src/core/errors.js";
import { randomizeBy } from "../../src/mechanisms/longitudinal.js";
import { mechanismOf, readChannel, readValue, seeded, type WrittenChannel, type WrittenValue } from "./channels.js";

export interface Job {
  mechanism: string;
  channel: WrittenChannel;
  seed: string;
  values: WrittenValue[];
  /** Of a policy that repeats payloads. */
  longitudinal?: "permanent" | "two_layer";
  secret?: string;
  digest?: string;
}

/** Returns the payloads of a job in hexadecimal; null for a value that was refused. */
export function payloads(job: Job): (string | null)[] {
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

/** Returns so many draws of 16 bytes of a new source, in hexadecimal. */
export function entropy(draws: number): string[] {
  const source = systemSource();
  return Array.from({ length: draws }, () => toHex(source(16)));
}
