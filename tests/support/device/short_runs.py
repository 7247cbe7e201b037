"""A program that lives for a moment, run over weeks of simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from client_sdk.privacy.consent import NoOptOuts
from client_sdk.recording import child, detached
from client_sdk.recording.handover import Handover
from client_sdk.recording.handover_protocol import Notes, values_of
from client_sdk.upload.transport import Transport
from tests.support.device.clock import FakeClock
from tests.support.device.device import ENDPOINT, KEY


class Week:
    """A program that runs again and again, in simulated time, with children in this process."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        transport: Transport,
        clock: FakeClock | None = None,
    ) -> None:
        """Begin with the registry of *folder*; children send by *transport*."""
        self.clock, self.transport = clock or FakeClock(), transport
        self.settings: dict[str, Any] = {
            "endpoint": ENDPOINT,
            "write_key": KEY,
            "registry": str(folder / "metrics.toml"),
            "data_dir": str(folder / "data"),
            "consent": "granted",
            "segment": None,
            "caps": {},
        }
        self.children = 0
        monkeypatch.setattr(detached, "start_child", self.serve)

    def run(self, **values: object) -> None:
        """Record *values* and end; the child does its work before this returns."""
        here = Handover(self.settings, lambda: None)
        for name, value in values.items():
            reason = here.put(name, value, self.clock())
            assert reason in (None, "already_reported", "budget")
        assert here.start(here.take(), self.clock()) >= 0

    def serve(self, document: Mapping[str, Any], values: list[bytes]) -> int:
        """Do what a child does, by this clock."""
        self.children += 1
        child.serve(
            values_of(values),
            document["settings"],
            sends=document["sends"],
            transport=self.transport,
            opt_outs=NoOptOuts(),
            clock=self.clock,
            uptime=self.clock.uptime,
        )
        return len(values)

    @property
    def due(self) -> float:
        """When the next pass is due, as the last child has noted."""
        notes = Notes.read(self.settings["data_dir"], self.settings["registry"], self.clock())
        return notes.due or 0.0
