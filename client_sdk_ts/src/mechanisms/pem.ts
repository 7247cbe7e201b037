/** Prefix extending: a hashed cell of a beginning of a text, by projective geometry response. */

import { concat, fromNumber, toNumber, utf8 } from "../core/bytes.js";
import { sha256 } from "../core/hashing.js";
import { type Mechanism, numbered, parameter, refuse } from "./mechanism.js";
import { drawPoint, pointsFor } from "./pgr.js";

const BITS = 31n;
const PRIME = (1n << BITS) - 1n;
const END = 257n; // the symbol after the last byte

export const pem: Mechanism = {
  name: "pem",
  randomize(channel, value, randomness) {
    if (value.kind !== "bytes" || BigInt(value.bytes.length) > channel.domainSize) return refuse("pem", "bytes of the domain");
    const [step, rows, columns] = [parameter(channel, "step"), parameter(channel, "rows"), parameter(channel, "columns")];
    const last = channel.domainSize + 1n; // symbols of the longest beginning
    const levels = 1n + (last - 2n) / step;
    const group = randomness.uniform(levels * rows);
    const [level, row] = [group / rows, group % rows];
    const length = level === levels - 1n ? last : (level + 1n) * step + 1n;
    const cell = cellOf(level, row, symbolsOf(value.bytes, length), columns);
    const points = pointsFor(parameter(channel, "order"), columns);
    return numbered(channel, group * points + drawPoint(channel, cell, columns, randomness));
  },
};

/** Returns the first symbols of `bytes`, and of shorter ones their end. */
function symbolsOf(bytes: Uint8Array, length: bigint): bigint[] {
  const symbols: bigint[] = [];
  for (const byte of bytes) symbols.push(BigInt(byte) + 1n);
  return [...symbols, END].slice(0, Number(length));
}

/** Returns the column of a sequence of symbols, by a hash of the row and another of the level. */
function cellOf(level: bigint, row: bigint, symbols: readonly bigint[], columns: bigint): bigint {
  const place = concat(utf8("hearsay prefix"), fromNumber(row, 4));
  const factor = wordOf(sha256(place), 0);
  const mixing = sha256(concat(place, fromNumber(level + 1n, 4)));
  let h = 0n;
  for (const symbol of symbols) h = (h * factor + symbol) % PRIME;
  return ((((h + wordOf(mixing, 8)) * h + wordOf(mixing, 16)) % PRIME) * columns) >> BITS;
}

function wordOf(digest: Uint8Array, start: number): bigint {
  return toNumber(digest.subarray(start).subarray(0, 8)) % PRIME;
}
