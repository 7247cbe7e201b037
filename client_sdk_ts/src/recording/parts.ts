/** By what reports are made; what only some registries and clients need is a part, so that no other is in a bundle. */

import type { Randomness } from "../core/randomness.js";
import type { randomizeBy } from "../mechanisms/longitudinal.js";
import type { Mechanism } from "../mechanisms/mechanism.js";
import type { Caps } from "../privacy/caps.js";
import type { ConsentSwitch } from "../privacy/consent.js";
import type { isInPanel } from "../privacy/panel.js";
import type { aggregatorOf } from "../registry/aggregates.js";
import type { Registry } from "../registry/compiled.js";
import type { Segment } from "../registry/segment.js";
import type { tagOf } from "../storage/ledger.js";
import type { State } from "../storage/state.js";
import type { Uptimes } from "../storage/trusted_clock.js";
import type { relayTransport } from "../upload/ohttp.js";
import type { fetchRetired } from "../upload/retired.js";
import type { Purse } from "../upload/tokens.js";
import type { Counts } from "./counts.js";
import type { addTo } from "./windows.js";

/** Reports windows that ended before Unix time `now`, and opens those that are scheduled. */
type Tick = (state: State, device: Device, now: number) => Counts;

/** A part, by its name and with its functions. */
export type Part =
  | { readonly name: "aggregates"; readonly addTo: typeof addTo; readonly aggregatorOf: typeof aggregatorOf; readonly tick: Tick }
  | { readonly name: "panel"; readonly isInPanel: typeof isInPanel }
  | { readonly name: "permanent"; readonly randomizeBy: typeof randomizeBy; readonly tagOf: typeof tagOf }
  | { readonly name: "relay"; readonly relayTransport: typeof relayTransport }
  | { readonly name: "retirement"; readonly fetchRetired: typeof fetchRetired }
  | { readonly name: "tokens"; readonly Purse: typeof Purse };

/** The parts that a client was given: all that it needs. */
export type Parts = { readonly [Name in Part["name"]]?: Extract<Part, { readonly name: Name }> };

/** What an application may look at before a report is queued: all that will leave. */
export interface ReportView {
  readonly metric: string;
  readonly epoch: number;
  readonly payload: Uint8Array;
}

/** By what reports are made. */
export interface Device {
  readonly registry: Registry;
  readonly mechanisms: ReadonlyMap<string, Mechanism>;
  readonly parts: Parts;
  readonly caps: Caps;
  readonly segment: Segment;
  readonly randomness: Randomness;
  readonly uptime: Uptimes;
  readonly consent: Pick<ConsentSwitch, "granted" | "require">;
  /** Sees each report before it is queued; false, or a throw, drops it, charged all the same. */
  readonly onReport: ((report: ReportView) => unknown) | undefined;
}
