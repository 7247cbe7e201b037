/** A page without a framework: asks once, records what the user does, and shows what was sent. */

import { Client, type Consent, indexedDbStore } from "hearsay-telemetry";

import { mechanisms, type Metrics, registry } from "./metrics.js";

const { endpoint = "", writeKey = "" } = document.body.dataset;

const telemetry = new Client<Metrics>({
  endpoint,
  writeKey,
  registry,
  mechanisms,
  consent: (localStorage.getItem("telemetry") ?? "unknown") as Consent,
  store: indexedDbStore("editor"),
  segment: { platform: "linux" },
});

const element = (id: string): HTMLElement => document.getElementById(id)!;
const theme = element("theme") as HTMLSelectElement;

async function answer(consent: Consent): Promise<void> {
  localStorage.setItem("telemetry", consent);
  await telemetry.setConsent(consent);
  await draw();
}

async function draw(): Promise<void> {
  element("question").hidden = telemetry.consent !== "unknown";
  element("notice").textContent = telemetry.notice();
  const { recorded, uploaded } = telemetry.stats();
  element("state").textContent = `${telemetry.consent}: ${recorded} recorded, ${uploaded} sent`;
  element("shown").textContent = await telemetry.show();
}

theme.onchange = () => telemetry.record("theme", theme.value as Metrics["theme"]);
element("save").onclick = () => telemetry.record("saves", 1);
element("yes").onclick = () => void answer("granted");
element("no").onclick = () => void answer("denied");
element("withdraw").onclick = () => void answer("denied");
// reports go by themselves, at a time of chance; this is for those who want to see it
element("send").onclick = () => void telemetry.flush().then(draw);

// how long the page took to get here; recorded once there is a yes
telemetry.record("startup_ms", performance.now());
void draw();
