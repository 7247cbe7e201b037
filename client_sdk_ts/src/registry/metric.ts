/** A metric of a compiled registry, made of its entry. */

import { fromHex } from "../core/bytes.js";
import { dayOfDate } from "../core/epoch.js";
import { RegistryError } from "../core/errors.js";
import type { Channel, Encoded } from "../mechanisms/mechanism.js";
import { canonical, digestOf } from "./canonical.js";
import type { Domain, Metric, Registry } from "./compiled.js";
import { domainOf, type ValueType } from "./domains.js";
import { type Table, broken, constant, isCount, isTable, isText, need, printable, refuse, shapeOf, tableFrom } from "./fields.js";

const ENTRY = /* @__PURE__ */ shapeOf(
  "name:text title:text question:text explanation:lines owner:text type:text domain:table domain_size:count" +
    " epsilon:text epsilon_permanent:text? every:1h|1d|7d|28d|once longitudinal:fresh|permanent|two_layer" +
    " mechanism:table constants:table digest:hex.12 payload_size:count spent:table segments:texts" +
    " expected_devices:count min_reports:count.100 expires:date aggregate:sum|max|last|most_common|any?" +
    " otherwise:encoded? need:text? shape:any|grid|smooth robust:flag weight:count.1 panel:flag",
);
const SPENT = /* @__PURE__ */ shapeOf("report:count value:count? delta:count");
const LONG = 1n << 2048n; // from it on, the meaning of a metric has hexadecimal digits

/** What a digest is of, beside mechanism and `otherwise`; what is null is left out. */
const MEANING = ["name", "type", "domain", "epsilon", "epsilon_permanent", "every", "longitudinal", "aggregate"];

/** An entry with every key of its kind. */
type Entry = Omit<Metric, "domain" | "mechanism" | "otherwise"> & {
  readonly [key: string]: unknown;
  readonly constants: Table;
  readonly domain: Table;
  readonly domain_size: number;
  readonly expires: string;
  readonly mechanism: Table;
  readonly otherwise: { readonly encoded: unknown; readonly value: unknown } | null;
  readonly payload_size: number;
};

/**
 * Returns the metric of an entry, the `index`-th of a file with these `dimensions`; `app` is in its
 * digest if that is not null.  Throws as `domainOf`.
 */
export function metricOf(
  raw: unknown,
  index: number,
  dimensions: Registry["segments"],
  types: readonly ValueType[],
  app: string | null,
): Metric {
  need(isTable(raw), `metrics.${index}`, "must be an object");
  const { name: called } = raw;
  const place = `metrics.${called && typeof called === "string" ? printable(called) : index}.`;
  const lines = broken(place, raw, ENTRY);
  if (!lines.length) lines.push(...broken(`${place}spent.`, raw["spent"] as Table, SPENT));
  if (lines.length) throw new RegistryError(...lines);
  const entry = raw as unknown as Entry;
  const { name, digest, title, question, explanation, type, every, longitudinal, spent, segments, aggregate, otherwise } = entry;
  const { name: mechanism, ...parameters } = entry.mechanism;
  need(isText(mechanism), `${place}mechanism`, "must be an object with the name of a mechanism");
  const channel = channelOf(place, entry, parameters, app);
  const domain = domainOf(type, entry.domain, `${place}domain`, types);
  need(domain.size === entry.domain_size, `${place}domain_size`, `must be ${domain.size}`);
  need(segments.every((dimension) => dimension in dimensions), `${place}segments`, "must be dimensions of the file");
  need(longitudinal === "fresh" || domain.encodes === "item", `${place}longitudinal`, "must be fresh for this type");
  const isFitting = aggregate === null ? otherwise === null : domain.aggregates.includes(aggregate);
  if (!isFitting) refuse(`${place}aggregate`, `must be one of ${domain.aggregates.join(", ")}`);
  return {
    name,
    digest,
    title,
    question,
    explanation,
    type,
    every,
    longitudinal,
    spent,
    segments,
    aggregate,
    mechanism,
    channel,
    domain,
    lastDay: dayOfDate(entry.expires),
    otherwise: otherwise && encodedOf(`${place}otherwise`, domain, otherwise.encoded),
    encode: (value) => domain.encode(value, name),
  };
}

/** Returns what the draws need, having checked the digest, which is of the parameters too. */
function channelOf(place: string, entry: Entry, own: Table, app: string | null): Channel {
  const named = <T>(table: Table, load: (place: string, value: unknown) => T, key: string): Readonly<Record<string, T>> =>
    tableFrom(Object.entries(table).map(([name, value]) => [name, load(`${place}${key}.${printable(name)}`, value)]));
  const parameters = named(own, parameter, "mechanism");
  const constants = named(entry.constants, constantOf, "constants");
  const parts = MEANING.map((key): [string, unknown] => [key, entry[key]]);
  const decimal = tableFrom(Object.entries(parameters).filter(([, number]) => number < LONG)); // the others stay as they are written
  parts.push(["mechanism", { ...entry.mechanism, ...decimal }], ["otherwise", entry.otherwise && entry.otherwise.value], ["app", app]);
  const meaning = canonical(tableFrom(parts.filter(([, part]) => part !== null)));
  need(digestOf(meaning).slice(0, 12) === entry.digest, `${place}digest`, "must match what the metric means");
  return { parameters, constants, domainSize: BigInt(entry.domain_size), payloadSize: entry.payload_size };
}

function constantOf(place: string, value: unknown): Channel["constants"][string] {
  return Array.isArray(value) ? value.map((number) => constant(place, number)) : constant(place, value);
}

function parameter(place: string, value: unknown): bigint {
  const isLong = typeof value === "string" && /^0x[\da-f]{1,139264}$/.test(value);
  need(isLong || isCount(value), place, "must be a whole number, from 2^53 on as 0x and hexadecimal digits");
  return BigInt(value);
}

/** Returns what was written of an encoded value; whether it lies in the domain, its mechanism sees.  Throws RegistryError. */
function encodedOf(place: string, { encodes, size }: Domain, value: unknown): Encoded {
  const rule = "must be a value of the metric, as its mechanism takes it";
  const item = (index: unknown): bigint => {
    need(isCount(index) && index < size, place, rule);
    return BigInt(index);
  };
  if (encodes === "item") return { kind: encodes, item: item(value) };
  if (encodes === "position") return { kind: encodes, position: constant(place, value) };
  if (encodes === "bytes") {
    need(typeof value === "string" && /^([\da-f]{2})*$/.test(value) && value.length <= 2 * size, place, rule);
    return { kind: encodes, bytes: fromHex(value) };
  }
  need(Array.isArray(value), place, rule);
  if (encodes === "set") return { kind: encodes, items: value.map(item) };
  return { kind: encodes, pairs: (value as unknown[][]).map(([key, at]) => [item(key), constant(place, at)]) };
}
