/** From a value to a charged, perturbed and queued report: one change of the document, all of it or nothing. */

import { fromHex, fromNumber, toBase64url } from "../core/bytes.js";
import { dayOf } from "../core/epoch.js";
import { HearsayError, NotInPanelError } from "../core/errors.js";
import type { Reason } from "../core/reasons.js";
import type { Encoded } from "../mechanisms/mechanism.js";
import type { AggregateState } from "../registry/aggregates.js";
import type { Metric } from "../registry/compiled.js";
import { addReport, beginLedger, charge, type Charge, reportsOf } from "../storage/ledger.js";
import { put } from "../storage/outbox.js";
import { secretOf } from "../storage/secret.js";
import type { State } from "../storage/state.js";
import { advance } from "../storage/trusted_clock.js";
import { count, type Counts } from "./counts.js";
import type { Device, ReportView } from "./parts.js";

/** Checked values on their way to becoming a report. */
export interface Pending {
  readonly metric: Metric;
  /** Of several values, the first; of an aggregated metric, their state. */
  readonly value: Encoded | AggregateState;
  readonly epoch: number;
  /** Unix time in seconds. */
  readonly now: number;
  /** Calls of record. */
  readonly count: number;
}

/** Pending values that will not be tried again, and why. */
export type Settled = [pending: Pending, reason: Reason][];

const REFUSALS: readonly Reason[] = ["consent", "opted_out", "automated", "already_reported", "budget", "not_in_panel"];

/** Turns `pendings` into reports; a refused one does not stop the others.  Throws EntropyError. */
export function commit(state: State, device: Device, pendings: readonly Pending[]): { counts: Counts; settled: Settled } {
  const counts: Counts = new Map();
  const settled: Settled = [];
  const now = Math.max(...pendings.map((pending) => pending.now));
  const day = begin(state, device, now, counts);
  for (const pending of pendings) {
    if (isRetired(state, pending.metric)) count(counts, "retired", pending.count);
    else if (pending.metric.aggregate) attempt(counts, settled, pending, () => aggregate(state, device, pending, now, day, counts));
    else attempt(counts, settled, pending, () => report(state, device, pending, day, undefined, counts), pending.count - 1);
  }
  return { counts, settled };
}

/** Returns the trusted day, with the ledger ready for it. */
export function begin(state: State, device: Device, now: number, counts: Counts): number {
  const day = advance(state, now, device.uptime());
  if (beginLedger(state, device.caps, day)) count(counts, "store");
  return day;
}

/** Does `action`, and counts why it was refused; so were `others`, which came in the same epoch. */
export function attempt(counts: Counts, settled: Settled, pending: Pending, action: () => void, others?: number): void {
  let reason: Reason = "already_reported";
  let refused = pending.count;
  try {
    action();
    if (others === undefined) return;
    refused = others;
  } catch (error) {
    if (!(error instanceof HearsayError) || !REFUSALS.includes(error.reason)) throw error;
    reason = error.reason;
  }
  if (reason === "already_reported" || reason === "not_in_panel") settled.push([pending, reason]);
  count(counts, reason, refused);
}

/** Adds values to their window. */
function aggregate(state: State, device: Device, pending: Pending, now: number, trusted: number, counts: Counts): void {
  device.consent.require(); // again, as a denial erases in a change of its own
  const { metric, epoch, value } = pending;
  requirePanel(state, device, metric, epoch);
  device.parts.aggregates!.addTo(state, metric, epoch, value as AggregateState, pending.count, { trusted, wall: dayOf(now) }, device.randomness, counts);
}

/** Charges, perturbs and queues on the trusted `day`. */
export function report(
  state: State, device: Device, pending: Pending, day: number, days: Charge["days"], counts: Counts,
): void {
  device.consent.require(); // again, as a denial erases in a change of its own
  const { metric, epoch } = pending;
  const { digest, longitudinal, spent } = metric;
  const { caps, parts, randomness } = device;
  requirePanel(state, device, metric, epoch);
  const value = pending.value as Encoded;
  const bytes = fromHex(digest);
  let secret = new Uint8Array();
  if (longitudinal === "fresh") {
    charge(state, caps, { digest, epoch, nano: spent.report, delta: spent.delta, days }, day);
  } else {
    secret = secretOf(state, randomness);
    // the registry lets only items repeat
    const tag = parts.permanent!.tagOf(secret, bytes, fromNumber((value as Encoded & { kind: "item" }).item, 4));
    const costs = [spent.report, (spent.value ?? 0) - spent.report, 0];
    const dearest = Math.max(...costs);
    charge(state, caps, { digest, epoch, nano: costs[reportsOf(state, digest, tag)]!, dearest, days }, day);
    addReport(state, digest, tag);
  }
  const mechanism = device.mechanisms.get(metric.mechanism)!;
  const payload = longitudinal === "fresh"
    ? mechanism.randomize(metric.channel, value, randomness)
    : parts.permanent!.randomizeBy({ longitudinal, mechanism, channel: metric.channel, digest: bytes }, value, secret, randomness);
  if (!mayLeave(device, { metric: metric.name, epoch, payload })) return count(counts, "dropped");
  const dropped = put(state, { digest, epoch, payload: toBase64url(payload), day: dayOf(pending.now) }, device.segment, metric.segments);
  count(counts, "recorded");
  count(counts, "outbox_full", dropped);
}

function mayLeave({ onReport }: Device, view: ReportView): boolean {
  try {
    return onReport?.({ ...view, payload: view.payload.slice() }) !== false;
  } catch {
    return false; // a hook that fails must not let the report out
  }
}

export const isRetired = (state: State, { digest }: Metric): boolean => !!state.retired?.digests.includes(digest);

export function isIn(state: State, { parts, registry, randomness }: Device, metric: Metric, epoch: number): boolean {
  return !registry.seats?.[metric.digest] || parts.panel!.isInPanel(registry, metric, epoch, secretOf(state, randomness));
}

function requirePanel(state: State, device: Device, metric: Metric, epoch: number): void {
  if (!isIn(state, device, metric, epoch)) throw new NotInPanelError(`${metric.name}: is not in the panel of this device now`);
}
