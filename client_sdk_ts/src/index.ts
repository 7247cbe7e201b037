/** Telemetry that its users can deny: every value is perturbed on the device.  For browsers and bundlers. */

export { Client, type ClientOptions } from "./client.js";
export * from "./core/errors.js";
export type { ByteSource, Randomness, Ratio } from "./core/randomness.js";
export type { Reason } from "./core/reasons.js";
export type { Log } from "./core/stats.js";
export type { Mechanism } from "./mechanisms/mechanism.js";
export type { CapTexts } from "./privacy/caps.js";
export type { Consent } from "./privacy/consent.js";
export { browserOptOuts, noOptOuts, type OptOuts, withTelemetryLevel } from "./privacy/opt_outs.js";
export type { Part, ReportView } from "./recording/parts.js";
export type { Metric, Registry } from "./registry/compiled.js";
export type { ValueType } from "./registry/domains.js";
export { indexedDbStore } from "./storage/indexed_db.js";
export { keyValueStore } from "./storage/key_value.js";
export { memoryStore } from "./storage/memory.js";
export type { KeyValueStorage, Store } from "./storage/store.js";
export { type Answer, fetchTransport, type Transport } from "./upload/transport.js";
export type { Issuer } from "./upload/tokens.js";
export type { Delivery } from "./upload/uploader.js";
