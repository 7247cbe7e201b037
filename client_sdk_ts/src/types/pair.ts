/** Two answers together. */

import type { ValueType } from "../registry/domains.js";
import { labels, need } from "../registry/fields.js";
import { pair as answers } from "../registry/item_domains.js";

export const pair: ValueType = {
  name: "pair",
  keys: "parts",
  domain(table, place) {
    const parts = table["parts"] as [string, unknown][];
    const rule = "must be two names, each with a list of values";
    need(Array.isArray(parts) && parts.length === 2 && parts.every((part) => part?.length === 2 && typeof part[0] === "string"), `${place}.parts`, rule);
    need(parts[0]![0] !== parts[1]![0], `${place}.parts`, rule);
    return answers(parts.map(([name, values]) => [name, labels(`${place}.parts`, values)]));
  },
};
