/** What mechanisms over keys with a number each share: one pair is drawn, its number rounded to a sign. */

import type { Randomness } from "../core/randomness.js";
import { type Channel, type Encoded, parameter, refuse, requirePosition, requireRising } from "./mechanism.js";

/** Returns a key and whether its sign is plus; keys from domainSize on are dummies.  Throws InvalidValueError. */
export function drawPair(mechanism: string, channel: Channel, value: Encoded, randomness: Randomness): [key: bigint, plus: boolean] {
  if (value.kind !== "pairs") return refuse(mechanism, "pairs");
  const { pairs } = value;
  const [pad, top, held] = [parameter(channel, "pad"), parameter(channel, "top"), BigInt(pairs.length)];
  requireRising(mechanism, channel, pairs.map(([key]) => key));
  for (const [, position] of pairs) requirePosition(mechanism, top, position);
  const slot = randomness.uniform(held > pad ? held : pad);
  const pair = pairs[Number(slot)];
  if (!pair) return [channel.domainSize + slot - held, true];
  const [key, { numerator, denominator }] = pair;
  return [key, randomness.bernoulli({ numerator, denominator: denominator * top })];
}
