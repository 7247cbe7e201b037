/** Laws of trusted time where no clock outlives a page; that of Node is held by the trace against Python. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { DAY } from "../../src/core/epoch.js";
import { BudgetExhaustedError } from "../../src/core/errors.js";
import { capsOf } from "../../src/privacy/caps.js";
import { charge, totalsOf } from "../../src/storage/ledger.js";
import { nodeUptime } from "../../src/storage/node_uptime.js";
import { newState, type State } from "../../src/storage/state.js";
import { advance, noUptime, trustedDay } from "../../src/storage/trusted_clock.js";

const BEGIN = 20_000; // epoch day
const NANO = 1_000_000_000;
const caps = capsOf();

/** Charges all that a week has left at the day of the wall clock, one report at a time; returns how many. */
function spend(state: State, wall: number): number {
  const day = advance(state, wall * DAY, noUptime());
  for (let reports = 0; ; reports++) {
    const epoch = (state.ledger["0123456789ab"]?.epochs.at(-1)?.[1] ?? 0) + 1;
    try {
      charge(state, caps, { digest: "0123456789ab", epoch, nano: NANO }, day);
    } catch (error) {
      assert.ok(error instanceof BudgetExhaustedError);
      return reports;
    }
  }
}

test("weeks offline are weeks: the budget is there again, once", () => {
  const state = newState();

  assert.deepEqual([0, 6, 7, 35, 36].map((day) => spend(state, BEGIN + day)), [8, 0, 8, 8, 0]);
});

test("a clock that is set back and put right, however often, gains nothing", () => {
  const state = newState();
  const reports = [spend(state, BEGIN)];

  for (let time = 0; time < 50; time++) reports.push(spend(state, BEGIN - 400), spend(state, BEGIN + 6));

  assert.equal(reports.reduce((total, count) => total + count), 8);
  assert.equal(spend(state, BEGIN + 7), 8);
});

test("a clock that is put back, or a boot, just after midnight does not bring back the day before", () => {
  const minutes = (state: State, at: number, up: number, boot: string): number =>
    advance(state, BEGIN * DAY + 60 * at, { boot, up: up < 0 ? up : 60_000 * up });

  for (const [up, later, boot] of [[-1, -1, ""], [10, 16, "a"], [10, 1, "b"]] as const) {
    const state = newState();
    minutes(state, -4, up, "a");

    assert.equal(minutes(state, 1, up < 0 ? up : up + 5, "a"), BEGIN);
    assert.equal(minutes(state, boot === "b" ? 3 : -4, later, boot), BEGIN);
  }
});

test("a clock that is set far ahead has one week early, and none again before it has come there", () => {
  const state = newState();

  assert.deepEqual([0, 400, 1, 8, 399, 406, 407].map((day) => spend(state, BEGIN + day)), [8, 8, 0, 0, 0, 0, 8]);
});

test("over any history of clocks no more is spent than one that ran to the farthest reading allows", () => {
  let seed = 7;
  const draw = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;

  for (let history = 0; history < 100; history++) {
    const state = newState();
    const days = Array.from({ length: 60 }, () => BEGIN + draw(200));
    const reports = days.reduce((total, day) => total + spend(state, day), 0);

    const weeks = Math.floor((Math.max(...days) - days[0]!) / 7) + 1;
    assert.ok(reports <= 8 * weeks, `${reports} reports in ${weeks} weeks`);
  }
});

test("a look changes nothing and says the same day", () => {
  const state = newState();
  advance(state, BEGIN * DAY, noUptime());
  const before = JSON.stringify(state);

  assert.equal(trustedDay(state, (BEGIN + 3) * DAY, noUptime()), BEGIN + 3);
  assert.equal(trustedDay(state, (BEGIN - 3) * DAY, noUptime()), BEGIN);
  assert.equal(JSON.stringify(state), before);
});

test("a document that changes platform goes on from its trusted time, and never back", () => {
  const state = newState();
  advance(state, BEGIN * DAY, noUptime());

  const days = [
    advance(state, (BEGIN + 30) * DAY, { boot: "a", up: 9 * DAY * 1000 }),
    advance(state, (BEGIN + 60) * DAY, { boot: "a", up: 10 * DAY * 1000 }),
    advance(state, (BEGIN + 61) * DAY, noUptime()),
    advance(state, (BEGIN + 2) * DAY, noUptime()),
  ];

  assert.deepEqual(days, [BEGIN, BEGIN + 1, BEGIN + 61, BEGIN + 61]);
});

test("charges without a reading go on from the latest", () => {
  const state = newState();
  spend(state, BEGIN);
  state.clock = null;

  assert.equal(advance(state, (BEGIN + 90) * DAY, noUptime()), BEGIN);
  assert.equal(totalsOf(state, BEGIN).week, 8 * NANO);
});

test("this machine's uptime goes forward under one name", () => {
  const [first, second] = [nodeUptime(), nodeUptime()];

  assert.equal(first.boot, second.boot);
  assert.ok(first.up > 0 && second.up >= first.up);
});
