/**
 * The storage of a platform that has neither files nor IndexedDB, such as React Native.
 *
 * Such a storage sets one key as a whole, and knows no locks.  Stores of one process that have the same
 * key take turns, whatever objects their storages are; two processes must not share a key, as each would
 * spend the same budget.
 */

import { StoreError } from "../core/errors.js";
import { readDocument, writeDocument } from "./document.js";
import type { State } from "./state.js";
import type { KeyValueStorage, Store } from "./store.js";

/** Where the end of the latest change is, by key: of all stores of this process, and all copies of this package. */
const QUEUES = "hearsay-telemetry queues";

/** Returns the store that keeps its document under `key` of `storage`, such as AsyncStorage. */
export function keyValueStore(storage: KeyValueStorage, key = "hearsay-telemetry"): Store {
  const page = globalThis as unknown as Record<symbol, Map<string, Promise<unknown>> | undefined>;
  const queues = (page[Symbol.for(QUEUES)] ??= new Map<string, Promise<unknown>>());
  let closed = false;
  const inTurn = async <T>(work: (text: string | null) => Promise<T>): Promise<T> => {
    if (closed) throw new StoreError(`${key}: was closed`);
    const turn = (queues.get(key) ?? Promise.resolve()).then(async () =>
      work(await wrapped(() => storage.getItem(key))));
    queues.set(key, turn.catch(() => undefined));
    return turn;
  };
  const wrapped = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      throw new StoreError(`${key}: the storage of the platform failed`, { cause: error });
    }
  };
  return {
    durable: true,
    update: <T>(change: (state: State) => T) =>
      inTurn(async (before) => {
        const state = readDocument(before);
        const result = change(state);
        const after = writeDocument(state);
        if (after !== before) await wrapped(() => storage.setItem(key, after));
        return result;
      }),
    read: (look) => inTurn(async (text) => look(readDocument(text))),
    open: () => void (closed = false),
    close: async () => {
      closed = true;
    },
  };
}
