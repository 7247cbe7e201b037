/** Laws of uploads: nothing is lost, sent twice or changed, whatever becomes of what is on its way. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Answer, Client, memoryStore, type Store } from "../../src/index.js";
import {
  counted, CRASHED, DAILY, DAY, FakeClock, FakeCollector, HOUR, HOURLY, LARGEST, options, registryOf, reportsIn, SUM, WEEKLY,
} from "./support.js";
import { withChecksum } from "../support/compiled.js";

/** Returns a number below n from a fixed sequence, for tests whose course must not change. */
function sequence(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

function device(transport: FakeCollector, clock = new FakeClock(), more: Parameters<typeof options>[0] = {}): Client {
  return new Client(options({ transport, clock: clock.read, uptime: clock.uptime, caps: { metric_week: "999", week: "999" }, ...more }));
}

test("over a network that loses, every report arrives once, and a retry is the same bytes", async () => {
  const [clock, chance] = [new FakeClock(), sequence(1)];
  const collector = new FakeCollector(() => (["lose request", "lose answer", "refuse connection"] as const)[chance(12)]);
  const client = device(collector, clock);
  for (let day = 0; day < 40; day++) {
    client.record(DAILY, day % 3 === 0);
    for (let pass = 0; pass < 4; pass++) {
      await client.flush();
      clock.time += DAY / 4;
    }
  }
  collector.fate = () => undefined;
  for (let pass = 0; pass < 10; pass++) {
    clock.time += 8 * HOUR;
    await client.flush();
  }

  assert.deepEqual([client.stats().recorded, client.stats().too_old], [40, 0]);
  assert.equal(collector.reports, 40);
  assert.equal(client.stats().uploaded, 40);
  assert.ok(collector.isIdentical);
  assert.ok(client.stats().duplicates > 0);
});

test("a planted change of what was sealed is seen", () => {
  const collector = new FakeCollector();
  collector.bodies.set("id", ["a", "b"]);

  assert.ok(!collector.isIdentical);
});

test("after weeks offline the latest fortnight arrives, and the rest is counted", async () => {
  const [clock, collector] = [new FakeClock(), new FakeCollector(() => "refuse connection")];
  const client = device(collector, clock);
  for (let day = 0; day < 42; day++) {
    client.record(DAILY, true);
    await client.flush();
    clock.time += DAY;
  }
  collector.fate = () => undefined;
  for (let pass = 0; pass < 6; pass++) {
    clock.time += HOUR;
    await client.flush();
  }

  const { recorded, too_old: old, uploaded } = client.stats();
  assert.equal(recorded, 42);
  assert.equal(uploaded, collector.reports);
  assert.equal(old + uploaded, 42);
  assert.ok(uploaded >= 13 && uploaded <= 15, String(uploaded));
});

test("a clock that is set back gives no second budget, and stops no upload for longer than a day", async () => {
  const [clock, collector] = [new FakeClock(), new FakeCollector(() => "lose request")];
  const client = device(collector, clock, { caps: { week: "1" } });
  client.record(WEEKLY, "free");
  await client.flush();
  clock.time -= 300 * DAY;
  collector.fate = () => undefined;
  client.record(WEEKLY, "free");
  await client.flush();
  clock.time += 2 * HOUR;
  await client.flush();

  assert.deepEqual([client.stats().recorded, client.stats().budget], [1, 1]);
  assert.equal(client.stats().uploaded, 1);
});

test("who asks to be left alone is left alone, and the wait is told", async () => {
  const clock = new FakeClock();
  const collector = new FakeCollector(() => ({ status: 429, retryAfter: 7_200 }));
  const client = device(collector, clock);
  client.record(DAILY, true);

  const { complete, wait, waiting } = await client.flush();
  clock.time += 2 * HOUR - 1_000;
  await client.flush();

  assert.deepEqual([complete, waiting, collector.tries.length], [false, 1, 1]);
  assert.ok(wait >= 2 * HOUR && wait <= 2.5 * HOUR + 1_000, String(wait));
  clock.time += HOUR;
  collector.fate = () => undefined;
  assert.ok((await client.flush()).complete);
  assert.equal(new Set(collector.tries).size, 1);
});

const PROBLEM: Answer = {
  status: 413,
  contentType: "application/problem+json",
  body: '{"type":"urn:hearsay:problem:body-too-large","status":413}',
};

test("what a proxy finds too long arrives in smaller uploads, each report once", async () => {
  const clock = new FakeClock();
  const collector = new FakeCollector((body) => (body.length > 1_024 ? PROBLEM : undefined));
  const client = device(collector, clock);
  collector.fate = () => "refuse connection";
  for (let hour = 0; hour < 60; hour++) {
    client.record(HOURLY, 7);
    await client.flush();
    clock.time += HOUR;
  }
  clock.time += DAY;
  collector.fate = (body) => (body.length > 1_024 ? PROBLEM : undefined);
  for (let pass = 0; pass < 80; pass++) {
    await client.flush();
    clock.time += DAY / 24;
  }

  assert.equal(client.stats().recorded, 60);
  assert.equal(collector.reports, 60);
  assert.ok(collector.bodies.size > 3);
  assert.ok(client.stats().refused > 0);
});

test("what the collector refuses for good is dropped, and what others say is not heeded", async () => {
  const ours: Answer = { ...PROBLEM, status: 410, body: '{"type":"urn:hearsay:problem:too-old","status":410}' };
  const others: Answer[] = [
    { status: 200, body: "<html>Sign in</html>" }, { status: 0 }, { status: 302 }, { status: 410, body: "gone" },
    { status: 401 }, { status: 202, body: "<html>" }, { status: 500 },
  ];
  for (const answer of [ours, ...others]) {
    const client = device(new FakeCollector(() => answer));
    client.record(DAILY, true);

    const { waiting } = await client.flush();

    assert.equal(waiting, answer === ours ? 0 : 1, JSON.stringify(answer));
    assert.equal(client.stats().rejected, answer === ours ? 1 : 0);
  }
});

test("a denial while an upload is on its way deletes what waits, and nothing follows", async () => {
  const clock = new FakeClock();
  let arrive = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const collector = new FakeCollector();
  const slow = {
    send: async (body: string): Promise<Answer> => {
      arrive();
      await new Promise((resolve) => setTimeout(resolve, 20));
      return collector.send(body);
    },
  };
  const store = memoryStore();
  const client = device(collector, clock, { store, transport: slow });
  client.record(DAILY, true);
  client.record(LARGEST, 3);
  const flushed = client.flush();
  await arrived;
  client.record(WEEKLY, "free");
  await client.setConsent("denied");
  await flushed;
  client.record(WEEKLY, "pro");
  await client.flush();

  const left = await store.read((state) => ({ ...state, ledger: Object.keys(state.ledger).length }));
  assert.deepEqual([left.secret, left.reports, left.uploads, left.windows, left.sent], [null, [], [], [], []]);
  assert.equal(left.ledger, 1);
  assert.equal(collector.tries.length, 1);
  assert.deepEqual(counted(client), { recorded: 1, aggregated: 1, consent: 2, window_opened: 1, window_dropped: 1, revoked: 1 });
});

test("a no is heard by every client of a store, and a later yes by the one that was told", async () => {
  const [clock, collector, store] = [new FakeClock(), new FakeCollector(), memoryStore()];
  const [first, second] = [device(collector, clock, { store }), device(collector, clock, { store })];
  first.record(DAILY, true);
  await first.flush();
  clock.time += HOUR;
  await first.setConsent("denied");
  clock.time += HOUR;
  second.record(WEEKLY, "free");
  await second.flush();

  assert.deepEqual([second.consent, counted(second)], ["denied", { consent: 1 }]);
  await first.setConsent("granted");
  first.record(WEEKLY, "free");
  assert.ok((await first.flush()).complete);
  assert.equal(first.stats().uploaded, 2);
  assert.equal(second.consent, "denied");
});

test("values of an epoch become one report when it is over, and silence one too", async () => {
  const [clock, collector] = [new FakeClock(), new FakeCollector()];
  const client = device(collector, clock, { registry: registryOf(SUM, CRASHED) });
  for (let call = 0; call < 5; call++) client.record(SUM, 1);
  await client.flush();
  assert.equal(client.stats().recorded, 0);
  clock.time += DAY;
  await client.flush();

  const { aggregated, recorded, uploaded, window_closed: closed, window_opened: opened } = client.stats();
  assert.deepEqual([aggregated, recorded, uploaded, closed, opened], [5, 2, 2, 2, 4]);
  assert.equal([...collector.bodies.values()].flat().reduce((all, body) => all + reportsIn(body), 0), 2);
});

/** Returns a key in hexadecimal, and what signs a list of retired digests by it. */
async function developer(): Promise<[key: string, list: (issued: number, retired: string[]) => Promise<string>]> {
  const { privateKey, publicKey } = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const hex = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString("hex");
  const list = async (issued: number, retired: string[]): Promise<string> => {
    const form = { issued, retired, version: 1 };
    const signed = new TextEncoder().encode(`hearsay retired metrics\n${JSON.stringify(form)}`);
    return JSON.stringify({ ...form, signature: hex(await crypto.subtle.sign("Ed25519", privateKey, signed)) });
  };
  return [hex(await crypto.subtle.exportKey("raw", publicKey)), list];
}

test("a retired metric is recorded no more, what waits of it is deleted, and no other list changes that", async () => {
  const [[key, list], [, forged]] = [await developer(), await developer()];
  const [clock, collector] = [new FakeClock(), new FakeCollector()];
  const registry = withChecksum({ ...registryOf(DAILY, WEEKLY, LARGEST), retire_key: key });
  let body = "";
  const transport = { send: (upload: string) => collector.send(upload), fetch: async () => ({ status: 200, body }) };
  const client = device(collector, clock, { registry, transport });
  const digest = (name: string): string => client.registry.metrics.get(name)!.digest;
  const pass = async (text: string, name: string, value: unknown): Promise<Record<string, number>> => {
    body = text;
    client.record(name, value);
    await client.flush();
    clock.time += DAY;
    return counted(client);
  };

  assert.equal((await pass(await forged(9, [digest(DAILY)]), DAILY, true)).list_refused, 1);
  assert.equal((await pass(await list(5, [digest(WEEKLY), digest(LARGEST)]), DAILY, true)).retired, undefined);
  assert.equal((await pass(await list(4, [digest(DAILY)]), DAILY, true)).list_refused, 2);
  assert.equal((await pass("", WEEKLY, "free")).retired, 1);
  assert.equal((await pass("<html>", LARGEST, 3)).retired, 2);
  assert.equal((await pass(await list(6, []), DAILY, true)).recorded, 4);
  assert.equal((await pass("", WEEKLY, "free")).retired, 3);
});

test("a no is heard by other clients also after the clock was set back", async () => {
  const [clock, collector, store] = [new FakeClock(), new FakeCollector(), memoryStore()];
  const [first, second] = [device(collector, clock, { store }), device(collector, clock, { store })];
  first.record(DAILY, true);
  await first.flush();

  clock.time -= HOUR;
  await first.setConsent("denied");
  second.record(WEEKLY, "free");
  await second.flush();

  assert.deepEqual([second.consent, counted(second)], ["denied", { consent: 1 }]);
});

test("what was handed over before a no is not reported after a new yes, whatever a store does meanwhile", async () => {
  const [collector, inner] = [new FakeCollector(), memoryStore()];
  let fails = true;
  const store: Store = {
    ...inner,
    update: (change) => {
      if (!fails) return inner.update(change);
      fails = false;
      void client.setConsent("denied");
      void client.setConsent("granted");
      return Promise.reject(new TypeError("not one that a store may throw"));
    },
  };
  const client = device(collector, new FakeClock(), { store });

  client.record(DAILY, true);
  client.record(WEEKLY, "free");
  await client.flush();

  assert.deepEqual([collector.tries, counted(client)], [[], { consent: 2 }]);
});
