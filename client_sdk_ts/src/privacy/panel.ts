/**
 * The panel: of more metrics than a week's budget pays for, a device draws which ones may report.
 *
 * The draw looks at no value: it is made from the device's secret and the period, so that all tabs and
 * processes agree, and a metric is in if its seat holds one of the points u, u + 2^64, u + 2 · 2^64, …
 */

import { toNumber, utf8 } from "../core/bytes.js";
import { epochOf, epochStart } from "../core/epoch.js";
import { hmacSha256 } from "../core/hashing.js";
import type { Metric, Registry } from "../registry/compiled.js";

/** Whether `metric` may report of `epoch`, on the device of this `secret`. */
export function isInPanel(registry: Registry, metric: Metric, epoch: number, secret: Uint8Array): boolean {
  const seat = registry.seats?.[metric.digest];
  if (!seat) return true;
  const [low, high, lasts] = seat;
  const number = lasts === "life" ? 0 : epochOf(lasts, epochStart(metric.every, epoch));
  const drawn = hmacSha256(secret, utf8(`hearsay panel\0${lasts}\0${number}\0`)); // a gateway's device would follow
  const point = toNumber(drawn.slice(0, 8));
  return low + BigInt.asUintN(64, point - low) < high;
}
