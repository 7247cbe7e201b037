"""The gateway of a site: it hears coffee machines, and reports for each of them.

    export COLLECTOR=http://127.0.0.1:8000
    python examples/gateway.py --endpoint $COLLECTOR --gateway-key KEY --site office < readings

A reading is a line of JSON: {"machine": "3rd floor", "metric": "drink", "value": "latte"}.  What a
machine is called stays here: it is neither stored nor sent.  Without a collector in reach the
gateway keeps up to two weeks of reports; with one it sends them every few hours.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from client_sdk.gateway import Gateway

REGISTRY = Path(__file__).with_name("gateway_metrics.toml")
GROUP = 1_000  # readings that are written down together


def readings(lines: Iterable[str]) -> Iterator[tuple[str, str, object]]:
    """Yield machine, metric and value of each line; skip what is no reading."""
    for line in lines:
        try:
            reading = json.loads(line)
            yield reading["machine"], reading["metric"], reading["value"]
        except (ValueError, KeyError, TypeError):
            print("skipped a line that is no reading", file=sys.stderr)


def main() -> None:
    """Record what machines say until there is no more, sending now and then."""
    options = read_options()
    with Gateway(
        options.endpoint,
        options.gateway_key,
        REGISTRY,
        consent="granted",  # the owners of the machines have agreed by contract
        data_dir=options.data_dir,
        segment={"site": options.site},
    ) as gateway:
        waiting = readings(sys.stdin)
        while group := list(islice(waiting, GROUP)):
            gateway.record_many(group)
            gateway.upload()
        if options.send_now:
            gateway.flush()
        print({reason: count for reason, count in gateway.stats().items() if count})


def read_options() -> argparse.Namespace:
    """Return what stands on the command line."""
    parser = argparse.ArgumentParser(description="A gateway for coffee machines.")
    parser.add_argument("--endpoint", required=True, help="URL of the collector")
    parser.add_argument("--gateway-key", required=True, help="key of this kind of gateway")
    parser.add_argument("--site", required=True, choices=("hospital", "office", "school"))
    parser.add_argument("--data-dir", type=Path, default=Path("gateway-data"))
    parser.add_argument("--send-now", action="store_true", help="do not wait for the schedule")
    return parser.parse_args()


if __name__ == "__main__":
    main()
