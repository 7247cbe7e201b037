/** Records in a page: a function of what typescript.py hands over, for Chromium.  `hearsay` is the bundle. */

async ({ registry, name, values, calls, group, delay }) => {
  const long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["longtask"] });
  let now = Date.now();
  const client = new hearsay.Client({
    ...{ endpoint: "https://collector.example", writeKey: "key", registry, mechanisms: [hearsay.grr], consent: "granted" },
    ...{ store: hearsay.indexedDbStore("app"), clock: () => now, optOuts: hearsay.noOptOuts },
    caps: { week: "999999", metric_week: "999999", lifetime: "999999" },
    transport: { send: async () => ({ status: 202, body: '{"accepted":0}' }) },
  });
  const times = [];
  for (let call = 0; call < calls; call++) {
    now += 86_400_000; // another epoch: each call makes a report
    const start = performance.now();
    client.record(name, values[call % values.length]);
    times.push(performance.now() - start);
    if (call % group === group - 1) await new Promise((resolve) => setTimeout(resolve, delay));
  }
  await client.close();
  times.sort((a, b) => a - b);
  return {
    p50: times[calls >> 1],
    p99: times[Math.floor(calls * 0.99)],
    most: times.at(-1),
    recorded: client.stats().recorded,
    long: long.length,
  };
};
