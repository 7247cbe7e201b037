"""The rooms of the house: who may know whom, and how large rooms and files may grow.

A room is a folder.  The table names for each room the rooms that it may import from, and each
stands below those that it names, so that there are no circles.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from tests.support.arrows import PACKAGES, imports_of

ROOT: Final = Path(__file__).parent.parent

# What each room may import from, beside itself: rooms of the device | of the collector; from the
# ground up.  The root of the device is called root.
TABLE: Final = """
client_sdk.core:
client_sdk.wire: core
client_sdk.mechanisms: core
client_sdk.registry: core mechanisms
client_sdk.privacy: core wire mechanisms registry
client_sdk.storage: core wire privacy
client_sdk.upload: core wire privacy storage
client_sdk.recording: core wire registry privacy storage upload
client_sdk.learning: core wire mechanisms registry
client_sdk: core wire registry learning privacy storage upload recording
client_sdk.integrations: core registry recording root
collector.core: core registry privacy
collector.serving: | core
collector.relay: core wire | core serving
collector.issuer: core wire | core serving
collector.storage: core | core
collector.estimation: core mechanisms registry | core storage
collector.analytics: core mechanisms registry | core estimation
collector.analytics.poisoning: mechanisms registry | core estimation analytics
collector.analytics.comparing: core mechanisms registry | core estimation analytics
    analytics.poisoning
collector.analytics.text: mechanisms | estimation
collector.analytics.verbs: core mechanisms registry | core estimation analytics
    analytics.comparing
    analytics.text
collector.audit: core mechanisms registry | core estimation
collector.intake: core wire registry | core storage estimation
collector.operations.telemetry: core registry root | core storage intake
collector.planning: core mechanisms registry privacy | core estimation analytics.poisoning
collector.operations.doctor: core wire registry privacy | core storage intake operations.telemetry
    planning
collector.query: core mechanisms registry privacy root | core storage estimation analytics
    analytics.poisoning planning
collector.query.phrases: core registry | analytics analytics.comparing query
collector.rendering: core privacy | core analytics
collector.client: privacy | core analytics rendering
collector.query.release: core mechanisms registry root | core storage estimation analytics query
    rendering
collector.learning: core wire mechanisms registry privacy learning | core storage estimation
    analytics query
collector.workspace: core | core storage query
collector.workspace.watch: core registry privacy | core storage estimation analytics query rendering
collector.worker: core registry privacy | core storage estimation analytics analytics.poisoning
collector.operations: | core serving storage intake operations.telemetry worker
collector.demo: core mechanisms registry privacy upload root | core storage analytics
    rendering worker operations
collector.web: core wire mechanisms registry privacy root | core serving storage estimation
    analytics analytics.comparing intake operations.telemetry planning operations.doctor
    query query.phrases rendering workspace operations
collector.testing: core privacy upload root | core storage intake planning worker client
    web
collector.worker.archive: core registry | core storage estimation
collector.cli: core wire mechanisms registry privacy learning root | core storage estimation
    audit intake operations.telemetry planning operations.doctor query rendering learning workspace
    client query.release worker operations demo worker.archive workspace.watch serving relay issuer
collector: | cli
"""


def _rooms() -> dict[str, tuple[str, ...]]:
    rooms = {}
    for row in TABLE.replace("\n    ", " ").strip().splitlines():
        room, _, known = row.partition(":")
        device, _, collector = known.partition("|")
        rooms[room] = (
            *(f"client_sdk.{name}".removesuffix(".root") for name in device.split()),
            *(f"collector.{name}" for name in collector.split()),
        )
    return rooms


ROOMS: Final = _rooms()

MOST_ENTRIES: Final = 16  # of a folder
LARGE: Final = {
    "client_sdk": 20,
    "client_sdk/registry": 17,
    "collector": 23,
    "collector/query": 18,
    "collector/storage": 17,
}  # of folders that may have more: here each capability has one
MOST_STATEMENTS: Final = 265  # of a file; lines would be packed instead
FEWEST_LINES: Final = 80  # of a file that one other imports
# Folders in which each file is one of a kind, however many there are and however short.
KINDS: Final = (
    "client_sdk/integrations",
    "client_sdk/mechanisms/composite",
    "client_sdk/mechanisms/deployed",
    "client_sdk/mechanisms/items",
    "client_sdk/mechanisms/numbers",
    "client_sdk/registry/types",
    "collector/analytics/verbs",
    "collector/cli",
    "collector/rendering/charts",
    "collector/web/pages",
)
# Short files with one user that are files of their own for a reason.
SHORT: Final = {
    "client_sdk.core.launcher",  # the command begins here
    "client_sdk.pytest_fixture",  # pytest finds it by its entry point
    "client_sdk.storage.readonly",  # loaded when somebody looks, not when values are recorded
    "client_sdk.upload.retired_list",  # loaded where a registry names who may retire its metrics
    "collector.worker.archive.dask",  # needs a package that few install
    "collector.worker.quarantine",
}


def module_of(path: Path) -> tuple[str, bool]:
    """Return the dotted name of a file, and whether it is a package's own."""
    parts = path.with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def sources() -> dict[str, tuple[str, bool]]:
    """Return the source of every module of both packages, and whether it is a package's own."""
    modules = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name, is_package = module_of(path.relative_to(ROOT))
            modules[name] = (path.read_text("utf-8"), is_package)
    return modules


