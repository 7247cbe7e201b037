/** What only some registries and clients need: each part is an import of its own, so that no other is in a bundle. */

import type { randomizeBy } from "../mechanisms/longitudinal.js";
import type { isInPanel } from "../privacy/panel.js";
import type { aggregatorOf } from "../registry/aggregates.js";
import type { tagOf } from "../storage/ledger.js";
import type { relayTransport } from "../upload/ohttp.js";
import type { fetchRetired } from "../upload/retired.js";
import type { Purse } from "../upload/tokens.js";
import type { tick } from "./tick.js";
import type { addTo } from "./windows.js";

/** A part, by its name and with its functions. */
export type Part =
  | { readonly name: "aggregates"; readonly addTo: typeof addTo; readonly aggregatorOf: typeof aggregatorOf; readonly tick: typeof tick }
  | { readonly name: "panel"; readonly isInPanel: typeof isInPanel }
  | { readonly name: "permanent"; readonly randomizeBy: typeof randomizeBy; readonly tagOf: typeof tagOf }
  | { readonly name: "relay"; readonly relayTransport: typeof relayTransport }
  | { readonly name: "retirement"; readonly fetchRetired: typeof fetchRetired }
  | { readonly name: "tokens"; readonly Purse: typeof Purse };

/** The parts that a client was given: all that it needs. */
export type Parts = { readonly [Name in Part["name"]]?: Extract<Part, { readonly name: Name }> };
