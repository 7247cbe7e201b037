/**
 * Stores that end with the process or page, for tests and for people who want nothing kept.
 *
 * What was spent is forgotten with them.  A session avoids that: as the spending of earlier ones is
 * unknown, a metric has one report in the life of the page, whatever its epochs are, and all clients
 * of the page share it.
 */

import { StoreError } from "../core/errors.js";
import { newState, type State } from "./state.js";
import type { Store } from "./store.js";

/** Returns a store in memory, of its own. */
export function memoryStore(): Store {
  return storeOf({ state: newState() });
}

/** Returns the store of this page or process under a `name`: always the same document. */
export function sessionStore(name = ""): Store {
  // by a key that two copies of this package in one page share, else each would spend its own
  const key = Symbol.for(`hearsay-telemetry session ${name}`);
  const page = globalThis as unknown as Record<symbol, Held | undefined>;
  return storeOf((page[key] ??= { state: newState(false, true) }));
}

interface Held {
  state: State;
}

function storeOf(held: Held): Store {
  let closed = false;
  const whileOpen = <T>(work: () => T): Promise<T> =>
    new Promise((resolve) => {
      if (closed) throw new StoreError("store: was closed");
      resolve(work());
    });
  return {
    durable: false,
    update: (change) =>
      whileOpen(() => {
        const state = copy(held.state);
        const result = change(state);
        held.state = state;
        return result;
      }),
    read: (look) => whileOpen(() => look(copy(held.state))),
    open: () => void (closed = false),
    close: async () => {
      closed = true;
    },
  };
}

const copy = (state: State): State => JSON.parse(JSON.stringify(state)) as State;
