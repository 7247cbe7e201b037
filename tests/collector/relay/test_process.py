"""What the relay reads of its command."""

from __future__ import annotations

import pytest

from collector.core.errors import ConfigError
from collector.relay.process import seconds


@pytest.mark.parametrize(("text", "value"), [("1s", 1), ("15s", 15), ("600s", 600), ("10m", 600)])
def test_a_batch_gathers_for_a_second_to_ten_minutes(text: str, value: float) -> None:
    assert seconds("--within", text) == value


@pytest.mark.parametrize("text", ["0s", "601s", "11m", "10", "1h", "-1s", "1.5s", "s", ""])
def test_no_batch_gathers_for_less_or_for_more(text: str) -> None:
    with pytest.raises(ConfigError, match="must be from 1s to 10m"):
        seconds("--within", text)
