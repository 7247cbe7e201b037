/** Counts by reason since the client was made, and the log for developers. */

import { HearsayError, RegistryError, UnknownMetricError } from "./errors.js";
import { REASONS, type Reason } from "./reasons.js";

/** Where a developer reads what went wrong; `console` will do.  Nothing of a user's value arrives there. */
export interface Log {
  debug(message: string): void;
  warn(message: string): void;
}

/** What a developer did wrong: counted in production, thrown by a strict client. */
export const MISTAKES: readonly Reason[] = ["unknown_metric", "invalid_value", "expired", "internal"];

/** Counts by reason.  Holds no values or times. */
export class Stats {
  readonly #counts = new Map<Reason, number>();
  readonly #logged = new Set<string>();

  constructor(private readonly log?: Log) {}

  /** Counts `reason` another `count` times. */
  add(reason: Reason, count = 1): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + count);
  }

  /** Counts what `error` stopped, and logs the first one of each reason and metric. */
  fail(error: unknown, count = 1, reason = reasonOf(error)): void {
    this.add(reason, count);
    const what = error instanceof HearsayError ? String((error as { what?: unknown }).what ?? "") : "";
    if (error instanceof RegistryError) this.warn("registry", `${error.message}; compile the registry again`);
    if (reason === "expired") this.warn(what, `${ruleOf(error)}; it is recorded no more: renew or remove it`);
    this.#once(`${reason} ${what}`, () => this.log?.debug(`hearsay: ${reason}: ${ruleOf(error)}`));
  }

  /** Tells a developer `message`, once about each thing. */
  warn(about: string, message: string): void {
    this.#once(`warning ${about}`, () => this.log?.warn(`hearsay: ${message}`));
  }

  /** Returns the count of every reason, zeros included. */
  counts(): Record<Reason, number> {
    return Object.fromEntries(REASONS.map((reason) => [reason, this.#counts.get(reason) ?? 0])) as Record<Reason, number>;
  }

  #once(key: string, tell: () => void): void {
    if (this.#logged.has(key)) return;
    this.#logged.add(key); // before the log, which may record too
    try {
      tell();
    } catch {
      // an application's own log may throw
    }
  }
}

/** Returns the reason under which `error` is counted. */
export function reasonOf(error: unknown): Reason {
  return error instanceof HearsayError ? error.reason : "internal";
}

/** Returns what may be logged: the rule that this package names, and of any other error no text, which may hold a value. */
export function ruleOf(error: unknown): string {
  if (error instanceof UnknownMetricError) return "the registry has no metric of that name";
  if (error instanceof HearsayError) return error.message;
  // a name of its own may be what a value threw
  return [TypeError, RangeError, SyntaxError].find((kind) => error instanceof kind)?.prototype.name ?? typeof error;
}
