/** The device secret: made when first needed, and never sent. */

import { fromBase64url, fromNumber, toBase64url } from "../core/bytes.js";
import type { Randomness } from "../core/randomness.js";
import type { State } from "./state.js";

const SECRET_SIZE = 32; // bytes of the system's entropy

/** Returns the secret of the document, which has one from now on.  Throws EntropyError. */
export function secretOf(state: State, randomness: Randomness): Uint8Array<ArrayBuffer> {
  const known = state.secret === null ? null : fromBase64url(state.secret);
  if (known?.length === SECRET_SIZE) return known;
  const secret = fromNumber(randomness.uniform(1n << BigInt(8 * SECRET_SIZE)), SECRET_SIZE);
  state.secret = toBase64url(secret);
  return secret;
}
