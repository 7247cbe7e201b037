/** A metric of a compiled registry, made of its entry. */

import { fromHex } from "../core/bytes.js";
import { dayOfDate } from "../core/epoch.js";
import { RegistryError } from "../core/errors.js";
import { ZERO, exactly, isBelow } from "../core/fractions.js";
import type { Ratio } from "../core/randomness.js";
import type { Channel, Encoded } from "../mechanisms/mechanism.js";
import { canonical, digestOf } from "./canonical.js";
import type { Domain, Metric, Registry } from "./compiled.js";
import { domainOf } from "./domains.js";
import {
  type Check, type Table, TEXT, WHOLE, among, broken, constant, isCount, isFlag, isHex, isString, isTable,
  isText, listOf, need, orNull, printable, rulesOf, tableFrom,
} from "./fields.js";

const EVERY = ["1h", "1d", "7d", "28d", "once"];
const AGGREGATES = ["sum", "max", "last", "most_common", "any"];
const LONGITUDINAL = ["fresh", "permanent", "two_layer"];

const isDate: Check = (day) => {
  const time = typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day as string);
};

const RULES = rulesOf(
  ["name title question owner type epsilon", isText, TEXT],
  ["explanation", isString, "must be a text"],
  ["domain mechanism constants spent", isTable, "must be an object"],
  ["domain_size payload_size expected_devices", isCount, WHOLE],
  ["epsilon_permanent need", orNull(isText), "must be a text, or null"],
  ["every", among(...EVERY), `must be one of ${EVERY.join(", ")}`],
  ["longitudinal", among(...LONGITUDINAL), `must be one of ${LONGITUDINAL.join(", ")}`],
  ["digest", (digest) => isHex(digest, 12), "must be 12 hexadecimal digits"],
  ["segments", listOf(isText), "must be a list of texts"],
  ["min_reports", (least) => isCount(least) && least >= 100, "must be a whole number of at least 100"],
  ["expires", isDate, "must be a date such as 2027-12-31"],
  ["aggregate", among(null, ...AGGREGATES), `must be one of ${AGGREGATES.join(", ")}, or null`],
  [
    "otherwise",
    orNull((entry) => isTable(entry) && Object.keys(entry).sort().join() === "encoded,value"),
    "must hold value and encoded, or be null",
  ],
  ["shape", among("any", "grid", "smooth"), "must be any, grid or smooth"],
  ["robust panel", isFlag, "must be true or false"],
  ["weight", (weight) => isCount(weight) && weight > 0, "must be a whole number of at least 1"],
);
const SPENT = rulesOf(
  ["report delta", isCount, WHOLE],
  ["value", orNull(isCount), `${WHOLE}, or null`],
);
const COPIED = ["name", "digest", "title", "question", "explanation", "type", "every", "longitudinal", "aggregate", "segments", "spent"];
/** What a digest is of, beside the mechanism; what is null is left out. */
const MEANING = ["name", "type", "domain", "epsilon", "every", "longitudinal", "epsilon_permanent", "aggregate"];

/** Returns the metric of an entry, the `index`-th of a file with these `dimensions`.  Throws RegistryError. */
export function metricOf(entry: unknown, index: number, dimensions: Registry["segments"]): Metric {
  need(isTable(entry), `metrics.${index}`, "must be an object");
  const name = entry["name"];
  const place = `metrics.${typeof name === "string" && name ? printable(name) : index}`;
  const lines = broken(`${place}.`, entry, RULES);
  if (!lines.length) lines.push(...broken(`${place}.spent.`, entry["spent"] as Table, SPENT));
  if (lines.length) throw new RegistryError(...lines);
  const { mechanism, channel } = channelOf(place, entry);
  const domain = domainOf(entry["type"], entry["domain"] as Table, `${place}.domain`);
  const { aggregate, longitudinal, segments, otherwise } = entry as unknown as Metric & { otherwise: Table | null };
  need(BigInt(domain.size) === channel.domainSize, `${place}.domain_size`, `must be ${domain.size}`);
  need(segments.every((dimension) => dimension in dimensions), `${place}.segments`, "must be dimensions of the file");
  need(longitudinal === "fresh" || domain.encodes === "item", `${place}.longitudinal`, "must be fresh for this type");
  const fitting = aggregate === null ? otherwise === null : domain.aggregates.includes(aggregate);
  need(fitting, `${place}.aggregate`, `must be one of ${domain.aggregates.join(", ")}`);
  return {
    ...(Object.fromEntries(COPIED.map((key) => [key, entry[key]])) as unknown as Metric),
    mechanism,
    channel,
    domain,
    lastDay: dayOfDate(entry["expires"] as string),
    otherwise: otherwise && encodedOf(`${place}.otherwise`, domain, otherwise["encoded"]),
    encode: (value) => domain.encode(value, name as string),
  };
}

