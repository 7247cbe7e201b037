/** The furthest of several steps. */

import type { ValueType } from "../registry/domains.js";
import { labels } from "../registry/fields.js";
import { funnel as steps } from "../registry/item_domains.js";

export const funnel: ValueType = {
  name: "funnel",
  keys: "values",
  domain(table, place) {
    const values = labels(`${place}.values`, table["values"]);
    return steps(labels(`${place}.values`, ["none", ...values]));
  },
};
