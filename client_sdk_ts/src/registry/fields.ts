/** The fields of a compiled registry, each with its rule. */

import { RegistryError } from "../core/errors.js";
import { ratio } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";

export type Table = Readonly<Record<string, unknown>>;
export type Check = (value: unknown) => boolean;

/** By key, what it must be, and that in words. */
export type Rules = ReadonlyMap<string, readonly [check: Check, rule: string]>;

export const TEXT = "must be a text of printable characters";
export const WHOLE = "must be a whole number";
const MAX_LABEL = 100; // characters

/** What no text may hold that is shown: it would turn, break or hide what stands around it. */
const UNPRINTABLE = /[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]/u;
/** Whole digits, and no more than a number of a registry has. */
const FRACTION = /^(-?\d{1,400})(?:\/([1-9]\d{0,400}))?$/;
const CONSTANT = /^([\da-f]{32}|([\da-f]{1,80})\/([\da-f]{1,80}))$/;

export function refuse(place: string, rule: string): never {
  throw new RegistryError(`${place}: ${rule}`);
}

/** Throws RegistryError unless it `holds`. */
export function need(holds: boolean, place: string, rule: string): asserts holds {
  if (!holds) refuse(place, rule);
}

export const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isText = (value: unknown): value is string =>
  typeof value === "string" && /\S/.test(value) && !UNPRINTABLE.test(value);

export const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;

export const isString: Check = (value) => typeof value === "string";

export const isFlag: Check = (value) => typeof value === "boolean";

export const isHex = (value: unknown, digits: number): value is string =>
  typeof value === "string" && value.length === digits && !/[^\da-f]/.test(value);

export const orNull = (check: Check): Check => (value) => value === null || check(value);

export const listOf = (check: Check): Check => (value) => Array.isArray(value) && value.every(check);

export const tableOf = (check: Check): Check => (value) => isTable(value) && Object.values(value).every(check);

export const among = (...values: readonly unknown[]): Check => (value) => values.includes(value);

/** Returns the rules of a table: of keys, with blanks between them, what all of them must be. */
export function rulesOf(...groups: readonly (readonly [keys: string, check: Check, rule: string])[]): Rules {
  return new Map(groups.flatMap(([keys, ...rule]) => keys.split(" ").map((key) => [key, rule] as const)));
}

/** Returns a line for each key that is unknown, or missing, or breaks its rule. */
export function broken(place: string, table: Table, rules: Rules): string[] {
  const lines = Object.keys(table)
    .filter((key) => !rules.has(key))
    .map((key) => `${place}${printable(key)}: is not a known key`);
  for (const [key, [check, rule]] of rules) {
    if (!Object.hasOwn(table, key)) lines.push(`${place}${key}: is missing`);
    else if (!check(table[key])) lines.push(`${place}${key}: ${rule}`);
  }
  return lines;
}

/** Returns `text` as far as it can be shown. */
export function printable(text: string): string {
  return Array.from(text, (letter) => (UNPRINTABLE.test(letter) ? "?" : letter)).join("");
}

/** Returns an object of `entries` that has no key but theirs. */
export function tableFrom<T>(entries: Iterable<readonly [string, T]>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), Object.fromEntries(entries)) as Record<string, T>;
}

/** Returns a list of different texts, at least two.  Throws RegistryError. */
export function labels(place: string, list: unknown): readonly string[] {
  const rule = `must be a list of at least 2 different printable texts of at most ${MAX_LABEL} characters`;
  const isLabel: Check = (label) => typeof label === "string" && !UNPRINTABLE.test(label) && /^.{1,100}$/su.test(label);
  need(listOf(isLabel)(list) && new Set(list as string[]).size > 1, place, rule);
  need(new Set(list as string[]).size === (list as string[]).length, place, rule);
  return [...(list as string[])];
}

/** Returns a fraction such as -1/3.  Throws RegistryError. */
export function fraction(place: string, text: unknown): Ratio {
  const parts = typeof text === "string" && FRACTION.exec(text);
  need(parts !== false && parts !== null, place, "must be a number, such as -1/3");
  return ratio(BigInt(parts[1]!), BigInt(parts[2] ?? 1));
}

/** Returns an exact number in hexadecimal: of 32 digits in units of 2^-128, else a/b.  Throws RegistryError. */
export function constant(place: string, text: unknown): Ratio {
  const parts = typeof text === "string" && CONSTANT.exec(text);
  need(parts !== false && parts !== null, place, "must be 32 hexadecimal digits, or a/b of them");
  if (parts[2] === undefined) {
    let [numerator, bits] = [BigInt(`0x${parts[1]}`), 128n];
    for (; bits && !(numerator & 1n); bits--) numerator >>= 1n;
    return { numerator, denominator: 1n << bits };
  }
  const bottom = BigInt(`0x${parts[3]}`);
  need(bottom > 0n, place, "must not be divided by 0");
  return ratio(BigInt(`0x${parts[2]}`), bottom);
}
