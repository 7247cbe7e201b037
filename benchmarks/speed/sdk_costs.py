"""What it costs an application to carry a telemetry SDK: ours and five others in the same run.

Run: ``make bench-sdks``, about a minute; ``make bench-sdks ARGS=--write`` puts the tables into
docs/guide/costs.md.  It makes .venv-sdks from benchmarks/sdk_requirements.txt first,
and installs our wheel there: an editable install loads more modules at each start.

SDKs take turns: a round is one new interpreter each, with compiled modules, and what is shown is
the median of ROUNDS rounds.  ``import`` loads the names that an application writes down; ``ready``
goes on until the object that records exists.  Times are processor time of all threads, so other
work on the machine adds less to them than to the clock on the wall.  Nothing is sent: all endpoints
are at a port of this machine where nobody listens.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from zipfile import ZipFile

from benchmarks.lib.page import PAGES, ROOT, mark, publish, verdict
from benchmarks.lib.page import table as markdown
from benchmarks.lib.registries import registry_text
from client_sdk import Registry
from collector.planning.compilation import compiled

OURS: Final = "hearsay"
NOWHERE: Final = "http://127.0.0.1:9"  # the port of discard
REGISTRY: Final = registry_text(
    {
        "dark_mode": 'type = "boolean"',
        "theme": 'type = "category"\nvalues = ["light", "dark", "system"]',
        "files": 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"',
        "runs": 'type = "count"\nmin = 0\nmax = 1000\nstep = 1\nunit = "runs"\naggregate = "sum"',
    }
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
        ("hearsay-telemetry",),
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


@cache
def compiled_registry() -> str:
    """Return REGISTRY compiled."""
    return compiled(Registry.from_text(REGISTRY))


def installed_as(name: str) -> Distribution:
    """Return the distribution called *name* of this environment.

    A checkout in the working folder, whose files are all that a build took, does not count.
    Raises: ModuleNotFoundError.
    """
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for package in distributions(name=name, path=folders):
        return package
    raise ModuleNotFoundError(f"{name} is not installed", name=name)


def closure(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the distributions called *names* and all that they need here, without extras."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        found[name] = installed_as(name)
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
    files = [path for name in names for path in _files(installed_as(name))]
    return any(variable.encode() in path.read_bytes() for path in files if path.suffix == ".py")


PAGE: Final = PAGES / "guide" / "costs.md"
MARK: Final = mark("costs")  # stands before and after the table of both pages

ROUNDS: Final = 15  # interpreters an SDK and step
FIRST_UPLOAD: Final = "import requests"  # what ours loads at the first upload, in its own thread
IMPORT_BAR: Final = 12.0, 6.0  # ms, MB
READY_BAR: Final = 25.0, 8.0  # ms, MB; from a compiled registry
BARS: Final = (IMPORT_BAR, IMPORT_BAR, READY_BAR)  # of the first steps; the others are stated
WHEEL_BAR: Final = 350.0  # KB of client_sdk in the wheel

# Prints milliseconds of processor time and the resident set in MB; then leaves at once, as some
# SDKs wait at the end for a server that does not answer.
_TELL: Final = """
import os, time
used = time.process_time()
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[1])
os.write(1, f"{used * 1e3} {pages * os.sysconf('SC_PAGE_SIZE') / 1e6}".encode())
os._exit(0)
"""


class Row(NamedTuple):
    """One SDK: ms and MB over the bare interpreter, what is installed, and what it does."""

    name: str
    load_ms: float
    load_mb: float
    ready_ms: float
    ready_mb: float
    packages: int
    installed_kb: float
    offline: str
    opt_out: str
    privacy: str


class Cost(NamedTuple):
    """Milliseconds and megabytes."""

    milliseconds: float
    megabytes: float


def measure(programs: dict[str, str]) -> dict[str, Cost]:
    """Return what each of *programs* costs over an interpreter that does nothing."""
    found: dict[str, list[Cost]] = defaultdict(list)
    everything = {"": "", **programs}
    with tempfile.TemporaryDirectory() as compiled:
        for _ in range(ROUNDS + 1):
            for name, program in everything.items():
                found[name].append(_run(program, compiled))
    medians = {
        name: Cost(*(median(column) for column in zip(*costs[1:], strict=True)))
        for name, costs in found.items()  # the first of each has compiled
    }
    bare = medians.pop("")
    return {
        name: Cost(cost.milliseconds - bare.milliseconds, cost.megabytes - bare.megabytes)
        for name, cost in medians.items()
    }


def _run(program: str, compiled: str) -> Cost:
    ours = ("PYTHON", "HEARSAY_", "DO_NOT_TRACK", "OTEL_", "SENTRY_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metrics.toml").write_text(named_registry())
        (Path(folder) / "auto.toml").write_text(REGISTRY)
        (Path(folder) / "metrics.json").write_text(compiled_registry())
        run = subprocess.run(
            [sys.executable, "-c", program.replace("FOLDER", folder) + _TELL],
            cwd=folder,  # not the checkout: the installed wheel is what counts
            # a machine that builds and tests stands for people here
            env={**environment, "PYTHONPYCACHEPREFIX": compiled, "HEARSAY_TELEMETRY": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    return Cost(*map(float, run.stdout.split()))


def rows() -> tuple[list[Row], list[tuple[str, Cost]]]:
    """Measure every SDK, and the steps of ours one by one."""
    programs = {}
    for sdk in SDKS:
        programs[f"{sdk.name} load"] = sdk.load
        programs[f"{sdk.name} ready"] = f"{sdk.load}\n{sdk.ready}"
    steps = dict(_steps())
    costs = measure({**programs, **steps})
    found = [
        Row(
            sdk.name,
            *costs[f"{sdk.name} load"],
            *costs[f"{sdk.name} ready"],
            *installed(sdk.distributions),
            "yes" if sdk.offline else "no",
            "yes" if reads("DO_NOT_TRACK", sdk.distributions) else "no",
            sdk.privacy,
        )
        for sdk in SDKS
    ]
    return found, [(step, costs[step]) for step in steps]


def _steps() -> Iterator[tuple[str, str]]:
    """Yield the steps of ours, each with all before it."""
    load, ready = SDKS[0].load, SDKS[0].ready
    yield "`import client_sdk` alone", "import client_sdk"
    yield "with `Client` and `Caps`", load
    soonest = ready.replace("metrics.toml", "metrics.json")
    yield "with a client, from a compiled registry", f"{load}\n{soonest}"
    yield "with a client, mechanisms named", f"{load}\n{ready}"
    yield "with a client, all on `auto`", f"{load}\n{ready.replace('metrics.toml', 'auto.toml')}"
    recorded = f"{load}\n{ready}\nclient.record('dark_mode', True)\nclient.close()"
    yield "with a value recorded and written to disk", recorded
    yield "with `requests`, as after the first upload", f"{recorded}\n{FIRST_UPLOAD}"


def wheel() -> float:
    """Return the KB of ``client_sdk`` in our wheel, compressed.

    Raises: ModuleNotFoundError: make bench-sdks has not built it.
    """
    built = sorted((ROOT / ".venv-sdks" / "wheel").glob("hearsay_telemetry-*.whl"))
    if not built:
        raise ModuleNotFoundError("no wheel", name="the wheel")
    with ZipFile(built[-1]) as archive:
        return device_bytes(archive) / 1e3


def device_bytes(archive: ZipFile) -> int:
    """Return the compressed bytes of what *archive* holds of the device part."""
    inside = [file for file in archive.infolist() if file.filename.startswith("client_sdk/")]
    return sum(file.compress_size for file in inside)


def table(found: Iterable[Row]) -> str:
    """Return the rows as Markdown."""
    heads = ("SDK", "import ms", "import MB", "ready ms", "ready MB", "packages", "installed KB",
             "keeps reports on disk", "reads `DO_NOT_TRACK`", "counts privacy")  # fmt: skip
    forms = ("", ".0f", ".1f", ".0f", ".1f", "", ",.0f", "", "", "")
    return markdown(heads, (list(map(format, row, forms)) for row in found))


def step_table(steps: Iterable[tuple[str, Cost]], wheel_kb: float) -> str:
    """Return the steps of ours, and the size of the wheel, beside their bars as Markdown."""
    lines = []
    for place, (step, cost) in enumerate(steps):
        measured = f"{cost.milliseconds:.0f} ms, {cost.megabytes:.1f} MB"
        if place >= len(BARS):
            lines.append((step, measured, "", ""))
            continue
        met = all(mine <= most for mine, most in zip(cost, BARS[place], strict=True))
        bar = f"≤ {BARS[place][0]:.0f} ms, ≤ {BARS[place][1]:.0f} MB"
        lines.append((step, measured, bar, verdict(met)))
    size, bar = f"{wheel_kb:.0f} KB", f"≤ {WHEEL_BAR:.0f} KB"
    lines.append(("`client_sdk` in the wheel", size, bar, verdict(wheel_kb <= WHEEL_BAR)))
    return markdown(("ours", "measured", "bar", ""), lines)


def parse(page: str) -> list[Row]:
    """Return the rows of a page that holds ``table``."""
    found = []
    for line in page.split(MARK)[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(Row._fields) and cells[1][:1].isdigit():
            load_ms, load_mb, ready_ms, ready_mb = map(float, cells[1:5])
            costs = load_ms, load_mb, ready_ms, ready_mb
            size = int(cells[5]), float(cells[6].replace(",", ""))
            found.append(Row(cells[0], *costs, *size, cells[7], cells[8], cells[9]))
    return found


def main() -> None:
    """Print the tables, write them with ``--write``; or say how to get the other SDKs."""
    try:
        size = wheel()
        for sdk in SDKS:
            closure(sdk.distributions)
    except ModuleNotFoundError as missing:
        print(f"{missing.name} is not installed here: make bench-sdks")
        return
    found, steps = rows()
    costs, own = table(found), step_table(steps, size)
    publish((PAGE, {"costs": f"{costs}\n\n{own}"}))
