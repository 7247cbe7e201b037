/** Registries, a clock that tests set, and collectors in memory that lose what they are told to. */

import { TransportError } from "../../src/core/errors.js";
import { type Answer, type ClientOptions, memoryStore, noOptOuts, type Transport } from "../../src/index.js";
import { everything } from "../../src/all.js";
import { documentOf, type Json, withChecksum } from "../support/compiled.js";

/** Milliseconds; noon of a Tuesday. */
export const NOON = Date.UTC(2026, 10, 24, 12);
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** A boolean of each day, a category of each week, a number of each hour, and the largest number of a day. */
export const [DAILY, WEEKLY, HOURLY, LARGEST] = ["dark", "plan", "opens", "peak"] as const;
/** Whether anything crashed on a day, and a sum of each day: of days on which nothing was said too. */
export const [CRASHED, SUM] = ["crashed", "runs"] as const;

/** Returns the registry of every type with these metrics alone. */
export function registryOf(...names: string[]): Json {
  const document = documentOf("every_type");
  return withChecksum({ ...document, metrics: document["metrics"].filter((metric: Json) => names.includes(metric["name"])) });
}

export class FakeClock {
  constructor(public time = NOON) {}
  readonly read = (): number => this.time;
  /** The machine has run as long as the clock says. */
  readonly uptime = (): { boot: string; up: number } => ({ boot: "boot", up: this.time });
}

export const options = (more: Partial<ClientOptions> = {}): ClientOptions => ({
  endpoint: "https://collector.example",
  writeKey: "key",
  registry: registryOf(DAILY, WEEKLY, HOURLY, LARGEST),
  mechanisms: everything,
  consent: "granted",
  store: memoryStore(),
  optOuts: noOptOuts,
  ...more,
});

export const reportsIn = (body: string): number =>
  (JSON.parse(body) as { columns: unknown[] }).columns.length;

/** Folds each upload once, by its id; what becomes of a try is said by `fate`, for good if it says nothing. */
export class FakeCollector implements Transport {
  /** All bodies that arrived, by the id of their upload. */
  readonly bodies = new Map<string, string[]>();
  readonly tries: string[] = [];

  constructor(public fate: (body: string) => "lose request" | "lose answer" | "refuse connection" | Answer | undefined = () => undefined) {}

  async send(body: string): Promise<Answer> {
    this.tries.push(body);
    const fate = this.fate(body);
    if (fate === "lose request") throw new TransportError("the request was lost");
    if (fate === "refuse connection") throw new TransportError("nobody listens", true);
    if (typeof fate === "object") return fate;
    const { id } = JSON.parse(body) as { id: string };
    const known = this.bodies.get(id) ?? [];
    this.bodies.set(id, [...known, body]);
    if (fate === "lose answer") throw new TransportError("the answer was lost");
    return { status: 202, body: JSON.stringify({ accepted: reportsIn(body), duplicate: known.length > 0, rejected: [] }) };
  }

  /** How many reports arrived, each upload counted once. */
  get reports(): number {
    return [...this.bodies.values()].reduce((all, [body]) => all + reportsIn(body!), 0);
  }

  /** Whether every upload came as the same bytes whenever it came. */
  get isIdentical(): boolean {
    return [...this.bodies.values()].every((bodies) => new Set(bodies).size === 1);
  }
}

/** Returns the counts that are not zero. */
export const counted = (client: { stats(): Record<string, number> }): Record<string, number> =>
  Object.fromEntries(Object.entries(client.stats()).filter(([, count]) => count));
