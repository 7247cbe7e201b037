/**
 * What a device sends when it is asked again.
 *
 * `fresh` draws new noise for every report.  `permanent` sends one payload a value, drawn once from the
 * device's secret and again the same whenever it is needed.  `two_layer` sends that payload with chance
 * `kept`, else a fresh one that knows nothing: the collector never knows which.
 *
 * Source: client_sdk/registry/longitudinal.py, with its proof.
 */

import { concat, fromNumber } from "../core/bytes.js";
import { InvalidParameterError } from "../core/errors.js";
import { Shake256 } from "../core/hashing.js";
import { ByteRandomness, type Randomness } from "../core/randomness.js";
import { chance, type Channel, type Encoded, itemOf, type Mechanism } from "./mechanism.js";

const SECRET_SIZE = 32; // bytes
const ITEM_SIZE = 4; // bytes

/** Of a metric: its policy, what it is drawn by, and the 6 bytes of its digest. */
export interface Policy {
  readonly longitudinal: "fresh" | "permanent" | "two_layer";
  readonly mechanism: Mechanism;
  readonly channel: Channel;
  readonly digest: Uint8Array;
}

/** Returns the payload of `value`.  Throws InvalidValueError: nothing was drawn. */
export function randomizeBy(policy: Policy, value: Encoded, secret: Uint8Array, fresh: Randomness): Uint8Array {
  const { longitudinal, mechanism, channel, digest } = policy;
  if (longitudinal === "fresh") return mechanism.randomize(channel, value, fresh);
  const item = itemOf(mechanism.name, channel, value);
  if (longitudinal === "permanent" || fresh.bernoulli(chance(channel, "kept"))) {
    return mechanism.randomize(channel, value, permanentRandomness(secret, digest, item));
  }
  if (mechanism.uniform) return mechanism.uniform(channel, fresh);
  return mechanism.randomize(channel, { kind: "item", item: fresh.uniform(channel.domainSize) }, fresh);
}

/** Returns the primitives over SHAKE-256 of secret, digest and item: the same every time. */
export function permanentRandomness(secret: Uint8Array, digest: Uint8Array, item: bigint): Randomness {
  if (secret.length !== SECRET_SIZE) throw new InvalidParameterError("secret", "...", `must be ${SECRET_SIZE} bytes`);
  return new ByteRandomness(new Shake256(concat(secret, digest, fromNumber(item, ITEM_SIZE))).read);
}
