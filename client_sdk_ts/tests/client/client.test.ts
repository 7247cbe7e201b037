/** Laws of the client: what is refused at once, and that nothing else is ever thrown or kept alive. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { type ClientOptions, InvalidParameterError, memoryStore, noOptOuts, type Part, type Transport } from "../../src/index.js";
import { everything, allTypes } from "../../src/all.js";
import { grr } from "../../src/mechanisms/grr.js";
import { Client } from "../../src/node.js";
import { documentOf, type Json, withChecksum } from "../support/compiled.js";
import { registryOf } from "./support.js";

const EVERY_TYPE: unknown = JSON.parse(readFileSync(new URL("../../../tests/data/every_type.json", import.meta.url), "utf8"));

const options = (more: Partial<ClientOptions> = {}): ClientOptions => ({
  endpoint: "https://collector.example",
  writeKey: "key",
  registry: EVERY_TYPE,
  mechanisms: everything,
  consent: "granted",
  store: memoryStore(),
  optOuts: noOptOuts,
  ...more,
});

test("a mechanism that was not given is named with its import", () => {
  assert.throws(() => new Client(options({ mechanisms: everything.filter((each) => !("randomize" in each) || each === grr) })), /import \{ \w+ \} from "hearsay-telemetry\/mechanisms\/\w+"/);
});

test("a part that the registry needs and that was not given is named with its import", () => {
  const document = documentOf("every_type");
  const isPlain = (metric: Json): boolean => metric["aggregate"] === null && metric["longitudinal"] === "fresh";
  const only = (keep: (metric: Json) => boolean, more: Json = {}): unknown => withChecksum({ ...document, ...more, metrics: document["metrics"].filter(keep) });
  const needs: [part: Part["name"], registry: unknown][] = [
    ["aggregates", only((metric) => metric["longitudinal"] === "fresh")],
    ["permanent", only((metric) => metric["aggregate"] === null)],
    ["retirement", only(isPlain, { retire_key: "0".repeat(64) })],
    ["panel", documentOf("panel")],
  ];
  for (const [part, registry] of needs) {
    const mechanisms = everything.filter(({ name }) => name !== part);

    assert.throws(() => new Client(options({ registry, mechanisms })), {
      message: `part=${part}: is not in mechanisms; import { ${part} } from "hearsay-telemetry/parts/${part}" and add it`,
    });
    assert.ok(new Client(options({ registry })).registry);
  }
  assert.ok(new Client(options({ registry: only(isPlain), mechanisms: everything.filter((each) => "randomize" in each || "domain" in each) })).registry);
});

test("a type of values that the registry has and that was not given is named with its import", () => {
  for (const { name } of allTypes) {
    const mechanisms = everything.filter((each) => each.name !== name);

    assert.throws(() => new Client(options({ mechanisms })), {
      message: `type=${name}: is not in mechanisms; import { ${name} } from "hearsay-telemetry/types/${name}" and add it`,
    });
  }
  assert.ok(new Client(options({ registry: registryOf("dark", "plan"), mechanisms: everything.filter((each) => !("domain" in each)) })));
});

test("types and parts are imported from the package by their names", async () => {
  for (const each of everything.filter((given) => !("randomize" in given))) {
    const module = (await import(`hearsay-telemetry/${"domain" in each ? "types" : "parts"}/${each.name}`)) as Record<string, { name: string }>;

    assert.equal(module[each.name]?.name, each.name);
  }
});

test("wrong options are refused at once, and no secret is shown", () => {
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ consent: true }, /consent=true/],
    [{ store: "local" }, /store=string/],
    [{ endpoint: "http://collector.example" }, /endpoint=/],
    [{ writeKey: "a secret\n" }, /writeKey=\(hidden\)/],
    [{ caps: { week: "0" } }, /caps\.week=0/],
    [{ segment: { edition: "none" } }, /segment\.edition/],
    [{ registry: {} }, /hearsay_registry/],
  ];
  for (const [more, message] of wrong) assert.throws(() => new Client(options(more as Partial<ClientOptions>)), message);
});

/** Values that defend themselves. */
const hostile = (): unknown[] => {
  const thrower = (): never => {
    throw new Error("secret");
  };
  const throwing = new Proxy({}, { get: thrower, has: thrower, ownKeys: thrower, getPrototypeOf: thrower, getOwnPropertyDescriptor: thrower });
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  return [
    throwing, new Proxy([], { get: thrower }), new Proxy([], { get: (): never => { throw { what: Object.create(null) }; } }), { get length(): never { return thrower(); } }, { toString: thrower, valueOf: thrower },
    Symbol("secret"), 10n ** 400n, -1n, "x".repeat(1 << 22), "\ud800", NaN, Infinity, -Infinity, -0, 5e-324, 1.7e308,
    null, undefined, cyclic, new Map(), new Set([1]), new Date(NaN), () => 1, [throwing], { a: throwing }, Object.create(null),
    new Array(2 ** 32 - 1), new Uint8Array(3),
  ];
};

