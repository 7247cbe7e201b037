/** Piecewise mechanism: a symbol of the window around the position more often than another. */

import { drawWindow, roundTo } from "../core/exact.js";
import type { Randomness } from "../core/randomness.js";
import { chance, type Channel, type Mechanism, numbered, parameter, type Position, positionOf } from "./mechanism.js";

export const piecewise: Mechanism = {
  name: "piecewise",
  randomize(channel, value, randomness) {
    return numbered(channel, drawPiecewise(channel, positionOf("piecewise", channel, value), randomness));
  },
};

/** Returns a symbol for `position`. */
export function drawPiecewise(channel: Channel, position: Position, randomness: Randomness): bigint {
  const steps = parameter(channel, "steps");
  const step = roundTo(position, steps, channel.domainSize - 1n, randomness);
  return drawWindow(step, steps, parameter(channel, "width"), chance(channel, "inside"), randomness);
}
