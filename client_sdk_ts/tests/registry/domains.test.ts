/** Values of JavaScript become exactly what mechanisms take, or are refused without being shown. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidValueError } from "../../src/core/errors.js";
import type { Encoded } from "../../src/mechanisms/mechanism.js";
import { allTypes } from "../../src/all.js";
import { readRegistry } from "../../src/registry/read.js";
import { textOf } from "../support/compiled.js";

const REGISTRY = readRegistry(textOf("every_type"), allTypes);

function encode(name: string, value: unknown): Encoded {
  return REGISTRY.metrics.get(name)!.encode(value);
}

/** Returns an item, items, or a position as a text, whichever it is. */
function short(encoded: Encoded): unknown {
  const text = (at: { numerator: bigint; denominator: bigint }): string => `${at.numerator}/${at.denominator}`;
  switch (encoded.kind) {
    case "item":
      return Number(encoded.item);
    case "set":
      return encoded.items.map(Number);
    case "bytes":
      return Buffer.from(encoded.bytes).toString("hex");
    case "position":
      return text(encoded.position);
    case "pairs":
      return encoded.pairs.map(([key, at]) => [Number(key), text(at)]);
  }
}

const TAKEN: readonly (readonly [metric: string, value: unknown, encoded: unknown])[] = [
  ["dark", false, 0],
  ["dark", true, 1],
  ["plan", "team", 2],
  ["theme", "pro", 1],
  ["theme", "none of them", 3],
  ["theme", "else", 3],
  ["theme", "\ud800", 3],
  ["opens", 0, "0/1"],
  ["opens", -1, "0/1"],
  ["opens", 1e300, "100/1"],
  ["opens", 10n ** 400n, "100/1"],
  ["opens", 15, "3/2"],
  ["opens", 5e-324, `1/${10n * 2n ** 1074n}`],
  ["took", 0.1, `${0x1999999999999an / 2n}/${2n ** 54n}`],
  ["took", -0, "0/1"],
  ["took", 10.5, "21/1"],
  ["tools", [], []],
  ["tools", ["c", "a", "c"], [0, 2]],
  ["tools", new Set(["b"]), [1]],
  ["fonts", ["z", "a"], [0, 2]],
  ["shop", null, 0],
  ["shop", "none", 0],
  ["shop", "paid", 3],
  ["back", [], 0],
  ["back", ["week 0"], 8],
  ["back", new Set(["week 3", "week 1"]), 5],
  ["person", { sex: "male", income: "middle" }, 4],
  ["person", new Map([["income", "high"], ["sex", "female"]]), 2],
  ["place", [-10, 45.5], 0],
  ["place", [30, 47.5], 7],
  ["place", [-1000, 46.5], 4],
  ["place", [0, 46.499], 1],
  ["hours", {}, []],
  ["hours", { chess: 10, video: -11 }, [[0, "0/1"], [2, "1/2"]]],
  ["hours", new Map([["music", 30n]]), [[1, "1/1"]]],
  ["hours", Object.assign(Object.create(null), { music: 30 }), [[1, "1/1"]]],
  ["search", "", ""],
  ["search", "abcdefghij", "6162636465666768"],
  ["search", "äöüäö", "c3a4c3b6c3bcc3a4"],
  ["search", "aäöüä", "61c3a4c3b6c3bc"],
  ["search", "😀😀😀", "f09f9880f09f9880"],
  ["search", "aaaaaa😀b", "616161616161"],
];

test("a value becomes what its mechanism takes", () => {
  for (const [metric, value, encoded] of TAKEN) {
    assert.deepEqual(short(encode(metric, value)), encoded, metric);
  }
});

const SECRET = "canary-7c1f9e52";
const STRANGE: readonly unknown[] = [
  undefined, NaN, Infinity, -Infinity, Symbol(SECRET), () => SECRET, new Date(0), /a/, new Error(SECRET), new Boolean(true),
  new Number(1), new String("free"), new WeakMap(), Promise.resolve(1), new Proxy([], {}), Object.create({ sex: "male" }),
  { [SECRET]: 1 }, [SECRET], new Set([SECRET]), new Map([[SECRET, 1]]), { sex: "male" }, [1, 2, 3], [NaN, 1], ["1", "2"],
  { chess: "1" }, { chess: NaN }, { chess: null }, new Map([[{}, 1]]), "\ud800", "\udfff", `aaaaaaa\ud83d`,
  JSON.parse('{"__proto__": {"chess": 1}}'), [, "a"], new Uint8Array(2),
];

test("what a metric does not take is refused, by the metric and never by the value", () => {
  let refusals = 0;
  for (const metric of REGISTRY.metrics.values()) {
    for (const value of STRANGE) {
      try {
        metric.encode(value);
      } catch (error) {
        refusals++;
        assert.ok(error instanceof InvalidValueError, String(error));
        assert.ok(error.what === metric.name || error.what.startsWith(`${metric.name}, `));
        assert.ok(!error.message.includes(SECRET) && !error.message.includes("canary"), error.message);
      }
    }
  }
  assert.ok(refusals > (REGISTRY.metrics.size * STRANGE.length) / 2);
});

const REFUSED: readonly (readonly [metric: string, value: unknown, what: string])[] = [
  ["dark", 1, "dark: takes true or false"],
  ["plan", "Free", "plan: takes one of its 3 registered values"],
  ["plan", "free ", "plan: takes one of its 3 registered values"],
  ["theme", 1, "theme: takes a text"],
  ["took", "1", "took: takes a number"],
  ["took", true, "took: takes a number"],
  ["took", NaN, "took: takes a finite number"],
  ["shop", undefined, "shop: takes one of its 4 registered values"],
  ["tools", "abc", "tools: takes a list or Set of its 3 registered values"],
  ["fonts", ["a", 1], "fonts: takes a list or Set of texts"],
  ["person", { sex: "male", income: "huge" }, "person, income: takes one of its 3 registered values"],
  ["person", { sex: "male", income: "low", age: 1 }, "person: takes an object or Map of sex and income to a registered value of each"],
  ["place", [1, NaN], "place, latitude: takes a finite number"],
  ["place", [1], "place: takes a pair of longitude and latitude, in degrees"],
  ["hours", { tv: 1 }, "hours, key: takes one of its 3 registered values"],
  ["hours", { chess: "1" }, "hours, number: takes a number"],
  ["hours", new Date(0), "hours: takes an object or Map of its 3 registered keys to numbers"],
  ["search", "aaaaaaaa\ud800", "search: takes a text without lone surrogates"],
];

test("a refusal says what the metric takes", () => {
  for (const [metric, value, message] of REFUSED) assert.throws(() => encode(metric, value), { message });
});

test("a lone surrogate far beyond what counts is not looked at", () => {
  assert.equal(short(encode("search", "aaaaaaaaa\ud800")), "6161616161616161");
});