/** Returns what the draws need, having checked the digest, which is of the parameters too. */
function channelOf(place: string, entry: Table): { mechanism: string; channel: Channel } {
  const { name, ...own } = entry["mechanism"] as Table;
  need(isText(name), `${place}.mechanism`, "must be an object with the name of a mechanism");
  const named = <T>(key: string, table: Table, load: (place: string, value: unknown) => T): Readonly<Record<string, T>> =>
    tableFrom(Object.entries(table).map(([at, value]) => [at, load(`${place}.${key}.${printable(at)}`, value)]));
  const parameters = named("mechanism", own, parameter);
  const otherwise = (entry["otherwise"] as Table | null)?.["value"];
  const parts = MEANING.map((key): [string, unknown] => [key, entry[key]]);
  parts.push(["mechanism", { ...parameters, name }], ["otherwise", otherwise ?? null]);
  const meaning = canonical(tableFrom(parts.filter(([, part]) => part !== null)));
  need(digestOf(meaning).slice(0, 12) === entry["digest"], `${place}.digest`, "must be that of what the metric means");
  const constants = named("constants", entry["constants"] as Table, (at, value) =>
    Array.isArray(value) ? value.map((number) => constant(at, number)) : constant(at, value),
  );
  const { domain_size: size, payload_size: payloadSize } = entry as Record<string, number>;
  return { mechanism: name, channel: { parameters, constants, domainSize: BigInt(size!), payloadSize: payloadSize! } };
}

function parameter(place: string, value: unknown): bigint {
  const isLong = typeof value === "string" && /^0x[\da-f]{1,400}$/.test(value);
  need(isLong || isCount(value), place, "must be a whole number, from 2^53 on as 0x and hexadecimal digits");
  return BigInt(value);
}

/** Returns what was written of an encoded value.  Throws RegistryError: no value of `domain` becomes that. */
function encodedOf(place: string, domain: Domain, value: unknown): Encoded {
  const isItem = (index: unknown): index is number => isCount(index) && index < domain.size;
  const position = (text: unknown, top: number): Ratio => {
    const number = constant(place, text);
    need(!isBelow(number, ZERO) && !isBelow(exactly(top), number), place, RULE);
    return number;
  };
  switch (domain.encodes) {
    case "item":
      need(isItem(value), place, RULE);
      return { kind: "item", item: BigInt(value) };
    case "position":
      return { kind: "position", position: position(value, domain.size - 1) };
    case "bytes":
      need(typeof value === "string" && isHex(value, 2 * Math.min(value.length >> 1, domain.size)), place, RULE);
      return { kind: "bytes", bytes: fromHex(value) };
    case "set":
      need(Array.isArray(value) && value.every(isItem) && isAscending(value), place, RULE);
      return { kind: "set", items: value.map(BigInt) };
    case "pairs": {
      const keys = Array.isArray(value) && value.map((pair: unknown) => Array.isArray(pair) && pair.length === 2 && (pair[0] as unknown));
      need(keys && keys.every(isItem) && isAscending(keys), place, RULE);
      return { kind: "pairs", pairs: (value as [number, unknown][]).map(([key, at]) => [BigInt(key), position(at, 1)]) };
    }
  }
}

const RULE = "must be a value of the metric, as its mechanism takes it";

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => i === 0 || number > numbers[i - 1]!);
}
