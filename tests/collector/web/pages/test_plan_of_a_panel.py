"""The page Plan says which devices answer, and what no number of them can do."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.device.device import metric_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.sites.page import Page

HEAD = 'schema = 1\napp = "demo"\n[panel]\nweek = "4"\n'
WEEKLY = "".join(metric_text(f"m{place}", every="7d") for place in range(10))


def shown(folder: Path, text: str, address: str) -> str:
    """Return what the page at *address* says of a registry, in one line."""
    reply = browser_of(in_memory(folder, text)).get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return re.sub(r"\s+", " ", Page(reply.text).text)


def test_the_devices_that_a_panel_draws_are_named_as_such(tmp_path: Path) -> None:
    """Law: both numbers, and no word of a panel where all devices answer."""
    drawn = shown(tmp_path, HEAD + WEEKLY, "/plan?metric=m0&devices=4")
    alone = shown(tmp_path, HEAD.partition("[panel]")[0] + WEEKLY, "/plan?metric=m0&devices=4")

    assert "which the panel draws from 10,000" in drawn
    assert "panel draws" not in alone


def test_what_no_number_reaches_is_not_told_as_a_time(tmp_path: Path) -> None:
    """Law: a permanent response says nothing new in later windows."""
    text = 'schema = 1\napp = "demo"\n' + metric_text("m").replace('"fresh"', '"permanent"')

    said = shown(tmp_path, text, "/plan?metric=m&devices=3&need=0.1")

    assert re.search(r"Windows until then\s*no number is enough", said)
    assert "never" not in said
