/** The fields of a compiled registry, each with its rule. */

import { RegistryError } from "../core/errors.js";
import { ratio } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";

export type Table = Readonly<Record<string, unknown>>;
type Check = (value: unknown, least: number) => boolean;

/** By key: what it must be, and that in words. */
export type Shape = ReadonlyMap<string, readonly [holds: (value: unknown) => boolean, rule: string]>;

/** What no text may hold that is shown: it would turn, break or hide what stands around it. */
const UNPRINTABLE = /[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]/u;

export const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isCount = (value: unknown, least = 0): value is number => Number.isInteger(value) && (value as number) >= least;

export const isText = (value: unknown): value is string =>
  typeof value === "string" && /\S/.test(value) && !UNPRINTABLE.test(value);

const isList = (value: unknown, length: number): value is unknown[] => Array.isArray(value) && value.length >= length;

const isTexts: Check = (value) => isList(value, 0) && value.every(isText);

const ofTable = (check: (value: unknown) => boolean): Check => (value) => isTable(value) && Object.values(value).every(check);

/** What a field can be, and that in words; # is the number that stands behind its name. */
const KINDS: Readonly<Record<string, readonly [check: Check, words: string]>> = {
  count: [isCount, "a whole number from # on"],
  date: [isDate, "a date such as 2027-12-31"],
  encoded: [(value) => isTable(value) && Object.keys(value).sort().join() === "encoded,value", "value and encoded"],
  flag: [(value) => typeof value === "boolean", "true or false"],
  hex: [(value, digits) => typeof value === "string" && value.length === digits && !/[^\da-f]/.test(value), "# hexadecimal digits"],
  lines: [(value) => typeof value === "string", "a text"],
  list: [isList, "a list of # or more"],
  seats: [ofTable(isSeat), "[low, high, period] by digest"],
  segments: [ofTable((list) => isTexts(list, 0)), "lists of texts"],
  table: [isTable, "an object"],
  text: [isText, "a text of printable characters"],
  texts: [isTexts, "a list of texts"],
  words: [ofTable(isText), "texts by name"],
};

function isDate(day: unknown): boolean {
  const time = typeof day === "string" ? Date.parse(day) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === day;
}

function isSeat(seat: unknown): boolean {
  return isList(seat, 3) && isCount(seat[0]) && isCount(seat[1], seat[0]) && /^(life|7d|28d)$/.test(String(seat[2]));
}

/** Returns a shape of fields as `key:kind`, or the words that one can be between strokes; ? is for null. */
export function shapeOf(fields: string): Shape {
  return new Map(fields.split(" ").map((field) => {
    const [key, kind, number = "0", nullable] = /^(\w+):([^.?]+)\.?(\d+)?(\?)?$/.exec(field)!.slice(1) as [string, string, string?, string?];
    const choice = kind.split("|");
    const [check, words] = KINDS[kind] ?? [(word: unknown) => choice.includes(word as string), `one of ${choice.join(", ")}`];
    const rule = `must be ${words.replace("#", number)}${nullable ? ", or null" : ""}`;
    return [key, [(value) => (nullable && value === null) || check(value, Number(number)), rule]] as const;
  }));
}

/** Returns a line for each key that is unknown, or missing, or breaks its rule. */
export function broken(place: string, table: Table, shape: Shape): string[] {
  const lines = Object.keys(table)
    .filter((key) => !shape.has(key))
    .map((key) => `${place}${printable(key)}: is not a known key`);
  for (const [key, [holds, rule]] of shape) {
    if (!Object.hasOwn(table, key)) lines.push(`${place}${key}: is missing`);
    else if (!holds(table[key])) lines.push(`${place}${key}: ${rule}`);
  }
  return lines;
}

export function refuse(place: string, rule: string): never {
  throw new RegistryError(`${place}: ${rule}`);
}

/** Throws RegistryError unless it `holds`. */
export function need(holds: boolean, place: string, rule: string): asserts holds {
  if (!holds) refuse(place, rule);
}

/** Returns `text` as far as it can be shown. */
export function printable(text: string): string {
  return !UNPRINTABLE.test(text) ? text : Array.from(text, (letter) => (UNPRINTABLE.test(letter) ? "?" : letter)).join("");
}

/** Returns an object of `entries` that has no key but theirs. */
export function tableFrom<T>(entries: Iterable<readonly [string, T]>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), Object.fromEntries(entries)) as Record<string, T>;
}

/** Returns a list of different texts, at least two.  Throws RegistryError. */
export function labels(place: string, list: unknown): readonly string[] {
  const isLabels = isList(list, 2) && list.every((label) => label && typeof label === "string" && !UNPRINTABLE.test(label));
  need(isLabels && new Set(list).size === list.length, place, "must be a list of at least 2 different printable texts");
  return list as string[];
}

/** Returns a fraction such as -1/3.  Throws RegistryError. */
export function fraction(place: string, text: unknown): Ratio {
  const [, top, bottom = "1"] = /^(-?\d{1,400})(?:\/([1-9]\d{0,400}))?$/.exec(String(text)) ?? [];
  need(typeof text === "string" && !!top, place, "must be a number, such as -1/3");
  return ratio(BigInt(top!), BigInt(bottom));
}

/** Returns an exact number in hexadecimal: of 32 digits in units of 2^-128, else a/b.  Throws RegistryError. */
export function constant(place: string, text: unknown): Ratio {
  const [, top, bottom] = /^([\da-f]{1,80})(?:\/0*([1-9a-f][\da-f]{0,79}))?$/.exec(String(text)) ?? [];
  need(!!top && (!!bottom || top.length === 32), place, "must be 32 hexadecimal digits, or a/b of them");
  let numerator = BigInt(`0x${top}`);
  if (bottom) return ratio(numerator, BigInt(`0x${bottom}`));
  let bits = 128n; // the usual case, without Euclid
  for (; bits && !(numerator & 1n); bits--) numerator >>= 1n;
  return { numerator, denominator: 1n << bits };
}
