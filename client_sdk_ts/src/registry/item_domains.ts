/** Values that are one of several items, two of them, a set of them, or a text. */

import { utf8 } from "../core/bytes.js";
import { InvalidValueError } from "../core/errors.js";
import type { Encoded } from "../mechanisms/mechanism.js";
import type { Aggregate, Domain } from "./compiled.js";

const OF_ITEMS: readonly Aggregate[] = ["last", "most_common"];

/** Returns the index of a label.  Throws InvalidValueError, which says of `what`. */
export type IndexOf = (label: unknown, what: string) => number;

export const item = (index: number): Encoded => ({ kind: "item", item: BigInt(index) });

/** Returns a domain of as many items as `size`, each the `index` of a value. */
export function items(size: number, index: IndexOf, aggregates = OF_ITEMS): Domain {
  return { encodes: "item", size, aggregates, encode: (value, what) => item(index(value, what)) };
}

/** Returns where each of `labels` stands; any other text is `other`, if there is one. */
export function indexOf(labels: readonly string[], other?: string): IndexOf {
  const find = finder(labels, other);
  return (label, what) => {
    const index = find(label);
    if (index !== undefined) return index;
    throw new InvalidValueError(what, other === undefined ? `takes one of its ${labels.length} registered values` : "takes a text");
  };
}

export function booleans(): Domain {
  const index: IndexOf = (value, what) => {
    if (typeof value !== "boolean") throw new InvalidValueError(what, "takes true or false");
    return Number(value);
  };
  return items(2, index, ["last", "any"]);
}

/** The furthest of the steps that was reached; the first of the labels, and null, stand for none. */
export function funnel(labels: readonly string[]): Domain {
  const index = indexOf(labels);
  return items(labels.length, (value, what) => index(value === null ? labels[0] : value, what), ["last", "most_common", "max"]);
}

/** An object or Map of two names to a label of each. */
export function pair(parts: readonly (readonly [name: string, labels: readonly string[]])[]): Domain {
  const names = parts.map(([name]) => name);
  const indices = parts.map(([, labels]) => indexOf(labels));
  const second = parts[1]![1].length;
  return items(parts[0]![1].length * second, (value, what) => {
    const answers = new Map(entriesOf(value));
    if (answers.size !== 2 || !names.every((name) => answers.has(name))) {
      throw new InvalidValueError(what, `takes an object or Map of ${names.join(" and ")} to a registered value of each`);
    }
    const [a, b] = indices.map((index, i) => index(answers.get(names[i]), `${what}, ${names[i]}`)) as [number, number];
    return a * second + b;
  });
}

/** The periods with activity: the first one is the highest bit. */
export function retention(periods: readonly string[]): Domain {
  const active = members(periods);
  return items(1 << periods.length, (value, what) => {
    let bitmap = 0;
    for (const period of active(value, what)) bitmap |= 1 << (periods.length - 1 - period);
    return bitmap;
  });
}

/** A list or Set of labels, however often each. */
export function set(labels: readonly string[], other?: string): Domain {
  const held = members(labels, other);
  const encode = (value: unknown, what: string): Encoded => ({
    kind: "set",
    items: [...held(value, what)].sort((a, b) => a - b).map(BigInt),
  });
  return { encodes: "set", size: labels.length, aggregates: ["last"], encode };
}

/** Texts: the first `length` bytes of UTF-8 count, cut between characters. */
export function texts(length: number): Domain {
  const encode = (value: unknown, what: string): Encoded => {
    if (typeof value !== "string") throw new InvalidValueError(what, "takes a text");
    // a character has two halves at most and a byte at least, so what follows cannot be within the length
    const letters = Array.from(value.slice(0, 2 * (length + 1))).slice(0, length + 1);
    if (letters.some((letter) => /[\ud800-\udfff]/u.test(letter))) {
      throw new InvalidValueError(what, "takes a text without lone surrogates");
    }
    const bytes = utf8(letters.join(""));
    let end = Math.min(length, bytes.length);
    while (end < bytes.length && bytes[end]! >> 6 === 0b10) end--; // it would be cut within a character
    return { kind: "bytes", bytes: bytes.slice(0, end) };
  };
  return { encodes: "bytes", size: length, aggregates: ["last"], encode };
}

function members(labels: readonly string[], other?: string): (value: unknown, what: string) => Set<number> {
  const find = finder(labels, other);
  return (value, what) => {
    const places = new Set<number>();
    for (const label of Array.isArray(value) || value instanceof Set ? (value as Iterable<unknown>) : [undefined]) {
      const place = find(label);
      // at the first that is none, as an empty array can be four billion long
      if (place === undefined) {
        const registered = other === undefined ? `its ${labels.length} registered values` : "texts";
        throw new InvalidValueError(what, `takes a list or Set of ${registered}`);
      }
      places.add(place);
    }
    return places;
  };
}

function finder(labels: readonly string[], other?: string): (label: unknown) => number | undefined {
  const places = new Map<unknown, number>(labels.map((label, place) => [label, place]));
  const rest = places.get(other);
  return (label) => places.get(label) ?? (typeof label === "string" ? rest : undefined);
}

/** Returns the entries of a Map or plain object; undefined: it is neither. */
export function entriesOf(value: unknown): [unknown, unknown][] | undefined {
  if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
  return Object.prototype.toString.call(value) === "[object Object]" ? Object.entries(value as object) : undefined;
}
