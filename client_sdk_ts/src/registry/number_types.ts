/** What types with numbers in them share. */

import { minus, over } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { ValueType } from "./domains.js";
import { fraction, need } from "./fields.js";
import { numbers } from "./number_domains.js";

/** Returns where numbers begin, and how far they reach.  Throws RegistryError. */
export function rangeOf(place: string, min: unknown, max: unknown): [low: Ratio, range: Ratio] {
  const low = fraction(`${place}.min`, min);
  const length = minus(fraction(`${place}.max`, max), low);
  need(length.numerator > 0n, `${place}.max`, "must be above min");
  return [low, length];
}

/** Returns a type of numbers on a grid. */
export function gridType<Name extends string>(name: Name): ValueType & { readonly name: Name } {
  return {
    name,
    keys: "max,min,step,unit",
    domain(table, place) {
      const [low, length] = rangeOf(place, table["min"], table["max"]);
      const step = fraction(`${place}.step`, table["step"]);
      const top = step.numerator > 0n ? over(length, step) : step;
      need(step.numerator > 0n && top.denominator === 1n, `${place}.step`, "must be positive and divide max - min");
      return numbers(low, step, top.numerator);
    },
  };
}
