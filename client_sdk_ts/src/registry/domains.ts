/** The types of values, as a compiled registry writes them. */

import { minus, over } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { Domain } from "./compiled.js";
import { type Table, fraction, isCount, isText, labels, need, refuse } from "./fields.js";
import { booleans, funnel, indexOf, items, retention, set, texts } from "./item_domains.js";
import { keyValues, numbers, pair, places } from "./number_domains.js";

const MAX_GRID = 1 << 24; // points
const MAX_JOINT = 4_096; // items of a pair or a map
const MAX_LENGTH = 128; // bytes of a text
const MAX_PERIODS = 8;

/** Returns the domain of a `type`.  Throws RegistryError: `table` does not say it, and nothing else. */
export function domainOf(type: unknown, table: Table, place: string): Domain {
  const listOf = (key: string): readonly string[] => labels(`${place}.${key}`, table[key]);
  const keys = (...names: readonly string[]): void =>
    need(Object.keys(table).sort().join() === names.join(), place, `must hold ${names.join(", ")}`);
  const other = table["other"] as string | undefined;
  switch (type) {
    case "boolean":
      keys("values");
      return booleans();
    case "category":
    case "set": {
      keys(...("other" in table ? ["other"] : []), "values");
      const values = listOf("values");
      need(other === undefined || values.includes(other), `${place}.other`, "must be one of the values");
      return type === "set" ? set(values, other) : items(values.length, indexOf(values, other));
    }
    case "funnel":
      keys("values");
      return funnel(labels(`${place}.values`, ["none", ...listOf("values")]).slice(1));
    case "retention":
      keys("periods");
      need(listOf("periods").length <= MAX_PERIODS, `${place}.periods`, `must be at most ${MAX_PERIODS}`);
      return retention(listOf("periods"));
    case "string": {
      keys("length");
      const { length } = table;
      need(isCount(length) && length > 1 && length <= MAX_LENGTH, `${place}.length`, `must be from 2 to ${MAX_LENGTH}`);
      return texts(length);
    }
    case "count":
    case "duration":
    case "number": {
      keys("max", "min", "step", "unit");
      const [low, range] = rangeOf(place, table["min"], table["max"]);
      const step = fraction(`${place}.step`, table["step"]);
      const top = step.numerator > 0n ? over(range, step) : range;
      const isWhole = step.numerator > 0n && top.denominator === 1n && top.numerator < MAX_GRID;
      need(isWhole, `${place}.step`, `must be positive and divide max - min into less than ${MAX_GRID} parts`);
      return numbers(low, step, top.numerator);
    }
    case "key_value":
      keys("max", "min", "unit", "values");
      return keyValues(listOf("values"), ...rangeOf(place, table["min"], table["max"]));
    case "pair":
      keys("parts");
      return pair(partsOf(`${place}.parts`, table["parts"]));
    case "location":
      keys("cells", "max", "min");
      return places(...axesOf(place, table["min"], table["max"], table["cells"]));
    default:
      return refuse(place.replace(/domain$/, "type"), "must be a type of values of this version");
  }
}

function rangeOf(place: string, min: unknown, max: unknown): [low: Ratio, range: Ratio] {
  const low = fraction(`${place}.min`, min);
  const range = minus(fraction(`${place}.max`, max), low);
  need(range.numerator > 0n, `${place}.max`, "must be above min");
  return [low, range];
}

function partsOf(place: string, list: unknown): [string, readonly string[]][] {
  need(Array.isArray(list) && list.length === 2, place, "must be two names, each with a list of values");
  const parts = list.map((part: unknown): [string, readonly string[]] => {
    need(Array.isArray(part) && part.length === 2 && isText(part[0]), place, "must be two names, each with a list of values");
    return [part[0], labels(place, part[1])];
  });
  need(parts[0]![0] !== parts[1]![0], place, "must be of different names");
  need(parts[0]![1].length * parts[1]![1].length <= MAX_JOINT, place, `must have at most ${MAX_JOINT} pairs of values`);
  return parts;
}

function axesOf(place: string, min: unknown, max: unknown, cells: unknown): Parameters<typeof places> {
  const isPair = (list: unknown): list is unknown[] => Array.isArray(list) && list.length === 2;
  need(isPair(min) && isPair(max) && isPair(cells), place, "must hold pairs");
  const counts = cells.filter(isCount);
  const product = counts.length === 2 ? counts[0]! * counts[1]! : 0;
  need(product > 1 && product <= MAX_JOINT, `${place}.cells`, `must be [columns, rows] of 2 to ${MAX_JOINT} cells`);
  const axis = (i: number): Parameters<typeof places>[number] => [...rangeOf(place, min[i], max[i]), counts[i]!];
  return [axis(0), axis(1)];
}
