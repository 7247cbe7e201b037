/** Counts by reason, and what a developer reads. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as errors from "../../src/core/errors.js";
import { REASONS } from "../../src/core/reasons.js";
import { type Log, reasonOf, Stats } from "../../src/core/stats.js";

function logTo(lines: string[]): Log {
  return { debug: (line) => lines.push(`debug ${line}`), warn: (line) => lines.push(`warn ${line}`) };
}

test("every reason is there from the beginning, once", () => {
  const counts = new Stats().counts();

  assert.deepEqual(Object.keys(counts), [...REASONS]);
  assert.equal(new Set(REASONS).size, REASONS.length);
  assert.ok(Object.values(counts).every((count) => count === 0));
});

test("an error is counted under its reason, another one as internal", () => {
  const stats = new Stats();

  stats.add("recorded", 3);
  stats.fail(new errors.OptedOutError("no"));
  stats.fail(new errors.StoreError("full"), 2);
  stats.fail(new TypeError("secret"));

  const { recorded, opted_out, store, internal } = stats.counts();
  assert.deepEqual([recorded, opted_out, store, internal], [3, 1, 2, 1]);
});

test("every error is a HearsayError whose reason is known", () => {
  for (const kind of Object.values(errors)) {
    const error = new (kind as new (...parts: string[]) => errors.HearsayError)("a", "b", "c");

    assert.ok(error instanceof errors.HearsayError);
    assert.ok(REASONS.includes(reasonOf(error)));
  }
});

test("the first failure of a kind is logged, and never the text of a foreign error", () => {
  const lines: string[] = [];
  const stats = new Stats(logTo(lines));

  for (let i = 0; i < 3; i++) stats.fail(new TypeError("dark"));
  stats.fail(new errors.InvalidValueError("theme", "must be one of the items"));
  stats.fail(new errors.UnknownMetricError("dark"));

  assert.deepEqual(lines, [
    "debug hearsay: internal: TypeError",
    "debug hearsay: invalid_value: theme: must be one of the items",
    "debug hearsay: unknown_metric: the registry has no metric of that name",
  ]);
});

test("of a foreign error that was given a name, its kind is logged", () => {
  const lines: string[] = [];
  const named = Object.assign(new RangeError("dark"), { name: "dark" });

  for (const thrown of [named, Object.assign(new Error("dark"), { name: "dark" }), "dark"]) {
    new Stats(logTo(lines)).fail(thrown);
  }

  const rules = ["RangeError", "object", "string"];
  assert.deepEqual(lines, rules.map((rule) => `debug hearsay: internal: ${rule}`));
});

test("a developer is warned once of each thing, and a log that throws stops nothing", () => {
  const lines: string[] = [];
  const stats = new Stats(logTo(lines));
  const broken = new Stats({ debug: () => assert.fail(), warn: () => assert.fail() });

  for (const target of [stats, stats, broken]) target.fail(new errors.ExpiredMetricError("theme", "2026-01-01"));

  assert.equal(lines.filter((line) => line.startsWith("warn")).length, 1);
  assert.equal(broken.counts().expired, 1);
});
