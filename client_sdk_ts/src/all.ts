/** Every mechanism and part of this device.  An application that names the ones it needs is smaller. */

import { allMechanisms as mechanisms } from "./mechanisms/index.js";
import type { Mechanism } from "./mechanisms/mechanism.js";
import { aggregates } from "./parts/aggregates.js";
import { panel } from "./parts/panel.js";
import { permanent } from "./parts/permanent.js";
import { retirement } from "./parts/retirement.js";
import type { Part } from "./recording/parts.js";

export * from "./mechanisms/index.js";
export { aggregates, panel, permanent, retirement };

/** All that a client may need, whatever its registry is. */
export const allMechanisms: readonly (Mechanism | Part)[] = [...mechanisms, aggregates, panel, permanent, retirement];
