/**
 * Windows: values add up on the device until their epoch is over, and then make one report.
 *
 * A window is masked by the device secret, and of one length whatever was recorded.  It is opened by
 * the first value of its epoch or, for a metric with `otherwise`, as soon as a client sees to it, so
 * that a report is made whether or not anything happened.
 *
 * Masked bytes say nothing without the secret.  Each write draws a nonce, and so a keystream of its
 * own.  A tag detects damage, and another secret, place or layout than at the write.
 */

import { concat, fromBase64url, fromHex, fromNumber, toBase64url, utf8 } from "../core/bytes.js";
import { dayOf, epochOf, epochStart } from "../core/epoch.js";
import { Shake256 } from "../core/hashing.js";
import type { Randomness } from "../core/randomness.js";
import type { Encoded } from "../mechanisms/mechanism.js";
import { type AggregateState, aggregatorOf } from "../registry/aggregates.js";
import type { Metric, Registry } from "../registry/compiled.js";
import { isReported } from "../storage/ledger.js";
import { MAX_REPORT_AGE } from "../storage/outbox.js";
import { secretOf } from "../storage/secret.js";
import type { MaskedWindow, State } from "../storage/state.js";
import { count, type Counts } from "./counts.js";

const NONCE_SIZE = 16; // bytes; one of 2^128 for each write
const TAG_SIZE = 16; // bytes
const HEAD = 12; // bytes: the last day of the epoch; trusted days of the opening and of that last
const STREAM = "hearsay window 1 stream\0";
const TAG = "hearsay window 1 tag\0";

/** The present epoch day by both clocks. */
export interface Today {
  readonly trusted: number;
  readonly wall: number;
}

/** A window that is over, and what is to be reported of it. */
export interface EndedWindow {
  readonly metric: Metric;
  readonly epoch: number;
  readonly value: Encoded;
  /** The days that the value can be about, as the ledger counts them. */
  readonly days: readonly [first: number, last: number];
}

/** What was in a window. */
interface Content {
  readonly lastDay: number;
  readonly days: readonly [first: number, last: number];
  /** Null: nothing was recorded. */
  readonly state: AggregateState | null;
}

/** Adds what `values` values have become to the window of their epoch, opened `today` unless reported or open. */
export function addTo(
  state: State, metric: Metric, epoch: number, later: AggregateState, values: number, today: Today,
  randomness: Randomness, counts: Counts,
): void {
  const window = find(state, metric, epoch);
  if (!window && isReported(state, metric.digest, epoch)) return count(counts, "already_reported", values);
  const content = window && contentOf(state, metric, window);
  if (!content) {
    count(counts, "window_opened");
    if (window) count(counts, "window_dropped"); // masked by another secret
  }
  const merged = aggregatorOf(metric).merge(content?.state ?? null, later);
  const { lastDay, days: [first, last] } = content ?? opened(metric, epoch, today);
  const days = [first, Math.max(last, today.trusted)] as const; // a clock was set back
  write(state, metric, epoch, { lastDay, days, state: merged }, randomness);
  count(counts, "aggregated", values);
}

/** Opens a window of the present epoch for each scheduled metric that may report. */
export function openScheduled(
  state: State, registry: Registry, now: number, trusted: number, mayOpen: (metric: Metric, epoch: number) => boolean,
  randomness: Randomness, counts: Counts,
): void {
  const today = { trusted, wall: dayOf(now) };
  for (const metric of registry.metrics.values()) {
    if (!metric.otherwise || today.wall > metric.lastDay) continue;
    const epoch = epochOf(metric.every, now);
    if (!mayOpen(metric, epoch) || find(state, metric, epoch) || isReported(state, metric.digest, epoch)) continue;
    write(state, metric, epoch, opened(metric, epoch, today), randomness);
    count(counts, "window_opened");
  }
}

/** Removes and returns the windows that ended before Unix time `now`, on a trusted `day`. */
export function takeEnded(state: State, registry: Registry, now: number, day: number, counts: Counts): EndedWindow[] {
  const metrics = new Map([...registry.metrics.values()].map((metric) => [metric.digest, metric]));
  const ended: EndedWindow[] = [];
  const kept: MaskedWindow[] = [];
  for (const window of state.windows) {
    const metric = metrics.get(window.digest);
    const content = metric?.aggregate ? contentOf(state, metric, window) : head(state, window);
    const isOld = !content || content.lastDay < dayOf(now) - MAX_REPORT_AGE; // the collector would take no report
    if (!metric?.aggregate) {
      // another version of the application may be running beside this one, so younger ones are left
      if (isOld) count(counts, "window_dropped");
      else kept.push(window);
    } else if (window.epoch >= epochOf(metric.every, now)) {
      kept.push(window);
    } else if (isOld) {
      count(counts, "window_dropped");
    } else {
      const [first, last] = content.days;
      const held = (content as Content).state;
      const value = held === null ? metric.otherwise! : aggregatorOf(metric).result(held);
      ended.push({ metric, epoch: window.epoch, value, days: [Math.min(first, day), Math.min(last, day)] });
      count(counts, "window_closed");
    }
  }
  state.windows = kept;
  return ended;
}

