/**
 * Consent: the first gate of every value and of every upload.
 *
 * Above the consent that the application was given, others may say no: see opt_outs.ts.
 */

import { AutomatedError, ConsentError, InvalidParameterError, OptedOutError } from "../core/errors.js";
import type { OptOuts } from "./opt_outs.js";

/**
 * What the user has said.  Only "granted" lets anything be recorded or sent.
 *
 * "denied" also erases what waits to be sent; "unknown", not asked yet, records and erases nothing.
 */
export type Consent = "granted" | "denied" | "unknown";

const ANSWERS: readonly unknown[] = ["granted", "denied", "unknown"];

/**
 * Returns `answer` as a Consent.
 *
 * Throws InvalidParameterError: none of the three; a boolean is refused too, since it hides whether
 * the user was asked.
 */
export function consentOf(answer: unknown): Consent {
  if (!ANSWERS.includes(answer)) {
    throw new InvalidParameterError("consent", answer, `must be one of ${ANSWERS.join(", ")}`);
  }
  return answer as Consent;
}

/**
 * The present consent, shared by the code that records, sends and erases.
 *
 * `consent` is the user's answer to the application.  An opt-out above it counts as denied.  Where no
 * person is present, it stays as it is, and still nothing is recorded or sent.
 */
export class ConsentSwitch {
  /** Denials that found something to erase, and those that were carried out. */
  erasuresRequested = 0;
  erasuresDone = 0;
  #optedOut: string | null;

  /** `automation` is what shows that a machine runs the application by itself, for good. */
  constructor(
    public consent: Consent,
    private readonly optOuts: OptOuts,
    private readonly automation: string | null = null,
  ) {
    this.#optedOut = optOuts.saidBy();
  }

  /** Looks again whether somebody has opted out.  May read files, so not for every value. */
  refresh(): void {
    this.#optedOut = this.optOuts.saidBy();
  }

  /** Whose word is in force. */
  get saidBy(): string {
    return this.#optedOut ?? "application";
  }

  /** The consent that counts. */
  get inForce(): Consent {
    return this.#optedOut === null ? this.consent : "denied";
  }

  /** Whether there is a user, who agrees now. */
  get granted(): boolean {
    return this.inForce === "granted" && this.automation === null;
  }

  /** Whether a denial is still to be carried out. */
  get erasureDue(): boolean {
    return this.erasuresDone !== this.erasuresRequested;
  }

  /** Whether the user agrees now, and no earlier denial takes what waits away. */
  get maySend(): boolean {
    return this.granted && !this.erasureDue;
  }

  /** Throws OptedOutError: a level above says no; ConsentError; AutomatedError: no person is present. */
  require(): void {
    if (this.#optedOut !== null) throw new OptedOutError(`consent=denied: by ${this.#optedOut}`);
    if (this.consent !== "granted") throw new ConsentError(`consent=${this.consent}: must be granted`);
    if (this.automation !== null) throw new AutomatedError(this.automation);
  }
}
