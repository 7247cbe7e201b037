/** Our ESLint rules: the package keeps to them, and each planted bug breaks one. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { ESLint } from "eslint";

const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

/** A file of the package, what of it gives way, the bug in its place, and the rule that finds it. */
const BUGS: readonly (readonly [file: string, text: string, bug: string, rule: string])[] = [
  ["mechanisms/grr.ts", "const item = itemOf(\"grr\", channel, value);", "const item = BigInt(Math.floor(Math.random() * 4));", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "bytes.forEach((_, i) => (bytes[i] = 256 * Math.random()));", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "const { random } = Math; bytes[0] = 256 * random();", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "const m = Math; bytes[0] = 256 * m.random();", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "bytes[0] = 256 * Math[\"random\"]();", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "bytes[0] = 256 * globalThis.Math.random();", "random"],
  ["core/entropy.ts", "crypto.getRandomValues(bytes);", "bytes[0] = 256 * (globalThis as any)[\"Math\"].random();", "random"],
  ["core/epoch.ts", "return Math.floor(seconds / DAY);", "return Math.floor(seconds / DAY + Math.random());", "random"],
  ["core/exact.ts", "if (randomness.bernoulli(truth)) return symbol;", "if (Number(randomness.uniform(1n << 53n)) / 2 ** 53 < Number(truth.numerator) / Number(truth.denominator)) return symbol;", "exact"],
  ["core/exact.ts", "if (randomness.bernoulli(truth)) return symbol;", "if (Number(randomness.uniform(truth.denominator)) < Number(truth.numerator)) return symbol;", "exact"],
  ["core/exact.ts", "const shared = gcd(steps, top);", "const shared = BigInt([0].length * 0.5 | 0) || gcd(steps, top);", "exact"],
  ["core/exact.ts", "let v = 0n;", "let v = BigInt(Math.floor(-Math.log(Number(u)))); ", "exact"],
  ["core/exact.ts", "let count = 0n;", "let count: any = 0.25; count += 1;", "exact"],
  ["core/exact.ts", "let odd = true;", "let odd = true; const f = (x: any) => x * d; f(n);", "exact"],
  ["core/exact.ts", "let odd = true;", "let odd = true; const f = (x: bigint | number) => -x; f(n);", "exact"],
  ["core/exact.ts", "let odd = true;", "let odd = true; for (let i = 0; odd && i !== 3; i++) odd = !odd;", "exact"],
  ["core/randomness.ts", "return this.uniform(p.denominator) < p.numerator;", "return new Float64Array(1)[0]! === 0;", "exact"],
  ["core/randomness.ts", "return this.uniform(p.denominator) < p.numerator;", "return new DataView(this.read(8).buffer as ArrayBuffer).getFloat64(0) === 0;", "exact"],
  ["core/randomness.ts", "return this.uniform(p.denominator) < p.numerator;", "return this.uniform(10n ** 3n) < BigInt(Date.now());", "exact"],
  ["mechanisms/pem.ts", "utf8 } from \"../core/bytes.js\";", "utf8 } from \"../core/bytes.js\"; import { dayOf } from \"../core/epoch.js\"; dayOf(1);", "exact"],
  ["core/exact.ts", "product *= base", "product = base ** n", "exact"],
  ["mechanisms/duchi.ts", "return numbered(", "/* eslint-disable */ const x = 1 / 3; if (x) return numbered(", "exact"],
];

test("the package keeps to its rules", async () => {
  const results = await new ESLint({ cwd: PACKAGE }).lintFiles(["src"]);

  assert.ok(results.length > 30);
  assert.deepEqual(results.flatMap(({ filePath, messages }) => messages.map(({ line, message }) => `${filePath}:${line} ${message}`)), []);
});

test("every planted bug breaks its rule", async () => {
  const eslint = new ESLint({ cwd: PACKAGE });
  for (const [file, text, bug, rule] of BUGS) {
    const filePath = `${PACKAGE}src/${file}`;
    const source = readFileSync(filePath, "utf8");
    assert.ok(source.includes(text), `${file} has no ${text}`);

    const [result] = await eslint.lintText(source.replace(text, () => bug), { filePath });

    const rules = result!.messages.map(({ ruleId }) => ruleId);
    assert.ok(rules.includes(`hearsay/${rule}`), `${file}: ${bug} passes: ${JSON.stringify(result!.messages)}`);
  }
});
