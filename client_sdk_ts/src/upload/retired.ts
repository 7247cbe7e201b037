/** The list of retired metrics, asked for. */

import { TransportError } from "../core/errors.js";
import type { Stats } from "../core/stats.js";
import { keepRetired, readRetirement } from "../privacy/retirement.js";
import type { State } from "../storage/state.js";
import { inTime } from "./patience.js";
import { type Answer, RETIRED_PATH, type Transport } from "./transport.js";

/** What is needed to ask. */
export interface RetirementParts {
  readonly transport: Transport;
  /** Whether the user agrees now, and no earlier denial still has to erase anything. */
  readonly maySend: () => boolean;
  readonly stats: Stats;
  /** The public key that signs lists of retired metrics, in hexadecimal; null: there are no lists. */
  readonly retireKey: string | null;
}

/**
 * Asks which metrics are retired, and stops them.
 *
 * Only right after an upload that arrived, so that no other moment tells of this device.
 */
export async function fetchRetired(
  { maySend, retireKey, stats, transport }: RetirementParts,
  update: <T>(change: (state: State) => T) => Promise<T>,
  timeout: number,
): Promise<void> {
  if (retireKey === null || !transport.fetch || timeout <= 0 || !maySend()) return;
  let answer: Answer;
  try {
    answer = await inTime(transport.fetch(RETIRED_PATH, timeout), timeout);
  } catch (error) {
    return stats.fail(error, 1, error instanceof TransportError ? "network" : "internal");
  }
  if (answer.status !== 200) return; // this collector has none
  const retirement = await readRetirement(answer.body ?? "", retireKey);
  const dropped = retirement && (await update((state) => keepRetired(state, retirement)));
  if (!dropped) return stats.add("list_refused");
  stats.add("withdrawn", dropped.reports);
  stats.add("window_dropped", dropped.windows);
}
