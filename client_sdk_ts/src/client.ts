/**
 * The client: what an application holds.  Recording and uploading never throw into it.
 *
 * In a dry run everything happens but the sending, and what would be sent can be read.
 */

import { systemSource } from "./core/entropy.js";
import { InvalidParameterError, RegistryError, UnknownMechanismError, UnknownMetricError } from "./core/errors.js";
import { ByteRandomness, type Randomness } from "./core/randomness.js";
import type { Reason } from "./core/reasons.js";
import { type Log, Stats } from "./core/stats.js";
import type { Mechanism } from "./mechanisms/mechanism.js";
import { capBelow, type Caps, capsOf, type CapTexts, withinPanel } from "./privacy/caps.js";
import { type Consent, consentOf, ConsentSwitch } from "./privacy/consent.js";
import { browserOptOuts, type Environment, environmentSaysNo, type OptOuts } from "./privacy/opt_outs.js";
import { Engine } from "./recording/engine.js";
import type { Part, Parts, ReportView } from "./recording/parts.js";
import type { Registry } from "./registry/compiled.js";
import type { ValueType } from "./registry/domains.js";
import { readRegistry } from "./registry/read.js";
import { type Segment, wholeSegment } from "./registry/segment.js";
import { memoryStore, sessionStore } from "./storage/memory.js";
import type { Store } from "./storage/store.js";
import { noUptime, type Uptimes } from "./storage/trusted_clock.js";
import { type Answer, directTransport, type Exchange, fetchExchange, type Transport } from "./upload/transport.js";
import type { Issuer, Purse, PurseParts } from "./upload/tokens.js";
import type { Delivery } from "./upload/uploader.js";
import { addressSeen, type Device, shown, underCaps } from "./wording.js";

/** Uploads; a developer reads the last few. */
const MAX_WITHHELD = 100;
/** Milliseconds; three slow answers. */
const FLUSH_TIMEOUT = 30_000;
/** Milliseconds; an application that ends must not hang on its telemetry. */
const CLOSE_TIMEOUT = 1_000;

/** What a client is made of. */
export interface ClientOptions {
  /** The base URL of the collector: https, or http to this machine. */
  readonly endpoint: string;
  readonly writeKey: string;
  /** The URL of a relay, by which all is sent, so that the collector learns no address; with the part `relay`. */
  readonly relay?: string;
  /** The keys of the collector that `hearsay oblivious-key` printed; with `relay`. */
  readonly relayKey?: string;
  /** What `hearsay registry compile` wrote: the parsed JSON, or its text. */
  readonly registry: unknown;
  /** The mechanisms, types of values and parts that the registry needs, each an import; `everything` are all. */
  readonly mechanisms: readonly (Mechanism | Part | ValueType)[];
  /** The issuer of one-time tokens; each upload spends one.  Needs the part `tokens`. */
  readonly tokens?: Issuer;
  /** What the user has said; "denied" erases what an earlier run left. */
  readonly consent: Consent;
  /**
   * Where the ledger and what waits are kept; "session": nowhere, and so a metric has one report as
   * long as the page or process lives, whatever its epochs are.
   */
  readonly store: Store | "session";
  /** Dimension to value, as declared in the registry. */
  readonly segment?: Segment;
  /** The most epsilon to spend on this person, in decimals. */
  readonly caps?: CapTexts;
  /** For development: `record` throws where the registry knows no such metric or value. */
  readonly strict?: boolean;
  /** Keep all in memory and send nothing; `withheld` has what would be sent. */
  readonly dryRun?: boolean;
  /** Sees each report before it is queued; false drops it, charged all the same.  It may see one twice. */
  readonly onReport?: (report: ReportView) => unknown;
  /** Where a developer reads what went wrong, as `console`; it never learns a user's value. */
  readonly log?: Log;
  /** Who may say no above the application; by default the environment and the browser. */
  readonly optOuts?: OptOuts;
  /** Delivers uploads; by default `fetch`. */
  readonly transport?: Transport;
  /** Unix time in milliseconds. */
  readonly clock?: () => number;
  /** How long the machine has run; by default of the platform, if it tells. */
  readonly uptime?: Uptimes;
  /** Of the system, unless a test draws from elsewhere. */
  readonly randomness?: Randomness;
}

/** What a platform adds to the options of a client. */
export interface Platform {
  /** Keeps `write` to be called before the process ends; returns what forgets it. */
  readonly atEnd?: (write: () => void) => () => void;
  /** Makes requests; by default `fetch`. */
  readonly exchange?: Exchange;
}

/**
 * Records values of registered metrics and uploads perturbed reports of them.
 *
 * The constructor, `setConsent` and `explain` throw on wrong arguments.  `record` never throws, except
 * for a `strict` client, and no promise rejects, except for `show`: each refusal and failure is counted
 * in `stats`.
 *
 * `Values` are the metrics by name with the type of their values, as `hearsay registry codegen` writes
 * them.
 */
