/**
 * The store of browsers: one document in IndexedDB, which all tabs and workers of an origin share.
 *
 * A change is one readwrite transaction of strict durability; the browser lets tabs take turns, as Web
 * Locks do before that, so that tabs in the background do not pile up transactions.  Whatever goes
 * wrong, a full disk, a private window without IndexedDB, a connection that the browser has closed,
 * is a StoreError, and nothing happened.
 *
 * Browsers clear storage: when people say so, when a disk is full, and WebKit after seven days without a
 * visit.  What was spent goes with it, and a device whose ledger is gone is a new one: to itself and to
 * the collector.  The caps hold for what one ledger has seen.
 */

import { StoreError } from "../core/errors.js";
import { readDocument, writeDocument } from "./document.js";
import type { State } from "./state.js";
import type { Store } from "./store.js";

const STORE = "documents";
const KEY = "state";

/** Returns the store of this origin under the name of an application. */
export function indexedDbStore(app: string): Store {
  const name = `hearsay-telemetry ${app}`;
  let connection: Promise<IDBDatabase> | null = null;
  let closed = false;

  const forget = (): void => void (connection = null);

  const open = (): Promise<IDBDatabase> => {
    const opening = (connection ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        // a tab that deletes or upgrades it must not wait for this one
        database.onversionchange = () => {
          forget();
          database.close();
        };
        database.onclose = forget;
        resolve(database);
      };
    }));
    opening.catch(forget);
    return opening;
  };

  /** Runs `work` in one transaction; what it throws is thrown, after all was undone. */
  const transact = async <T>(mode: IDBTransactionMode, work: (state: State) => T): Promise<T> => {
    const database = await open();
    return new Promise((resolve, reject) => {
      let transaction: IDBTransaction;
      try {
        transaction = database.transaction(STORE, mode, { durability: "strict" });
      } catch (error) {
        forget(); // it was closed
        throw error;
      }
      let outcome: { result: T } | { error: unknown } | undefined;
      const store = transaction.objectStore(STORE);
      const request = store.get(KEY);
      request.onsuccess = () => {
        try {
          const before = request.result as unknown;
          const state = readDocument(before);
          outcome = { result: work(state) };
          const after = mode === "readwrite" ? writeDocument(state) : before;
          if (after !== before) store.put(after, KEY);
        } catch (error) {
          outcome = { error };
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve((outcome as { result: T }).result);
      transaction.onabort = () => {
        if (outcome && "error" in outcome) reject(new Thrown(outcome.error));
        else reject(transaction.error);
      };
    });
  };

  const inTurn = async <T>(mode: IDBTransactionMode, work: (state: State) => T): Promise<T> => {
    if (closed) throw new StoreError(`${name}: was closed`);
    const run = (): Promise<T> => transact(mode, work);
    try {
      const locks = globalThis.navigator?.locks as LockManager | undefined;
      return await (locks && mode === "readwrite" ? (locks.request(name, run) as Promise<T>) : run());
    } catch (error) {
      if (error instanceof Thrown) throw error.error;
      if (error instanceof StoreError) throw error;
      const kind = error instanceof Error ? error.name : typeof error;
      throw new StoreError(`${name}: IndexedDB cannot be used: ${kind}`, { cause: error });
    }
  };

  return {
    durable: true,
    update: (change) => inTurn("readwrite", change),
    read: (look) => inTurn("readonly", look),
    open: () => void (closed = false),
    close: async () => {
      closed = true;
      const opening = connection;
      forget();
      (await opening?.catch(() => null))?.close();
    },
  };
}

/** What a change threw, as opposed to the browser. */
class Thrown {
  constructor(readonly error: unknown) {}
}
