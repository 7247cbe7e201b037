/** For registries with a panel: the draw of which metrics this device reports. */

import { isInPanel } from "../privacy/panel.js";
import type { Part } from "../recording/parts.js";

export const panel = { name: "panel", isInPanel } as const satisfies Part;
