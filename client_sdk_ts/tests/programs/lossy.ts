/**
 * One device that records every hour and sends over a network that loses, in simulated time until now.
 * Arguments: the endpoint, the write key, a compiled registry and the name of its metric.  Prints its
 * counts, and for each upload how many different bodies of it were tried.
 */

import { readFileSync } from "node:fs";

import { everything } from "../../src/all.js";
import { Client, memoryStore, noOptOuts, nodeTransport } from "../../src/node.js";

const HOUR = 3_600_000;
const HOURS = 40;
const PASSES = 70; // after that, of twelve minutes each

const [endpoint, writeKey, path, name] = process.argv.slice(2) as [string, string, string, string];
const tried = new Map<string, Set<string>>();
const transport = nodeTransport(endpoint, writeKey);
let now = Date.now() - (HOURS + PASSES / 5) * HOUR;
const client = new Client({
  endpoint, writeKey, registry: readFileSync(path, "utf8"), mechanisms: everything, consent: "granted",
  store: memoryStore(), optOuts: noOptOuts, caps: { metric_week: "999", week: "999" }, clock: () => now,
  uptime: () => ({ boot: "one", up: now }),
  transport: {
    send: (body, timeout) => {
      const { id } = JSON.parse(body) as { id: string };
      tried.set(id, (tried.get(id) ?? new Set()).add(body));
      return transport.send(body, timeout);
    },
  },
});
for (let step = 0; step < HOURS + PASSES; step++) {
  if (step < HOURS) client.record(name, true);
  await client.flush(700);
  now += step < HOURS ? HOUR : HOUR / 5;
}
const { waiting } = await client.flush(700);
console.log(JSON.stringify({ waiting, stats: client.stats(), bodies: [...tried.values()].map((bodies) => bodies.size) }));
