/**
 * Every error of the SDK, each with the reason under which it is counted.
 *
 * HearsayError
 * ├── InvalidParameterError    a parameter breaks a rule; no user's value is shown
 * ├── InvalidValueError        a recorded value is outside its domain; it is not shown
 * ├── RegistryError            a registry file is wrong
 * ├── UnknownMetricError       no metric of that name or digest
 * ├── UnknownMechanismError    no mechanism, type or part of that name was given to the client
 * ├── ConsentError             the user has not agreed; nothing was recorded
 * │   ├── OptedOutError        environment, browser or user setting say no
 * │   └── AutomatedError       a machine runs the application; nothing was recorded
 * ├── ExpiredMetricError       the metric's last day has passed; nothing was recorded
 * ├── BudgetExhaustedError     a charge would pass a cap; nothing was charged
 * ├── NotInPanelError          this device does not report of this metric now
 * ├── AlreadyReportedError     this metric has its report for this epoch
 * ├── EntropyError             the system gave no randomness; nothing was drawn
 * ├── StoreError               what a device keeps cannot be read or written
 * └── TransportError           the collector could not be reached
 *
 * A bundler shortens the names of classes, so `reason` and `instanceof` tell them apart.
 */

import type { Reason } from "./reasons.js";

/** Root of the errors of this package. */
export class HearsayError extends Error {
  override readonly name = "HearsayError";
  readonly reason: Reason = "internal";
}

/** A parameter breaks a rule.  `value` is configuration, never a user's value. */
export class InvalidParameterError extends HearsayError {
  constructor(parameter: string, value: unknown, rule: string) {
    super(`${parameter}=${String(value)}: ${rule}`);
  }
}

/** A recorded value is outside its domain.  `what` is a metric or mechanism; the value is never shown. */
export class InvalidValueError extends HearsayError {
  override readonly reason = "invalid_value";
  constructor(readonly what: string, rule: string) {
    super(`${what}: ${rule}`);
  }
}

/** A registry is wrong: each problem reads `place: rule`. */
export class RegistryError extends HearsayError {
  readonly problems: readonly string[];
  constructor(...problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/** The registry has no such metric. */
export class UnknownMetricError extends HearsayError {
  override readonly reason = "unknown_metric";
  constructor(name: string) {
    super(`metric=${name}: is not known`);
  }
}

/** A mechanism, a type of values or a part that the registry needs was not given to the client. */
export class UnknownMechanismError extends HearsayError {
  constructor(name: string, kind = "mechanism") {
    super(`${kind}=${name}: is not in mechanisms; import { ${name} } from "hearsay-telemetry/${kind}s/${name}" and add it`);
  }
}

/** The user has not agreed.  Nothing was recorded. */
export class ConsentError extends HearsayError {
  override readonly reason: Reason = "consent";
}

/** The environment, the browser or the user's setting says no to all telemetry. */
export class OptedOutError extends ConsentError {
  override readonly reason = "opted_out";
}

/** A machine runs the application and no person is present.  `sign` names what shows it. */
export class AutomatedError extends ConsentError {
  override readonly reason = "automated";
  constructor(sign: string) {
    super(`automation=${sign}: no person is present, so nothing is recorded; if one is, set HEARSAY_TELEMETRY=1`);
  }
}

/** The last day of the metric has passed.  Nothing was recorded. */
export class ExpiredMetricError extends HearsayError {
  override readonly reason = "expired";
  constructor(readonly what: string, expires: string) {
    super(`metrics.${what}.expires=${expires}: has passed`);
  }
}

/** A charge would pass a cap.  Nothing was charged and nothing was drawn. */
export class BudgetExhaustedError extends HearsayError {
  override readonly reason = "budget";
}

/** The panel of this device and period leaves the metric out; nothing was charged. */
export class NotInPanelError extends HearsayError {
  override readonly reason = "not_in_panel";
}

/** The metric already has its one report for this epoch. */
export class AlreadyReportedError extends HearsayError {
  override readonly reason = "already_reported";
}

/** The system gave no randomness, so no report was made: there is no fallback. */
export class EntropyError extends HearsayError {
  override readonly reason = "entropy";
}

/** What a device keeps cannot be opened, read or written. */
export class StoreError extends HearsayError {
  override readonly reason = "store";
}

/** No answer from the collector: whether the upload arrived is not known, unless it is `unseen`. */
export class TransportError extends HearsayError {
  override readonly reason = "network";
  constructor(text: string, readonly unseen = false, options?: { readonly cause?: unknown }) {
    super(text, options);
  }
}
