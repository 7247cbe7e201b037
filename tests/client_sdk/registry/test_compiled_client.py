"""Clients with a compiled registry: they record as with any other, and never what is not sound."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk import Client
from client_sdk.core.errors import RegistryError
from client_sdk.core.stats import Reason
from client_sdk.recording.child import serve
from client_sdk.recording.inbox import ReportView
from client_sdk.registry import Registry
from client_sdk.registry.compiled import checksum_of
from client_sdk.upload.transport import ACCEPTED, Answer
from collector.planning.compilation import compiled
from tests.support.device.device import ENDPOINT, KEY, metric_text
from tests.support.enumeration.seeded import SeededRandomness

TEXT: Final = 'schema = 1\napp = "demo"\n' + metric_text("dark_mode") + metric_text("compact")


class _Bodies:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.bodies.append(body)
        return Answer(ACCEPTED, None, b'{"accepted": 1}')


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """A registry and the same one compiled."""
    paths = {name: tmp_path / f"metrics.{name}" for name in ("toml", "json")}
    paths["toml"].write_text(TEXT)
    paths["json"].write_text(compiled(Registry.from_text(TEXT)))
    return paths


def reports_of(registry: Path, **changes: Any) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    """Return the reports that a client makes of two values, and its counts."""
    seen: list[tuple[str, bytes]] = []

    def see(report: ReportView) -> bool:
        seen.append((report.metric, report.payload))
        return True

    client = Client(
        ENDPOINT,
        KEY,
        registry,
        consent="granted",
        data_dir=None,
        mode="manual",
        randomness=SeededRandomness(b"both"),
        on_report=see,
        transport=_Bodies(),
        **changes,
    )
    with client:
        client.record("dark_mode", True)
        client.record("compact", False)
    return seen, dict(client.stats())


def spoil(path: Path) -> None:
    """Let the truth of the first metric be likelier than its epsilon allows, checksum and all."""
    document = json.loads(path.read_text())
    document["metrics"][0]["constants"]["truth"] = "f" * 32
    document["checksum"] = checksum_of(document)
    path.write_text(json.dumps(document))


def test_a_client_makes_the_same_reports_of_either_file(paths: dict[str, Path]) -> None:
    reports, counts = reports_of(paths["json"])

    assert (reports, counts) == reports_of(paths["toml"])
    assert [name for name, _ in reports] == ["dark_mode", "compact"]
    assert counts[Reason.UPLOADED] == 2


def test_a_metric_that_spends_more_than_it_says_reports_nothing(
    paths: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(paths["json"])

    with caplog.at_level(logging.WARNING, logger="hearsay"):
        reports, counts = reports_of(paths["json"])

    assert [name for name, _ in reports] == ["compact"]
    assert (counts[Reason.INTERNAL], counts[Reason.RECORDED]) == (1, 1)
    assert "metrics.dark_mode.epsilon" in caplog.text


def test_a_strict_client_raises_for_it(paths: dict[str, Path]) -> None:
    spoil(paths["json"])

    with pytest.raises(RegistryError, match=r"metrics\.dark_mode"):
        reports_of(paths["json"], strict=True)


def test_the_constructor_refuses_a_damaged_file(paths: dict[str, Path]) -> None:
    paths["json"].write_text(paths["json"].read_text().replace("demo", "memo", 1))

    with pytest.raises(RegistryError, match="checksum"):
        reports_of(paths["json"])


def test_devices_draw_the_same_panel_by_either_file(tmp_path: Path) -> None:
    head = 'schema = 1\napp = "demo"\n[panel]\nweek = "8"\n'
    text = head + "".join(metric_text(name) for name in "abcd")
    counts = []
    for name, kept in (("toml", text), ("json", compiled(Registry.from_text(text)))):
        path = tmp_path / f"panel.{name}"
        path.write_text(kept)
        client = Client(
            ENDPOINT,
            KEY,
            path,
            consent="granted",
            data_dir=None,
            mode="manual",
            randomness=SeededRandomness(b"secret"),
            transport=_Bodies(),
            clock=lambda: 1_800_000_000.0,
        )
        with client:
            for metric in client.registry:
                client.record(metric.name, True)
        counts.append(dict(client.stats()))

    assert counts[0] == counts[1]
    assert (counts[0][Reason.RECORDED], counts[0][Reason.NOT_IN_PANEL]) == (1, 3)


def test_a_child_of_command_mode_records_by_it(paths: dict[str, Path], tmp_path: Path) -> None:
    counts = serve(
        [("dark_mode", True, 1_800_000_000.0)],
        {
            "endpoint": ENDPOINT,
            "write_key": KEY,
            "registry": str(paths["json"]),
            "data_dir": str(tmp_path / "data"),
            "consent": "granted",
            "caps": {},
        },
        sends=False,
        clock=lambda: 1_800_000_000.0,
    )

    assert counts[Reason.RECORDED] == 1
