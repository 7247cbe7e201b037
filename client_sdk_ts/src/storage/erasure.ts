/** Erasure: what a denial deletes.  What was spent stays. */

import { forgetChanges } from "./ledger.js";
import { clear } from "./outbox.js";
import type { State } from "./state.js";

/** Deletes all that waits, windows, acknowledged reports, the memo and the secret; returns how many. */
export function erase(state: State): { readonly reports: number; readonly windows: number } {
  const count = { reports: clear(state), windows: state.windows.length };
  state.windows = [];
  state.sent = [];
  state.times.claim = ""; // the collector knows it
  forgetChanges(state); // while the memo says what was repeated
  for (const account of Object.values(state.ledger)) account.memo = {};
  state.secret = null;
  return count;
}
