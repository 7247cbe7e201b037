/** Compiled registries of the folder data, whole or edited. */

import { readFileSync } from "node:fs";

import { canonical, digestOf } from "../../src/registry/canonical.js";
import { allTypes } from "../../src/all.js";
import { readRegistry } from "../../src/registry/read.js";

export type Json = Record<string, any>;

/** Returns the text of a file of the folder. */
export function textOf(name: "every_type" | "panel"): string {
  return readFileSync(new URL(`../../../tests/data/${name}.json`, import.meta.url), "utf8");
}

/** Returns a file of the folder as its JSON. */
export function documentOf(name: "every_type" | "panel"): Json {
  return JSON.parse(textOf(name)) as Json;
}

/** Returns the entry of a metric. */
export function entryOf(document: Json, name: string): Json {
  return document["metrics"].find((entry: Json) => entry["name"] === name);
}

/** Returns `document` with the digests and the checksum that it has as it is. */
export function sealed(document: Json): Json {
  for (const entry of document["metrics"]) if (isWhole(entry)) entry.digest = digestOf(meaningOf(entry)).slice(0, 12);
  return withChecksum(document);
}

/** Returns `document` with the checksum that it has as it is. */
export function withChecksum(document: Json): Json {
  const { checksum: _, ...rest } = document;
  return { ...rest, checksum: digestOf(canonical(rest)) };
}

/** Returns why a document is refused; none if it is read. */
export function problemsOf(source: unknown): readonly string[] {
  try {
    readRegistry(source, allTypes);
  } catch (error) {
    return (error as { problems: readonly string[] }).problems;
  }
  return [];
}

function isWhole(entry: Json): boolean {
  return typeof entry?.["mechanism"] === "object" && entry["mechanism"] !== null;
}

/** What the meaning of a metric is, written a second time. */
function meaningOf(entry: Json): string {
  const { name, type, domain, epsilon, every, longitudinal } = entry;
  const mechanism = Object.fromEntries(
    Object.entries(entry["mechanism"]).map(([key, value]) => [key, /^0x/.test(String(value)) ? BigInt(value as string) : value]),
  );
  const meaning: Json = { name, type, domain, epsilon, every, longitudinal, mechanism };
  for (const key of ["epsilon_permanent", "aggregate"]) if (entry[key] != null) meaning[key] = entry[key];
  const otherwise = entry["otherwise"]?.value;
  if (otherwise != null) meaning["otherwise"] = otherwise;
  return canonical(meaning);
}
