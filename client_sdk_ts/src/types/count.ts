/** How often something happened. */

import { gridType } from "../registry/number_types.js";

export const count = /* @__PURE__ */ gridType("count");
