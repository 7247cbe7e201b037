/**
 * The order in which the parts of a client act, and the timer that writes and sends in the background.
 *
 * Nothing here throws into the application, and no promise of it is left to reject.  What was recorded
 * is written at once, and further values together four times a second at most.  Nothing is sent at the
 * end of a page: a beacon would tell when somebody left.
 */

import { DAY, epochOf, epochStart } from "../core/epoch.js";
import { ConsentError, EntropyError, StoreError } from "../core/errors.js";
import { MISTAKES, reasonOf, type Stats } from "../core/stats.js";
import { within } from "../upload/patience.js";
import { SHORTEST_REST } from "../upload/schedule.js";
import { type Delivery, Uploader } from "../upload/uploader.js";
import type { Purse } from "../upload/tokens.js";
import type { Transport } from "../upload/transport.js";
import type { ConsentSwitch } from "../privacy/consent.js";
import type { State } from "../storage/state.js";
import type { Store } from "../storage/store.js";
import type { Counts } from "./counts.js";
import { Erasure } from "./erasure.js";
import { Inbox } from "./inbox.js";
import type { Device } from "./parts.js";
import { commit, type Pending } from "./recorder.js";

/** Of a change; the write is shared, and the turn at the store is short. */
const GROUP_SIZE = 100;
/** Milliseconds that values wait for company after others were written. */
const GROUP_DELAY = 250;
/** Seconds; a clock that was set, a long sleep or a user's no is noticed after these at the latest. */
const MAX_IDLE = 300;
/** Seconds until the schedule is asked again while a pass runs, or after the store failed. */
const RETRY = 60;
const HOUR = 3_600;
/** Seconds by which two clocks differ only if somebody set one. */
const SET_BACK = 60;
/** Milliseconds of a scheduled pass. */
const UPLOAD_TIMEOUT = 120_000;

type Timer = ReturnType<typeof setTimeout>;

/** What an engine drives. */
export interface EngineParts {
  readonly device: Device;
  readonly store: Store;
  readonly transport: Transport;
  readonly purse: Purse | undefined;
  readonly consent: ConsentSwitch;
  readonly stats: Stats;
  /** Unix time in seconds. */
  readonly now: () => number;
  /** Whether `record` throws what a developer did wrong, too. */
  readonly strict: boolean;
  /** Keeps `write` to be called before the process ends; returns what forgets it. */
  readonly atEnd: ((write: () => void) => () => void) | undefined;
}

export class Engine {
  readonly erasure: Erasure;
  private readonly parts: EngineParts;
  readonly #inbox: Inbox;
  readonly #uploader: Uploader;
  readonly #born = performance.now();
  #closed = false;
  #answered = 0; // Unix time at which the application last passed on the user's answer
  #answeredAt = 0; // the same by a monotonic clock
  #turn: Promise<unknown> = Promise.resolve();
  #sending: Promise<void> | undefined;
  #delay: Timer | undefined; // until what waits is written
  #idle: Timer | undefined; // until something is due
  #written = -Infinity;
  #writing = 0; // writes that have not ended
  #lost = false; // whether the store took no value since it took one
  #forgetEnd: (() => void) | undefined;
  #epochsSeen = ""; // at which windows were last opened and closed

