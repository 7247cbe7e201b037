// Replays a trace of ledger steps on the built package: node ledger_replay.mjs DIST TRACE.
// Prints, as JSON, what became of each step.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [dist, trace] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${dist}/${path}.js`).href);
const [{ capsOf }, ledger, clock, { erase }, { newState }, { fromHex }] = await Promise.all(
  ["privacy/caps", "storage/ledger", "storage/trusted_clock", "storage/erasure", "storage/state", "core/bytes"]
    .map(load),
);

let state, caps;

const attempt = (work) => {
  try {
    work();
    return "recorded";
  } catch (error) {
    return error.reason ?? String(error);
  }
};

const steps = {
  begin: (step) => {
    state = newState();
    caps = capsOf(step.caps);
  },
  doubt: () => {
    state.doubt = true;
  },
  erase: () => {
    erase(state);
  },
  charge: (step, day) => attempt(() => ledger.charge(state, caps, { ...step.charge, days: daysOf(step, day) }, day)),
  repeat: (step, day) => {
    const { digest, epoch, costs } = step;
    const tag = ledger.tagOf(fromHex(step.secret), fromHex(digest), fromHex(step.encoded));
    const nano = costs[ledger.reportsOf(state, digest, tag)];
    const dearest = Math.max(...costs);
    const outcome = attempt(() => {
      ledger.charge(state, caps, { digest, epoch, nano, dearest, days: daysOf(step, day) }, day);
      ledger.addReport(state, digest, tag);
    });
    return [tag, ledger.reportsOf(state, digest, tag), outcome];
  },
  accounts: () =>
    Object.entries(state.ledger)
      .map(([digest, { epochs, nano, delta }]) => {
        const all = epochs.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
        return [digest, nano, delta, digest ? all.filter((epoch) => epoch >= step.since) : all];
      })
      .sort(([a], [b]) => (a < b ? -1 : 1)),
};

const daysOf = ({ days }, day) => (days ? [day + days[0], day + days[1]] : undefined);

let step;
const results = JSON.parse(readFileSync(trace, "utf-8")).map((next) => {
  step = next;
  if (step.step === "begin") return steps.begin(step) ?? null;
  state = JSON.parse(JSON.stringify(state)); // as a store does
  const day = clock.advance(state, step.wall, { boot: step.boot, up: step.up * 1000 });
  const doubted = ledger.beginLedger(state, caps, day);
  const result = steps[step.step](step, day) ?? null;
  const { week, lifetime, delta } = ledger.totalsOf(state, day);
  return [day, doubted, result, week, lifetime, delta];
});
console.log(JSON.stringify(results));
