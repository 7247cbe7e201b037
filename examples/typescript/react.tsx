/** React: a context with the client, a hook that records a value when it changes, one for consent. */

import { Client, type Consent, indexedDbStore } from "hearsay-telemetry";
import { createContext, type ReactElement, StrictMode, useCallback, useContext, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { mechanisms, type Metrics, registry } from "./metrics.js";

const Telemetry = createContext<Client<Metrics> | null>(null);

/** Returns the client of the application. */
export function useTelemetry(): Client<Metrics> {
  const client = useContext(Telemetry);
  if (!client) throw new Error("Telemetry: must stand around what uses it");
  return client;
}

/** Records `value` when a component appears with it and when it changes; rendering again costs nothing. */
export function useMetric<Name extends keyof Metrics>(name: Name, value: Metrics[Name]): void {
  const client = useTelemetry();
  useEffect(() => client.record(name, value), [client, name, value]);
}

/** Returns the consent in force, and what obeys and keeps another answer. */
export function useConsent(): [Consent, (answer: Consent) => Promise<void>] {
  const client = useTelemetry();
  const [consent, setConsent] = useState(client.consent);
  const answer = useCallback(
    async (given: Consent) => {
      localStorage.setItem("telemetry", given);
      await client.setConsent(given);
      setConsent(client.consent);
    },
    [client],
  );
  return [consent, answer];
}

function Editor(): ReactElement {
  const client = useTelemetry();
  const [consent, answer] = useConsent();
  const [theme, setTheme] = useState<Metrics["theme"]>("light");
  const [sent, setSent] = useState(0);
  useMetric("theme", theme);
  const send = (): void => void client.flush().then(() => setSent(client.stats().uploaded));
  return (
    <>
      {consent === "unknown" && (
        <section>
          <p>{client.notice()}</p>
          <button onClick={() => void answer("granted")}>Yes</button>
          <button onClick={() => void answer("denied")}>No</button>
        </section>
      )}
      <select value={theme} onChange={(event) => setTheme(event.target.value as Metrics["theme"])}>
        <option>light</option>
        <option>dark</option>
        <option>system</option>
      </select>
      <button onClick={send}>Send now</button>
      <p id="state">{`${consent}: ${sent} sent`}</p>
    </>
  );
}

const { endpoint = "", writeKey = "" } = document.body.dataset;

// outside of any component: one client as long as the page lives
const client = new Client<Metrics>({
  endpoint,
  writeKey,
  registry,
  mechanisms,
  consent: (localStorage.getItem("telemetry") ?? "unknown") as Consent,
  store: indexedDbStore("editor"),
  segment: { platform: "linux" },
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Telemetry value={client}>
      <Editor />
    </Telemetry>
  </StrictMode>,
);
