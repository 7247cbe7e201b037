/** The segment that the reports of a device carry, in the clear. */

import { RegistryError } from "../core/errors.js";
import type { Registry } from "./compiled.js";
import { printable } from "./fields.js";

export type Segment = Readonly<Record<string, string>>;

/**
 * Returns `segment` with what a device fills in itself: whether it is `automated`.
 *
 * Throws RegistryError: a dimension or value is not declared.
 */
export function wholeSegment(registry: Registry, segment: Segment, automated: boolean): Segment {
  const own = registry.automation === "segment" ? { automation: automated ? "automated" : "people" } : {};
  const whole: Segment = { ...own, ...segment };
  const problems = Object.entries(whole)
    .filter(([dimension, value]) => !registry.segments[dimension]?.includes(value))
    .map(([dimension]) => `segment.${printable(dimension)}: must be a declared dimension with one of its values`);
  if (problems.length) throw new RegistryError(...problems);
  return whole;
}
