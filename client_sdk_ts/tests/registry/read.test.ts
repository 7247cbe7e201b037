/** A compiled registry is read whole, or refused by the name of its field. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { RegistryError } from "../../src/core/errors.js";
import { allTypes } from "../../src/all.js";
import { readRegistry } from "../../src/registry/read.js";
import { type Json, documentOf, entryOf, problemsOf, sealed, textOf, withChecksum } from "../support/compiled.js";

const TEXT = textOf("every_type");
/** What is not of any kind that a key of these may have. */
const OTHER_KINDS = [null, true, 1.5, -1, "", "\u202e", [], [1], { a: 1 }];
const MAY_BE_NULL = new Set(["retire_key", "panel_week", "seats", "epsilon_permanent", "need", "aggregate", "otherwise"]);

test("the text of a registry and its JSON say the same", () => {
  const [ofText, ofJson] = [readRegistry(TEXT, allTypes), readRegistry(JSON.parse(TEXT), allTypes)];

  assert.deepEqual([...ofText.metrics.keys()], [...ofJson.metrics.keys()]);
  assert.equal(ofText.metrics.size, documentOf("every_type")["metrics"].length);
  assert.deepEqual(ofText.segments["automation"], ["people", "automated"]);
  assert.equal(ofText.caps["week"], "8");
});

test("a metric has what its entry says", () => {
  const runs = readRegistry(TEXT, allTypes).metrics.get("runs")!;

  assert.deepEqual(runs.channel.constants["scale"], { numerator: 21n, denominator: 1n });
  assert.deepEqual(runs.otherwise, { kind: "position", position: { numerator: 5n, denominator: 1n } });
  assert.deepEqual(runs.spent, { report: 1_000_000_000, value: null, delta: 0 });
  assert.equal(runs.lastDay, Date.UTC(2099, 11, 31) / 86_400_000);
  assert.equal(readRegistry(TEXT, allTypes).metrics.get("kept")!.channel.parameters["kept"], 0x6be21d5e91b1aa4f1ff015090da4c2edn);
});

test("a file that keeps its app apart says so by true, and its digests are of the app", () => {
  const document = documentOf("every_type");

  assert.deepEqual(problemsOf(withChecksum({ ...document, separate: false })), ["separate: must be true, or absent"]);
  const problems = problemsOf(withChecksum({ ...document, separate: true }));
  assert.equal(problems.length, document["metrics"].length);
  assert.ok(problems.every((line) => line.endsWith(".digest: must match what the metric means")));
});

test("the seats of a panel are exact", () => {
  const registry = readRegistry(textOf("panel"), allTypes);
  const seats = Object.values(registry.seats!);

  assert.equal(registry.panelWeek, 8_000_000_000);
  assert.equal(seats.length, 9);
  for (const [low, high, lasts] of seats) {
    assert.ok(low < high && high <= 2n ** 64n && low % 2n ** 32n === 0n);
    assert.ok(lasts === "life" || lasts === "7d");
  }
});

test("a file without one of its keys is refused by the name of the key", () => {
  const document = documentOf("every_type");
  for (const key of Object.keys(document)) {
    const { [key]: _, ...rest } = document;

    const problems = problemsOf(key === "checksum" ? rest : withChecksum(rest));

    assert.ok(problems.length > 0 && problems[0]!.startsWith(`${key}: `), `${key}: ${problems.join()}`);
  }
});

test("a metric without one of its keys is refused by the name of the key", () => {
  for (const key of Object.keys(documentOf("every_type")["metrics"][0])) {
    const document = documentOf("every_type");
    delete document["metrics"][0][key];

    const problems = problemsOf(withChecksum(document));

    const place = key === "name" ? "metrics.0" : "metrics.dark";
    assert.deepEqual(problems, [`${place}.${key}: is missing`]);
  }
});

test("a key of another kind is refused by its name", () => {
  for (const key of Object.keys(small()).filter((each) => each !== "checksum")) {
    for (const value of OTHER_KINDS) {
      const document: Json = { ...small(), [key]: value };
      if (isOfItsKind(key, value)) continue;

      const problems = problemsOf(Number.isInteger(value) || typeof value !== "number" ? withChecksum(document) : document);

      const isNamed = problems.every((line) => line.startsWith(`${key}:`) || line.startsWith("metrics."));
      assert.ok(problems.length > 0 && isNamed, `${key}=${JSON.stringify(value)}: ${problems.join()}`);
    }
  }
});