SOURCES: Final = sources()


def room_of(module: str) -> str:
    """Return the room that *module* lies in: the deepest of the table."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(name for name in names if name in ROOMS)


def targets(module: str, source: str, is_package: bool) -> Iterator[str]:
    """Yield the modules of both packages that *module* imports, also where it waits for a call."""
    for imported in imports_of(source, module, is_package):
        name = imported.target
        while name and name not in SOURCES:
            name = name.rpartition(".")[0]
        if name and name != module:
            yield name


def forbidden(module: str, source: str, is_package: bool = False) -> list[str]:
    """Return the imports of *module* that the table of rooms does not allow."""
    room = room_of(module)
    return [
        f"{module} -> {target}: {room} may not know {room_of(target)}"
        for target in targets(module, source, is_package)
        if room_of(target) not in {room, *ROOMS[room]}
    ]


def test_each_room_names_only_rooms_that_stand_above_it_in_the_table() -> None:
    order = list(ROOMS)

    for room, known in ROOMS.items():
        assert set(known) <= set(order[: order.index(room)]), room


def test_every_folder_with_modules_lies_in_a_room_of_the_table() -> None:
    folders = {name for name, (_, is_package) in SOURCES.items() if is_package}

    assert set(ROOMS) <= folders | {"collector.client"}
    outer = {folder for folder in folders if folder.count(".") == 1}
    assert outer <= set(ROOMS)


def test_no_room_knows_one_that_the_table_does_not_allow_it() -> None:
    faults = [fault for name, module in SOURCES.items() for fault in forbidden(name, *module)]

    assert faults == []


def test_every_arrow_of_the_table_is_needed() -> None:
    used = defaultdict(set)
    for name, module in SOURCES.items():
        for target in targets(name, *module):
            used[room_of(name)].add(room_of(target))

    unused = {room: set(known) - used[room] for room, known in ROOMS.items()}

    assert {room: names for room, names in unused.items() if names} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("client_sdk.wire.reports", "from ..registry.metric import Metric"),
        ("client_sdk.mechanisms.items.grr", "from ...registry.types.items import Domain"),
        ("client_sdk.storage.ledger", "def f():\n    from ..upload import uploader"),
        ("collector.core.catalog", "from client_sdk.storage.ledger import Ledger"),
        ("collector.core.entry", "from ..storage.values import ClaimedEntry"),
        ("collector.estimation.precision", "from ..analytics.rows import Row"),
        ("collector.analytics.rows", "if TYPE_CHECKING:\n    from ..query.run import Reply"),
        ("collector.worker.worker", "from ..web.app import create_app"),
        ("collector.rendering.charts.bars", "from ...web.pages.layout import page"),
    ],
)
def test_a_planted_import_up_the_house_is_found(module: str, source: str) -> None:
    assert len(forbidden(module, source)) == 1


def arrows_of(modules: Mapping[str, tuple[str, bool]]) -> dict[str, set[str]]:
    """Return which of *modules* each imports, wherever in it."""
    return {name: set(targets(name, *module)) for name, module in modules.items()}


def typescript_arrows(folder: Path) -> dict[str, set[str]]:
    """Return which files below *folder* each file in TypeScript imports, types alone too."""
    return {
        str(path): {
            str((path.parent / target).resolve().with_suffix(".ts"))
            for target in re.findall(r'from "(\.[^"]+)"', path.read_text("utf-8"))
        }
        for path in folder.rglob("*.ts")
    }


def circle(arrows: Mapping[str, set[str]]) -> list[str]:
    """Return files that import each other in a circle; empty if none do."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    """Not for types either, and not when a function is called: they cannot be read one by one."""
    assert circle(arrows_of(SOURCES)) == []
    assert circle(typescript_arrows(ROOT / "client_sdk_ts" / "src")) == []


@pytest.mark.parametrize(
    "planted", ["from .recorder import Recorder", "def f():\n    from . import recorder"]
)
def test_a_planted_circle_is_found(planted: str) -> None:
    source, is_package = SOURCES["client_sdk.recording.history"]

    planted_in = {**SOURCES, "client_sdk.recording.history": (source + planted, is_package)}
    found = circle(arrows_of(planted_in))

    assert {"client_sdk.recording.history", "client_sdk.recording.recorder"} <= set(found)


def test_a_planted_circle_of_types_in_typescript_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text('import type { B } from "./b.js";\n')
    (tmp_path / "b.ts").write_text('export type { A } from "./a.js";\n')

    assert len(set(circle(typescript_arrows(tmp_path)))) == 2


def test_a_module_with_an_underscore_is_imported_from_its_own_folder_only() -> None:
    faults = [
        f"{name} -> {target}"
        for name, module in SOURCES.items()
        for target in targets(name, *module)
        if target.rpartition(".")[2].startswith("_")
        if not f"{name}.".startswith(target.rpartition(".")[0] + ".")
    ]

    assert faults == []


def entries(folder: Path) -> list[Path]:
    """Return the modules of *folder*, and its folders with modules."""
    return [path for path in folder.iterdir() if path.suffix == ".py" or any(path.rglob("*.py"))]


def test_no_folder_but_those_of_kinds_has_more_entries_than_a_reader_takes_in() -> None:
    folders = [ROOT / name.replace(".", "/") for name, module in SOURCES.items() if module[1]]
    crowded = {
        str(folder.relative_to(ROOT)): len(entries(folder))
        for folder in folders
        if len(entries(folder)) > MOST_ENTRIES
    }

    assert {name for name, count in crowded.items() if count > LARGE.get(name, 0)} <= set(KINDS)


def test_no_file_is_longer_than_one_subject_takes() -> None:
    long = {
        name: n
        for name, (source, _) in SOURCES.items()
        if (n := statements(source)) > MOST_STATEMENTS
    }

    assert long == {}


def statements(source: str) -> int:
    """Return how many statements *source* has, its documentation apart."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    texts = [node for node in nodes if isinstance(node, ast.Expr)]
    return len(nodes) - sum(isinstance(node.value, ast.Constant) for node in texts)


