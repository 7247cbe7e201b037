"""The tables of costs: what the pages hold is what the command prints from its own rows."""

from __future__ import annotations

from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from benchmarks.lib.page import ROOT
from benchmarks.speed.sdk_costs import (
    IMPORT_BAR,
    MARK,
    OURS,
    PAGE,
    SDKS,
    Cost,
    device_bytes,
    installed_as,
    parse,
    step_table,
    table,
)

STEPS = [
    ("small", Cost(1.0, 0.5)),
    ("slow", Cost(IMPORT_BAR[0] + 1, 0.5)),
    ("ready", Cost(IMPORT_BAR[0] + 1, IMPORT_BAR[1] + 1)),
    ("unbarred", Cost(999.0, 99.0)),
]


def test_the_page_holds_every_sdk_of_one_run() -> None:
    """Its table follows from its own rows."""
    page = PAGE.read_text("utf-8")
    rows = parse(page)

    assert [row.name for row in rows] == [sdk.name for sdk in SDKS]
    assert table(rows) in page


def test_the_page_states_every_miss() -> None:
    """A bar that is not met says FAIL, and the page has a part about it."""
    page = PAGE.read_text("utf-8")

    assert ("| FAIL |" in page.split(MARK)[1]) == ("## What is missed" in page)


def test_a_step_above_its_bar_fails_and_one_without_a_bar_says_nothing() -> None:
    """Time alone is enough to fail."""
    verdicts = [line.split("|")[-2].strip() for line in step_table(STEPS, 450.0).splitlines()[2:]]

    assert verdicts == ["pass", "FAIL", "pass", "", "FAIL"]


def test_the_size_of_the_device_part_leaves_out_the_collector() -> None:
    """One wheel holds both."""
    with ZipFile(BytesIO(), "w") as archive:
        archive.writestr("client_sdk/a.py", b"12345")
        archive.writestr("collector/b.py", b"123")

        assert device_bytes(archive) == 5


def test_every_sdk_that_is_measured_is_pinned() -> None:
    """The same versions again."""
    pins = (ROOT / "benchmarks" / "sdk_requirements.txt").read_text("utf-8")
    needed = [name for sdk in SDKS if sdk.name != OURS for name in sdk.distributions]

    assert [name for name in needed if f"\n{name}==" not in pins] == []


def test_a_checkout_in_the_working_folder_is_not_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout that was built lists its tests and pictures as files of the distribution."""
    folder = tmp_path / "requests-0.0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: requests\nVersion: 0.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert distribution("requests").version == "0.0.1"
    assert installed_as("requests").version != "0.0.1"