test("a key of a metric of another kind is refused by its name", () => {
  for (const key of Object.keys(small()["metrics"][0])) {
    for (const value of OTHER_KINDS) {
      const document = small();
      document["metrics"][0][key] = value;
      if (isOfItsKind(key, value)) continue;

      const isJson = Number.isInteger(value) || typeof value !== "number";
      const problems = problemsOf(isJson ? (key === "digest" ? withChecksum : sealed)(document) : document);

      const isNamed = problems.every((line) => /^metrics\.(dark|\?|0)?\.|^registry: /.test(line));
      assert.ok(problems.length > 0 && isNamed, `${key}=${JSON.stringify(value)}: ${problems.join()}`);
    }
  }
});

/** Returns the document of one metric. */
function small(): Json {
  const document = documentOf("every_type");
  return { ...document, metrics: document["metrics"].slice(0, 1) };
}

/** Whether a value is one that the key may have. */
function isOfItsKind(key: string, value: unknown): boolean {
  if (value === null) return MAY_BE_NULL.has(key);
  if (key === "segments") return Array.isArray(value) && value.length === 0;
  return (["notice", "explanation"].includes(key) && typeof value === "string") || (["robust", "panel"].includes(key) && value === true);
}

test("another version is refused, and told what to do", () => {
  for (const version of [0, 2, "1", true, null]) {
    const problems = problemsOf(withChecksum({ ...documentOf("every_type"), hearsay_registry: version }));

    assert.deepEqual(problems, ["hearsay_registry: must be 1: compile the registry with this version of Hearsay"]);
  }
});

test("an edit without its checksum is refused, whatever it is of", () => {
  const edits: ((document: Json) => void)[] = [
    (document) => (document["notice"] += " "),
    (document) => (entryOf(document, "plan")["constants"].truth = "f".repeat(32)),
    (document) => (entryOf(document, "plan")["spent"].report -= 1),
    (document) => (entryOf(document, "plan")["title"] = "Dork mode"),
    (document) => document["metrics"].reverse(),
    (document) => (document["checksum"] = "0".repeat(64)),
  ];
  for (const edit of edits) {
    const document = documentOf("every_type");
    edit(document);

    assert.deepEqual(problemsOf(document), ["checksum: must match the file, which was edited: compile again"]);
  }
});

test("an edit that its checksum hides is refused where its digest tells of it, or its kind", () => {
  const cases: [string, string, unknown, RegExp][] = [
    ["plan", "epsilon", "2", /^metrics\.plan\.digest: must match/],
    ["plan", "every", "1d", /^metrics\.plan\.digest: /],
    ["plan", "domain", { values: ["free", "pro"] }, /^metrics\.plan\.digest: /],
    ["plan", "domain_size", 4, /^metrics\.plan\.domain_size: must be 3$/],
    ["plan", "mechanism", { name: "oue" }, /^metrics\.plan\.digest: /],
    ["plan", "mechanism", { name: "grr", order: -1 }, /^metrics\.plan\.mechanism\.order: /],
    ["kept", "mechanism", { name: "grr", kept: "0x1" }, /^metrics\.kept\.digest: /],
    ["kept", "mechanism", { name: "grr", kept: "0xG" }, /^metrics\.kept\.mechanism\.kept: must be a whole number/],
    ["plan", "constants", { truth: "5" }, /^metrics\.plan\.constants\.truth: must be 32 hexadecimal/],
    ["plan", "constants", { truth: "1/0" }, /^metrics\.plan\.constants\.truth: must be 32 hexadecimal/],
    ["plan", "constants", { truth: 1 }, /^metrics\.plan\.constants\.truth: /],
    ["plan", "spent", { report: 1, value: null }, /^metrics\.plan\.spent\.delta: is missing/],
    ["plan", "spent", { report: 1, value: null, delta: 0, of: 1 }, /^metrics\.plan\.spent\.of: is not a known key/],
    ["plan", "segments", ["platform", "arm"], /^metrics\.plan\.segments: must be dimensions of the file/],
    ["plan", "expires", "2027-02-30", /^metrics\.plan\.expires: must be a date/],
    ["plan", "expires", "2027-2-3", /^metrics\.plan\.expires: must be a date/],
    ["plan", "min_reports", 99, /^metrics\.plan\.min_reports: /],
    ["plan", "otherwise", { value: "pro", encoded: 1 }, /^metrics\.plan\.digest: /],
    ["runs", "otherwise", { value: "5/2" }, /^metrics\.runs\.otherwise: must be value and encoded/],
    ["kit", "otherwise", { value: ["a", "c"], encoded: [0, 3] }, /^metrics\.kit\.otherwise: /],
    ["spare", "otherwise", { value: { chess: "-10", video: "5/2" }, encoded: [[0, "2/"]] }, /^metrics\.spare\.otherwise: /],
    ["words", "otherwise", { value: "ab", encoded: "61zz" }, /^metrics\.words\.otherwise: /],
    ["words", "otherwise", { value: "ab", encoded: "61".repeat(9) }, /^metrics\.words\.otherwise: /],
  ];
  for (const [name, key, value, line] of cases) {
    const document = documentOf("every_type");
    entryOf(document, name)[key] = value;

    const problems = problemsOf(withChecksum(document));

    assert.equal(problems.length, 1, `${name}.${key}`);
    assert.match(problems[0]!, line);
  }
});

