/**
 * The ledger: what this device has spent, append-only, in whole nano-epsilon.
 *
 * A charge is made in the change that draws and queues its report, so neither exists without the
 * other.  Charges are never taken back.  Days are by the trusted clock, which no setting of a
 * clock makes run faster than the farthest it has shown.
 *
 * A charge counts for the days that its report is about: the day on which a value was recorded, or all
 * days from the first value that was added up to the last day of the epoch.  A week is within its cap
 * if the reports that are about any of its seven days are, whenever they are made.
 *
 * The memo says which values of a metric this device has been charged for, and holds none of them: a
 * tag can only be connected to a value with the secret.
 *
 * Of a permanent or two-layer metric the first report of a value costs something, and later ones
 * nothing.  So the costs of each day say, without any noise, on which days a value was new.  When that
 * is to be forgotten, which epochs have their report stays, and so does the sum; but all that the
 * metric has cost is carried to the day of its latest report, where it counts no less, and longer.
 *
 * So that the document stays small, a cost that is older than any week a report can still be about is
 * kept in the sum alone.  A report about days before that is refused: what they have cost is forgotten.
 */

import { toBase64url, utf8, concat } from "../core/bytes.js";
import { AlreadyReportedError, BudgetExhaustedError } from "../core/errors.js";
import { Shake256 } from "../core/hashing.js";
import { type Caps, WEEK, capTexts } from "../privacy/caps.js";
import type { Account, Cost, State } from "./state.js";

/** The digest of a charge for what may have been spent elsewhere; of no metric. */
export const DOUBT = "";

/** Days: an epoch of 28, 14 in which the collector takes its report, and a week of clocks that were set. */
const OLDEST_REPORT = 49;
const KEPT = OLDEST_REPORT + WEEK - 1;

/**
 * Ranges of epochs of a metric; six weeks of an hourly one that is used twelve times a day.  Beyond,
 * what lies between the earliest counts as reported: no collector takes a report that old.
 */
const MAX_RANGES = 512;

/** Reports counted of a value; further ones cost nothing. */
const MAX_REPORTS = 2;
const TAG_SIZE = 16; // bytes

/** What one report costs: epsilon rounded up to nano-epsilon, delta to whole 1e-12. */
export interface Charge {
  readonly digest: string;
  readonly epoch: number;
  /** 0 for the repeat of a permanent response. */
  readonly nano: number;
  readonly delta?: number;
  /** The most that another value would have cost: it must fit the caps as well. */
  readonly dearest?: number;
  /** Trusted days, both included, that the report is about; without them the day of the charge. */
  readonly days?: readonly [first: number, last: number] | undefined;
}

/** What was charged: nano-epsilon, and whole 1e-12 of delta. */
export interface ChargeTotals {
  /** Of the seven days that end with the day asked for. */
  readonly week: number;
  readonly lifetime: number;
  readonly delta: number;
}

/**
 * Appends `charge` as made on the trusted `day`; if it is refused, nothing changed.
 *
 * What decides is the dearest that the report could be, whatever its value: else it would depend on
 * the value whether there is a report at all.
 * Throws AlreadyReportedError: this metric has its report for this epoch, or for this session.
 * Throws BudgetExhaustedError: a cap would be, or for another value might be, passed.
 */
export function charge(state: State, caps: Caps, entry: Charge, day: number): void {
  if (isReported(state, entry.digest, entry.epoch)) {
    throw new AlreadyReportedError(`epoch=${entry.epoch}: has its one report of this metric`);
  }
  const [first, last] = entry.days ?? [day, day];
  if (first < day - OLDEST_REPORT) {
    throw new BudgetExhaustedError(`days=${first}: must be at most ${OLDEST_REPORT} days ago`);
  }
  const accounts = Object.values(state.ledger);
  const own = state.ledger[entry.digest];
  const dearest = Math.max(entry.nano, entry.dearest ?? 0);
  const { lifetime, delta } = totalsOf(state, day);
  const spent = (of: Account[]): number => dearestWeek(of, first, last, day);
  requireWithin(caps, "report", 0, dearest);
  requireWithin(caps, "metric_week", own ? spent([own]) : 0, dearest);
  requireWithin(caps, "week", spent(accounts), dearest);
  requireWithin(caps, "lifetime", lifetime, dearest);
  requireWithin(caps, "delta", delta, entry.delta ?? 0);
  append(state, entry, first, last);
  fold(state, day);
}

/** Charges the rest of the week if the ledger is in doubt; returns whether it was. */
export function beginLedger(state: State, caps: Caps, day: number): boolean {
  if (!state.doubt) return false;
  const nano = Math.max(0, caps.week - totalsOf(state, day).week);
  const epoch = (state.ledger[DOUBT]?.epochs.at(-1)?.[1] ?? -1) + 1;
  append(state, { digest: DOUBT, epoch, nano }, day, day);
  state.doubt = false;
  return true;
}

/** Whether the metric has its one report of the epoch; in a session, of any. */
export function isReported(state: State, digest: string, epoch: number): boolean {
  const epochs = state.ledger[digest]?.epochs ?? [];
  return (state.session && epochs.length > 0) || epochs.some(([first, last]) => first <= epoch && epoch <= last);
}

