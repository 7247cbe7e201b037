/** For registries with a panel: it draws the metrics that this device reports. */

import { isInPanel } from "../privacy/panel.js";
import type { Part } from "../recording/parts.js";

export const panel = { name: "panel", isInPanel } as const satisfies Part;
