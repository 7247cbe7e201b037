/**
 * Where a device keeps what it must not forget: one document, changed as a whole.
 *
 * All of a change or nothing of it; a change is durable before its promise is kept; changes of all
 * tabs, workers and processes that share a store take turns.  So what changes the document is plain
 * functions of it, the same for every store: a charge and its report appear together.
 */

import type { State } from "./state.js";

export interface Store {
  /** Whether it outlives the page or process. */
  readonly durable: boolean;
  /**
   * Calls `change` with the document, which it may alter, and keeps that durably.
   *
   * If `change` throws, nothing was written.  `change` is synchronous and may be called again.
   * Throws StoreError: nothing happened.
   */
  update<T>(change: (state: State) => T): Promise<T>;
  /** Returns what `look` makes of the document, and writes nothing. */
  read<T>(look: (state: State) => T): Promise<T>;
  /** Lets changes through again after `close`, as a denial must reach what was kept. */
  open?(): void;
  close(): Promise<void>;
}

/** The storage of a platform that has neither files nor IndexedDB, such as React Native. */
export interface KeyValueStorage {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
}
