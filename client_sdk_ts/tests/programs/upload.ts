/** Does what its argument says with the JSON of its input, for tests that compare with Python. */

import { readFileSync } from "node:fs";

import type { Randomness } from "../../src/core/randomness.js";
import { readRetirement } from "../../src/privacy/retirement.js";
import * as schedule from "../../src/upload/schedule.js";
import { addressOf, type Answer, outcomeOf, readAcknowledgement, retryAfter } from "../../src/upload/transport.js";
import { type Report, sealPadded } from "../../src/wire/reports.js";

interface Sealable {
  id: string;
  day: number;
  segment: Record<string, string>;
  reports: Report[];
}

/** A step of a schedule: its name, Unix time, how many lots, and of a failure what was asked for. */
type Step = [name: string, now: number, lots: number, retryAfter: number, unseen: boolean];

const programs: Record<string, (input: never) => unknown> = {
  seal: (uploads: Sealable[]) => uploads.map((u) => sealPadded(u.id, u.day, u.segment, u.reports)),

  schedule: ({ numbers, steps }: { numbers: string[]; steps: Step[] }) => {
    const randomness = { uniform: () => BigInt(numbers.shift() ?? "") } as unknown as Randomness;
    const times = schedule.noTimes();
    return steps.map(([name, now, lots, asked, unseen]) => {
      let rest = 0;
      if (name === "plan") schedule.plan(times, now, randomness, lots);
      if (name === "claim") schedule.claim(times, now, "an upload");
      if (name === "release") schedule.release(times);
      if (name === "postpone") schedule.postpone(times, now, asked, randomness, unseen);
      if (name === "rest") rest = schedule.rest(times, now, randomness);
      return [
        rest, schedule.due(times, now), schedule.wait(times, now), schedule.backoff(times, now),
        schedule.mayDepart(times, now), times.failures > 0, times.claim !== "", numbers.length,
      ];
    });
  },

  outcomes: (answers: Answer[]) =>
    answers.map((answer) => {
      const { rejected, duplicate } = readAcknowledgement(answer);
      return [outcomeOf(answer), rejected, duplicate];
    }),

  retry_after: (headers: [status: number, text: string | null, sent: string | null][]) =>
    headers.map((header) => retryAfter(...header)),

  retirements: (lists: [text: string, key: string][]) => Promise.all(lists.map((list) => readRetirement(...list))),

  addresses: (endpoints: string[]) =>
    endpoints.map((endpoint) => {
      try {
        return addressOf(endpoint, "key").base;
      } catch (error) {
        return (error as Error).message;
      }
    }),
};

const input = JSON.parse(readFileSync(0, "utf8")) as never;
console.log(JSON.stringify(await programs[process.argv[2] ?? ""]!(input)));
