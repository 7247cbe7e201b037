/** Laws of the background: what waits is sent by the schedule alone, by one tab at a time, and texts name the caps. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Answer, Client, memoryStore, noOptOuts, type Store } from "../../src/index.js";
import { Client as NodeClient } from "../../src/node.js";
import { DAILY, DAY, FakeClock, FakeCollector, HOUR, options, registryOf, SUM, WEEKLY } from "./support.js";

/** Lets all that is due now be done: stores and transports of these tests take turns of the event loop, and no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets so many times five minutes pass; the clients look as often as their timers would. */
async function pass(clock: FakeClock, times: number, ...clients: Client[]): Promise<void> {
  for (; times; times--) {
    clock.time += HOUR / 12;
    for (const client of clients) client.watch();
    await settle();
  }
}

function device(transport: FakeCollector, clock: FakeClock, more: Parameters<typeof options>[0] = {}): Client {
  return new Client(options({ transport, clock: clock.read, uptime: clock.uptime, ...more }));
}

test("nothing is sent for two hours, one upload within six, and its time is no multiple of anything", async () => {
  const minutes: number[] = [];
  for (let number = 0; number < 12; number++) {
    const [clock, collector] = [new FakeClock(), new FakeCollector()];
    const client = device(collector, clock);
    client.record(DAILY, true);
    await settle();
    let minute = 0;
    for (; !collector.tries.length && minute < 400; minute += 5) {
      clock.time += HOUR / 12;
      client.watch();
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    minutes.push(minute);
  }

  assert.ok(minutes.every((minute) => minute >= 120 && minute <= 365), minutes.join());
  assert.ok(new Set(minutes).size > 3, minutes.join()); // fewer: less likely than 1e-9
});

test("a pass that fell due while nothing ran does not show the start of the application", async () => {
  const [clock, collector, store] = [new FakeClock(), new FakeCollector(), memoryStore()];
  device(collector, clock, { store }).record(DAILY, true);
  await settle();
  clock.time += DAY;
  const later = device(collector, clock, { store });
  later.watch();
  await settle();
  assert.equal(collector.tries.length, 0);
  await pass(clock, 13, later);

  assert.equal(collector.tries.length, 1);
});

test("of many tabs one makes the pass", async () => {
  const [clock, store] = [new FakeClock(), memoryStore()];
  const collector = new FakeCollector();
  const slow = {
    send: async (body: string): Promise<Answer> => {
      await new Promise((resolve) => setImmediate(resolve)); // others could begin meanwhile
      return collector.send(body);
    },
  };
  const tabs = Array.from({ length: 8 }, () => device(collector, clock, { store, transport: slow }));
  tabs[0]!.record(DAILY, true);
  for (const tab of tabs) tab.watch();
  await settle();
  clock.time += 7 * HOUR;
  for (const tab of tabs) tab.watch(); // overdue: each rests
  await settle();
  await pass(clock, 13, ...tabs);

  assert.equal(collector.tries.length, 1);
  assert.equal(tabs.reduce((all, tab) => all + tab.stats().uploaded, 0), 1);
});

test("after a burst of values in one turn, store and opt-outs are looked at as after one value", async () => {
  const looks = async (values: number): Promise<number> => {
    const inner = memoryStore();
    let count = 0;
    const store: Store = {
      ...inner,
      update: (change) => (count++, inner.update(change)),
      read: (look) => (count++, inner.read(look)),
    };
    const optOuts = { ...noOptOuts, saidBy: () => (count++, null) }; // in Node that reads files
    const client = device(new FakeCollector(), new FakeClock(), { registry: registryOf(SUM), store, optOuts });
    for (let value = 0; value < values; value++) client.record(SUM, 1);
    await settle();
    assert.equal(client.stats().aggregated, values);
    return count;
  };

  assert.equal(await looks(10_000), await looks(1));
});

test("a store that fails is counted, and what comes after it is recorded", async () => {
  const inner = memoryStore();
  let broken = true;
  const store = {
    ...inner,
    durable: true,
    update: <T>(change: Parameters<typeof inner.update<T>>[0]): Promise<T> =>
      broken ? Promise.reject(new Error("secret")) : inner.update(change),
  };
  const [clock, collector] = [new FakeClock(), new FakeCollector()];
  const client = device(collector, clock, { store });
  client.record(DAILY, true);
  await client.flush(100);
  broken = false;
  client.record(WEEKLY, "free");
  await client.flush(100);

  const { internal, recorded, uploaded } = client.stats();
  assert.ok(internal > 0);
  assert.deepEqual([recorded, uploaded], [1, 1]);
});

test("a denial that cannot be carried out stops all until it is", async () => {
  const inner = memoryStore();
  let broken = false;
  const store = {
    ...inner,
    update: <T>(change: Parameters<typeof inner.update<T>>[0]): Promise<T> =>
      broken ? Promise.reject(new Error("full")) : inner.update(change),
  };
  const [clock, collector] = [new FakeClock(), new FakeCollector(() => "lose request")];
  const client = device(collector, clock, { store });
  client.record(DAILY, true);
  await client.flush();
  broken = true;
  await client.setConsent("denied");
  await client.setConsent("granted");
  client.record(WEEKLY, "free");
  clock.time += DAY;
  collector.fate = () => undefined;
  await client.flush();

  assert.deepEqual([collector.tries.length, client.stats().recorded], [1, 1]);
  broken = false;
  await client.flush();
  const { recorded, revoked, uploaded } = client.stats();
  assert.deepEqual([collector.reports, recorded, revoked, uploaded], [1, 2, 1, 1]);
  assert.notEqual(collector.tries[0], collector.tries[1]);
});

test("texts are those of the registry, and name caps that differ", () => {
  const names = [DAILY, WEEKLY];
  const registry = registryOf(...names);
  const uptime = () => ({ boot: "a", up: 1 });
  const usual = new Client(options({ registry, uptime }));
  const same = new Client(options({ registry, uptime, caps: { week: "8.0" } }));
  const higher = new Client(options({ registry, uptime, caps: { week: "20", report: "5" } }));

  assert.ok(usual.notice().startsWith(registry["notice"]));
  assert.equal(same.explain(DAILY), usual.explain(DAILY));
  for (const text of [higher.notice(), higher.explain(DAILY)]) {
    assert.match(text, /one report gives\naway at most ε 5, any seven days, and so any day, at most ε 20, and all reports for\nas long as you use notes at most ε 1000/);
  }
  const times = (text: string): string[] => [...text.matchAll(/(\d+) times th/g)].map(([, number]) => number!);
  assert.deepEqual(new Set(times(higher.explain(DAILY))).size, 1); // of Python, and here
  assert.throws(() => usual.explain("none"), /metric=none/);
});

test("texts of a browser say that only the cap for life holds there when a clock is set", () => {
  const client = new Client(options({ registry: registryOf(DAILY) }));

  for (const text of [client.notice(), client.explain(DAILY)]) assert.match(text, /\nA browser cannot check its clock\./);
});

test("texts of a session say that their numbers are of one visit", () => {
  const registry = registryOf(DAILY);
  const client = new Client(options({ registry, store: "session" }));

  for (const [text, kept] of [[client.notice(), registry["notice"]], [client.explain(DAILY), registry["metrics"][0].explanation]]) {
    assert.ok(text.startsWith(kept.trimEnd()));
    assert.match(text, /all these numbers are of one visit: each further one, as when the page is\nopened again, can give away as much again/);
  }
});

const DIRECT = [
  "The server that collects reports sees your internet address when one comes, as any server does.",
  "It keeps the report without the address.",
];
const RELAYED = [
  "Reports travel through relay.example:8443, which sees your internet address and cannot read them.",
  "The server that collects them can read them, and does not see your address.",
];
const ISSUED = "The server issuer.example gives out permits for reports; it sees your internet address and no report.";
const UNCHECKED = "A browser cannot check its clock. If somebody sets it ahead again and again, only the number for life holds.";
const OF_A_BROWSER = "A server that sees your address also sees which browser or app, which system and which languages you use.";

test("texts say who sees the address, by the way that reports go", () => {
  const registry = registryOf(DAILY);
  const [relay, url] = ["https://relay.example:8443/stats", "https://issuer.example"];
  const tokens = { url, plan: "", attestation: "" };
  const ways: [more: Parameters<typeof options>[0], sentences: string[]][] = [
    [{}, DIRECT],
    [{ relay }, RELAYED],
    [{ tokens }, [...DIRECT, ISSUED]],
    [{ relay, tokens }, [...RELAYED, ISSUED]],
  ];
  for (const [more, sentences] of ways) {
    const browser = [Client, [...sentences, OF_A_BROWSER], `\n\n${UNCHECKED}`] as const;
    for (const [each, seen, clock] of [[NodeClient, sentences, ""] as const, browser]) {
      const client = new each(options({ registry, dryRun: true, ...more }));

      assert.equal(client.notice(), `${registry["notice"].trimEnd()}${clock}\n\n${seen.join("\n")}\n`);
      assert.equal(client.explain(DAILY), `${registry["metrics"][0].explanation.trimEnd()}${clock}\nWho sees your internet address: ${seen.join(" ")}`);
    }
  }
});

test("a metric that no cap lets out is a warning for developers", () => {
  const warnings: string[] = [];
  const log = { debug: () => undefined, warn: (line: string) => void warnings.push(line) };
  new Client(options({ registry: registryOf(DAILY, WEEKLY), caps: { report: "0.5" }, log }));

  assert.deepEqual(warnings.map((line) => /metrics\.(\w+): is never reported.*caps\.report/.exec(line)?.[1]), [DAILY, WEEKLY]);
});

test("what waits and what was sent is shown in words", async () => {
  const [clock, collector] = [new FakeClock(), new FakeCollector()];
  const client = device(collector, clock);
  client.record(DAILY, true);
  await client.flush();
  client.record(WEEKLY, "free");
  collector.fate = () => "lose request";
  await client.flush();

  const [waiting, sent] = (await client.show()).split(/sent, the last 1:/) as [string, string];
  const title = (name: string): string => client.registry.metrics.get(name)!.title;
  assert.ok(waiting.includes(title(WEEKLY)) && sent.includes(title(DAILY)));
  assert.match(sent, /sent on: 2026-11-24/);
});
