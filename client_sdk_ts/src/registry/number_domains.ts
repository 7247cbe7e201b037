/** Values with numbers in them: a number, numbers by key, and places. */

import { InvalidValueError } from "../core/errors.js";
import { ZERO, clamp, exactly, minus, over } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { Encoded } from "../mechanisms/mechanism.js";
import type { Domain } from "./compiled.js";
import { entriesOf, type IndexOf, indexOf, items } from "./item_domains.js";

/** Returns where a number lies, in steps, clamped to the range.  Throws InvalidValueError. */
type PositionOf = (value: unknown, what: string) => Ratio;

/** Numbers from `low` on, on a grid of `top` steps. */
export function numbers(low: Ratio, step: Ratio, top: bigint): Domain {
  const position = positionOf(low, step, top);
  const grid = { zero: over(minus(ZERO, low), step), step, steps: stepsFrom(low, step) };
  const encode = (value: unknown, what: string): Encoded => ({ kind: "position", position: position(value, what) });
  return { encodes: "position", size: Number(top) + 1, aggregates: ["sum", "max", "last"], grid, encode };
}

/** An object or Map of some of the keys to numbers from `low` on; a position is a part of the `range`. */
export function keyValues(labels: readonly string[], low: Ratio, range: Ratio): Domain {
  const index = indexOf(labels);
  const position = positionOf(low, range, 1n);
  const encode = (value: unknown, what: string): Encoded => {
    const entries = entriesOf(value);
    if (!entries) throw new InvalidValueError(what, `takes an object or Map of its ${labels.length} registered keys to numbers`);
    const pairs = entries.map(([key, number]) => [index(key, `${what}, key`), position(number, `${what}, number`)] as const);
    return { kind: "pairs", pairs: pairs.sort(([a], [b]) => a - b).map(([key, at]) => [BigInt(key), at]) };
  };
  return { encodes: "pairs", size: labels.length, aggregates: ["last"], encode };
}

/** A way to the cells of one axis of a map: where it begins, how long it is, and how many there are. */
export type Axis = readonly [low: Ratio, range: Ratio, cells: number];

/** A pair of longitude and latitude in degrees, as the cell that it lies in: rows from the south, columns from the west. */
export function places(longitude: Axis, latitude: Axis): Domain {
  const column = cellOf(longitude);
  const row = cellOf(latitude);
  return items(longitude[2] * latitude[2], (value, what) => {
    if (!Array.isArray(value) || value.length !== 2) {
      throw new InvalidValueError(what, "takes a pair of longitude and latitude, in degrees");
    }
    const east = column(value[0], `${what}, longitude`);
    return row(value[1], `${what}, latitude`) * longitude[2] + east;
  });
}

/** Returns in which cell of an axis a number lies; the last one holds the end. */
function cellOf([low, range, cells]: Axis): IndexOf {
  const position = positionOf(low, over(range, exactly(cells)), BigInt(cells));
  return (value, what) => {
    const { numerator, denominator } = position(value, what);
    return Math.min(Number(numerator / denominator), cells - 1);
  };
}

function positionOf(low: Ratio, step: Ratio, top: bigint): PositionOf {
  const steps = stepsFrom(low, step);
  return (value, what) => clamp(steps(value, what), ZERO, exactly(top));
}

function stepsFrom(low: Ratio, step: Ratio): PositionOf {
  return (value, what) => {
    const isNumber = typeof value === "number";
    if (!isNumber && typeof value !== "bigint") throw new InvalidValueError(what, "takes a number");
    if (isNumber && !Number.isFinite(value)) throw new InvalidValueError(what, "takes a finite number");
    return over(minus(exactly(value), low), step);
  };
}
