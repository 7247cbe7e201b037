/** The types of values, as a compiled registry writes them. */

import { UnknownMechanismError } from "../core/errors.js";
import type { Domain } from "./compiled.js";
import { type Table, labels, need, printable, refuse } from "./fields.js";
import { booleans, indexOf, items } from "./item_domains.js";

/** A type of values.  Each but `boolean` and `category`, which every device has, is an import of its own. */
export interface ValueType {
  readonly name: string;
  /** The keys of its domain, in the order of the alphabet. */
  readonly keys: string;
  /** Returns the domain; `other` is one of its values.  Throws RegistryError: `table`, which has the keys, does not say it. */
  domain(table: Table, place: string, other?: string): Domain;
}

const CATEGORY: ValueType = {
  name: "category",
  keys: "values",
  domain(table, place, other) {
    const values = labels(`${place}.values`, table["values"]);
    return items(values.length, indexOf(values, other));
  },
};
const BOOLEAN: ValueType = { name: "boolean", keys: "values", domain: booleans };
/** The types that have to be imported. */
const OTHERS = /^(count|duration|funnel|key_value|location|number|pair|retention|set|string)$/;

/**
 * Returns the domain of a `type` that is built in or among `given`.
 *
 * Throws RegistryError: `table` does not say it, and nothing else.  Throws UnknownMechanismError: the
 * type was not given.
 */
export function domainOf(type: string, { other, ...table }: Table, place: string, given: readonly ValueType[]): Domain {
  const own = [BOOLEAN, CATEGORY, ...given].find(({ name }) => name === type);
  if (!own) {
    if (OTHERS.test(type)) throw new UnknownMechanismError(type, "type");
    refuse(place.replace(/domain$/, `type=${printable(type)}`), "has no type in TypeScript");
  }
  need(Object.keys(table).sort().join() === own.keys, place, `must hold ${own.keys}`);
  const domain = own.domain(table, place, other as string | undefined);
  const isValue = /^(category|set)$/.test(type) && (table["values"] as unknown[]).includes(other);
  need(other === undefined || isValue, `${place}.other`, "must be one of the values");
  return domain;
}