def short_files(modules: Mapping[str, tuple[str, bool]]) -> set[str]:
    """Return the short modules with one user at most that are no kind and no entry point."""
    users = defaultdict(set)
    for name, module in modules.items():
        for target in targets(name, *module):
            users[target].add(name)
    return {
        name
        for name, (source, is_package) in modules.items()
        if source.count("\n") < FEWEST_LINES and not is_package
        if len(users[name]) <= 1 and not name.endswith("__main__")
        if not name.replace(".", "/").startswith(KINDS)
    }


def test_what_is_short_and_has_one_user_lives_with_it() -> None:
    assert short_files(SOURCES) == SHORT, "move it to its user, or say in SHORT why it is apart"


def test_a_new_short_file_with_one_user_would_be_found() -> None:
    user = "collector.core.catalog"
    source, is_package = SOURCES[user]
    planted = {
        **SOURCES,
        user: (f"from .config import Config\n{source}", is_package),
        "collector.core.riddle": ('"""One function."""\n', False),
    }

    assert short_files(planted) - SHORT == {"collector.core.riddle"}


def test_every_room_says_in_a_line_what_it_is() -> None:
    for name, (source, is_package) in SOURCES.items():
        if is_package:
            docstring = ast.get_docstring(ast.parse(source))
            assert docstring, name
            assert docstring.splitlines()[0].endswith((".", "?")), name