test("a domain that says nothing, or something else, is refused although digest and checksum are its own", () => {
  const cases: [string, string, Json | unknown, string][] = [
    ["plan", "domain", { values: ["free"] }, "domain.values"],
    ["plan", "domain", { values: ["free", "free"] }, "domain.values"],
    ["plan", "domain", { values: ["free", "a\u202eb"] }, "domain.values"],
    ["plan", "domain", { values: ["free", "\ud800"] }, "domain.values"],
    ["plan", "domain", { values: ["free", ""] }, "domain.values"],
    ["plan", "domain", { values: ["free", 1] }, "domain.values"],
    ["plan", "domain", { values: "free pro" }, "domain.values"],
    ["plan", "domain", { values: ["free", "pro"], more: 1 }, "domain: must hold"],
    ["theme", "domain", { values: ["free", "pro"], other: "else" }, "domain.other"],
    ["shop", "domain", { values: ["none", "cart"] }, "domain.values"],
    ["back", "domain", { periods: [..."123456789"] }, "domain.periods"],
    ["search", "domain", { length: 0 }, "domain.length"],
    ["search", "domain", { length: "8" }, "domain.length"],
    ["took", "domain", { min: "0", max: "10", step: "3", unit: "s" }, "domain.step"],
    ["took", "domain", { min: "0", max: "10", step: "0", unit: "s" }, "domain.step"],
    ["took", "domain", { min: "0", max: "10", step: "-1", unit: "s" }, "domain.step"],
    ["took", "domain", { min: "10", max: "0", step: "1", unit: "s" }, "domain.max"],
    ["took", "domain", { min: "1/0", max: "2", step: "1", unit: "s" }, "domain.min"],
    ["took", "domain", { min: 0, max: "2", step: "1", unit: "s" }, "domain.min"],
    ["took", "domain", { min: `1${"0".repeat(400)}`, max: "2", step: "1", unit: "s" }, "domain.min"],
    ["person", "domain", { parts: [["sex", ["f", "m"]]] }, "domain.parts"],
    ["person", "domain", { parts: [["sex", ["f", "m"]], ["sex", ["a", "b"]]] }, "domain.parts"],
    ["person", "domain", { parts: { sex: ["f", "m"], age: ["a", "b"] } }, "domain.parts"],
    ["place", "domain", { min: ["0", "0"], max: ["1"], cells: [2, 2] }, "domain.max"],
    ["place", "domain", { min: ["0", "0"], max: ["1", "0"], cells: [2, 2] }, "domain.max"],
    ["place", "domain", { min: ["0", "0"], max: ["1", "1"], cells: [1, 0] }, "domain.cells"],
    ["place", "domain", { min: ["0", "0"], max: ["1", "1"], cells: [4096, 2] }, "domain_size"],
    ["plan", "type", "taste", "type=taste: has no type in TypeScript"],
    ["plan", "type", "toString", "type=toString: has no type in TypeScript"],
    ["search", "longitudinal", "permanent", "longitudinal"],
    ["crashed", "aggregate", "sum", "aggregate"],
    ["crashed", "aggregate", null, "aggregate"],
  ];
  for (const [name, key, value, place] of cases) {
    const document = documentOf("every_type");
    entryOf(document, name)[key] = value;

    const problems = problemsOf(sealed(document));

    assert.equal(problems.length, 1, `${name}.${key} ${JSON.stringify(value)}`);
    assert.ok(problems[0]!.startsWith(`metrics.${name}.${place}`), problems[0]);
  }
});

