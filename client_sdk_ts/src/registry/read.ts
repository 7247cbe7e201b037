/**
 * Reads compiled registries: docs/design/compiled-registry.md says what they are.
 *
 * Checked are every key and its kind, the checksum of the file, and the digest of each metric, from
 * what the metric means.  Not checked is whether `constants` spend what `spent` says: that takes the
 * logarithms of 100 digits that a compiled registry spares a device.  The checksum finds damage to
 * them, and whoever writes a file with another checksum can replace the program as well.
 */

import { RegistryError } from "../core/errors.js";
import { canonical, digestOf } from "./canonical.js";
import type { Metric, Registry } from "./compiled.js";
import {
  type Check, type Table, TEXT, WHOLE, among, broken, isCount, isHex, isString, isTable, isText, listOf,
  need, orNull, rulesOf, tableFrom, tableOf,
} from "./fields.js";
import { metricOf } from "./metric.js";

const VERSION = 1;
const OF_VERSION = `must be ${VERSION}: compile the registry with this version of Hearsay`;
const MAX_SIZE = 1 << 22; // characters

const isSeat: Check = (seat) =>
  Array.isArray(seat) && seat.length === 3 && isCount(seat[0]) && isCount(seat[1]) && seat[0] <= seat[1]
  && among("life", "7d", "28d")(seat[2]);

const RULES = rulesOf(
  ["hearsay_registry", among(VERSION), OF_VERSION],
  ["app checksum", isText, TEXT],
  ["automation", among("ignore", "segment"), "must be ignore or segment"],
  ["retire_key", orNull((key) => isHex(key, 64)), "must be 64 hexadecimal digits, or null"],
  ["segments", tableOf(listOf(isText)), "must hold lists of texts"],
  ["panel_week", orNull(isCount), `${WHOLE}, or null`],
  ["seats", orNull(tableOf(isSeat)), "must hold [low, high, period] by digest, or be null"],
  ["caps", tableOf(isText), "must hold texts"],
  ["notice", isString, "must be a text"],
  ["metrics", (list) => Array.isArray(list) && list.length > 0, "must hold a metric"],
);

/** What of a document is taken as it is written. */
interface Document {
  readonly app: string;
  readonly automation: Registry["automation"];
  readonly retire_key: string | null;
  readonly segments: Record<string, readonly string[]>;
  readonly panel_week: number | null;
  readonly seats: Record<string, [number, number, "life" | "7d" | "28d"]> | null;
  readonly caps: Record<string, string>;
  readonly notice: string;
  readonly metrics: readonly unknown[];
}

/**
 * Returns the registry that `source` is: a compiled one as text, or what its JSON was parsed to.
 *
 * Throws RegistryError, with every problem as `place: rule`.
 */
export function readRegistry(source: unknown): Registry {
  const document = checked(typeof source === "string" ? parsed(source) : source);
  const segments = tableFrom(Object.entries(document.segments));
  const metrics = new Map<string, Metric>();
  const problems: string[] = [];
  const digests = new Set<string>();
  const seated: string[] = [];
  document.metrics.forEach((entry, index) => {
    try {
      const metric = metricOf(entry, index, segments);
      const { name, digest } = metric;
      if (metrics.has(name) || digests.has(digest)) problems.push(`metrics.${name}: stands twice, by its name or digest`);
      metrics.set(name, metric);
      digests.add(digest);
      if ((entry as Table)["panel"]) seated.push(digest);
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      problems.push(...error.problems);
    }
  });
  const { seats, panel_week: panelWeek } = document;
  const expected = panelWeek === null ? null : seated.sort().join();
  if (!problems.length && (seats && Object.keys(seats).sort().join()) !== expected) {
    problems.push("seats: must be of the metrics of the panel, and of no others");
  }
  refuseAll(problems);
  return {
    app: document.app,
    automation: document.automation,
    retireKey: document.retire_key,
    segments,
    panelWeek,
    seats: seats && tableFrom(Object.entries(seats).map(([key, [low, high, lasts]]) => [key, [BigInt(low), BigInt(high), lasts]])),
    caps: tableFrom(Object.entries(document.caps)),
    notice: document.notice,
    metrics,
  };
}

function parsed(text: string): unknown {
  need(text.length <= MAX_SIZE, "registry", `must have at most ${MAX_SIZE} characters`);
  try {
    return JSON.parse(text);
  } catch {
    throw new RegistryError("registry: is no compiled registry: it is no JSON");
  }
}

/** Returns a document whose keys and checksum are right; its metrics are still to be checked. */
function checked(document: unknown): Document {
  need(isTable(document), "registry", "must be a compiled registry: its text, or what its JSON was parsed to");
  need(document["hearsay_registry"] === VERSION, "hearsay_registry", OF_VERSION);
  refuseAll(broken("", document, RULES));
  const { checksum, ...rest } = document;
  const text = canonical(rest);
  need(text.length <= MAX_SIZE, "registry", `must have at most ${MAX_SIZE} characters`);
  need(digestOf(text) === checksum, "checksum", "must be that of the file, which was edited: compile again");
  return document as unknown as Document;
}

function refuseAll(problems: readonly string[]): void {
  if (problems.length) throw new RegistryError(...problems);
}
