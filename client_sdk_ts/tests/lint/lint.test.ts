/** Our ESLint rules: the package keeps to them, and each planted bug breaks one. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { ESLint } from "eslint";

const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

/** Each by itself at the end of a file; `r`, `n` and `p` are as in that file. */
const RANDOM_BUGS = [
  "Math.random();",
  "const { random } = Math; random();",
  "const m = Math; m.random();",
  "Math[\"random\"]();",
  "const name = \"random\"; Math[name]();",
  "globalThis.Math.random();",
  "(globalThis as any)[\"Math\"].random();",
  "[1].map(Math.random);",
  "/* eslint-disable */ Math.random();",
];
const EXACT_BUGS = [
  "Math.floor(4.0);",
  "Number(r.uniform(1n << 53n)) / 2 === 0;",
  "Number(r.uniform(n)) < Number(p.numerator);",
  "const x = Number(r.uniform(n)); x === 0;",
  "[0].length * 5;",
  "0.25;",
  "let x: any = 1n; x += 1;",
  "const f = (x: any) => x * n; f(n);",
  "const f = (x: bigint | number) => -x; f(n);",
  "for (let i = 0; i !== 3; i++) r.uniform(n);",
  "new Float64Array(1);",
  "new DataView(new ArrayBuffer(8)).getFloat64(0);",
  "parseInt(\"1\");",
  "Number.parseFloat(\"1\");",
  "BigInt(Date.now());",
  "n ** 2n;",
  "crypto.getRandomValues(new Uint8Array(1));",
  "void import(\"../core/epoch.js\");",
  "/* eslint-disable */ 1 / 3;",
];

test("the package keeps to its rules", async () => {
  const results = await new ESLint({ cwd: PACKAGE }).lintFiles(["src"]);

  assert.ok(results.length > 30);
  assert.deepEqual(results.flatMap(({ filePath, messages }) => messages.map(({ line, message }) => `${filePath}:${line} ${message}`)), []);
});

/** Returns which of `bugs` break the rule, planted together in a file of the package, a line each. */
async function caught(file: string, rule: string, bugs: readonly string[]): Promise<string[]> {
  const filePath = `${PACKAGE}src/${file}`;
  const source = readFileSync(filePath, "utf8");
  const types = "r: import(\"../core/randomness.js\").Randomness, n: bigint, p: import(\"../core/randomness.js\").Ratio";
  const planted = bugs.map((bug, i) => `export function planted${i}(${types}): void { ${bug} void [r, n, p]; }`);

  const [result] = await new ESLint({ cwd: PACKAGE }).lintText([source.trimEnd(), ...planted].join("\n"), { filePath });

  const first = source.trimEnd().split("\n").length + 1;
  const lines = new Set(result!.messages.filter(({ ruleId }) => ruleId === `hearsay/${rule}`).map(({ line }) => line));
  return bugs.filter((_, i) => lines.has(first + i));
}

test("every planted bug breaks its rule", async () => {
  assert.deepEqual(await caught("core/epoch.ts", "random", RANDOM_BUGS), RANDOM_BUGS);
  assert.deepEqual(await caught("core/exact.ts", "exact", EXACT_BUGS), EXACT_BUGS);
});

test("the rule of exact numbers holds where chances are drawn, and right code passes it", async () => {
  const right = ["const i = [1, 2][Number(n)]; void i;", "n * 2n < p.numerator;", "[1].length === 1;", "~5 & 3;"];

  for (const file of ["core/randomness.ts", "mechanisms/pem.ts", "mechanisms/grr.ts"]) {
    assert.deepEqual(await caught(file, "exact", [...right, "1 / 3;"]), ["1 / 3;"], file);
  }
  assert.deepEqual(await caught("core/epoch.ts", "exact", ["1 / 3;"]), []);
});
