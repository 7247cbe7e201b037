/** For clients with `tokens`: one-time tokens of an issuer, one an upload. */

import type { Part } from "../recording/parts.js";
import { Purse } from "../upload/tokens.js";

export const tokens = { name: "tokens", Purse } as const satisfies Part;
