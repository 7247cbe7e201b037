/** Fractions are exact, in lowest terms, and round as Python's do. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { clamp, exactly, isBelow, minus, over, plus, ratio, rounded, times, ZERO } from "../../src/core/fractions.js";
import type { Ratio } from "../../src/core/randomness.js";

const text = ({ numerator, denominator }: Ratio): string => `${numerator}/${denominator}`;

test("a number is taken as what it is", () => {
  const cases: [number | bigint, string][] = [
    [0, "0/1"],
    [-0, "0/1"],
    [7n, "7/1"],
    [-2.5, "-5/2"],
    [0.1, `3602879701896397/${2n ** 55n}`],
    [5e-324, `1/${2n ** 1074n}`],
    [-2.2250738585072014e-308, `-1/${2n ** 1022n}`],
    [2.225073858507201e-308, `${2n ** 52n - 1n}/${2n ** 1074n}`],
    [Number.MAX_VALUE, `${(2n ** 53n - 1n) * 2n ** 971n}/1`],
    [2 ** 52 - 0.5, `${2n ** 53n - 1n}/2`],
  ];
  for (const [number, expected] of cases) assert.equal(text(exactly(number)), expected);
});

test("a fraction and its number are the same, whatever its digits are", () => {
  for (let bits = 1, i = 0; i < 2_000; i++, bits = (bits * 48_271) % 0x7fffffff) {
    const number = (bits / 2 ** (i % 1_040)) * (i % 2 ? 1 : -1);
    const { numerator, denominator } = exactly(number);

    assert.equal(numerator % 2n === 0n && denominator > 1n, false);
    assert.equal(denominator & (denominator - 1n), 0n);
    assert.deepEqual(exactly(number * 2), times(exactly(number), exactly(2)));
    if (denominator < 2n ** 1_000n) assert.ok(Number(numerator) / Number(denominator) === number);
  }
});

test("sums, differences, products and quotients are in lowest terms", () => {
  const [half, third] = [ratio(2n, 4n), ratio(-3n, -9n)];

  assert.deepEqual([plus, minus, times, over].map((make) => text(make(half, third))), ["5/6", "1/6", "1/6", "3/2"]);
  assert.equal(text(over(half, ratio(-1n, 3n))), "-3/2");
  assert.equal(isBelow(third, half) && !isBelow(half, half) && !isBelow(half, third), true);
  assert.deepEqual([ratio(-1n), third, ratio(9n)].map((number) => text(clamp(number, ZERO, half))), ["0/1", "1/3", "1/2"]);
});

test("the nearest whole number of two is the even one", () => {
  const halves = [-5n, -3n, -1n, 1n, 3n, 5n].map((odd) => rounded(ratio(odd, 2n)));

  assert.deepEqual(halves, [-2n, -2n, 0n, 0n, 2n, 2n]);
  assert.deepEqual([ratio(-7n, 4n), ratio(-5n, 4n), ratio(4n, 3n), ratio(5n, 3n), ratio(-6n)].map(rounded), [-2n, -1n, 1n, 2n, -6n]);
});
