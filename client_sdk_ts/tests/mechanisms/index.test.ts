/** Every mechanism is a file of its own, and can be imported by its name alone. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { allMechanisms } from "../../src/mechanisms/index.js";
import type { Mechanism } from "../../src/mechanisms/mechanism.js";

const SHARED = ["index", "key_value", "longitudinal", "mechanism"];
const FILES = readdirSync(new URL("../../src/mechanisms", import.meta.url)).map((file) => file.replace(/\.js$/, ""));

test("all mechanisms are those of the folder", () => {
  const names = allMechanisms.map(({ name }) => name);

  assert.deepEqual([...names].sort(), FILES.filter((file) => !SHARED.includes(file)).sort());
  assert.equal(new Set(names).size, names.length);
});

test("a mechanism is imported from the package by its name", async () => {
  for (const { name } of allMechanisms) {
    const module = (await import(`hearsay-telemetry/mechanisms/${name}`)) as Record<string, Mechanism>;

    assert.equal(module[name]?.name, name);
  }
});
