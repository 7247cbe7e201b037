/**
 * Sending what waits.
 *
 * Each upload has a time of its own, so that nothing but its content says whose it is: a pass of the
 * schedule sends one upload, and what was tried before is always alone in its pass.  Of several tabs
 * or processes one makes the pass, as it claims the upload in the document.
 */

import { dayOf } from "../core/epoch.js";
import { TransportError } from "../core/errors.js";
import type { Randomness } from "../core/randomness.js";
import { expire, keepAcknowledged, waiting } from "../storage/outbox.js";
import type { State, Times } from "../storage/state.js";
import type { Store } from "../storage/store.js";
import * as schedule from "./schedule.js";
import * as sealing from "./sealing.js";
import type { Upload } from "./sealing.js";
import { inTime, LATE, within } from "./patience.js";
import type { fetchRetired, RetirementParts } from "./retired.js";
import type { Purse } from "./tokens.js";
import { type Answer, outcomeOf, readAcknowledgement, TOO_LARGE } from "./transport.js";
import { reportsOf } from "../wire/reports.js";

/** Seconds; a pass so late was missed, as the timer looks twice in that time. */
const ASLEEP = 600;

/** What became of all that waited when a flush was asked for. */
export interface Delivery {
  /** Whether nothing waits any more. */
  readonly complete: boolean;
  /** Reports and values still here; null if that cannot be known. */
  readonly waiting: number | null;
  /** Milliseconds until a further flush may send. */
  readonly wait: number;
}

/** What an uploader works with. */
export interface UploaderParts extends RetirementParts {
  readonly store: Store;
  /** Unix time in seconds. */
  readonly now: () => number;
  readonly randomness: Randomness;
  readonly fetchRetired: typeof fetchRetired | undefined;
  /** What has a one-time token for each upload. */
  readonly purse?: Purse | undefined;
}

