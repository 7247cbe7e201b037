/**
 * The storage of a platform that has neither files nor IndexedDB, such as React Native.
 *
 * Such a storage sets one key as a whole, and knows no locks.  Stores of one process take turns; two
 * processes must not share a key, as each would spend the same budget.
 */

import { StoreError } from "../core/errors.js";
import { readDocument, writeDocument } from "./document.js";
import type { State } from "./state.js";
import type { KeyValueStorage, Store } from "./store.js";

/** The end of the latest change, by storage: of all stores of this process. */
const queues = /* @__PURE__ */ new WeakMap<KeyValueStorage, Promise<unknown>>();

/** Returns the store that keeps its document under `key` of `storage`, such as AsyncStorage. */
export function keyValueStore(storage: KeyValueStorage, key = "hearsay-telemetry"): Store {
  let closed = false;
  const inTurn = async <T>(work: (text: string | null) => Promise<T>): Promise<T> => {
    if (closed) throw new StoreError(`${key}: was closed`);
    const turn = (queues.get(storage) ?? Promise.resolve()).then(async () =>
      work(await wrapped(() => storage.getItem(key))));
    queues.set(storage, turn.catch(() => undefined));
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
    close: async () => {
      closed = true;
    },
  };
}
