/**
 * An extension of VS Code: its telemetry logger sends values of registered metrics, and nothing else.
 *
 * VS Code lets a logger send only as `telemetry.telemetryLevel` allows; the client obeys the same
 * setting by itself, so that also what waits is erased when the user turns it down.
 */

import { join } from "node:path";

import { Client, fileStore, nodeOptOuts, withTelemetryLevel } from "hearsay-telemetry/node";
import * as vscode from "vscode";

import { mechanisms, type Metrics, registry } from "./metrics.js";

let telemetry: Client<Metrics> | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const folder = join(context.globalStorageUri.fsPath, "telemetry");
  const level = (): unknown => vscode.workspace.getConfiguration("telemetry").get("telemetryLevel");
  const client = (telemetry = new Client<Metrics>({
    endpoint: process.env["EDITOR_COLLECTOR"] ?? "http://127.0.0.1:8000",
    writeKey: "a-write-key-of-your-own",
    registry,
    mechanisms,
    consent: "granted",
    store: fileStore(folder),
    optOuts: withTelemetryLevel(nodeOptOuts({ folder, ledger: null }), level),
    segment: { platform: process.platform === "win32" ? "windows" : process.platform === "darwin" ? "macos" : "linux" },
  }));
  const sender: vscode.TelemetrySender = {
    // the name of the extension stands before the name of the event; of the data only the value counts
    sendEventData: (event, data) =>
      client.record(event.slice(event.lastIndexOf("/") + 1) as keyof Metrics, data?.["value"]),
    // an error may hold anything, so it is not sent
    sendErrorData: () => {},
    flush: () => client.flush().then(() => {}),
  };
  const logger = vscode.env.createTelemetryLogger(sender, { ignoreBuiltInCommonProperties: true, ignoreUnhandledErrors: true });
  context.subscriptions.push(
    logger,
    vscode.window.onDidChangeActiveColorTheme(({ kind }) =>
      logger.logUsage("theme", { value: kind === vscode.ColorThemeKind.Light ? "light" : "dark" }),
    ),
  );
}

export function deactivate(): Promise<void> | undefined {
  return telemetry?.close();
}