/** Returns what the seven days that end with the trusted `day`, and all days, have cost. */
export function totalsOf(state: State, day: number): ChargeTotals {
  const accounts = Object.values(state.ledger);
  return {
    week: sum(accounts.flatMap(({ costs }) => costs.filter(({ last }) => last > day - WEEK).map(({ nano }) => nano))),
    lifetime: sum(accounts.map(({ nano }) => nano)),
    delta: sum(accounts.map(({ delta }) => delta)),
  };
}

/** Returns the tag under which a value is remembered. */
export function tagOf(secret: Uint8Array, digest: Uint8Array, encoded: Uint8Array): string {
  return toBase64url(new Shake256(concat(secret, digest, utf8("charge"), encoded)).read(TAG_SIZE));
}

/** Returns how many reports of the value of `tag` there were; 2 stands for any more. */
export function reportsOf(state: State, digest: string, tag: string): number {
  return state.ledger[digest]?.memo[tag] ?? 0;
}

/** Counts one more report of the value of `tag`. */
export function addReport(state: State, digest: string, tag: string): void {
  const { memo } = accountOf(state, digest);
  memo[tag] = Math.min(MAX_REPORTS, (memo[tag] ?? 0) + 1);
}

/** Carries all that each repeated metric has cost to the day of its latest report. */
export function forgetChanges(state: State): void {
  for (const [digest, account] of Object.entries(state.ledger)) {
    // a report of a fresh metric always costs something: a day that cost nothing had repeats alone
    const repeated = hasMemo(account) || account.costs.some(({ nano }) => nano === 0);
    const latest = latestOf(account);
    if (latest && repeated && digest !== DOUBT) account.costs = [{ ...latest, nano: account.nano }];
  }
}

function append(state: State, entry: Charge, first: number, last: number): void {
  const account = accountOf(state, entry.digest);
  addEpoch(account.epochs, entry.epoch);
  const cost = account.costs.find((known) => known.first === first && known.last === last);
  if (cost) cost.nano = sum([cost.nano, entry.nano]);
  else account.costs.push({ first, last, nano: entry.nano });
  account.nano = sum([account.nano, entry.nano]);
  account.delta = sum([account.delta, entry.delta ?? 0]);
}

function accountOf(state: State, digest: string): Account {
  return (state.ledger[digest] ??= { epochs: [], costs: [], nano: 0, delta: 0, memo: {} });
}

/** Adds an epoch that is not in `epochs`; of too many ranges the earliest two become one. */
function addEpoch(epochs: [number, number][], epoch: number): void {
  let at = epochs.findIndex(([first]) => first > epoch);
  if (at < 0) at = epochs.length;
  epochs.splice(at, 0, [epoch, epoch]);
  if (epochs[at + 1]?.[0] === epoch + 1) join(epochs, at);
  if (at && epochs[at - 1]![1] + 1 === epoch) join(epochs, at - 1);
  if (epochs.length > MAX_RANGES) join(epochs, 0);
}

/** Makes one range of the one at index `at` and the next. */
function join(epochs: [number, number][], at: number): void {
  epochs[at]![1] = epochs.splice(at + 1, 1)[0]![1];
}

/**
 * Returns what the dearest seven days cost that hold any of the days from `first` to `last`.
 *
 * Nothing is charged for a day to come, so of the weeks that hold today, or end later, the one that
 * ends today is the dearest.
 */
function dearestWeek(accounts: Account[], first: number, last: number, today: number): number {
  const costs = accounts.flatMap((account) => account.costs).filter((cost) => cost.last > first - WEEK);
  let most = 0;
  for (let end = first; end <= Math.max(first, Math.min(last + WEEK - 1, today)); end++) {
    const week = costs.filter((cost) => cost.first <= end && cost.last > end - WEEK);
    most = Math.max(most, sum(week.map(({ nano }) => nano)));
  }
  return most;
}

/** Drops the costs that no report can be near any more. */
function fold(state: State, day: number): void {
  for (const account of Object.values(state.ledger)) {
    // a cost of nothing says that its metric repeats, unless the memo says so
    account.costs = account.costs.filter(
      (cost) => cost.last >= day - KEPT || (cost.nano === 0 && !hasMemo(account)),
    );
  }
}

function latestOf({ costs }: Account): Cost | undefined {
  return costs.reduce<Cost | undefined>(
    (latest, cost) =>
      !latest || cost.last > latest.last || (cost.last === latest.last && cost.first > latest.first) ? cost : latest,
    undefined,
  );
}

const hasMemo = ({ memo }: Account): boolean => Object.keys(memo).length > 0;

/** Adds up whole numbers; at most what is exact, which is above every cap. */
function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => Math.min(total + number, Number.MAX_SAFE_INTEGER), 0);
}

function requireWithin(caps: Caps, name: keyof Caps, spent: number, cost: number): void {
  if (!(spent + cost <= caps[name])) {
    throw new BudgetExhaustedError(`caps.${name}=${capTexts(caps)[name]}: must not be passed`);
  }
}
