/** For clients with a `relay`: uploads that hide the address of a device from the collector. */

import type { Part } from "../recording/parts.js";
import { relayTransport } from "../upload/ohttp.js";

export const relay = { name: "relay", relayTransport } as const satisfies Part;
