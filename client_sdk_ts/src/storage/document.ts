/**
 * The document as text: JSON behind a checksum, read defensively.
 *
 * A text that is damaged says nothing that can be relied upon, so what was spent is not known: a new
 * document is begun, in doubt.  If the checksum holds but a field is none that was ever written, what
 * can be relied upon stays: the ledger, the clock, the consent and what was retired, each if it is whole.  A document
 * of a newer version is refused, and never written over; every version begins with this checksum.
 *
 * The damaged text is not set aside: a denial would have to erase it, and no one needs it.
 */

import { toHex, utf8 } from "../core/bytes.js";
import { StoreError } from "../core/errors.js";
import { sha256 } from "../core/hashing.js";
import { erase } from "./erasure.js";
import { type HeldToken, newState, STATE_VERSION, type State } from "./state.js";

const HEAD = 17; // characters: sixteen digits and a space

/** Returns the text of `state`.  Throws StoreError: it has a field that could not be read again. */
export function writeDocument(state: State): string {
  if (!record(STATE)(state)) throw new StoreError("document: a field is none that could be read again");
  const json = JSON.stringify(state);
  return `${checksum(json)} ${json}`;
}

/**
 * Returns the document of `text`; a new one if there is none.
 *
 * Throws StoreError: a newer version wrote it.
 */
export function readDocument(text: unknown): State {
  if (text === undefined || text === null) return newState();
  const value = jsonOf(text);
  const version = value?.version as unknown;
  if (Number.isSafeInteger(version) && (version as number) > STATE_VERSION) {
    throw new StoreError(`document: version ${version} was written by a newer version; nothing of it is changed`);
  }
  return version === STATE_VERSION && record(STATE)(value) ? (value as State) : restOf(value);
}

/** Returns a document in doubt, with what of a `value` can be relied upon. */
function restOf(value: Partial<State> | null): State {
  const state = newState();
  for (const key of ["ledger", "clock", "retired", "consent"] as const) {
    if (value && STATE[key](value[key])) Object.assign(state, { [key]: value[key] });
  }
  return doubted(state);
}

/** Returns `state` as one that another device may have too: without what two must not say or know. */
export function doubted(state: State): State {
  state.doubt = true;
  if (state.clock) Object.assign(state.clock, { up: -1, credit: 0 }); // the time since the last reading was spent elsewhere
  erase(state);
  return state;
}

/** Returns the object in a text; null if it is damaged. */
function jsonOf(text: unknown): Partial<State> | null {
  if (typeof text !== "string" || !text.startsWith(`${checksum(text.slice(HEAD))} `)) return null;
  try {
    const value = JSON.parse(text.slice(HEAD)) as unknown;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Returns the beginning of the SHA-256 of `text`, in hexadecimal. */
const checksum = (text: string): string => toHex(sha256(utf8(text)).subarray(0, (HEAD - 1) / 2));

type Check = (value: unknown) => boolean;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text: Check = (value) => typeof value === "string";
const flag: Check = (value) => typeof value === "boolean";
const whole = (value: unknown): value is number => Number.isSafeInteger(value);
const count: Check = (value) => whole(value) && value >= 0;
const optional = (check: Check): Check => (value) => value === undefined || check(value);
const orNull = (check: Check): Check => (value) => value === null || check(value);
const list = (check: Check): Check => (value) => Array.isArray(value) && value.every(check);
const map = (check: Check): Check => (value) => isObject(value) && Object.values(value).every(check);
const record = <T>(checks: { readonly [K in keyof T]: Check }): Check => (value) =>
  isObject(value) && (Object.keys(checks) as (keyof T & string)[]).every((key) => checks[key](value[key]));

const range: Check = (value) =>
  Array.isArray(value) && value.length === 2 && value.every(whole) && value[0]! <= value[1]!;
const ascending: Check = (value) =>
  list(range)(value) && (value as number[][]).every((next, i, all) => i === 0 || all[i - 1]![1]! < next[0]!);
const cost: Check = (value) =>
  record<State["ledger"][""]["costs"][0]>({ first: whole, last: whole, nano: count })(value) &&
  (value as { first: number }).first <= (value as { last: number }).last;

const account: Check = /* @__PURE__ */ record<State["ledger"][""]>({
  epochs: ascending,
  costs: /* @__PURE__ */ list(cost),
  nano: count,
  delta: count,
  memo: /* @__PURE__ */ map(count),
});
const report = { digest: text, epoch: whole, payload: text, day: whole };

const STATE: { readonly [K in keyof State]: Check } = {
  version: whole,
  doubt: flag,
  session: flag,
  secret: /* @__PURE__ */ orNull(text),
  ledger: /* @__PURE__ */ map(account),
  clock: /* @__PURE__ */ orNull(
    /* @__PURE__ */ record<NonNullable<State["clock"]>>(
      { day: whole, trusted: whole, credit: count, wall: whole, up: whole, boot: text },
    ),
  ),
  windows: /* @__PURE__ */ list(
    /* @__PURE__ */ record<State["windows"][0]>({ digest: text, epoch: whole, sealed: text }),
  ),
  reports: /* @__PURE__ */ list(
    /* @__PURE__ */ record<State["reports"][0]>({ ...report, segment: /* @__PURE__ */ map(text) }),
  ),
  uploads: /* @__PURE__ */ list(
    /* @__PURE__ */ record<State["uploads"][0]>(
      { id: text, body: text, reports: count, sealedDay: whole, tries: count, token: /* @__PURE__ */ optional(text) },
    ),
  ),
  sent: /* @__PURE__ */ list(/* @__PURE__ */ record<State["sent"][0]>(report)),
  times: /* @__PURE__ */ record<State["times"]>({
    next: Number.isFinite,
    notBefore: Number.isFinite,
    repeatAfter: Number.isFinite,
    failures: count,
    rests: count,
    claim: text,
  }),
  retired: /* @__PURE__ */ orNull(
    /* @__PURE__ */ record<NonNullable<State["retired"]>>(
      { number: whole, digests: /* @__PURE__ */ list(text) },
    ),
  ),
  consent: /* @__PURE__ */ orNull(text),
  tokens: /* @__PURE__ */ optional(
    /* @__PURE__ */ record<NonNullable<State["tokens"]>>({
      last: whole,
      due: Number.isFinite,
      held: /* @__PURE__ */ list(/* @__PURE__ */ record<HeldToken>({ id: text, token: text, week: whole })),
    }),
  ),
};
