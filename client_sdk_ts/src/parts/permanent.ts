/** For metrics that are `permanent` or `two_layer`: reports that are drawn once for each value. */

import { randomizeBy } from "../mechanisms/longitudinal.js";
import { tagOf } from "../storage/ledger.js";
import type { Part } from "../recording/parts.js";

export const permanent = { name: "permanent", randomizeBy, tagOf } as const satisfies Part;
