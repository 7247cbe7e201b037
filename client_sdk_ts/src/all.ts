/** Every mechanism, type of values and part of this device.  An application that names the ones it needs is smaller. */

import { allMechanisms } from "./mechanisms/index.js";
import type { Mechanism } from "./mechanisms/mechanism.js";
import { aggregates } from "./parts/aggregates.js";
import { panel } from "./parts/panel.js";
import { permanent } from "./parts/permanent.js";
import { retirement } from "./parts/retirement.js";
import type { Part } from "./recording/parts.js";
import type { ValueType } from "./registry/domains.js";
import { count } from "./types/count.js";
import { duration } from "./types/duration.js";
import { funnel } from "./types/funnel.js";
import { key_value } from "./types/key_value.js";
import { location } from "./types/location.js";
import { number } from "./types/number.js";
import { pair } from "./types/pair.js";
import { retention } from "./types/retention.js";
import { set } from "./types/set.js";
import { string } from "./types/string.js";

export * from "./mechanisms/index.js";
export { aggregates, panel, permanent, retirement };

/** Every type of values that has to be given. */
export const allTypes: readonly ValueType[] = [count, duration, funnel, key_value, location, number, pair, retention, set, string];

/** All that a client may need, whatever its registry is. */
export const everything: readonly (Mechanism | Part | ValueType)[] = [
  ...allMechanisms, ...allTypes, aggregates, panel, permanent, retirement,
];
