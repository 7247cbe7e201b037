/** Records in a page: a function of what typescript.py hands over, for Chromium.  `hearsay` is the bundle. */

async ({ record: { registry, name, values, calls, group, delay }, burst }) => {
  const long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries())).observe({ entryTypes: ["longtask"] });
  let now = Date.now();
  const made = (more) => new hearsay.Client({
    ...{ endpoint: "https://collector.example", writeKey: "key", consent: "granted", optOuts: hearsay.noOptOuts },
    ...{ mechanisms: [hearsay.grr, hearsay.duchi, hearsay.count, hearsay.aggregates], clock: () => now },
    caps: { week: "999999", metric_week: "999999", lifetime: "999999" },
    transport: { send: async () => ({ status: 202, body: '{"accepted":0}' }) },
    ...more,
  });
  const client = made({ registry, store: hearsay.indexedDbStore("app") });
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
  const before = long.length;

  const adding = made({ registry: burst.registry, store: hearsay.indexedDbStore("burst") });
  const start = performance.now();
  for (let call = 0; call < burst.calls; call++) adding.record(burst.name, 1);
  const end = performance.now();
  let [last, longest, done] = [end, 0, false];
  const { port1, port2 } = new MessageChannel(); // a timer would wait for 4 ms
  port1.onmessage = () => {
    const moment = performance.now();
    longest = Math.max(longest, moment - last);
    last = moment;
    if (!done) port2.postMessage(null);
  };
  port2.postMessage(null);
  await adding.close();
  done = true;
  return {
    record: {
      p50: times[calls >> 1],
      p99: times[Math.floor(calls * 0.99)],
      most: times.at(-1),
      recorded: client.stats().recorded,
      long: before,
    },
    burst: { loop: end - start, longest, recorded: adding.stats().aggregated },
  };
};
