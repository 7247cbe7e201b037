/**
 * Who may opt out of all telemetry, above the application, and what shows that no person is present.
 *
 * From the strongest down.  Each can only say no; silence leaves the question to the next.
 *
 * environment  DO_NOT_TRACK, anything but empty, 0 or false     every program          Node
 * environment  HEARSAY_TELEMETRY, anything but a yes (below)    every use of Hearsay   Node
 * policy       a file of this machine with telemetry = false    every use of Hearsay   Node
 * user         a file telemetry-off in the application's folder this application       Node
 * browser      navigator.globalPrivacyControl                   every site             browsers
 * browser      navigator.doNotTrack, anything but empty or 0    every site             browsers
 * editor       telemetryLevel, anything but all                 every extension        VS Code
 *
 * A yes is empty, 1, true, yes or on: anything else was not written to agree.
 */

/** The places of opt-outs.  They are read again each time, as people change their minds. */
export interface OptOuts {
  /** Returns the strongest level that says no; null if none does. */
  saidBy(): string | null;
  /** Returns what shows that no person is here; null if nothing does, or it does not matter. */
  automation(): string | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export const DO_NOT_TRACK = "DO_NOT_TRACK";
export const HEARSAY_TELEMETRY = "HEARSAY_TELEMETRY";
const NO_DO_NOT_TRACK = ["", "0", "false"];
const YES = ["", "1", "true", "yes", "on"]; // the first is silence

/** Returns the variable of `environment` that says no; null if none does. */
export function environmentSaysNo(environment: Environment): string | null {
  if (!NO_DO_NOT_TRACK.includes(wordOf(environment, DO_NOT_TRACK))) return DO_NOT_TRACK;
  return YES.includes(wordOf(environment, HEARSAY_TELEMETRY)) ? null : HEARSAY_TELEMETRY;
}

/** Whether `environment` says that a person is there, whatever else it says. */
export function isVouchedFor(environment: Environment): boolean {
  return YES.indexOf(wordOf(environment, HEARSAY_TELEMETRY)) > 0;
}

/** Returns a variable without regard to case and space. */
export function wordOf(environment: Environment, name: string): string {
  return (environment[name] ?? "").trim().toLowerCase();
}

/** What of a browser's `navigator` may say no. */
export interface Signals {
  readonly globalPrivacyControl?: unknown;
  readonly doNotTrack?: unknown;
  readonly webdriver?: unknown;
}

/** What browsers write if nothing was chosen, or to be tracked was. */
const NO_SIGNAL: readonly unknown[] = [undefined, null, false, "", "0", "false", "no", "unspecified"];

/** Returns the opt-outs of the browser; `heedsAutomation`: whether it matters that a program drives it. */
export function browserOptOuts(heedsAutomation = true, signals?: Signals): OptOuts {
  const present = (): Signals => signals ?? (globalThis.navigator as Signals | undefined) ?? {};
  const first = (...names: (keyof Signals)[]): string | null => {
    const name = names.find((signal) => !NO_SIGNAL.includes(present()[signal]));
    return name ? `navigator.${name}` : null;
  };
  return {
    saidBy: () => first("globalPrivacyControl", "doNotTrack"),
    automation: () => (heedsAutomation ? first("webdriver") : null),
  };
}

/**
 * Returns `optOuts`, below which an editor may say no too.
 *
 * `level` returns what the user set, as `telemetry.telemetryLevel` of VS Code: only "all" lets usage
 * be recorded.  One that throws says no.
 */
export function withTelemetryLevel(optOuts: OptOuts, level: () => unknown): OptOuts {
  const editorSaysNo = (): boolean => {
    try {
      return level() !== "all";
    } catch {
      return true;
    }
  };
  return {
    saidBy: () => optOuts.saidBy() ?? (editorSaysNo() ? "telemetryLevel" : null),
    automation: () => optOuts.automation(),
  };
}

/** For simulated people, who have no environment and no settings: no level says no. */
export const noOptOuts: OptOuts = { saidBy: () => null, automation: () => null };
