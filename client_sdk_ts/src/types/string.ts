/** A text from an open set. */

import type { ValueType } from "../registry/domains.js";
import { isCount, need } from "../registry/fields.js";
import { texts } from "../registry/item_domains.js";

export const string: ValueType = {
  name: "string",
  keys: "length",
  domain({ length }, place) {
    need(isCount(length, 1), `${place}.length`, "must be a whole number from 1 on");
    return texts(length);
  },
};