test("no value and no name throws, rejects, or is counted but once", async () => {
  const rejections: unknown[] = [];
  const keep = (reason: unknown): void => void rejections.push(reason);
  process.on("unhandledRejection", keep);
  const lines: string[] = [];
  const log = { debug: (line: string) => void lines.push(line), warn: (line: string) => void lines.push(line) };
  const client = new Client(options({ dryRun: true, log }));
  const names = [...client.registry.metrics.keys()];
  const record = client.record.bind(client) as (name: unknown, value: unknown) => void;
  let calls = 0;
  for (const name of names) for (const value of hostile()) { record(name, value); calls++; }
  for (const value of hostile()) { record(value, 1); calls++; }

  await client.flush();

  const { window_opened: opened, window_closed: closed, uploaded, withheld, ...counts } = client.stats();
  process.off("unhandledRejection", keep);
  assert.deepEqual(rejections, []);
  assert.equal(Object.values(counts).reduce((all, count) => all + count), calls);
  assert.equal(uploaded + closed, 0);
  assert.ok(withheld <= counts.recorded && opened <= counts.aggregated);
  assert.ok(!lines.join().includes("secret"));
});

test("options that nothing would come of are refused, naming them", () => {
  for (const wrong of ["dryrun", "cap", "write_key"]) {
    assert.throws(() => new Client({ ...options({}), [wrong]: true }), new RegExp(`^HearsayError: ${wrong}=...: is no option`));
  }
  const make = Client as unknown as new (options?: unknown) => Client;
  assert.throws(() => new make(), InvalidParameterError);
  assert.throws(() => new make({}), InvalidParameterError);
  assert.throws(() => new make(options({ registry: Buffer.from("{}") })), /registry: must be a compiled registry: its text/);
});

test("a strict client throws what a developer did wrong, and nothing else", async () => {
  const client = new Client(options({ strict: true, dryRun: true }));

  assert.throws(() => client.record("no such metric", 1), /metric=no such metric/);
  await client.setConsent("denied");
  client.record("no such metric", 1);
  assert.equal(client.stats().consent, 1);
});

test("a transport that throws, hangs or answers nonsense harms nobody", async () => {
  const transports: Transport[] = [
    { send: () => { throw new Error("secret"); } },
    { send: () => Promise.reject(new Error("secret")) },
    { send: () => Promise.resolve(undefined as never) },
    { send: () => new Promise(() => undefined) },
    { send: () => Promise.resolve({ status: 202, body: "<html>" }) },
  ];
  for (const transport of transports) {
    const client = new Client(options({ transport }));
    client.record(someBoolean(client), true);

    const delivery = await client.flush(50);

    assert.deepEqual([delivery.complete, delivery.waiting], [false, 1]);
    await client.close(50);
  }
});

const someBoolean = (client: Client): string =>
  [...client.registry.metrics.values()].find(({ type, aggregate, longitudinal }) => type === "boolean" && !aggregate && longitudinal === "fresh")!.name;
