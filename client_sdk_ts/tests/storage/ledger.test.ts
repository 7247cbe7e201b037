/** Laws of the ledger that need no other language; the trace against Python holds the rest. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AlreadyReportedError, BudgetExhaustedError } from "../../src/core/errors.js";
import { type CapTexts, capsOf } from "../../src/privacy/caps.js";
import * as ledger from "../../src/storage/ledger.js";
import { newState, type State } from "../../src/storage/state.js";

const NANO = 1_000_000_000;
const METRIC = "0123456789ab";

function charge(state: State, epoch: number, day: number, texts: CapTexts = {}, digest = METRIC, nano = NANO): void {
  ledger.charge(state, capsOf(texts), { digest, epoch, nano }, day);
}

test("a metric has one report of an epoch", () => {
  const state = newState();

  charge(state, 5, 100);

  assert.throws(() => charge(state, 5, 100), AlreadyReportedError);
  assert.equal(ledger.totalsOf(state, 100).lifetime, NANO);
});

test("a week's cap is over after seven days, and no day sooner", () => {
  const state = newState();

  charge(state, 0, 100, { week: "1" });

  assert.throws(() => charge(state, 6, 106, { week: "1" }), BudgetExhaustedError);
  charge(state, 7, 107, { week: "1" });
});

test("in a session a metric has one report, whatever its epochs are", () => {
  const state = newState(false, true);

  charge(state, 0, 100);
  charge(state, 0, 100, {}, "ffffffffffff");

  assert.throws(() => charge(state, 90, 190), AlreadyReportedError);
});

test("a doubt costs the rest of the week, once", () => {
  const state = newState(true);
  charge(state, 0, 100);

  assert.equal(ledger.beginLedger(state, capsOf(), 100), true);

  assert.equal(ledger.beginLedger(state, capsOf(), 100), false);
  assert.equal(ledger.totalsOf(state, 106).week, 8 * NANO);
  assert.throws(() => charge(state, 6, 106), BudgetExhaustedError);
});

test("epochs in a row are one range, in whatever order they come", () => {
  const state = newState();

  for (const epoch of [3, 1, 9, 2, 0, -1, 10]) charge(state, epoch, 20 * epoch + 100);

  assert.deepEqual(state.ledger[METRIC]?.epochs, [[-1, 3], [9, 10]]);
});

test("a ledger of ten years is a small document that has forgotten nothing that counts", () => {
  const state = newState();
  const caps = { week: "999", metric_week: "999", lifetime: "99999" };

  for (let day = 0; day < 3650; day++) {
    charge(state, day, day, caps);
    charge(state, 24 * day + (day % 24), day, caps, "ffffffffffff"); // hourly, once a day
  }

  assert.ok(JSON.stringify(state).length < 20_000);
  assert.equal(ledger.totalsOf(state, 3649).lifetime, 7300 * NANO);
  assert.equal(ledger.totalsOf(state, 3649).week, 14 * NANO);
  for (const epoch of [0, 1, 3000, 24 * 3649 + 1]) {
    assert.throws(() => charge(state, epoch, 3650, caps, "ffffffffffff"), AlreadyReportedError);
  }
});

test("a report about days whose costs are folded is refused", () => {
  const state = newState();
  const days = [30, 40] as const;

  assert.throws(
    () => ledger.charge(state, capsOf(), { digest: METRIC, epoch: 0, nano: 1, days }, 80), BudgetExhaustedError,
  );
  assert.deepEqual(state.ledger, {});
});

test("what is forgotten of changes leaves the sum, on the latest day", () => {
  const state = newState();
  charge(state, 0, 100);
  charge(state, 1, 101, {}, METRIC, 0);
  charge(state, 0, 100, {}, "ffffffffffff");
  charge(state, 1, 101, {}, "ffffffffffff");

  ledger.forgetChanges(state);

  assert.deepEqual(state.ledger[METRIC]?.costs, [{ first: 101, last: 101, nano: NANO }]);
  assert.equal(state.ledger["ffffffffffff"]?.costs.length, 2);
});

test("the largest cap that there is, is kept", () => {
  const state = newState();
  const caps = capsOf({ delta: "999999" });
  const entry = { digest: METRIC, nano: 1, delta: Number.MAX_SAFE_INTEGER };

  ledger.charge(state, caps, { ...entry, epoch: 0 }, 0);

  assert.throws(() => ledger.charge(state, caps, { ...entry, epoch: 1, delta: 1 }, 0), BudgetExhaustedError);
});
