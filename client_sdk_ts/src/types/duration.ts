/** How long something took. */

import { gridType } from "../registry/number_types.js";

export const duration = /* @__PURE__ */ gridType("duration");
