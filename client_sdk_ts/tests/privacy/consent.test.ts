/** Who says no, from the strongest down, and what a machine gives away. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { AutomatedError, ConsentError, InvalidParameterError, OptedOutError } from "../../src/core/errors.js";
import { signOfAutomation } from "../../src/privacy/automation.js";
import { consentOf, ConsentSwitch } from "../../src/privacy/consent.js";
import { nodeOptOuts } from "../../src/privacy/node_opt_outs.js";
import { browserOptOuts, noOptOuts, type OptOuts, type Signals, withTelemetryLevel } from "../../src/privacy/opt_outs.js";

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "hearsay-test-"));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

const saying = (level: string | null): OptOuts => ({ saidBy: () => level, automation: () => null });

test("the environment is above the policy, that above the user's file", (context) => {
  const folder = folderOf(context);
  const policy = join(folder, "policy.toml");
  const environment: Record<string, string> = {};
  const optOuts = nodeOptOuts({ folder, ledger: null, environment, policy });
  const said = [optOuts.saidBy()];

  writeFileSync(join(folder, "telemetry-off"), "");
  said.push(optOuts.saidBy());
  writeFileSync(policy, "telemetry = false\n");
  said.push(optOuts.saidBy());
  environment["HEARSAY_TELEMETRY"] = "0";
  said.push(optOuts.saidBy());
  environment["DO_NOT_TRACK"] = "1";
  said.push(optOuts.saidBy());

  assert.deepEqual(said, [null, "user", "policy", "HEARSAY_TELEMETRY", "DO_NOT_TRACK"]);
});

test("a browser says no by either signal, and nothing else is one", () => {
  const said = (signals: Signals): string | null => browserOptOuts(true, signals).saidBy();

  assert.equal(said({ globalPrivacyControl: true, doNotTrack: "1" }), "navigator.globalPrivacyControl");
  for (const doNotTrack of ["1", "yes", 1, true]) assert.equal(said({ doNotTrack }), "navigator.doNotTrack");
  for (const doNotTrack of [undefined, null, "0", "unspecified", ""]) {
    assert.equal(said({ doNotTrack, globalPrivacyControl: false }), null);
  }
});

test("a browser that a program drives has nobody before it, if that matters", () => {
  assert.equal(browserOptOuts(true, { webdriver: true }).automation(), "navigator.webdriver");
  assert.equal(browserOptOuts(false, { webdriver: true }).automation(), null);
  assert.equal(browserOptOuts(true, { webdriver: false }).automation(), null);
});

test("an editor lets usage be recorded at the level all only", () => {
  const at = (level: () => unknown): string | null => withTelemetryLevel(noOptOuts, level).saidBy();

  assert.equal(at(() => "all"), null);
  for (const level of ["off", "crash", "error", undefined, true]) assert.equal(at(() => level), "telemetryLevel");
  assert.equal(at(() => { throw new Error("no editor"); }), "telemetryLevel");
  assert.equal(withTelemetryLevel(saying("user"), () => "off").saidBy(), "user");
});

test("consent is one of three words", () => {
  assert.deepEqual(["granted", "denied", "unknown"].map(consentOf), ["granted", "denied", "unknown"]);
  for (const answer of [true, "yes", null, undefined, ["granted"]]) {
    assert.throws(() => consentOf(answer), InvalidParameterError);
  }
});

test("an opt-out counts as a denial, and a machine as nobody, whatever the application was told", () => {
  const told = new ConsentSwitch("granted", noOptOuts);
  const optedOut = new ConsentSwitch("granted", saying("policy"));
  const automated = new ConsentSwitch("granted", noOptOuts, "CI");

  assert.doesNotThrow(() => told.require());
  assert.throws(() => optedOut.require(), OptedOutError);
  assert.throws(() => automated.require(), AutomatedError);
  assert.throws(() => new ConsentSwitch("unknown", noOptOuts).require(), ConsentError);
  assert.deepEqual([told.granted, optedOut.granted, automated.granted], [true, false, false]);
  assert.deepEqual([told.inForce, optedOut.inForce, automated.inForce], ["granted", "denied", "granted"]);
  assert.deepEqual([told.saidBy, optedOut.saidBy], ["application", "policy"]);
});

test("nothing is sent while a denial is still to be carried out", () => {
  const consent = new ConsentSwitch("granted", noOptOuts);

  consent.erasuresRequested++;

  assert.deepEqual([consent.granted, consent.maySend], [true, false]);
});

test("a container that keeps nothing is a machine, until a run has left a ledger", (context) => {
  const root = folderOf(context);
  const ledger = join(root, "app", "data", "ledger");
  mkdirSync(join(root, "proc/self"), { recursive: true });
  mkdirSync(join(root, "etc"));
  writeFileSync(join(root, "proc/self/mounts"), "x / ext4 rw 0 0\noverlay / overlay rw 0 0\n");
  const sign = (): string | null => signOfAutomation(ledger, {}, root);

  const signs = [sign()];
  mkdirSync(join(root, "app/data"), { recursive: true });
  writeFileSync(ledger, "");
  signs.push(sign());
  rmSync(ledger);
  writeFileSync(join(root, "etc/machine-id"), "0123\n");
  signs.push(sign());

  assert.deepEqual(signs, process.platform === "linux" ? ["a container that keeps nothing", null, null] : [null, null, null]);
});
