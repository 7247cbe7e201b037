/**
 * Reads compiled registries: docs/design/compiled-registry.md says what they are.
 *
 * Checked are every key and its kind, the checksum of the file, and the digest of each metric, from
 * what the metric means.  Not checked is whether `constants` spend what `spent` says: that takes the
 * logarithms of 100 digits that a compiled registry spares a device.  The checksum detects damage to
 * them, and anyone who can write a file with another checksum can replace the program as well.
 */

import { RegistryError } from "../core/errors.js";
import { canonical, digestOf } from "./canonical.js";
import type { Metric, Registry } from "./compiled.js";
import type { ValueType } from "./domains.js";
import { broken, isTable, need, shapeOf, tableFrom } from "./fields.js";
import { metricOf } from "./metric.js";

const VERSION = 1;
const MAX_SIZE = 1 << 22; // characters
const SHAPE = /* @__PURE__ */ shapeOf(
  "hearsay_registry:count app:text automation:ignore|segment retire_key:hex.64? segments:segments" +
    " panel_week:count? seats:seats? caps:words notice:lines metrics:list.1 checksum:hex.64",
);

/** A document whose keys are of their kinds. */
interface Document {
  readonly app: string;
  /** The app is in the digest of each metric; absent if it is not. */
  readonly separate?: true;
  readonly automation: Registry["automation"];
  readonly retire_key: string | null;
  readonly segments: Record<string, readonly string[]>;
  readonly panel_week: number | null;
  readonly seats: Record<string, [number, number, "life" | "7d" | "28d"]> | null;
  readonly caps: Record<string, string>;
  readonly notice: string;
  readonly metrics: readonly { readonly panel: boolean }[];
}

/**
 * Returns the registry that `source` is: a compiled one as text, or what its JSON was parsed to.
 *
 * Throws RegistryError, with every problem as `place: rule`.  Throws UnknownMechanismError: the type of
 * a metric is none of `types`.
 */
export function readRegistry(source: unknown, types: readonly ValueType[]): Registry {
  const document = checked(typeof source === "string" ? parsed(source) : source);
  const { app, automation, retire_key: retireKey, panel_week: panelWeek, notice, seats } = document;
  const own = document.separate ? app : null;
  const segments = tableFrom(Object.entries(document.segments));
  const metrics = new Map<string, Metric>();
  const problems: string[] = [];
  const digests = new Set<string>();
  const seated: string[] = [];
  document.metrics.forEach((entry, index) => {
    try {
      const metric = metricOf(entry, index, segments, types, own);
      const { name, digest, every, longitudinal } = metric;
      if (metrics.has(name) || digests.has(digest)) problems.push(`metrics.${name}: stands twice, by its name or digest`);
      metrics.set(name, metric);
      digests.add(digest);
      if (entry.panel) seated.push(`${digest} ${every === "once" || longitudinal !== "fresh"}`);
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      problems.push(...error.problems);
    }
  });
  const expected = panelWeek === null ? null : seated.sort().join();
  const drawn = seats && Object.entries(seats).map(([digest, [, , lasts]]) => `${digest} ${lasts === "life"}`).sort().join();
  if (!problems.length && drawn !== expected) {
    problems.push("seats: must be of the metrics of the panel alone, for life if a metric keeps its responses, and only then");
  }
  refuseAll(problems);
  return {
    app,
    automation,
    retireKey,
    segments,
    panelWeek,
    seats: seats && tableFrom(Object.entries(seats).map(([key, [low, high, lasts]]) => [key, [BigInt(low), BigInt(high), lasts]])),
    caps: tableFrom(Object.entries(document.caps)),
    notice,
    metrics,
  };
}

function parsed(text: string): unknown {
  requireSize(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new RegistryError("registry: is no compiled registry: it is no JSON");
  }
}

/** Returns a document whose keys and checksum are right; its metrics are still to be checked. */
function checked(document: unknown): Document {
  need(isTable(document) && !ArrayBuffer.isView(document), "registry", "must be a compiled registry: its text, or what its JSON was parsed to");
  const rule = `must be ${VERSION}: compile the registry with this version of Hearsay`;
  need(document["hearsay_registry"] === VERSION, "hearsay_registry", rule);
  const { separate = true, ...always } = document;
  need(separate === true, "separate", "must be true, or absent");
  refuseAll(broken("", always, SHAPE));
  const { checksum, ...rest } = document;
  const text = canonical(rest);
  requireSize(text);
  need(digestOf(text) === checksum, "checksum", "must match the file, which was edited: compile again");
  return document as unknown as Document;
}

function requireSize(text: string): void {
  need(text.length <= MAX_SIZE, "registry", `must have at most ${MAX_SIZE} characters`);
}

function refuseAll(problems: readonly string[]): void {
  if (problems.length) throw new RegistryError(...problems);
}
