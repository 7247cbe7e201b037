/**
 * What became of the values and reports, by reason: the same closed set on every device.
 *
 * Every call of `record`, and every window that is `window_closed`, is counted once under what became
 * of it: the first group, or a failure.  Every report `recorded` is later counted once under
 * `uploaded`, `withheld`, `rejected`, `outbox_full`, `too_old`, `revoked` or `withdrawn`, or it still
 * waits.  Every window that is `window_opened` is later counted once under `window_closed` or
 * `window_dropped`, or it is still open.
 */

export const REASONS = /* @__PURE__ */ (
  // calls of record: the value became a report, or it was refused and nothing was drawn
  "recorded aggregated consent opted_out automated unknown_metric invalid_value expired retired " +
  "already_reported not_in_panel budget closed queue_full dropped " +
  // windows, in which values are aggregated until their epoch is over
  "window_opened window_closed window_dropped " +
  // reports that waited
  "outbox_full too_old revoked withdrawn uploaded withheld rejected " +
  // uploads
  "duplicates network postponed refused list_refused " +
  // failures of the device, whatever was being done
  "entropy store late internal"
).split(" ") as readonly Reason[];

/** Why a count went up. */
export type Reason =
  | "recorded" | "aggregated" | "consent" | "opted_out" | "automated" | "unknown_metric" | "invalid_value"
  | "expired" | "retired" | "already_reported" | "not_in_panel" | "budget" | "closed" | "queue_full"
  | "dropped"
  | "window_opened" | "window_closed" | "window_dropped"
  | "outbox_full" | "too_old" | "revoked" | "withdrawn" | "uploaded" | "withheld" | "rejected"
  | "duplicates" | "network" | "postponed" | "refused" | "list_refused"
  | "entropy" | "store" | "late" | "internal";
