/** The periods with activity. */

import type { ValueType } from "../registry/domains.js";
import { labels, need } from "../registry/fields.js";
import { retention as periods } from "../registry/item_domains.js";

const MOST_PERIODS = 8;

export const retention: ValueType = {
  name: "retention",
  keys: "periods",
  domain(table, place) {
    const names = labels(`${place}.periods`, table["periods"]);
    need(names.length <= MOST_PERIODS, `${place}.periods`, `must be at most ${MOST_PERIODS}`);
    return periods(names);
  },
};
