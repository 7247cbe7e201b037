/** Numbers by key. */

import type { ValueType } from "../registry/domains.js";
import { labels } from "../registry/fields.js";
import { keyValues } from "../registry/number_domains.js";
import { rangeOf } from "../registry/number_types.js";

export const key_value: ValueType = {
  name: "key_value",
  keys: "max,min,unit,values",
  domain: (table, place) => keyValues(labels(`${place}.values`, table["values"]), ...rangeOf(place, table["min"], table["max"])),
};
