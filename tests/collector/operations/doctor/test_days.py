"""The doctor tells a store that was emptied, and days that no clock may move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from client_sdk.core.epoch import day_of
from collector.core.config import Config
from collector.operations.doctor import State, examine
from collector.operations.doctor.findings import FAULT, GOOD, NOTE, WARNING
from collector.storage.diagnosis import Shard
from tests.collector.operations.doctor.test_examine import STATE
from tests.support.crowds.uploads import NOON, WRITE_KEY, registry_text

TODAY = day_of(NOON)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    settings = {"HEARSAY_REGISTRY": str(path), "HEARSAY_WRITE_KEY": WRITE_KEY}
    return Config.from_env({**settings, "HEARSAY_SHARDS": "2"})


def shards(*generations: str | None, confirmed: int | None = TODAY) -> State:
    found = [Shard(None, True, generation, confirmed) for generation in generations]
    return replace(STATE, shards=found)


def levels(config: Config, state: State, check: str) -> list[str]:
    return [one.level for one in examine(config, state) if one.check == check]


@pytest.mark.parametrize(
    ("generations", "told"),
    [
        (("a", "a"), [GOOD]),
        (("a", ""), [FAULT]),
        (("", ""), [FAULT]),
        (("a", "b"), [FAULT]),
        ((None, None), []),
    ],
)
def test_a_store_of_which_a_part_is_gone_is_a_fault(
    config: Config, generations: tuple[str | None, ...], told: list[str]
) -> None:
    assert levels(config, shards(*generations), "generation") == told


@pytest.mark.parametrize(
    ("day", "told"),
    [
        *((TODAY, [GOOD]), (TODAY + 1, [GOOD]), (TODAY - 2, [GOOD])),
        *((TODAY - 3, [WARNING]), (TODAY + 2, [FAULT]), (None, [])),
    ],
)
def test_days_that_lag_or_run_ahead_are_told(
    config: Config, day: int | None, told: list[str]
) -> None:
    assert levels(config, shards("a", "a", confirmed=day), "ids") == told


def test_workers_that_waited_for_clocks_are_told(config: Config) -> None:
    assert levels(config, replace(STATE, clock_waits=3), "clock") == [GOOD, NOTE]
