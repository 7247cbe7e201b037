/** Does what its argument says with the JSON of its input, for tests of registries that compare with Python. */

import { readFileSync } from "node:fs";

import { fromNumber, toHex } from "../../src/core/bytes.js";
import { isInPanel } from "../../src/privacy/panel.js";
import { type AggregateState, aggregatorOf } from "../../src/registry/aggregates.js";
import { isText } from "../../src/registry/fields.js";
import { allTypes } from "../../src/all.js";
import { readRegistry } from "../../src/registry/read.js";
import { wholeSegment } from "../../src/registry/segment.js";
import { writeValue } from "../support/channels.js";
import { problemsOf } from "../support/compiled.js";
import { revived } from "../support/values.js";

/** Lots of values of a metric, each of which is folded in two parts and merged with those before. */
interface Aggregation {
  registry: string;
  lots: [metric: string, values: [first: unknown[], rest: unknown[]][]][];
}

const programs: Record<string, (input: never) => unknown> = {
  aggregates: ({ registry: text, lots }: Aggregation) => {
    const registry = readRegistry(text, allTypes);
    return lots.map(([name, values]) => {
      const aggregator = aggregatorOf(registry.metrics.get(name)!);
      let kept: AggregateState | null = null;
      return values.map(([first, rest]) => {
        let state: AggregateState | null = null;
        for (const part of [first, rest]) {
          if (part.length) state = aggregator.fold(state, part.map((value) => aggregator.check(revived(value))));
        }
        const bytes = aggregator.dump(aggregator.merge(kept, state!));
        kept = aggregator.load(bytes);
        return [toHex(bytes), writeValue(aggregator.result(kept)), bytes.length === aggregator.size];
      });
    });
  },

  panels: ({ registry: text, secrets, epochs }: { registry: string; secrets: number; epochs: number[] }) => {
    const registry = readRegistry(text, allTypes);
    return Array.from({ length: secrets }, (_, i) =>
      [...registry.metrics.values()]
        .map((metric) => Number(isInPanel(registry, metric, epochs[i % epochs.length]!, fromNumber(BigInt(i), 32))))
        .join(""),
    );
  },

  segments: ({ registries, segments }: { registries: string[]; segments: Record<string, string>[] }) =>
    registries.map((text) => readRegistry(text, allTypes)).map((registry) =>
      [true, false].map((automated) =>
        segments.map((segment) => {
          try {
            return Object.entries(wholeSegment(registry, segment, automated));
          } catch (error) {
            return (error as Error).message;
          }
        }),
      ),
    ),

  problems: (texts: string[]) => texts.map(problemsOf),

  unprintable: (codes: number) =>
    Array.from({ length: codes }, (_, code) => code).filter((code) => !isText(`a${String.fromCodePoint(code)}`)),
};

const input = JSON.parse(readFileSync(0, "utf8")) as never;
console.log(JSON.stringify(programs[process.argv[2] ?? ""]!(input)));
