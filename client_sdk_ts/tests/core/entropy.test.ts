/** Entropy: no byte twice, none left behind, none shared, and nothing in place of what fails. */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import cluster from "node:cluster";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { toHex, utf8 } from "../../src/core/bytes.js";
import { systemSource } from "../../src/core/entropy.js";
import { EntropyError, InvalidValueError } from "../../src/core/errors.js";
import { Shake256 } from "../../src/core/hashing.js";
import { ByteRandomness, type ByteSource } from "../../src/core/randomness.js";
import { allMechanisms } from "../../src/mechanisms/index.js";
import type { Channel, Encoded, Mechanism } from "../../src/mechanisms/mechanism.js";

const CHILD = fileURLToPath(new URL("../support/entropy_child.js", import.meta.url));
const SIZES = [4, 16, 0, 8, 2044, 4, 2048, 12, 2052, 70_000, 16, 65_536, 65_540, 400, 400, 400, 400, 400, 400];

/** Fills bytes with numbers that rise, four bytes each, and keeps what it was given. */
class Counter {
  readonly filled: Uint8Array[] = [];
  #next = 1;

  readonly fill = (bytes: Uint8Array): void => {
    this.filled.push(bytes);
    assert.ok(bytes.length <= 65_536);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let i = 0; i < bytes.length; i += 4) view.setUint32(i, this.#next++);
  };
}

function words(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(4 * i));
}

/** Returns the draws that came more than once. */
function repeats(draws: readonly string[]): string[] {
  return draws.filter((draw, i) => draws.indexOf(draw) !== i);
}

test("no byte is handed out twice, in one task or in many", async () => {
  const source = systemSource(new Counter().fill);
  const drawn: number[] = [];

  for (let round = 0; round < 20; round++) {
    for (const size of SIZES) {
      const bytes = source(size);
      assert.equal(bytes.length, size);
      drawn.push(...words(bytes));
    }
    if (round % 3 === 0) await null;
  }

  assert.equal(new Set(drawn).size, drawn.length);
  assert.ok(!drawn.includes(0));
});

test("what is handed out stays as it is", async () => {
  const source = systemSource(new Counter().fill);
  const first = source(16);
  const kept = toHex(first);

  for (const size of SIZES) source(size);
  await null;

  assert.equal(toHex(first), kept);
});

test("what was read is overwritten, and the rest at the end of the task", async () => {
  const counter = new Counter();
  const source = systemSource(counter.fill);

  source(24);
  const [ahead] = counter.filled;
  assert.deepEqual(words(ahead!).slice(0, 6), [0, 0, 0, 0, 0, 0]);
  assert.ok(words(ahead!).slice(6).every((word) => word > 0));
  await null;

  assert.ok(ahead!.every((byte) => byte === 0));
  assert.notEqual(words(source(4))[0], 0);
});

test("a source whose system fails throws, leaves nothing, and works when the system does", () => {
  const counter = new Counter();
  let fails = false;
  const source = systemSource((bytes) => {
    counter.fill(bytes);
    if (fails) throw new Error("no entropy");
  });
  const before = words(source(2_000));

  fails = true;
  for (const size of [100, 100, 4_000, 70_000]) assert.throws(() => source(size), EntropyError);
  fails = false;
  const after = words(source(2_000));

  assert.equal(new Set([...before, ...after]).size, before.length + after.length);
  assert.ok(after.every((word) => word > 0));
});

test("a system that leaves zeros has failed", () => {
  const source = systemSource(() => undefined);

  for (const size of [1, 16, 5_000]) assert.throws(() => source(size), EntropyError);
});

test("the system's bytes are there, and differ", () => {
  const source = systemSource();

  assert.deepEqual(repeats(Array.from({ length: 2_000 }, () => toHex(source(16)))), []);
});