  constructor(given: EngineParts) {
    const { consent, device, now, purse, stats, transport } = given;
    const store = this.#heeding(given.store);
    this.parts = { ...given, store };
    const { parts, randomness, registry } = device;
    this.#inbox = new Inbox(registry, consent, stats, parts);
    const maySend = (): boolean => consent.maySend;
    this.#uploader = new Uploader({ store, transport, maySend, stats, now, randomness, retireKey: registry.retireKey, fetchRetired: parts.retirement?.fetchRetired, purse });
    this.erasure = new Erasure(store, consent, stats, () => this.#answered, () => this.#inbox.clear());
    void this.applyConsent();
  }

  /** Checks `value` and queues it.  Throws only if strict. */
  record(name: unknown, value: unknown): void {
    const { now, stats, strict } = this.parts;
    try {
      if (this.#closed) stats.add("closed");
      else if (this.#inbox.put(name, value, now())) this.#notify();
    } catch (error) {
      stats.fail(error);
      if (strict && MISTAKES.includes(reasonOf(error))) throw error;
    }
  }

  /** Obeys the consent in force: erases, if it is denied.  Returns when that is done, or has failed. */
  async applyConsent(): Promise<void> {
    this.#answered = this.parts.now();
    this.#answeredAt = performance.now();
    this.erasure.apply();
    this.#epochsSeen = "";
    if (!this.parts.consent.erasureDue) return;
    if (this.#closed) this.parts.store.open?.(); // to erase, and it is closed again
    await this.#look();
    if (this.#closed) await this.#counting(() => this.parts.store.close());
  }

  /** Sees to the windows and the schedule from now on, whether or not anything is recorded. */
  watch(): void {
    if (!this.#closed) void this.#look();
  }

  /** Writes down what is queued, sends what waits, and returns what still does. */
  async flush(timeout: number): Promise<Delivery> {
    const { consent } = this.parts;
    this.erasure.refresh();
    await this.#counting(() =>
      held(timeout, async (left) => {
        if (!(await this.#inTurn(() => this.erasure.run())) || this.#closed || !consent.granted) return;
        await this.#write();
        await this.#uploader.flush(left());
      }));
    let delivery: Delivery = { complete: false, waiting: null, wait: 0 };
    // what the store did not take waits nowhere, and one that hangs says nothing
    if (this.#closed || this.#lost || this.#writing) return delivery;
    await this.#counting(() => held(GROUP_DELAY, async () => void (delivery = await this.#uploader.delivery(this.#inbox.size))));
    return delivery;
  }

  /** Writes down what is queued, sends what is due, and closes the store. */
  async close(timeout: number): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#idle);
    const { consent, store } = this.parts;
    await this.#counting(() =>
      held(timeout, async (left) => {
        this.erasure.refresh();
        await this.#write();
        await this.#sending;
        if (!consent.maySend || left() <= 0) return;
        const short = performance.now() - this.#born < 1_000 * SHORTEST_REST;
        // a document that outlives this client keeps to the schedule, and hides its end
        if (store.durable) await this.#uploader.run(left(), short);
        else if (!this.#uploader.failing) await this.#uploader.flush(left());
      }));
    clearTimeout(this.#delay);
    clearTimeout(this.#idle);
    this.#forgetEnd?.();
    await this.#counting(() => held(timeout, () => store.close()));
  }

  /** Has what waits written soon: the first value at once. */
  #notify(): void {
    this.#forgetEnd ??= this.parts.atEnd?.(() => void this.#write());
    if (this.#writing || this.#delay !== undefined) return;
    const wait = this.#written + GROUP_DELAY - performance.now();
    if (wait <= 0) void this.#write(); // which takes what waits after this turn: all of a burst
    else this.#delay = resting(wait, () => this.#write());
  }

  /** Writes all that waits, and sees to what is due.  Never rejects. */
  async #write(): Promise<void> {
    clearTimeout(this.#delay);
    this.#delay = undefined;
    this.#writing++;
    await this.#inTurn(async () => {
      for (let group; (group = this.#inbox.take(GROUP_SIZE)).length;) await this.#commit(group);
    });
    this.#writing--;
    this.#written = performance.now();
    if (this.#inbox.size) return this.#notify();
    this.#forgetEnd?.();
    this.#forgetEnd = undefined;
    await this.#look();
  }

  /** Turns `group` into reports, or counts why not. */
  async #commit(group: Pending[], denials?: number): Promise<void> {
    const { consent, device, stats, store } = this.parts;
    const values = group.reduce((all, pending) => all + pending.count, 0);
    this.erasure.refresh();
    denials ??= consent.erasuresRequested; // of one since, nothing of the group is reported, even after a new yes
    if (!(await this.erasure.run())) {
      this.#lost = true;
      return stats.add("store", values);
    }
    try {
      const { counts, settled } = await store.update((state) => {
        if (consent.erasuresRequested !== denials) throw new ConsentError("consent=denied: was said after this value");
        return commit(state, device, group);
      });
      this.#lost = false;
      this.#inbox.settle(settled);
      this.#count(counts);
    } catch (error) {
      this.#lost ||= error instanceof StoreError;
      if (error instanceof StoreError || error instanceof EntropyError || group.length === 1) stats.fail(error, values);
      else for (const pending of group) await this.#commit([pending], denials); // nothing of the group happened: find the one
    }
  }

  /** Sees to what is due, and to when that is next.  Never rejects. */
  async #look(): Promise<void> {
    clearTimeout(this.#idle);
    const wait = (await this.#counting(() => this.#due())) ?? RETRY;
    if (this.#closed) return;
    clearTimeout(this.#idle);
    this.#idle = resting(1_000 * Math.min(Math.max(wait, GROUP_DELAY / 1_000), MAX_IDLE), () => this.#look());
  }

  /** Does what is due; returns the seconds until something is. */
  async #due(): Promise<number> {
    const { consent, now } = this.parts;
    this.erasure.refresh();
    if (!(await this.#inTurn(() => this.erasure.run()))) return this.erasure.wait;
    if (!consent.granted) return HOUR; // a value that comes after a new consent looks again
    const ends = await this.#inTurn(() => this.#tick());
    if (this.#closed) return HOUR;
    const wait = await this.#uploader.wait(now());
    if (wait > 0) return Math.min(wait, ends);
    this.#sending ??= this.#counting(() => this.#uploader.run(UPLOAD_TIMEOUT)).then(() => (this.#sending = undefined));
    return RETRY;
  }

  /** Reports the windows whose epochs have ended, and opens those that are scheduled; returns when the next ends. */
  async #tick(): Promise<number> {
    const { device, now, store } = this.parts;
    const metrics = [...device.registry.metrics.values()].filter(({ aggregate }) => aggregate);
    const time = now();
    if (!metrics.length) return HOUR;
    const epochs = ["1h", ...metrics.map(({ every }) => every)].map((every) => epochOf(every, time)).join();
    const left = Math.min(...metrics.map(({ every }) => epochStart(every, epochOf(every, time) + 1))) - time;
    if (epochs === this.#epochsSeen) return left;
    if (metrics.some(({ otherwise }) => otherwise) || (await store.read(({ windows }) => windows.length))) {
      this.#count(await store.update((state) => device.parts.aggregates!.tick(state, device, time)));
    }
    this.#epochsSeen = epochs;
    return left;
  }

  /** Returns `store`, whose every use looks whether the user has said no in another tab or process since. */
  #heeding(store: Store): Store {
    const heed = ({ consent: denied }: State): void => {
      const { consent, now } = this.parts;
      const answered = now() - (performance.now() - this.#answeredAt) / 1_000;
      const since = answered < this.#answered - SET_BACK ? answered : this.#answered;
      // one from beyond tomorrow was before the clock was set back
      if (consent.consent !== "granted" || !(Number(denied) > since && Number(denied) < now() + DAY)) return;
      consent.consent = "denied";
      this.erasure.forget(); // who said it erases
    };
    const heeding = <T>(use: (state: State) => T) => (state: State): T => {
      heed(state);
      return use(state);
    };
    return {
      durable: store.durable,
      update: (change) => store.update(heeding(change)),
      read: (look) => store.read(heeding(look)),
      open: () => store.open?.(),
      close: () => store.close(),
    };
  }

  #count(counts: Counts): void {
    for (const [reason, count] of counts) this.parts.stats.add(reason, count);
  }

  /** Does `work` after all that came before it. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#turn.then(work);
    this.#turn = next.catch(() => undefined);
    return next;
  }

  /** Does `work`; an application must not fail because its telemetry does. */
  async #counting<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.parts.stats.fail(error);
      return undefined;
    }
  }
}

/** Calls `action` after so many milliseconds, and keeps no process alive for it. */
function resting(wait: number, action: () => unknown): Timer {
  const timer = setTimeout(action, wait);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}

/** Does `work` within `timeout` milliseconds, which a process waits for; what takes longer goes on alone. */
async function held(timeout: number, work: (left: () => number) => Promise<void>): Promise<void> {
  const end = performance.now() + timeout;
  await within(work(() => end - performance.now()), timeout, true);
}
