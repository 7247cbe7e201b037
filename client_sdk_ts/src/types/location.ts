/** A place, as a cell of a map. */

import type { ValueType } from "../registry/domains.js";
import { isCount, need } from "../registry/fields.js";
import { type Axis, places } from "../registry/number_domains.js";
import { rangeOf } from "../registry/number_types.js";

export const location: ValueType = {
  name: "location",
  keys: "cells,max,min",
  domain(table, place) {
    const [min, max, cells] = [table["min"], table["max"], table["cells"]].map((two) => (Array.isArray(two) ? (two as unknown[]) : []));
    const axis = (i: number): Axis => {
      need(isCount(cells![i], 1), `${place}.cells`, "must be [columns, rows]");
      return [...rangeOf(place, min![i], max![i]), cells![i]];
    };
    return places(axis(0), axis(1));
  },
};
