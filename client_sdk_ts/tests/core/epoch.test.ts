/** Epochs: see tests/client_sdk_ts for the comparison with Python. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { DAY, dateOf, dayOf, dayOfDate, epochLabel, epochOf, epochStart } from "../../src/core/epoch.js";
import { InvalidParameterError } from "../../src/core/errors.js";

const LENGTHS = ["1h", "1d", "7d", "28d"];

test("an epoch holds every second from its start to the next one's", () => {
  for (const every of LENGTHS) {
    for (const epoch of [-3, 0, 1, 738, 20_000]) {
      const start = epochStart(every, epoch);

      assert.equal(epochOf(every, start), epoch);
      assert.equal(epochOf(every, start - 1), epoch - 1);
      assert.equal(epochOf(every, epochStart(every, epoch + 1) - 1), epoch);
    }
  }
});

test("weeks begin on Mondays, and once never ends", () => {
  assert.equal(new Date(epochStart("7d", 2_900) * 1000).getUTCDay(), 1);
  assert.equal(epochStart("28d", 700) % (7 * DAY), epochStart("7d", 0) + 7 * DAY);
  assert.equal(epochOf("once", 1e10), 0);
  assert.equal(epochStart("once", 0), 0);
});

test("days and labels are as people write them", () => {
  assert.equal(dayOfDate("2026-12-31"), 20_818);
  assert.equal(dateOf(20_818), "2026-12-31");
  assert.equal(dayOf(DAY - 1), 0);
  assert.equal(dayOf(-1), -1);
  assert.equal(epochLabel("1h", 25), "1970-01-02T01:00Z");
  assert.equal(epochLabel("1d", 1), "1970-01-02");
  assert.equal(epochLabel("once", 0), "once");
});

test("another length is refused by name", () => {
  assert.throws(() => epochOf("2d", 0), InvalidParameterError);
  assert.throws(() => epochOf("2d", 0), /^HearsayError: every=2d: must be one of/);
});
