/** Discrete Laplace: the position plus an exact discrete Laplace number. */

import { ceiling, drawLaplace, roundTo } from "../core/exact.js";
import { chance, type Mechanism, numbered, positionOf } from "./mechanism.js";

const TAIL = 40n; // scales beyond the range at which reports are clamped

export const discrete_laplace: Mechanism = {
  name: "discrete_laplace",
  randomize(channel, value, randomness) {
    const position = positionOf("discrete_laplace", channel, value);
    const top = channel.domainSize - 1n;
    const { numerator: t, denominator: s } = chance(channel, "scale");
    const margin = ceiling(TAIL * t, s);
    const noisy = roundTo(position, top, top, randomness) + drawLaplace(t, s, randomness) + margin;
    const most = top + 2n * margin;
    return numbered(channel, noisy < 0n ? 0n : noisy > most ? most : noisy);
  },
};
