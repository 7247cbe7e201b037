/** Laws of every store on the one in memory, and of sessions. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { StoreError } from "../../src/core/errors.js";
import { memoryStore, sessionStore } from "../../src/storage/memory.js";

test("a change that throws leaves nothing behind", async () => {
  const store = memoryStore();

  const broken = store.update((state) => {
    state.consent = "granted";
    throw new RangeError("broken");
  });

  await assert.rejects(broken, RangeError);
  assert.equal(await store.read((state) => state.consent), null);
});

test("what a look alters is not kept", async () => {
  const store = memoryStore();

  await store.read((state) => (state.consent = "denied"));

  assert.equal(await store.read((state) => state.consent), null);
});

test("two stores in memory share nothing, and a closed one takes nothing", async () => {
  const [store, other] = [memoryStore(), memoryStore()];

  await store.update((state) => (state.consent = "granted"));
  await store.close();

  assert.equal(await other.read((state) => state.consent), null);
  await assert.rejects(store.update(() => 0), StoreError);
});

test("all clients of a page share its session, which outlives them", async () => {
  const first = sessionStore("app");
  await first.update((state) => (state.consent = "granted"));
  await first.close();

  const [again, other] = [sessionStore("app"), sessionStore("another")];

  assert.deepEqual(await again.read(({ consent, session }) => [consent, session]), ["granted", true]);
  assert.equal(await other.read((state) => state.consent), null);
});
