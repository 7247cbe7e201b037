"""The telemetry SDKs whose costs are measured: how each is started, and what it installs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

from client_sdk import Registry

OURS: Final = "hearsay"
NOWHERE: Final = "http://127.0.0.1:9"  # the port of discard
REGISTRY: Final = """schema = 1
app = "demo"
""" + "".join(
    f"""
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
epsilon = "1.0"
every = "1d"
longitudinal = "fresh"
owner = "benchmarks"
expected_devices = 10000
expires = 2099-12-31
"""
    for name, kind in (
        ("dark_mode", 'type = "boolean"'),
        ("theme", 'type = "category"\nvalues = ["light", "dark", "system"]'),
        ("files", 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"'),
        (
            "runs",
            'type = "count"\nmin = 0\nmax = 1000\nstep = 1\nunit = "runs"\naggregate = "sum"',
        ),
    )
)


class Sdk(NamedTuple):
    """An SDK: how to load it and make what records; ``FOLDER`` stands for an empty folder.

    offline: whether reports that wait outlive the process.  privacy: how privacy is counted.
    """

    name: str
    distributions: tuple[str, ...]
    load: str
    ready: str
    offline: bool = False
    privacy: str = "no"


SDKS: Final = (
    Sdk(
        OURS,
        ("hearsay",),
        "from client_sdk import Caps, Client",
        f"client = Client('{NOWHERE}', 'key', 'FOLDER/metrics.toml', consent='granted',"
        " data_dir='FOLDER/data')",
        offline=True,
        privacy="in ε",
    ),
    Sdk(
        "glean-sdk",
        ("glean-sdk",),
        "from pathlib import Path\nfrom glean import Configuration, Glean",
        "Glean.initialize(application_id='demo', application_version='1', upload_enabled=True,"
        f" data_dir=Path('FOLDER/data'), configuration=Configuration(server_endpoint='{NOWHERE}'))",
        offline=True,
    ),
    Sdk(
        "opentelemetry-sdk",
        ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
        "from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader",
        f"exporter = OTLPMetricExporter('{NOWHERE}/v1/metrics')\n"
        "provider = MeterProvider([PeriodicExportingMetricReader(exporter)])\n"
        "counter = provider.get_meter('demo').create_counter('dark_mode')",
    ),
    Sdk(
        "posthog",
        ("posthog",),
        "from posthog import Posthog",
        f"client = Posthog('key', host='{NOWHERE}')",
    ),
    Sdk(
        "segment-analytics-python",
        ("segment-analytics-python",),
        "from segment.analytics import Client",
        f"client = Client('key', host='{NOWHERE}')",
    ),
    Sdk(
        "sentry-sdk",
        ("sentry-sdk",),
        "import sentry_sdk",
        f"sentry_sdk.init('{NOWHERE.replace('//', '//key@')}/1')",
    ),
)


def named_registry() -> str:
    """Return REGISTRY as ``auto`` fills it in."""
    text = REGISTRY
    for metric in Registry.from_text(REGISTRY):
        head = f"[metrics.{metric.name}]\n"
        text = text.replace(head, f'{head}mechanism = "{metric.mechanism_name}"\n')
    return text


def closure(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the distributions called *names* and all that they need here, without extras."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise ModuleNotFoundError(f"{name} is not installed", name=name) from None
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return found


def _files(package: Distribution) -> Iterator[Path]:
    """Yield the files of *package* without bytecode; of ours, the device part."""
    for file in package.files or ():
        path = Path(str(package.locate_file(file)))
        if path.suffix != ".pyc" and file.parts[0] != "collector" and path.is_file():
            yield path


def installed(names: Iterable[str]) -> tuple[int, float]:
    """Return how many distributions *names* need, themselves included, and their KB on disk."""
    packages = closure(names).values()
    size = sum(path.stat().st_size for package in packages for path in _files(package))
    return len(packages), size / 1e3


def reads(variable: str, names: Iterable[str]) -> bool:
    """Whether any Python file of *names* themselves says the environment *variable*."""
    files = [path for name in names for path in _files(distribution(name))]
    return any(variable.encode() in path.read_bytes() for path in files if path.suffix == ".py")
