/** The document that a store keeps.  JSON alone: numbers are whole, bytes are base64url. */

export const STATE_VERSION = 1;

/** What a metric has cost for the days from first to last, in nano-epsilon. */
export interface Cost {
  first: number;
  last: number;
  nano: number;
}

/** What the ledger knows of a metric, by its digest; "" is a doubt, of no metric. */
export interface Account {
  /** Epochs that have their report, as ranges [first, last] in ascending order. */
  epochs: [number, number][];
  /** Costs whose days may still count towards a week; older ones are in `nano` alone. */
  costs: Cost[];
  nano: number;
  delta: number;
  /** By tag: how many reports a value had, of repeated responses. */
  memo: Record<string, number>;
}

/** A report that waits: perturbed. */
export interface WaitingReport {
  digest: string;
  epoch: number;
  payload: string;
  segment: Record<string, string>;
  day: number;
}

/** An upload that was sealed; its bytes never change. */
export interface SealedUpload {
  id: string;
  body: string;
  reports: number;
  sealedDay: number;
  /** How often it was tried; what is tried goes to the end of the list. */
  tries: number;
  /** The one-time token that it is sent with, whenever it is sent. */
  token?: string;
}

/** A one-time token that is not spent, the id of the upload that it will pay for, and the week of that. */
export interface HeldToken {
  id: string;
  token: string;
  week: number;
}

/** Tokens, the last week for which the issuer was asked, and the Unix time at which it is asked next. */
export interface Tokens {
  last: number;
  due: number;
  held: HeldToken[];
}

/** Values of an epoch that add up, masked by the secret. */
export interface MaskedWindow {
  digest: string;
  epoch: number;
  sealed: string;
}

/** The times of uploads, Unix seconds with a fraction; see upload/schedule.ts. */
export interface Times {
  next: number;
  notBefore: number;
  repeatAfter: number;
  failures: number;
  rests: number;
  claim: string;
}

export interface State {
  version: typeof STATE_VERSION;
  /** Whether what was spent before is not known: the first charge is preceded by the rest of a week. */
  doubt: boolean;
  /** Whether it ends with the page: then a metric has one report in it, whatever its epochs are. */
  session: boolean;
  /** 32 bytes; made when first needed, removed by a denial. */
  secret: string | null;
  ledger: Record<string, Account>;
  /** The trusted clock: milliseconds. */
  clock: { day: number; trusted: number; credit: number; wall: number; up: number; boot: string } | null;
  windows: MaskedWindow[];
  reports: WaitingReport[];
  uploads: SealedUpload[];
  /** The latest reports that were acknowledged, for people to see. */
  sent: { digest: string; epoch: number; payload: string; day: number }[];
  times: Times;
  /** Digests that were retired, and the number of the list. */
  retired: { number: number; digests: string[] } | null;
  consent: string | null;
  /** Of clients with an issuer. */
  tokens?: Tokens;
}

/** Returns the document of a device that has done nothing yet. */
export const newState = (doubt = false, session = false): State => ({
  version: STATE_VERSION,
  doubt,
  session,
  secret: null,
  ledger: {},
  clock: null,
  windows: [],
  reports: [],
  uploads: [],
  sent: [],
  times: { next: 0, notBefore: 0, repeatAfter: 0, failures: 0, rests: 0, claim: "" },
  retired: null,
  consent: null,
});
