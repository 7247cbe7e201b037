"""Publish a metric: read its tallies, write files and the data sheet that goes with them.

Files are written beside their place and then moved there, the data sheet last: where there is a
sheet, there are whole data.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from ...analytics.suppression import merge_small, withheld
from ...core.catalog import Catalog
from ...core.errors import ConfigError, PrunedError, QueryError
from ...rendering.tables import inert
from ...storage.protocols import TallyStore
from .. import Plan, plan, question, without_pruned
from ..basis import excluded_in
from ..exclusions import ExcludedCounts, remarks_on
from ..plan import Reading
from ..reader import Reader
from ..reading import naming
from ..request import TOGETHER
from .data_sheet import facts_of, markdown
from .release import Columns, Part, parts_of, records, refusal, table

CSV, PARQUET = "csv", "parquet"


@dataclass(frozen=True)
class ReleaseRequest:
    """What is to be released: a metric, a window, and in which form.

    ``parameters`` are from, to, alpha and version as text, those that were given.  ``by`` are
    dimensions that become columns.  ``size`` is the number of records, None for the histogram only.
    ``small_cells`` is what becomes of groups with too few reports, as of a question: with
    ``withhold`` they are left out, and the data sheet says how many reports that are.
    """

    metric: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    size: int | None = None
    seed: int = 0
    form: str = CSV
    small_cells: Literal["other", "withhold"] = TOGETHER


def release(
    request: ReleaseRequest, catalog: Catalog, storage: TallyStore, now: float, folder: Path
) -> list[Path]:
    """Write what *request* asks for into *folder* and return the files, the data sheets last.

    Raises: QueryError: the metric has no histogram or too few reports, or a parameter is wrong.
            UnknownMetricError, StorageUnavailableError, DamagedTallyError.
            ConfigError: the folder cannot be written.
    """
    metric = catalog.metric(request.metric)
    if reason := refusal(metric, records=request.size is not None):
        raise QueryError("metric", reason, metric.address)
    query = question(metric, request.parameters, now)
    fields = {"dimensions": list(request.by), "small_cells": request.small_cells}
    resolved = without_pruned(plan(msgspec.structs.replace(query, **fields), catalog, now), storage)
    parts, left_out, gone = _read(resolved, Reader(storage))
    data = {f"{metric.name}.histogram.{request.form}": table(parts)}
    drawn: dict[str, int] = {}
    if request.size is not None:
        data[f"{metric.name}.records.{request.form}"] = records(parts, request.size, request.seed)
        drawn = {"records": request.size, "seed": request.seed}
    (reading,) = resolved.readings
    said = remarks_on(resolved.excluded, metric, reading.epochs, gone)
    excluded = {"exclusions": list(map(str, said))} if said else {}
    rests_on = {"left_out_reports": left_out, **_rests_on(reading), **excluded}
    sheet = facts_of(parts, rests_on, _described(data), drawn, query.alpha)
    return _write_all(folder, metric.name, data, sheet, request.form)


def _read(plan: Plan, reader: Reader) -> tuple[tuple[Part, ...], int, ExcludedCounts]:
    """Return the histograms of the current definition of the metric, and the reports in none.

    And what exclusions have taken out.
    """
    (reading,) = plan.readings
    metric, is_whole = reading.metric, plan.query.small_cells == TOGETHER
    if plan.notes:
        raise PrunedError("date_range", f"{plan.notes[0]}; take later days")
    with naming(metric):
        read = reader.slices(plan, reading, metric)
        reader.require_unpruned(plan)
        if not read:
            raise QueryError("metric", "no reports in this window", metric.address)
        ((slices, *_), _) = merge_small([read], metric, together=is_whole)
        few = [] if is_whole else withheld(slices)
        kept = slices if is_whole else [part for part in slices if part.refusal is None] or slices
        few_reports = sum(slice_.n for slice_ in few)
        return parts_of(kept, plan.query.alpha), few_reports, excluded_in(read)


def _rests_on(reading: Reading) -> dict[str, object]:
    first, last = reading.window
    return {
        "window": {"from": first, "to": last, "epochs": len(reading.epochs)},
        "window_open": reading.is_open,
        "version": reading.version,
    }


def _described(data: Mapping[str, Columns]) -> dict[str, str]:
    """Return what each file holds, by its name."""
    kinds = {"histogram": "the histogram, a row a cell", "records": "synthetic records, a row each"}
    return {name: next(kinds[kind] for kind in kinds if f".{kind}." in name) for name in data}


def _write_all(
    folder: Path, name: str, data: Mapping[str, Columns], sheet: Mapping[str, object], form: str
) -> list[Path]:
    page = json.dumps(sheet, indent=2, ensure_ascii=False) + "\n"
    texts = {f"{name}.sheet.json": page, f"{name}.sheet.md": markdown(sheet)}
    write = partial(_write_parquet, sheet) if form == PARQUET else _write_csv
    with _refusals_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return [
            *(_placed(folder / file, partial(write, columns)) for file, columns in data.items()),
            *(_placed(folder / file, partial(_write_text, text)) for file, text in texts.items()),
        ]


@contextmanager
def _refusals_named(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into an error that names *folder*."""
    try:
        yield
    except OSError as error:
        rule = f"cannot be written: {error.strerror or 'unknown error'}"
        raise ConfigError("out", folder, rule) from error


def _placed(path: Path, write: Callable[[Path], object]) -> Path:
    """Return *path* after *write* has filled it; a file there is replaced, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, "utf-8")


def _write_csv(columns: Columns, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_cell, columns))
        for cells in zip(*columns.values(), strict=True):
            writer.writerow(map(_cell, cells))


def _cell(value: object) -> object:
    """Return what a spreadsheet shows as *value*, and does not run."""
    return inert(value) if isinstance(value, str) else value


def _write_parquet(sheet: Mapping[str, object], columns: Columns, path: Path) -> None:
    """Write *columns* with the data sheet in the file, where it cannot get lost."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: list(values) for name, values in columns.items()})
    metadata = {"hearsay": json.dumps(sheet, ensure_ascii=False)}
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
