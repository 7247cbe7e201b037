/** The caps: the most that an application ever spends on a person. */

import { InvalidParameterError } from "../core/errors.js";

export const WEEK = 7; // days

/** Decimals of epsilon in nano-epsilon, and of delta in 1e-12. */
const NANO = 9;
const PICO = 12;

const EPSILONS = ["report", "metric_week", "week", "lifetime"] as const;

/** Decimals in quotes: epsilon in nats, and delta, where "0" allows none. */
export interface CapTexts {
  /** Of one report; beyond 4 it is close to the truth. */
  readonly report?: string;
  /** Of any seven days, of one metric. */
  readonly metric_week?: string;
  /** Of any seven days, of all metrics together. */
  readonly week?: string;
  /** Of the ledger's life, of all metrics together. */
  readonly lifetime?: string;
  /** Of the ledger's life, of all metrics together; their sum. */
  readonly delta?: string;
}

export const DEFAULT_CAPS: Required<CapTexts> = {
  report: "4",
  metric_week: "8",
  week: "8",
  lifetime: "1000",
  delta: "0.00001",
};

/**
 * The most epsilon and delta this application ever spends on a person: whole nano-epsilon and 1e-12.
 *
 * Compiled into the application: no registry and no answer of a server can raise them.  A week is any
 * seven days of the person's life, that reports are about, whenever these are made.
 */
export interface Caps {
  readonly report: number;
  readonly metric_week: number;
  readonly week: number;
  readonly lifetime: number;
  readonly delta: number;
}

/**
 * Returns the caps of `texts`, with the defaults for those that are left out.
 *
 * Throws InvalidParameterError: an unknown name, no decimal in quotes, too many decimals, or an
 * epsilon of 0.
 */
export function capsOf(texts: CapTexts = {}): Caps {
  for (const name of Object.keys(texts)) {
    if (!Object.hasOwn(DEFAULT_CAPS, name)) {
      throw new InvalidParameterError("caps", name, `must be of ${Object.keys(DEFAULT_CAPS).join(", ")}`);
    }
  }
  const given = { ...DEFAULT_CAPS, ...texts };
  const epsilons = EPSILONS.map((name) => [name, whole(name, given[name], NANO, 1)]);
  return Object.freeze({ ...Object.fromEntries(epsilons), delta: whole("delta", given.delta, PICO, 0) } as Caps);
}

/**
 * Returns `caps` with the week of a panel, in nano-epsilon; null: there is no panel.
 *
 * Throws InvalidParameterError: the panel's week is above the caps' week.
 */
export function withinPanel(caps: Caps, panelWeek: number | null): Caps {
  if (panelWeek === null) return caps;
  if (panelWeek > caps.week) {
    const rule = `must be at most caps.week=${decimal(caps.week, NANO)}`;
    throw new InvalidParameterError("panel.week", decimal(panelWeek, NANO), rule);
  }
  return Object.freeze({ ...caps, week: panelWeek });
}

/** Returns the name of the first cap that one report of `nano`-epsilon passes, or null. */
export function capBelow(caps: Caps, nano: number): (typeof EPSILONS)[number] | null {
  return EPSILONS.find((name) => caps[name] < nano) ?? null;
}

/** Returns the texts that make `caps`. */
export function capTexts(caps: Caps): Required<CapTexts> {
  const epsilons = EPSILONS.map((name) => [name, decimal(caps[name], NANO)]);
  return { ...Object.fromEntries(epsilons), delta: decimal(caps.delta, PICO) } as Required<CapTexts>;
}

/** Returns whole units of the last of `decimals` as a decimal. */
function decimal(units: number, decimals: number): string {
  const digits = String(units).padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, "");
}

/** Returns the decimal `cap` in whole units of its last decimal. */
function whole(name: string, cap: unknown, decimals: number, least: number): number {
  const text = typeof cap === "string" && cap.length < 24 ? cap : "";
  const parts = /^([0-9]{1,6})(?:\.([0-9]+))?$/.exec(text);
  const fraction = parts?.[2] ?? "";
  const units = BigInt((parts?.[1] ?? "") + fraction.padEnd(decimals, "0"));
  if (!parts || fraction.length > decimals || units < BigInt(least)) {
    throw new InvalidParameterError(
      `caps.${name}`, cap,
      `must be a ${least ? "positive " : ""}decimal in quotes, such as "8.5", at most 999999, with at most ${decimals} decimals`,
    );
  }
  // a delta above 9,007 is out of all reach; below it every whole number is exact
  return Number(units > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(Number.MAX_SAFE_INTEGER) : units);
}
