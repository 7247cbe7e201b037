/** Laws of what waits: bounded in number, bytes and age, and no dimension that its metric did not ask for. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { erase } from "../../src/storage/erasure.js";
import { addReport } from "../../src/storage/ledger.js";
import { expire, keepAcknowledged, put, waiting } from "../../src/storage/outbox.js";
import { newState, type State } from "../../src/storage/state.js";

const METRIC = "0123456789ab";
const KB = 1024;

const add = (state: State, epoch: number, payload = "AAAA", day = 0): number =>
  put(state, { digest: METRIC, epoch, payload, day }, {}, []);

const upload = (sealedDay: number, reports: number): State["uploads"][0] =>
  ({ id: "", body: "", reports, sealedDay, tries: 0 });

test("of more than 500 reports the oldest make room", () => {
  const state = newState();

  const dropped = Array.from({ length: 503 }, (_, epoch) => add(state, epoch));

  assert.deepEqual(dropped.slice(498), [0, 0, 1, 1, 1]);
  assert.deepEqual([state.reports[0]?.epoch, state.reports.length], [3, 500]);
});

test("of more than 512 KB of payloads the oldest make room", () => {
  const state = newState();
  const payload = "A".repeat((128 * KB * 4) / 3 + 1); // four are all that may wait

  const dropped = Array.from({ length: 5 }, (_, epoch) => add(state, epoch, payload));

  assert.deepEqual(dropped, [0, 0, 0, 0, 1]);
  assert.equal(add(state, 9, "A".repeat(512 * KB)), 3); // of 384 KB
});

test("a report carries the dimensions of its metric, in one order, and no other", () => {
  const state = newState();
  const segment = { platform: "linux", country: "CH", version: "1" };

  put(state, { digest: METRIC, epoch: 0, payload: "", day: 0 }, segment, ["version", "platform", "unknown"]);

  assert.equal(JSON.stringify(state.reports[0]?.segment), '{"platform":"linux","version":"1"}');
});

test("what has waited for more than a fortnight is dropped, sealed or not", () => {
  const state = newState();
  for (const day of [99, 100, 114]) add(state, day, "AAAA", day);
  state.uploads.push(upload(99, 7), upload(100, 5));

  assert.equal(waiting(state), 15);
  assert.equal(expire(state, 114), 8);
  assert.equal(waiting(state), 7);
});

test("the last hundred acknowledged reports are kept", () => {
  const state = newState();
  const reports = Array.from({ length: 70 }, (_, epoch) => ({ digest: METRIC, epoch, payload: "AA" }));

  keepAcknowledged(state, reports, 1);
  keepAcknowledged(state, reports, 2);

  assert.deepEqual([state.sent.length, state.sent[0]?.epoch, state.sent[0]?.day], [100, 40, 1]);
});

test("a denial leaves nothing but what was spent", () => {
  const state = newState();
  add(state, 1);
  addReport(state, METRIC, "tag");
  state.uploads.push(upload(0, 3));
  state.windows.push({ digest: METRIC, epoch: 0, sealed: "AA" });
  state.secret = "A".repeat(43);
  state.retired = { number: 1, digests: [METRIC] };
  keepAcknowledged(state, [{ digest: METRIC, epoch: 0, payload: "AA" }], 1);
  state.times.claim = "an id";

  assert.deepEqual(erase(state), { reports: 4, windows: 1 });

  const { ledger, retired, ...others } = state;
  assert.deepEqual({ ...newState(), ledger, retired }, { ...others, ledger, retired });
  assert.deepEqual(ledger[METRIC]?.memo, {});
  assert.ok(retired);
});
