/** How often what became of values and reports: what a change of the document counts, until it is kept. */

import type { Reason } from "../core/reasons.js";

export type Counts = Map<Reason, number>;

export function count(counts: Counts, reason: Reason, more = 1): void {
  counts.set(reason, (counts.get(reason) ?? 0) + more);
}