/** Moves reports from the document to the collector.  Its promises reject with a StoreError or EntropyError. */
export class Uploader {
  #memory: sealing.Memory;
  #times: Times | undefined;
  /** Unix time, of this process only. */
  #restUntil = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: UploaderParts) {
    this.#memory = sealing.newMemory(parts.transport.alone, parts.purse);
  }

  /** Whether the last try must be repeated. */
  get failing(): boolean {
    return !!this.#times?.failures;
  }

  /** Returns the seconds from Unix time `now` until the next pass of `run`; 0: it is due. */
  async wait(now: number): Promise<number> {
    const { store, randomness } = this.parts;
    const first = !this.#times;
    if (first) {
      this.#times = await store.read(({ times }) => ({ ...times }));
      if (!this.#times.next) await this.#update(({ times }) => times.next || schedule.plan(times, now, randomness));
    }
    if (this.#missed(this.#times!, now, first)) {
      this.#restUntil = await this.#update(({ times }) =>
        // another tab or process may have made the pass
        this.#missed(times, now, first) ? schedule.rest(times, now, randomness) : this.#restUntil);
    }
    return Math.max(schedule.wait(this.#times!, now), this.#rest(now));
  }

  /**
   * Makes one pass if it is due by the schedule that all processes share.
   *
   * After `timeout` milliseconds no upload is begun and no answer awaited.  The `last` pass of a
   * process that lived shortly does not wait for a better moment.
   */
  async run(timeout: number, last = false): Promise<void> {
    const now = this.parts.now();
    if ((await this.wait(now)) <= 0 || (last && schedule.wait(this.#times!, now) <= 0)) await this.#pass(timeout, true);
  }

  /** Makes one pass now, unless an earlier failure must be waited for. */
  flush(timeout: number): Promise<void> {
    return this.#pass(timeout, false);
  }

  /** Returns what waits, `queued` values included, and for how long it must. */
  async delivery(queued: number): Promise<Delivery> {
    const [reports, times] = await this.parts.store.read((state) => [waiting(state), { ...state.times }] as const);
    const all = reports + queued;
    return { complete: !all, waiting: all, wait: Math.ceil(1_000 * schedule.backoff(times, this.parts.now())) };
  }

  /** Sends upload after upload, as far as they may share a pass, until one must wait. */
  async #pass(timeout: number, scheduled: boolean): Promise<void> {
    const end = performance.now() + timeout;
    const left = (): number => end - performance.now();
    if (!(timeout > 0)) return; // the schedule stays as it is
    const before = this.#turn;
    let leave = (): void => undefined;
    this.#turn = new Promise<void>((resolve) => (leave = resolve));
    try {
      // if it takes longer, another is sending the same uploads
      if ((await within(before, timeout)) === LATE) return;
      // an upload right after a request for tokens would link the two
      if (await this.#filled(scheduled, left())) return;
      let upload = await this.#begin(scheduled);
      let accepted = false;
      while (upload) {
        const answer = await this.#send(upload, left());
        if (!answer) break;
        const smaller = answer.status === TOO_LARGE ? await this.#split(upload) : null;
        if (!smaller && (await this.#mustWait(answer))) break;
        accepted ||= outcomeOf(answer) === "accepted";
        const alone = scheduled || !upload.rows.length;
        upload = smaller ?? (await this.#commit(upload, answer, left() > 0 && !alone));
      }
      if (accepted) await this.parts.fetchRetired?.(this.parts, (change) => this.#update(change), left());
    } finally {
      void before.then(leave);
    }
  }

  /** Whether this pass was one for tokens. */
  async #filled(scheduled: boolean, timeout: number): Promise<boolean> {
    const { purse, store } = this.parts;
    if (!purse || (await store.read((state) => purse.due(state, scheduled))) === null) return false;
    return purse.fill((change) => this.#update(change), timeout, scheduled);
  }

  /** In one change: drops what is too old, takes an upload, and claims this pass for it. */
  async #begin(scheduled: boolean): Promise<Upload | null> {
    const { maySend, randomness, stats } = this.parts;
    const [tooOld, upload] = await this.#update((state): [number, Upload | null] => {
      const { times } = state;
      const now = this.parts.now();
      if ((scheduled ? schedule.wait : schedule.backoff)(times, now) > 0) return [0, null];
      const dropped = expire(state, dayOf(now));
      if (scheduled && !schedule.mayDepart(times, now)) {
        // only an observer of the last try can tell that it is this device
        const repeated = maySend() ? sealing.sealed(state, times.claim, this.#memory) : null;
        if (!repeated) schedule.release(times); // another has its answer, or it is too old or erased
        return [dropped, repeated && this.#claim(state, repeated)];
      }
      const departing = this.#next(state, !!times.failures || times.claim !== "");
      schedule.plan(times, now, randomness, sealing.lots(state, this.#memory) - 1);
      return [dropped, departing];
    });
    stats.add("too_old", tooOld);
    return upload;
  }

  /** Returns the next upload and claims it; `failing` null: one that was never tried. */
  #next(state: State, failing: boolean | null): Upload | null {
    const { maySend, now, randomness } = this.parts;
    if (!maySend()) return null;
    const day = dayOf(now());
    const upload = failing === null
      ? sealing.seal(state, day, this.#memory, randomness)
      : sealing.take(state, day, this.#memory, randomness, failing);
    return upload && this.#claim(state, upload);
  }

  /** Notes that `upload` is being tried, for all processes. */
  #claim(state: State, upload: Upload): Upload {
    schedule.claim(state.times, this.parts.now(), upload.id);
    return sealing.putBehind(state, upload);
  }

  /** Returns the first of smaller uploads of the same reports, if there can be any. */
  async #split(upload: Upload): Promise<Upload | null> {
    const { maySend, now, randomness, stats } = this.parts;
    const split = await this.#update((state) => {
      const memory = maySend() ? sealing.sealSmaller(state, upload, dayOf(now()), this.#memory, randomness) : null;
      return memory && ([memory, this.#claim(state, memory.pieces[0]!)] as const);
    });
    if (!split) return null;
    this.#memory = split[0];
    stats.add("refused");
    return split[1];
  }

  /** In one change: deletes the answered `upload` and takes the next, if `more`. */
  async #commit(upload: Upload, answer: Answer, more: boolean): Promise<Upload | null> {
    const accepted = outcomeOf(answer) === "accepted";
    const [removed, following] = await this.#update((state) => {
      const gone = sealing.remove(state, upload.id);
      if (gone && accepted) keepAcknowledged(state, reportsOf(upload.body), dayOf(this.parts.now()));
      schedule.release(state.times);
      return [gone, more ? this.#next(state, null) : null] as const;
    });
    if (removed) this.#count(upload, answer, accepted);
    return following;
  }

  /** Returns the answer to `upload`; null: it must wait. */
  async #send(upload: Upload, timeout: number): Promise<Answer | null> {
    const { maySend, stats, transport } = this.parts;
    if (timeout <= 0 || !maySend()) return null; // consent is checked again, as sealing took time
    try {
      const { body, token } = upload;
      const more = token === undefined ? undefined : this.parts.purse?.headers(token);
      const answer = await inTime(transport.send(body, timeout, more), timeout);
      outcomeOf(answer); // an application's own transport may return anything
      return answer;
    } catch (error) {
      // whatever it is, it must not be met in a loop
      stats.fail(error, 1, error instanceof TransportError ? "network" : "internal");
      await this.#postpone(0, error instanceof TransportError && error.unseen ? upload : null);
      return null;
    }
  }

  /** Whether `answer` is not the last word on its upload; that is counted and planned. */
  async #mustWait(answer: Answer): Promise<boolean> {
    const outcome = outcomeOf(answer);
    if (outcome === "accepted" || outcome === "permanent") return false;
    const { stats } = this.parts;
    stats.add(outcome === "transient" ? "postponed" : "refused");
    if (outcome === "incapable") {
      stats.warn("uploads", `uploads are turned away with status ${answer.status}: check endpoint, writeKey and what` +
        " stands between; reports are kept and tried again");
    }
    await this.#postpone(answer.retryAfter ?? 0, null);
    return true;
  }

  /** Waits.  What is `unseen`, as no connection was made, need not stay as it was sealed. */
  async #postpone(retryAfter: number, unseen: Upload | null): Promise<void> {
    await this.#update((state) => {
      const unsealed = unseen !== null && sealing.unseal(state, unseen, this.#memory);
      schedule.postpone(state.times, this.parts.now(), retryAfter, this.parts.randomness, unsealed);
    });
  }

  #count(upload: Upload, answer: Answer, accepted: boolean): void {
    const { stats } = this.parts;
    if (!accepted) return stats.add("rejected", upload.reports);
    const { rejected, duplicate } = readAcknowledgement(answer);
    const refused = Math.min(rejected, upload.reports);
    stats.add("uploaded", upload.reports - refused);
    stats.add("rejected", refused);
    stats.add("duplicates", Number(duplicate));
  }

  /** Changes the document, and remembers its times. */
  async #update<T>(change: (state: State) => T): Promise<T> {
    let times: Times | undefined;
    const result = await this.parts.store.update((state) => {
      const changed = change(state);
      times = { ...state.times };
      return changed;
    });
    this.#times = times;
    return result;
  }

  /** Whether a pass fell due while this program, or the machine, did not run. */
  #missed(times: Times, now: number, first: boolean): boolean {
    if (schedule.wait(times, now) > 0 || this.#rest(now) > 0) return false;
    return first || now - Math.max(schedule.due(times, now), this.#restUntil) > ASLEEP;
  }

  #rest(now: number): number {
    const left = this.#restUntil - now;
    return left > 0 && left <= schedule.FIRST_REST ? left : 0; // a longer one: the clock was set back
  }
}
