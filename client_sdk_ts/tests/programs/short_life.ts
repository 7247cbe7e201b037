/**
 * A program that records and ends without a word to its client.  Arguments: the folder of its store, the
 * endpoint, and in how it lives: "plain", "worker" (it records in a thread too), "waiting" for a collector.
 */

import { once } from "node:events";
import { isMainThread, Worker, workerData } from "node:worker_threads";

import { Client, fileStore, noOptOuts } from "../../src/node.js";
import { DAILY, HOURLY, options, WEEKLY } from "../client/support.js";

const [folder, endpoint, life] = (isMainThread ? process.argv.slice(2) : (workerData as string[])) as [string, string, string];
const client = new Client({ ...options(), endpoint, store: fileStore(folder), optOuts: noOptOuts });

if (isMainThread) {
  client.record(DAILY, true); // it is written at once
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.record(WEEKLY, "free"); // it waits for others, but not beyond the end
  client.watch();
  if (life === "waiting") void client.flush(60_000); // its request is on its way when the rest is done
  if (life === "worker") await once(new Worker(new URL(import.meta.url), { argv: [], workerData: [folder, endpoint, "plain"] }), "exit");
} else {
  client.record(HOURLY, 3);
  client.record(DAILY, true);
}
