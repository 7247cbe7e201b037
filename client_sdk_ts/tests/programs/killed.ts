/**
 * Records and uploads over a lossy network until it is killed, an hour of simulated time a round; prints
 * a point after each.  Arguments: the folder, the file for what arrives, a compiled registry, and which
 * child this is; without the last it prints the document of the folder.
 */

import { appendFileSync, readFileSync, writeSync } from "node:fs";

import { TransportError } from "../../src/core/errors.js";
import { everything } from "../../src/all.js";
import { type Answer, Client, fileStore, noOptOuts } from "../../src/node.js";

const HOUR = 3_600_000;
const START = Date.UTC(2026, 10, 24);
const STEP = 12 * HOUR; // from one child to the next

const [folder, log, path, child] = process.argv.slice(2) as [string, string, string, string?];
const store = fileStore(folder);

async function send(body: string): Promise<Answer> {
  const fate = Math.random();
  if (fate < 0.3) throw new TransportError("the request was lost");
  appendFileSync(log, `${body}\n`);
  if (fate < 0.6) throw new TransportError("the answer was lost");
  return { status: 202, body: '{"accepted": 1}' };
}

if (child === undefined) {
  console.log(JSON.stringify(await store.read((state) => state)));
} else {
  let now = START + Number(child) * STEP;
  const client = new Client({
    endpoint: "", writeKey: "", registry: readFileSync(path, "utf8"), mechanisms: everything, consent: "granted",
    store, optOuts: noOptOuts, transport: { send }, clock: () => now, uptime: () => ({ boot: "one", up: now }),
  });
  for (;;) {
    for (const name of client.registry.metrics.keys()) client.record(name, true);
    await client.flush();
    now += HOUR;
    writeSync(1, ".");
  }
}
