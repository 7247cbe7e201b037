/**
 * The main process of Electron: it has the client, and windows send it names and values.
 *
 * So one ledger serves all windows, no window needs the write key or an origin that the collector
 * lists, and what a window sends is checked against the registry as any other value.
 */

import { join } from "node:path";

import { app, ipcMain } from "electron";
import { Client, type Consent, fileStore } from "hearsay-telemetry/node";

import { mechanisms, type Metrics, registry } from "./metrics.js";

await app.whenReady();

const telemetry = new Client<Metrics>({
  endpoint: process.env["EDITOR_COLLECTOR"] ?? "http://127.0.0.1:8000",
  writeKey: "a-write-key-of-your-own",
  registry,
  mechanisms,
  consent: "unknown",
  store: fileStore(join(app.getPath("userData"), "telemetry")),
  segment: { platform: process.platform === "win32" ? "windows" : process.platform === "darwin" ? "macos" : "linux" },
});

// in the preload script: contextBridge.exposeInMainWorld("telemetry", {
//   record: (name, value) => ipcRenderer.send("telemetry:record", name, value), … })
ipcMain.on("telemetry:record", (_event, name: keyof Metrics, value: Metrics[keyof Metrics]) => telemetry.record(name, value));
ipcMain.handle("telemetry:notice", () => telemetry.notice());
ipcMain.handle("telemetry:consent", (_event, consent: Consent) => telemetry.setConsent(consent));
ipcMain.handle("telemetry:show", () => telemetry.show());
// reports go by themselves, at a time of chance; this is for those who want to see it
ipcMain.handle("telemetry:send", () => telemetry.flush());

// the last window is gone: write down what is queued, for a second at most
let closing = false;
app.on("before-quit", (event) => {
  if (closing) return;
  closing = true;
  event.preventDefault();
  void telemetry.close().finally(() => app.quit());
});
