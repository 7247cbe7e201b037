/** Channels and values as tests/client_sdk_ts/channels.py writes them, and the stream of a seed. */

import { fromHex, toHex } from "../../src/core/bytes.js";
import { ratioOf } from "../../src/core/exact.js";
import { Shake256 } from "../../src/core/hashing.js";
import { ByteRandomness, type Ratio } from "../../src/core/randomness.js";
import { allMechanisms } from "../../src/mechanisms/index.js";
import type { Channel, Encoded, Mechanism } from "../../src/mechanisms/mechanism.js";

/** A channel: numbers as decimal text, chances as a compiled registry writes them. */
export interface WrittenChannel {
  parameters: Record<string, string>;
  constants: Record<string, string | string[]>;
  domainSize: string;
  payloadSize: number;
}

/** A value: exactly one of these; positions are a/b in decimal. */
export interface WrittenValue {
  item?: string;
  position?: string;
  set?: string[];
  pairs?: [string, string][];
  bytes?: string;
}

export function readChannel(written: WrittenChannel): Channel {
  const entries = Object.entries(written.constants);
  return {
    parameters: Object.fromEntries(Object.entries(written.parameters).map(([name, text]) => [name, BigInt(text)])),
    constants: Object.fromEntries(entries.map(([name, text]) => [name, typeof text === "string" ? ratioOf(text) : text.map(ratioOf)])),
    domainSize: BigInt(written.domainSize),
    payloadSize: written.payloadSize,
  };
}

export function readValue({ item, position, set, pairs, bytes }: WrittenValue): Encoded {
  if (item !== undefined) return { kind: "item", item: BigInt(item) };
  if (position !== undefined) return { kind: "position", position: fraction(position) };
  if (set !== undefined) return { kind: "set", items: set.map(BigInt) };
  if (pairs !== undefined) return { kind: "pairs", pairs: pairs.map(([key, at]) => [BigInt(key), fraction(at)] as const) };
  return { kind: "bytes", bytes: fromHex(bytes!) };
}

export function writeValue(value: Encoded): WrittenValue {
  const text = ({ numerator, denominator }: Ratio): string => `${numerator}/${denominator}`;
  switch (value.kind) {
    case "item":
      return { item: String(value.item) };
    case "position":
      return { position: text(value.position) };
    case "set":
      return { set: value.items.map(String) };
    case "pairs":
      return { pairs: value.pairs.map(([key, at]) => [String(key), text(at)]) };
    case "bytes":
      return { bytes: toHex(value.bytes) };
  }
}

export function fraction(text: string): Ratio {
  const [numerator, denominator] = text.split("/");
  return { numerator: BigInt(numerator!), denominator: BigInt(denominator ?? "1") };
}

export function seeded(seed: Uint8Array): ByteRandomness {
  return new ByteRandomness(new Shake256(seed).read);
}

export function mechanismOf(name: string): Mechanism {
  const mechanism = allMechanisms.find((each) => each.name === name);
  if (!mechanism) throw new Error(`no mechanism ${name}`);
  return mechanism;
}
