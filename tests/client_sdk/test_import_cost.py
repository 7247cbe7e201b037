"""What the SDK loads, and when: a table of snippets, each run in a new interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import client_sdk
from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.support.device.device import ENDPOINT, KEY, metric_text
from tests.support.device.registries import CATEGORY, KEY_VALUE, PAIR, file_with
from tests.support.patience import PATIENCE

NEVER_ON_A_DEVICE = {"flask", "msgspec", "numpy", "redis"}
ONLY_WHEN_NEEDED = {"requests", "sqlite3", "ssl", "urllib3"}
TOO_DEAR = {
    "ast",
    "dataclasses",
    "dis",
    "inspect",
    "pkgutil",
    "tokenize",
}  # of the standard library

LATER: Final = {  # of the standard library; a client that is ready has not loaded it
    *("base64", "datetime", "importlib", "ipaddress", "json", "re", "struct", "typing"),
    *("binascii", "queue", "urllib.parse", "warnings"),
}

ROOT: Final = str(Path(client_sdk.__file__).parent.parent)
_SHOW = "\nimport sys; print(*sys.modules)"
_LEAVE = "; sys.stdout.flush(); import os; os._exit(0)"  # before the end of the client
_CLIENT = (
    "import client_sdk\n"
    "client = client_sdk.Client({endpoint!r}, {key!r}, {registry!r},"
    " consent={consent!r}, data_dir={data_dir!r}, mode={mode!r})\n"
)


def modules_after(snippet: str, *, leave: bool = False, bare: bool = False) -> set[str]:
    """Return the modules that a new interpreter has loaded after *snippet*.

    Args: bare: it has no packages but ours, of which the finder of an editable one loads much.
    """
    options = ["-I", "-S"] if bare else []
    path = f"import sys; sys.path.append({ROOT!r})\n" if bare else ""
    command = [sys.executable, *options, "-c", path + snippet + _SHOW + _LEAVE * leave]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "snippet", ["import client_sdk", "import client_sdk; client_sdk.Client; client_sdk.Caps"]
)
def test_an_import_loads_neither_network_nor_database(snippet: str) -> None:
    assert not modules_after(snippet) & (ONLY_WHEN_NEEDED | NEVER_ON_A_DEVICE)


def test_an_import_without_a_name_loads_nothing_else() -> None:
    """The price of the SDK is paid by those who make a client."""
    added = modules_after("import client_sdk") - modules_after("")

    assert added <= {"__future__", "client_sdk"}


@pytest.mark.parametrize(
    ("fields", "loaded"),
    [
        (CATEGORY, set()),
        (KEY_VALUE, set()),
        (PAIR, {"client_sdk.registry.types.joint"}),
    ],
)
def test_joint_values_are_paid_for_by_registries_that_have_them(
    fields: dict[str, str], loaded: set[str]
) -> None:
    """Who asks for items and numbers loads no more than before there was anything else."""
    text = file_with(fields)

    modules = modules_after(f"import client_sdk; client_sdk.Registry.from_text({text!r})")

    assert {module for module in modules if "joint" in module and "sdk" in module} == loaded


FIRST_REPORT: Final = {  # what makes a mechanism, and what a compiled registry needs no more
    *(
        "client_sdk.mechanisms.base",
        "client_sdk.mechanisms.items.grr",
        "client_sdk.registry.types.items",
    ),
    *(
        "client_sdk.registry.assembly",
        "client_sdk.registry.registry",
        "client_sdk.registry.selection",
    ),
    *("decimal", "fractions", "hashlib", "tomllib"),
}


@pytest.mark.parametrize(
    ("action", "loaded"),
    [
        ("", set()),
        (
            "client.record('dark_mode', True)",
            FIRST_REPORT - {"client_sdk.registry.registry", "tomllib"},
        ),
    ],
)
def test_a_compiled_registry_is_ready_without_what_makes_reports(
    tmp_path: Path, action: str, loaded: set[str]
) -> None:
    registry = tmp_path / "metrics.json"
    text = 'schema = 1\napp = "demo"\n' + metric_text("dark_mode")
    registry.write_text(compiled(Registry.from_text(text)))
    snippet = _CLIENT.format(
        endpoint="https://collector.example",
        key=KEY,
        registry=str(registry),
        consent="granted",
        mode="manual",
        data_dir=str(tmp_path / "data"),
    )

    modules = modules_after(snippet + action, leave=True, bare=True)

    assert modules & FIRST_REPORT == loaded
    assert bool(action) == bool(modules & LATER)


@pytest.mark.parametrize(
    ("mode", "consent", "action", "loaded"),
    [
        ("background", "granted", "", set()),
        ("manual", "granted", "client.record('dark_mode', True)", {"sqlite3"}),
        ("background", "granted", "client.record('dark_mode', True); client.close()", {"sqlite3"}),
        ("background", "granted", "client.flush(); client.close()", set()),
        ("background", "unknown", "client.record('dark_mode', True); client.close()", set()),
        ("background", "denied", "client.record('dark_mode', True); client.close()", set()),
    ],
)
def test_a_client_loads_only_what_it_needs(
    tmp_path: Path, mode: str, consent: str, action: str, loaded: set[str]
) -> None:
    registry = tmp_path / "metrics.toml"
    registry.write_text('schema = 1\napp = "demo"\n' + metric_text("dark_mode"))
    snippet = _CLIENT.format(
        endpoint=ENDPOINT,
        key=KEY,
        registry=str(registry),
        consent=consent,
        mode=mode,
        data_dir=str(tmp_path / "data"),
    )

    modules = modules_after(snippet + action)

    assert modules & (ONLY_WHEN_NEEDED | NEVER_ON_A_DEVICE | TOO_DEAR) == loaded
