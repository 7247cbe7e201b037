"""The demo's table says for each number whether its interval holds the truth."""

from __future__ import annotations

from io import StringIO
from typing import Any

from collector.demo.truth_table import covered, print_table


def row(item: str, true: float, value: float | None) -> dict[str, Any]:
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {"item": item, "true": true, "value": value, "ci_low": low, "ci_high": high}


METRICS = {
    "page": {"n": 1_000, "unit": "share", "rows": [row("home", 0.5, 0.55), row("shop", 0.5, 0.3)]},
    "age": {"n": 50, "unit": "years", "rows": [row("mean", 40.0, None)]},
}


def test_only_numbers_can_cover() -> None:
    assert covered(METRICS) == {"yes": 1, "of": 2}


def test_the_table_marks_what_covers_what_does_not_and_what_is_withheld() -> None:
    out = StringIO()

    print_table({"metrics": METRICS, "covered": covered(METRICS), "uploads": 1_000}, out)

    lines = out.getvalue().splitlines()
    endings = {line.split()[0]: line.split()[-1] for line in lines if line.startswith("  ")}
    assert {name: endings[name] for name in ("home", "shop", "mean")} == {
        "home": "yes",
        "shop": "NO",
        "mean": "reports",
    }
    assert lines[-1] == "1 of 2 intervals cover (50 %)"
    assert "page (1,000 reports)" in out.getvalue()
    assert "age (50 reports)" in out.getvalue()


def test_a_table_without_numbers_can_be_printed() -> None:
    out = StringIO()

    print_table({"metrics": {}, "covered": covered({}), "uploads": 0}, out)

    assert "0 of 0 intervals cover" in out.getvalue()
