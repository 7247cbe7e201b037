/** For metrics with an `aggregate`: windows in which the values of an epoch add up. */

import { tick } from "../recording/tick.js";
import { addTo } from "../recording/windows.js";
import { aggregatorOf } from "../registry/aggregates.js";
import type { Part } from "../recording/parts.js";

export const aggregates = { name: "aggregates", addTo, aggregatorOf, tick } as const satisfies Part;
