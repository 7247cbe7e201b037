/** Several of the registered values. */

import type { ValueType } from "../registry/domains.js";
import { labels } from "../registry/fields.js";
import { set as members } from "../registry/item_domains.js";

export const set: ValueType = {
  name: "set",
  keys: "values",
  domain: (table, place, other) => members(labels(`${place}.values`, table["values"]), other),
};
