/**
 * What people read of their telemetry: the notice that asks, each metric, and each report.
 *
 * The texts come with the compiled registry, whose numbers hold under the caps of that file.  Where an
 * application has others, these say in their place what is never passed.  Who sees an address is of the
 * application alone: no registry knows it.
 */

import { fromBase64url, toHex } from "./core/bytes.js";
import { epochLabel } from "./core/epoch.js";
import { type Caps, capsOf, capTexts } from "./privacy/caps.js";
import type { Metric, Registry } from "./registry/compiled.js";
import type { State } from "./storage/state.js";
import { type Report, reportsOf } from "./wire/reports.js";

/** What the numbers of a notice depend on: that the device keeps its ledger, and can check its clock. */
export interface Device {
  readonly keeps: boolean;
  readonly checks: boolean;
}

/** Returns `text` of `registry`, with what holds under the application's own `caps` on such a device. */
export function underCaps(text: string, registry: Registry, caps: Caps, { keeps, checks }: Device): string {
  const own = capTexts(caps);
  const same = Object.entries(capTexts(capsOf(registry.caps))).every(([name, cap]) => own[name as keyof Caps] === cap);
  const others = `
The caps of this application differ from the caps above. With its own, one report gives
away at most ε ${own.report}, any seven days, and so any day, at most ε ${own.week}, and all reports for
as long as you use ${registry.app} at most ε ${own.lifetime}. If somebody sets the clock of this device and
restarts it over and over, any seven days can cost at most 5 times that.
`;
  return `${text.trimEnd()}\n${same ? "" : others}${checks ? "" : UNCHECKED}${keeps ? "" : FORGOTTEN}`;
}

const UNCHECKED = `
A browser cannot check its clock. If somebody sets it ahead again and again, only the number for life holds.
`;
const FORGOTTEN = `
Nothing is kept between visits. So all these numbers are of one visit: each further one, as when the page is
opened again, can give away as much again.
`;

/**
 * Returns who sees the address of a device that sends by these URLs, in sentences.
 *
 * One that sends `byFetch` adds to each request what its platform says of itself.
 */
export function addressSeen(relay: string | undefined, issuer: string | undefined, byFetch: boolean): string[] {
  const hostOf = (url: string): string | undefined => String(url).split("/")[2];
  return [
    ...(!relay
      ? ["The server that collects reports sees your internet address when one comes, as any server does.", "It keeps the report without the address."]
      : [
        `Reports travel through ${hostOf(relay)}, which sees your internet address and cannot read them.`,
        "The server that collects them can read them, and does not see your address.",
      ]),
    ...(!issuer ? [] : [`The server ${hostOf(issuer)} gives out permits for reports; it sees your internet address and no report.`]),
    ...(byFetch ? ["A server that sees your address also sees which browser or app, which system and which languages you use."] : []),
  ];
}

/** Returns what waits and what was sent, in words; of what adds up, only that it does. */
export function shown(state: State, registry: Registry): string {
  const metrics = new Map([...registry.metrics.values()].map((metric) => [metric.digest, metric]));
  const heading = ({ digest, epoch }: { digest: string; epoch: number }): string => {
    const metric = metrics.get(digest);
    if (!metric) return `  ${digest}, which this version does not ask, period ${epoch}`;
    const since = metric.every === "once" ? "once" : `from ${epochLabel(metric.every, epoch)}`;
    return `  ${metric.title} (${metric.name}), ${since}`;
  };
  const lines = (report: Report): string[] => {
    const metric = metrics.get(report.digest);
    return [heading(report), ...(metric ? asked(metric) : []), `    what is sent: the bytes ${bytesOf(report)}`, ...DENIABLE];
  };
  const { sent, windows } = state;
  const waiting = [...state.reports, ...state.uploads.flatMap(({ body }) => reportsOf(body))];
  return [
    ...(windows.length ? ["being added up, until the period is over:", ...windows.map(heading)] : []),
    "waiting to be sent:",
    ...orNothing(waiting.flatMap(lines)),
    `sent, the last ${sent.length}:`,
    ...orNothing([...sent].reverse().flatMap((report) => [...lines(report), `    sent on: ${epochLabel("1d", report.day)}`])),
    "",
  ].join("\n");
}

const DENIABLE = ["    why it can be denied: any value could have given this report"];

const asked = ({ question }: Metric): string[] => [`    what is asked: ${question}`];
const bytesOf = ({ payload }: Report): string => toHex(fromBase64url(payload) ?? new Uint8Array());
const orNothing = (lines: string[]): string[] => (lines.length ? lines : ["  nothing"]);
