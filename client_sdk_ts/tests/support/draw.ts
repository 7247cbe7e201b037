/** Reads jobs as JSON from stdin and prints the payloads of each: for tests in Python. */

import { readFileSync } from "node:fs";

import { type Job, payloads } from "./payloads.js";

const jobs = JSON.parse(readFileSync(0, "utf8")) as Job[];
process.stdout.write(JSON.stringify(jobs.map(payloads)));