const find = (state: State, { digest }: Metric, epoch: number): MaskedWindow | undefined =>
  state.windows.find((window) => window.digest === digest && window.epoch === epoch);

/**
 * Returns an empty window opened `today`, which is about the trusted days to the end of its epoch.
 *
 * Trusted time is never faster than a clock that is not set back, so it comes no further by then.
 */
function opened(metric: Metric, epoch: number, { trusted, wall }: Today): Content {
  const lastDay = dayOf(epochStart(metric.every, epoch + 1) - 1);
  const last = trusted + lastDay - wall;
  return { lastDay, days: [Math.min(trusted, last), last], state: null };
}

function write(state: State, metric: Metric, epoch: number, content: Content, randomness: Randomness): void {
  const aggregator = aggregatorOf(metric);
  const held = content.state !== null;
  const bytes = new Uint8Array(HEAD + 1 + aggregator.size);
  const view = new DataView(bytes.buffer);
  [content.lastDay, ...content.days].forEach((day, i) => view.setInt32(4 * i, day));
  bytes[HEAD] = Number(held);
  if (content.state !== null) bytes.set(aggregator.dump(content.state), HEAD + 1);
  const sealed = toBase64url(mask(secretOf(state, randomness), placeOf(metric.digest, epoch), bytes, randomness));
  state.windows = state.windows.filter((window) => window !== find(state, metric, epoch));
  state.windows.push({ digest: metric.digest, epoch, sealed });
}

/** Returns the days of a window, whatever its metric is; null if this device's secret did not mask it. */
function head(state: State, { digest, epoch, sealed }: MaskedWindow): Omit<Content, "state"> & { body: Uint8Array } | null {
  const secret = state.secret && fromBase64url(state.secret);
  const masked = fromBase64url(sealed);
  const bytes = secret && masked && unmask(secret, placeOf(digest, epoch), masked);
  if (!bytes || bytes.length < HEAD + 1) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { lastDay: view.getInt32(0), days: [view.getInt32(4), view.getInt32(8)], body: bytes.slice(HEAD) };
}

function contentOf(state: State, metric: Metric, window: MaskedWindow): Content | null {
  const known = head(state, window);
  const aggregator = aggregatorOf(metric);
  if (known?.body.length !== 1 + aggregator.size) return null;
  return { ...known, state: known.body[0] ? aggregator.load(known.body.slice(1)) : null };
}

/** What a window belongs to, as bytes; none are a prefix of another's. */
function placeOf(digest: string, epoch: number): Uint8Array {
  return concat(Uint8Array.of(0), fromHex(digest), fromNumber(BigInt.asUintN(64, BigInt(epoch)), 8));
}

/** Returns `content` masked under the `secret`.  Throws EntropyError: no nonce could be drawn. */
export function mask(secret: Uint8Array, place: Uint8Array, content: Uint8Array, randomness: Randomness): Uint8Array {
  const nonce = fromNumber(randomness.uniform(1n << BigInt(8 * NONCE_SIZE)), NONCE_SIZE);
  const context = concat(secret, place, nonce);
  return concat(nonce, withStream(context, content), tagOf(context, content));
}

/** Returns the content of `masked`; null if this secret did not mask it for this place. */
export function unmask(secret: Uint8Array, place: Uint8Array, masked: Uint8Array): Uint8Array | null {
  if (masked.length < NONCE_SIZE + TAG_SIZE) return null;
  const context = concat(secret, place, masked.slice(0, NONCE_SIZE));
  const content = withStream(context, masked.slice(NONCE_SIZE, -TAG_SIZE));
  const tag = tagOf(context, content);
  return masked.slice(-TAG_SIZE).every((byte, i) => byte === tag[i]) ? content : null;
}

/** Returns `content` XOR the keystream of `context`; twice gives it back. */
function withStream(context: Uint8Array, content: Uint8Array): Uint8Array {
  const stream = new Shake256(concat(utf8(STREAM), context)).read(content.length);
  return content.map((byte, i) => byte ^ stream[i]!);
}

const tagOf = (context: Uint8Array, content: Uint8Array): Uint8Array =>
  new Shake256(concat(utf8(TAG), context, content)).read(TAG_SIZE);
