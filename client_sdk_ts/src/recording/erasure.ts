/** Erasure: carries out a denial, if not now then as soon as the store lets us.  What was spent stays. */

import type { Stats } from "../core/stats.js";
import type { ConsentSwitch } from "../privacy/consent.js";
import { erase } from "../storage/erasure.js";
import type { State } from "../storage/state.js";
import type { Store } from "../storage/store.js";

/** Seconds; a store is locked for less, and one that cannot be written needs no more tries. */
const FIRST_WAIT = 5;
const MAX_WAIT = 300;

/**
 * Erases what waits, once for each denial.  Its promises never reject: failures are counted.
 *
 * Until that is done nothing may be written or sent, even if consent was given anew meanwhile: the
 * erasure would take it for what is to be forgotten.
 */
export class Erasure {
  #failures = 0; // in a row

  /**
   * `answered` is the Unix time at which the application last said what the user has said, and `clear`
   * empties the memory of this client and returns how many values that were.
   */
  constructor(
    private readonly store: Store,
    private readonly consent: ConsentSwitch,
    private readonly stats: Stats,
    private readonly answered: () => number,
    private readonly clear: () => number,
  ) {}

  /** The seconds after which to try again. */
  get wait(): number {
    return Math.min(MAX_WAIT, FIRST_WAIT * 2 ** Math.min(Math.max(this.#failures - 1, 0), 10));
  }

  /** Looks whether somebody has opted out, or in again, since; returns whether anything is to be erased. */
  refresh(): boolean {
    const { consent, stats } = this;
    try {
      const before = consent.inForce;
      consent.refresh();
      if (consent.inForce !== before) this.apply();
    } catch (error) {
      stats.fail(error);
    }
    return consent.erasureDue;
  }

  /** If consent is denied, forgets all that waits in memory; what the store keeps is erased by `run`. */
  apply(): void {
    if (this.consent.inForce !== "denied") return;
    this.forget();
    this.consent.erasuresRequested++;
  }

  /** Forgets all that waits in memory. */
  forget(): void {
    const isOwn = this.consent.saidBy === "application";
    this.stats.add(isOwn ? "consent" : "opted_out", this.clear());
  }

  /** Erases what is due; returns false if that could not be done.  Called by one at a time. */
  async run(): Promise<boolean> {
    const { answered, consent, stats, store } = this;
    if (!consent.erasureDue) return true;
    const requested = consent.erasuresRequested;
    try {
      if (await store.read(hasTraces)) {
        const { reports, windows } = await store.update((state) => {
          // other tabs and processes heed it; a no of this environment is not theirs
          if (consent.saidBy === "application") state.consent = String(Math.max(Number(state.consent), answered()));
          return erase(state);
        });
        stats.add("window_dropped", windows);
        stats.add("revoked", reports);
      }
      consent.erasuresDone = requested;
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      stats.fail(error);
    }
    return !consent.erasureDue;
  }
}

/** Whether anything was ever recorded: then another tab may be about to record. */
const hasTraces = ({ ledger, reports, secret, uploads, windows }: State): boolean =>
  secret !== null || reports.length + uploads.length + windows.length + Object.keys(ledger).length > 0;