/** Channels under which every mechanism draws; what they hide is of no interest here. */
const COIN = { numerator: 3n, denominator: 1n << 10n };
const NAMES = ["truth", "flip", "inside", "coin", "kept", "shown", "decay", "scale"];
const CHANNEL: Channel = {
  parameters: {
    ...{ subset_size: 3n, order: 3n, prime: 97n, buckets: 4n, fanout: 2n, points: 5n, steps: 6n, width: 3n },
    ...{ block_size: 3n, distances: 0x7f5f3f1fn, bins: 8n, reach: 2n, pad: 2n, unary: 1n, top: 10n, step: 2n, rows: 3n, columns: 30n, sets: 0x010100ff01000155n },
  },
  constants: Object.fromEntries(NAMES.map((name) => [name, COIN])),
  domainSize: 9n,
  payloadSize: 8,
};
const POSITION = { numerator: 5n, denominator: 3n };
const VALUES: readonly Encoded[] = [
  { kind: "item", item: 5n },
  { kind: "position", position: POSITION },
  { kind: "set", items: [1n, 7n] },
  { kind: "pairs", pairs: [[2n, POSITION]] },
  { kind: "bytes", bytes: new Uint8Array([104, 105]) },
];

/** The mechanisms with the values that they take; there is no other. */
function draws(): [Mechanism, Encoded][] {
  const takes = (mechanism: Mechanism, value: Encoded): boolean => {
    try {
      return mechanism.randomize(CHANNEL, value, new ByteRandomness(systemSource())).length > 0;
    } catch (error) {
      if (error instanceof InvalidValueError) return false;
      throw error;
    }
  };
  return allMechanisms.flatMap((mechanism) => VALUES.filter((value) => takes(mechanism, value)).map((value) => [mechanism, value] as [Mechanism, Encoded]));
}

/** Returns a source that fails at the read of a number, counted from 0; reads of nothing do not count. */
function failingAt(number: number, fail: ByteSource): { read: ByteSource; reads: () => number } {
  const works = new Shake256(utf8("stream")).read;
  let reads = 0;
  return { read: (count) => (count && reads++ === number ? fail(count) : works(count)), reads: () => reads };
}

test("no mechanism makes a payload if any of its reads fails or comes up short", () => {
  const failures: ByteSource[] = [
    () => {
      throw new Error("gone");
    },
    (count) => new Uint8Array(count - 1),
    (count) => new Uint8Array(count + 1),
    () => new Uint8Array(0),
  ];
  assert.equal(draws().length, allMechanisms.length);

  for (const [mechanism, value] of draws()) {
    const whole = failingAt(-1, systemSource());
    mechanism.randomize(CHANNEL, value, new ByteRandomness(whole.read));
    assert.ok(whole.reads() > 0);
    for (let number = 0; number < whole.reads(); number++) {
      for (const fail of failures) {
        const randomness = new ByteRandomness(failingAt(number, fail).read);
        assert.throws(() => mechanism.randomize(CHANNEL, value, randomness), EntropyError, `${mechanism.name} ${number}`);
      }
    }
  }
});

/** Returns what children of each kind drew; `handed` are bytes that all of them are given to draw from. */
async function childrenDraw(handed?: string): Promise<string[]> {
  const env = handed === undefined ? process.env : { ...process.env, HANDED: handed };
  cluster.setupPrimary({ exec: CHILD });
  const told = (child: { once(event: "message", listener: (drawn: string[]) => void): unknown }): Promise<string[]> =>
    new Promise((resolve) => child.once("message", resolve));
  const all = await Promise.all([
    ...[1, 2].map(() => told(fork(CHILD, { env }))),
    ...[1, 2].map(() => told(new Worker(CHILD, { workerData: handed ?? null }))),
    ...[1, 2].map(() => told(cluster.fork(handed === undefined ? {} : { HANDED: handed }) as never)),
  ]);
  return all.flat();
}

test("no child, worker or member of a cluster draws what another one drew", async () => {
  const source = systemSource();
  const own = Array.from({ length: 50 }, () => toHex(source(16))); // most of what was taken ahead is left

  const drawn = await childrenDraw();

  assert.equal(drawn.length, 6 * 500);
  assert.deepEqual(repeats([...own, ...drawn, ...Array.from({ length: 50 }, () => toHex(source(16)))]), []);
});

test("a shared pool, a planted bug, would be seen", async () => {
  const handed = toHex(systemSource()(1_024));

  assert.notDeepEqual(repeats(await childrenDraw(handed)), []);
});
