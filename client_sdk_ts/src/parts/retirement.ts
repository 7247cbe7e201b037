/** For registries with a `retire_key`: the list of metrics that their developer has stopped. */

import { fetchRetired } from "../upload/retired.js";
import type { Part } from "../recording/parts.js";

export const retirement = { name: "retirement", fetchRetired } as const satisfies Part;
