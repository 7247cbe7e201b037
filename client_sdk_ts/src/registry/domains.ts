/** The types of values, as a compiled registry writes them. */

import { minus, over } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { Domain } from "./compiled.js";
import { type Table, fraction, isCount, labels, need, refuse } from "./fields.js";
import { booleans, funnel, indexOf, items, retention, set, texts } from "./item_domains.js";
import { type Axis, keyValues, numbers, pair, places } from "./number_domains.js";

const MOST_PERIODS = 8;

/** The keys of the domain of a type, in the order of the alphabet. */
const KEYS: Readonly<Record<string, string>> = {
  boolean: "values",
  category: "values",
  count: "max,min,step,unit",
  duration: "max,min,step,unit",
  funnel: "values",
  key_value: "max,min,unit,values",
  location: "cells,max,min",
  number: "max,min,step,unit",
  pair: "parts",
  retention: "periods",
  set: "values",
  string: "length",
};

/** Returns the domain of a `type`.  Throws RegistryError: `table` does not say it, and nothing else. */
export function domainOf(type: string, { other, ...table }: Table, place: string): Domain {
  if (!Object.hasOwn(KEYS, type)) refuse(place.replace(/domain$/, "type"), "must be a type of values of this version");
  need(Object.keys(table).sort().join() === KEYS[type], place, `must hold ${KEYS[type]}`);
  const list = (key: string): readonly string[] => labels(`${place}.${key}`, table[key]);
  const range = (min: unknown, max: unknown): [low: Ratio, range: Ratio] => {
    const low = fraction(`${place}.min`, min);
    const length = minus(fraction(`${place}.max`, max), low);
    need(length.numerator > 0n, `${place}.max`, "must be above min");
    return [low, length];
  };
  const isItem = type === "category" || type === "set";
  const values = isItem ? list("values") : [];
  need(other === undefined || values.includes(other as string), `${place}.other`, "must be one of the values");
  if (isItem) return type === "set" ? set(values, other as string) : items(values.length, indexOf(values, other as string));
  switch (type) {
    case "boolean":
      return booleans();
    case "funnel":
      return funnel(labels(`${place}.values`, ["none", ...list("values")]));
    case "retention": {
      const periods = list("periods");
      need(periods.length <= MOST_PERIODS, `${place}.periods`, `must be at most ${MOST_PERIODS}`);
      return retention(periods);
    }
    case "string":
      need(isCount(table["length"], 1), `${place}.length`, "must be a whole number from 1 on");
      return texts(table["length"]);
    case "key_value":
      return keyValues(list("values"), ...range(table["min"], table["max"]));
    case "pair": {
      const parts = table["parts"] as [string, unknown][];
      const rule = "must be two names, each with a list of values";
      need(Array.isArray(parts) && parts.length === 2 && parts.every((part) => part?.length === 2 && typeof part[0] === "string"), `${place}.parts`, rule);
      need(parts[0]![0] !== parts[1]![0], `${place}.parts`, rule);
      return pair(parts.map(([name, values]) => [name, labels(`${place}.parts`, values)]));
    }
    case "location": {
      const [min, max, cells] = [table["min"], table["max"], table["cells"]].map((two) => (Array.isArray(two) ? (two as unknown[]) : []));
      const axis = (i: number): Axis => {
        need(isCount(cells![i], 1), `${place}.cells`, "must be [columns, rows]");
        return [...range(min![i], max![i]), cells![i]];
      };
      return places(axis(0), axis(1));
    }
    default: {
      const [low, length] = range(table["min"], table["max"]);
      const step = fraction(`${place}.step`, table["step"]);
      const top = step.numerator > 0n ? over(length, step) : step;
      need(step.numerator > 0n && top.denominator === 1n, `${place}.step`, "must be positive and divide max - min");
      return numbers(low, step, top.numerator);
    }
  }
}
