// Works on a store in a folder: node store_worker.mjs DIST FOLDER WORK ...
//
// charge FIRST COUNT: says that it is ready and, once its input ends, charges COUNT epochs from FIRST on, 0.04 epsilon each, and queues reports;
//   prints as JSON how often what became of it.
// go-on: charges epochs from the last one on, for ever, and prints each once its promise is kept.
// erase: carries out a denial.
// show: prints the document.

import { writeSync } from "node:fs";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [dist, folder, work, ...numbers] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${dist}/${path}.js`).href);
const [{ capsOf }, ledger, { put }, { erase }, { fileStore }] = await Promise.all(
  ["privacy/caps", "storage/ledger", "storage/outbox", "storage/erasure", "storage/file"].map(load),
);

const METRIC = "0123456789ab";
const NANO = 40_000_000;
const caps = capsOf({ metric_week: "999", week: work === "charge" ? "8" : "9999", lifetime: "99999" });
const store = fileStore(folder);

const report = (epoch) => (state) => {
  const next = epoch ?? (state.ledger[METRIC]?.epochs.at(-1)?.[1] ?? -1) + 1;
  ledger.beginLedger(state, caps, 100);
  ledger.charge(state, caps, { digest: METRIC, epoch: next, nano: NANO }, 100);
  put(state, { digest: METRIC, epoch: next, payload: "AAAA", day: 100 }, {}, []);
  if (work === "go-on") {
    // the secret comes and goes, as with denials
    state.secret = next % 3 ? String(next % 10).repeat(42) + "E" : null;
  }
  return next;
};

const works = {
  charge: async (first, count) => {
    console.log("ready");
    await text(process.stdin);
    const outcomes = {};
    for (let i = 0; i < count; i++) {
      const outcome = await store.update(report(first + i)).then(() => "recorded", (error) => error.reason ?? String(error));
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    console.log(JSON.stringify(outcomes));
  },
  "go-on": async () => {
    for (;;) writeSync(1, `${await store.update(report())}\n`);
  },
  erase: () => store.update((state) => void erase(state)),
  show: async () => console.log(JSON.stringify(await store.read((state) => state))),
};
await works[work](...numbers.map(Number));