export class Client<Values extends object = Record<string, unknown>> {
  /** The registry by which values are recorded. */
  readonly registry: Registry;
  readonly #caps: Caps;
  readonly #consent: ConsentSwitch;
  readonly #stats: Stats;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #withheld: string[] = [];
  readonly #dryRun: boolean;
  readonly #device: Device;
  readonly #addressSeen: string[];

  /** Prepares to record; nothing is sent yet.  Throws InvalidParameterError, RegistryError, UnknownMechanismError. */
  constructor(options: ClientOptions, { atEnd, exchange = fetchExchange }: Platform = {}) {
    requireKnown(options);
    const { clock = Date.now, dryRun = false, store } = options;
    const [mechanisms, types, parts] = sorted(options.mechanisms);
    const registry = (this.registry = readRegistry(options.registry, types));
    requireAll(registry, mechanisms, parts);
    this.#caps = capsOf(options.caps);
    const optOuts = options.optOuts ?? defaultOptOuts();
    const automation = dryRun ? null : optOuts.automation();
    const segment = wholeSegment(registry, options.segment ?? {}, automation !== null);
    const ignored = registry.automation === "segment" ? null : automation;
    const answer = consentOf(options.consent);
    const transport = dryRun ? this.#withholding() : transportOf(exchange, options, parts);
    this.#store = dryRun ? memoryStore() : storeOf(store, registry);
    this.#dryRun = dryRun;
    const uptime = options.uptime ?? noUptime;
    this.#device = { keeps: store !== "session", checks: uptime().up >= 0 };
    this.#addressSeen = addressSeen(options.relay, options.tokens?.url, exchange === fetchExchange);
    this.#consent = new ConsentSwitch(answer, optOuts, ignored);
    this.#stats = new Stats(options.log);
    const caps = withinPanel(this.#caps, registry.panelWeek);
    for (const { name, spent } of registry.metrics.values()) {
      const cap = capBelow(caps, Math.max(spent.report, (spent.value ?? 0) - spent.report));
      if (cap) this.#stats.warn(name, `metrics.${name}: is never reported, as a report costs more than caps.${cap}`);
    }
    const now = (): number => clock() / 1_000;
    const randomness = options.randomness ?? new ByteRandomness(systemSource());
    this.#engine = new Engine({
      device: {
        registry,
        mechanisms,
        parts,
        caps,
        segment,
        randomness,
        uptime,
        consent: this.#consent,
        onReport: options.onReport,
      },
      store: this.#store,
      transport,
      purse: dryRun ? undefined : purseOf(options.tokens, parts, {
        app: registry.app, exchange, randomness, stats: this.#stats, now, maySend: () => this.#consent.maySend,
      }),
      consent: this.#consent,
      stats: this.#stats,
      now,
      strict: options.strict === true,
      atEnd,
    });
  }

  /**
   * Reports `value` of the metric called `name`, at most once in each of its epochs.
   *
   * If the metric has an `aggregate`, all values of an epoch are added up, and reported when it is over.
   */
  record<Name extends keyof Values & string>(name: Name, value: Values[Name]): void {
    this.#engine.record(name, value);
  }

  /**
   * Sends what waits, once, and waits for no answer after `timeout` milliseconds.
   *
   * Returns what is left: `complete` if that is nothing, else `wait` has the milliseconds until a
   * further flush may send.
   */
  flush(timeout = FLUSH_TIMEOUT): Promise<Delivery> {
    return this.#engine.flush(timeout);
  }

  /** Says that this client is at work, though it may never record: so `otherwise` is reported, and what waits is sent. */
  watch(): void {
    this.#engine.watch();
  }

  /**
   * Writes down what is queued, sends what is due, and closes the store, within `timeout` milliseconds.
   *
   * A client that lived for less than a minute sends one upload, if one is due; one that lived longer
   * leaves it to the schedule, so that its end does not show.  Without a durable store all is sent now.
   */
  close(timeout = CLOSE_TIMEOUT): Promise<void> {
    return this.#engine.close(timeout);
  }

  /**
   * Obeys a new answer of the user from now on; "denied" erases all that waits, here and in other tabs.
   *
   * The promise is kept when that is done; if it could not be, it is tried again, and nothing is sent
   * before.  Throws InvalidParameterError: the old answer stands.
   */
  setConsent(consent: Consent): Promise<void> {
    this.#consent.consent = consentOf(consent);
    return this.#engine.applyConsent();
  }

  /** The consent in force: denied if anybody above the application has opted out. */
  get consent(): Consent {
    this.#engine.erasure.refresh();
    return this.#consent.inForce;
  }

  /** The level whose answer counts: "application", or the level above that opted out. */
  get consentLevel(): string {
    this.#engine.erasure.refresh();
    return this.#consent.saidBy;
  }

  /** Returns the counts by reason of this client; see core/reasons.ts. */
  stats(): Record<Reason, number> {
    const counts = this.#stats.counts();
    return this.#dryRun ? { ...counts, withheld: counts.uploaded, uploaded: 0 } : counts;
  }

  /** Returns the uploads that a dry run would have sent, as they would be on the wire. */
  withheld(): readonly string[] {
    return [...this.#withheld];
  }

  /** Returns what the metric called `name` asks, sends and costs, in plain words.  Throws UnknownMetricError. */
  explain(name: keyof Values & string): string {
    const metric = this.registry.metrics.get(name);
    if (!metric) throw new UnknownMetricError(name);
    const text = underCaps(metric.explanation, this.registry, this.#caps, this.#device);
    return `${text.trimEnd()}\nWho sees your internet address: ${this.#addressSeen.join(" ")}`;
  }

  /** Returns a text to ask the user for consent with, who sees the user's address included. */
  notice(): string {
    const text = underCaps(this.registry.notice, this.registry, this.#caps, this.#device);
    return [text.trimEnd(), "", ...this.#addressSeen, ""].join("\n");
  }

  /** Returns what waits to be sent and what was sent, in words.  Rejects with a StoreError. */
  show(): Promise<string> {
    return this.#store.read((state) => shown(state, this.registry));
  }

  /** Returns a transport that keeps the last uploads and says that they have arrived. */
  #withholding(): Transport {
    return {
      send: (body): Promise<Answer> => {
        this.#withheld.push(body);
        this.#withheld.splice(0, this.#withheld.length - MAX_WITHHELD);
        return Promise.resolve({ status: 202, body: '{"accepted":0}' }); // it names no rejected report
      },
    };
  }
}

const OPTIONS =
  "endpoint writeKey relay relayKey tokens registry mechanisms consent store segment caps strict dryRun onReport log optOuts transport clock uptime randomness".split(" ");

/** Throws InvalidParameterError: of a `dryrun` or a `cap` nothing would come, and programs in JavaScript have no compiler. */
export function requireKnown(options: unknown): void {
  const keys = options && typeof options === "object" ? Object.keys(options) : ["options"];
  const unknown = keys.find((key) => !OPTIONS.includes(key));
  if (unknown) throw new InvalidParameterError(unknown, "...", `is no option of a client, which are ${OPTIONS.join(", ")}`);
  if (!Array.isArray((options as ClientOptions).mechanisms)) {
    throw new InvalidParameterError("mechanisms", typeof (options as ClientOptions).mechanisms, "must be a list of what the registry needs");
  }
}

/** Returns mechanisms by name, types of values, and parts. */
function sorted(given: ClientOptions["mechanisms"]): [mechanisms: Map<string, Mechanism>, types: ValueType[], parts: Parts] {
  const mechanisms = new Map<string, Mechanism>();
  const types: ValueType[] = [];
  const parts: Record<string, Part> = {};
  for (const each of given) {
    if ("randomize" in each) mechanisms.set(each.name, each);
    else if ("domain" in each) types.push(each);
    else parts[each.name] = each;
  }
  return [mechanisms, types, parts];
}

/** Of metrics whose type is here, those that no device in TypeScript has. */
const MISSING = /^(cms|dbitflip|discrete_gaussian|hcms|loloha|rappor)$/;

/** Throws UnknownMechanismError: the registry needs a mechanism or part that was not given; RegistryError: there is none. */
function requireAll({ metrics, retireKey, seats }: Registry, mechanisms: ReadonlyMap<string, Mechanism>, parts: Parts): void {
  const need = (needed: unknown, name: Part["name"]): void => {
    if (needed && !parts[name]) throw new UnknownMechanismError(name, "part");
  };
  need(seats, "panel");
  need(retireKey, "retirement");
  for (const { aggregate, longitudinal, mechanism, name } of metrics.values()) {
    if (!mechanisms.has(mechanism)) {
      if (MISSING.test(mechanism)) throw new RegistryError(`metrics.${name}.mechanism=${mechanism}: is not in the TypeScript device; choose another`);
      throw new UnknownMechanismError(mechanism);
    }
    need(aggregate, "aggregates");
    need(longitudinal !== "fresh", "permanent");
  }
}

/** Returns the way to the collector: by the relay if there is one, and then by no other. */
function transportOf(exchange: Exchange, options: ClientOptions, { relay }: Parts): Transport {
  const { endpoint, writeKey, transport } = options;
  if ((options.relay ?? options.relayKey) === undefined) return transport ?? directTransport(exchange, endpoint, writeKey);
  if (!relay) throw new UnknownMechanismError("relay", "part");
  return relay.relayTransport(exchange, options);
}

function purseOf(issuer: Issuer | undefined, { tokens }: Parts, parts: Omit<PurseParts, "issuer">): Purse | undefined {
  if (!issuer) return undefined;
  if (!tokens) throw new UnknownMechanismError("tokens", "part");
  return new tokens.Purse({ issuer, ...parts });
}

/** The environment, where there is one as in Node and React Native, and the browser. */
function defaultOptOuts(): OptOuts {
  const browser = browserOptOuts();
  const { process } = globalThis as { process?: { env?: Environment } };
  return { ...browser, saidBy: () => environmentSaysNo(process?.env ?? {}) ?? browser.saidBy() };
}

function storeOf(store: unknown, registry: Registry): Store {
  if (store === "session") return sessionStore(registry.app);
  if (typeof (store as Store | null)?.update === "function") return store as Store;
  throw new InvalidParameterError("store", typeof store, 'must be a store, such as indexedDbStore("app"), or "session"');
}
