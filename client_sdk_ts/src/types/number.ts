/** A number. */

import { gridType } from "../registry/number_types.js";

export const number = /* @__PURE__ */ gridType("number");
