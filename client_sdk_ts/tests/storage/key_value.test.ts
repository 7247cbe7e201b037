/** Laws of the store on a platform's storage of keys and values. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { StoreError } from "../../src/core/errors.js";
import { keyValueStore } from "../../src/storage/key_value.js";
import type { KeyValueStorage } from "../../src/storage/store.js";

/** A storage that answers late, and can fail. */
class SlowStorage implements KeyValueStorage {
  readonly items = new Map<string, string>();
  writes = 0;
  full = false;

  async getItem(key: string): Promise<string | null> {
    await new Promise(setImmediate);
    return this.items.get(key) ?? null;
  }

  async setItem(key: string, value: string): Promise<void> {
    await new Promise(setImmediate);
    if (this.full) throw new Error("quota");
    this.writes++;
    this.items.set(key, value);
  }

  async removeItem(key: string): Promise<void> {
    this.items.delete(key);
  }
}

test("stores of one storage take turns, and none loses what another wrote", async () => {
  const storage = new SlowStorage();
  // an application may write its storage anew for each store
  const wrapped: KeyValueStorage = {
    getItem: (key) => storage.getItem(key),
    setItem: (key, text) => storage.setItem(key, text),
    removeItem: (key) => storage.removeItem(key),
  };
  const stores = [keyValueStore(storage), keyValueStore(storage), keyValueStore(wrapped)];

  await Promise.all(Array.from({ length: 30 }, (_, i) => stores[i % 3]!.update((state) => state.times.rests++)));

  assert.equal(await stores[0]!.read((state) => state.times.rests), 30);
});

test("a full storage is a StoreError; then nothing happened, and later it goes on", async () => {
  const storage = new SlowStorage();
  const store = keyValueStore(storage);
  storage.full = true;

  await assert.rejects(store.update((state) => state.times.rests++), StoreError);
  storage.full = false;
  await store.update((state) => state.times.rests++);

  assert.equal(await store.read((state) => state.times.rests), 1);
});

test("a change that throws, and one that changes nothing, write nothing", async () => {
  const storage = new SlowStorage();
  const store = keyValueStore(storage);
  await store.update((state) => (state.consent = "granted"));

  await assert.rejects(store.update(() => { throw new RangeError("broken"); }), RangeError);
  await store.update(() => 0);

  assert.equal(storage.writes, 1);
});

test("a damaged text is in doubt, and a closed store takes nothing", async () => {
  const storage = new SlowStorage();
  const store = keyValueStore(storage, "app");
  await store.update((state) => (state.consent = "granted"));
  storage.items.set("app", storage.items.get("app")!.replace("granted", "denied"));

  assert.equal(await store.read((state) => state.doubt), true);
  await store.close();
  await assert.rejects(store.update(() => 0), StoreError);
});
