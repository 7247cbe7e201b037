"""Count what the files of this folder hold, from the publishers' own files.

    python examples/data/count.py FOLDER

FOLDER has the files named in README.md as they were published, compressed by gzip or not.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO, TypeAlias

HERE = Path(__file__).parent
BOX = (-8.0, 49.5, 2.0, 61.0)  # west, south, east, north, of the grid of accidents
CELLS = 32  # of the grid, either way
Counts: TypeAlias = Counter[tuple[str, ...]]


def opened(folder: Path, name: str) -> TextIO:
    """Return a published file as text."""
    packed = folder / f"{name}.gz"
    return gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else (folder / name).open()


def written(name: str, columns: Iterable[str], counts: Counts) -> None:
    """Write *counts* in the order of their keys, numbers by size."""
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*columns, "count"])
        for key, count in sorted(counts.items(), key=lambda one: list(map(_place, one[0]))):
            lines.writerow([*key, count])


def _place(text: str) -> tuple[float, str]:
    return (float(text), "") if text.lstrip("-").isdigit() else (float("inf"), text)


def people(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the persons of the census."""
    columns = "age workclass fnlwgt education education_num marital_status occupation relationship"
    more = "race sex capital_gain capital_loss hours_per_week native_country income"
    for name in ("adult_train.csv", "adult_test.csv"):
        with opened(folder, name) as file:
            for cells in csv.reader(file, skipinitialspace=True):
                if cells:
                    yield dict(zip(f"{columns} {more}".split(), cells, strict=True))


def main(folder: Path) -> None:
    """Write every file of this folder anew."""
    persons = list(people(folder))
    for name, columns in {
        "marital_income.csv": ("marital_status", "income"),
        "education_income.csv": ("education_num", "income"),
        "age_hours.csv": ("age", "hours_per_week"),
    }.items():
        counted: Counts = Counter(tuple(one[c].rstrip(".") for c in columns) for one in persons)
        written(name, columns, counted)
    with opened(folder, "flights_2015.csv") as file:
        flights = list(csv.DictReader(file))
    months: Counts = Counter((one["fl_date"][:7], one["unique_carrier"]) for one in flights)
    written("flights_by_month.csv", ("month", "carrier"), months)
    taxied = (one for one in flights if one["taxi_out"])
    minutes: Counts = Counter(
        (one["unique_carrier"], str(int(float(one["taxi_out"])))) for one in taxied
    )
    written("flights_taxi_out.csv", ("carrier", "minutes"), minutes)
    with opened(folder, "msnbc_sessions.seq") as file:
        lines = [line.split() for line in list(file)[7:]]
    views: Counts = Counter((str(min(len(pages), 200)),) for pages in lines if pages)
    written("visits_page_views.csv", ("page_views",), views)
    with opened(folder, "road_accidents_lnglat.csv") as file:
        places = [(float(a), float(b)) for a, b in list(csv.reader(file))[1:] if a and b]
    west, south, east, north = BOX
    cells: Counts = Counter(
        (
            str(int((lat - south) / (north - south) * CELLS)),
            str(int((lng - west) / (east - west) * CELLS)),
        )
        for lng, lat in places
    )
    written("accidents_grid.csv", ("row", "column"), cells)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