test("every problem of a file is told at once", () => {
  const document = documentOf("every_type");
  entryOf(document, "dark")["title"] = "";
  entryOf(document, "plan")["weight"] = 0;
  entryOf(document, "plan")["colour"] = "red";

  assert.deepEqual(
    problemsOf(withChecksum(document)).map((line) => line.split(":")[0]),
    ["metrics.dark.title", "metrics.plan.colour", "metrics.plan.weight"],
  );
});

test("two metrics of one name, and seats of other metrics, are refused", () => {
  const twice = documentOf("every_type");
  twice["metrics"].push(twice["metrics"][0]);
  const seats = documentOf("panel");
  delete seats["seats"][entryOf(seats, "kept")["digest"]];
  const none = { ...documentOf("panel"), seats: null };
  const anew = documentOf("panel");
  anew["seats"][entryOf(anew, "kept")["digest"]][2] = "7d";
  const week = { ...documentOf("every_type"), panel_week: 1 };

  assert.deepEqual(problemsOf(withChecksum(twice)), ["metrics.dark: stands twice, by its name or digest"]);
  for (const document of [seats, none, anew, week]) {
    assert.deepEqual(problemsOf(withChecksum(document)), ["seats: must be of the metrics of the panel alone, for life if a metric keeps its responses, and only then"]);
  }
});

test("keys that every object of JavaScript has are keys like others", () => {
  for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
    const top = JSON.parse(TEXT.replace("{", `{"${key}": {"polluted": 1},`)) as Json;
    const inner = JSON.parse(JSON.stringify(documentOf("every_type")).replace('{"name":"dark"', `{"${key}":1,"name":"dark"`)) as Json;
    const segments = JSON.parse(TEXT.replace('"segments": {', `"segments": {"${key}": ["a", "b"],`)) as Json;
    const parameters = JSON.parse(TEXT.replace('"name": "grr"', `"name": "grr", "${key}": 1`)) as Json;

    assert.deepEqual(problemsOf(sealed(top)), [`${key}: is not a known key`]);
    assert.deepEqual(problemsOf(sealed(inner)), [`metrics.dark.${key}: is not a known key`]);
    assert.deepEqual(readRegistry(sealed(segments), allTypes).segments[key], ["a", "b"]);
    assert.equal(readRegistry(TEXT, allTypes).segments[key], undefined);
    assert.equal(problemsOf(withChecksum(parameters))[0]?.split(":")[0], "metrics.dark.digest");
  }
  assert.equal(({} as Json)["polluted"], undefined);
});

test("what is no registry is refused, whatever it is", () => {
  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  const circle: Json = documentOf("every_type");
  circle["caps"] = { circle };
  const texts = ["", "{", "{}", "[]", "null", "1", '{"hearsay_registry": 1.5}', '{"hearsay_registry": NaN}', '{"hearsay_registry": 1}', deep];
  const nested = TEXT.replace('"seats": null', `"seats": ${"[".repeat(50_000)}${"]".repeat(50_000)}`);
  for (const source of [...texts, nested, circle, undefined, null, 1, [], () => 1, new Map(), Symbol("a"), JSON.parse(deep)]) {
    const problems = problemsOf(source);

    assert.ok(problems.length > 0);
    assert.ok(problems.join().length < 2_000);
  }
});

test("a file of five megabytes is refused before it is parsed, and as an object", () => {
  const document = { ...documentOf("every_type"), notice: "a".repeat(5_000_000) };

  for (const source of [JSON.stringify(document), document]) {
    assert.deepEqual(problemsOf(source), ["registry: must have at most 4194304 characters"]);
  }
});

test("a file that ends anywhere is refused", () => {
  const whole = TEXT.trimEnd();
  for (let i = 1; i < 200; i++) {
    assert.throws(() => readRegistry(whole.slice(0, Math.floor((whole.length * i) / 200)), allTypes), RegistryError);
  }
});
