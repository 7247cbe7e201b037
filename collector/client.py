"""Ask a collector from a program or a notebook: one question, one result with its intervals.

>>> client = Client("https://telemetry.example.org", token)
>>> client.query("theme", verb="top_k", date_range="28d", options={"k": 5})

Importing this loads requests and the standard library; charts and tables load more when asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import requests

from client_sdk.privacy.wording import counted

from .core.errors import (
    AnswerError,
    ConfigError,
    ForeignFormError,
    MissingPackageError,
    UnreachableError,
)
from .core.settings import is_loopback

if TYPE_CHECKING:
    from .analytics.rows import Row

T = TypeVar("T")
PATIENCE: Final = 60.0  # seconds for an answer
_RARE: Final = ("raw", "shrunken", "fakes_to_flip", "certainty")  # columns of few answers
PAGE: Final = 10_000  # rows asked for at once, the most that a collector gives
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True)
class Result:
    """The answer to one question.  Of each row without a number ``reason`` says why.

    ``rows`` and ``meta`` are as the collector sent them; shares are parts of 1.
    """

    rows: tuple[Mapping[str, Any], ...]
    meta: Mapping[str, Any]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the rows."""
        return iter(self.rows)

    @property
    def verb(self) -> str:
        """What was asked."""
        return str(self.meta["verb"])

    @property
    def title(self) -> str:
        """The title of the metric; of several, what is asked of which."""
        titles = " and ".join(metric["title"] for metric in self.meta["metrics"])
        return titles if len(self.meta["metrics"]) == 1 else f"{self.verb.title()} of {titles}"

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the verb tells beside its rows, such as where the cells of a map are."""
        facts: Mapping[str, Any] = self.meta.get("facts", {})
        return facts

    def records(self) -> list[dict[str, Any]]:
        """Return the rows flat: a key a dimension, then those of the number; the same in each.

        What few answers have (``raw``, ``shrunken``, ``fakes_to_flip``, ``certainty``) is there
        where some row has it.  Those of a map have the degrees of their cells: the middle, then
        the four ends.
        """
        from .analytics.rows import column_of
        from .rendering.places import COLUMNS, numbers_of_place, places_of

        names = dict.fromkeys(name for row in self.rows for name in row["dimensions"])
        places = {k: numbers_of_place(box) for k, box in places_of(self.facts).items()}
        few = (k for k in _RARE if all(r.get(k) is None for r in self.rows))
        absent = {"dimensions", "notes", "reason", *few}
        dimensions = {name: column_of(name, COLUMNS if places else ()) for name in names}
        return [
            {
                **{column: row["dimensions"].get(k) for k, column in dimensions.items()},
                **places.get(row["dimensions"].get("item", ""), {}),
                **{name: value for name, value in row.items() if name not in absent},
                "note": typed.note,
                "reason": typed.reason,
            }
            for row, typed in zip(self.rows, self.typed(), strict=True)
        ]

    @property
    def warnings(self) -> list[str]:
        """What must be known beside the numbers, in words; ``meta`` has the code of each."""
        from .core.remarks import read

        return [str(read(warning)) for warning in self.meta["warnings"]]

    def to_pandas(self) -> Any:
        """Return a DataFrame of ``records``; a ``time`` that is a day or hour is a date of pandas.

        Raises: MissingPackageError: pandas is not installed.
        """
        pandas = _imported("pandas")
        frame = pandas.DataFrame(self.records())
        if "time" in frame:
            times = pandas.to_datetime(frame["time"], errors="coerce", format="ISO8601", utc=True)
            frame["time"] = frame["time"] if times.isna().any() else times
        return frame

    def to_arrow(self) -> Any:
        """Return an Arrow table of ``records``.

        Raises: MissingPackageError: pyarrow is not installed.
        """
        return _imported("pyarrow").Table.from_pylist(self.records())

    def to_parquet(self, path: str | Path) -> None:
        """Write the Arrow table to the file at *path*.

        Raises: MissingPackageError: pyarrow is not installed.
        """
        _imported("pyarrow.parquet").write_table(self.to_arrow(), path)

    def to_csv(self) -> str:
        """Return comma-separated values with a header, safe to open in a spreadsheet."""
        from .rendering.tables import csv_of

        return csv_of(self.typed(), self.facts)

    def to_geojson(self) -> str:
        """Return the cells of a map with their numbers, as programs of maps read them.

        Raises: QueryError: it is no answer of the verb map.
        """
        from .rendering.places import geojson_of

        return geojson_of(self.typed(), self.facts)

    def to_svg(self, title: str | None = None) -> str:
        """Return the chart that such an answer deserves, as an SVG document."""
        from .analytics.rows import Chart
        from .rendering.charts import ChartOptions, chart_of

        prefix = f"h{hashlib.sha256(json.dumps(self.records()).encode()).hexdigest()[:12]}"
        options = ChartOptions(prefix, standalone=True)
        words = self.title if title is None else title
        return chart_of(Chart(self.meta["chart"]), self.typed(), words, options, facts=self.facts)

    def to_html(self) -> str:
        """Return the chart, with the table of all numbers and what they rest on below it."""
        from html import escape

        from .rendering.tables import table_of

        said = (counted(self.meta["n"], "report"), *self.warnings)
        notes = "".join(f"<p>{escape(text)}</p>" for text in said)
        table = table_of(self.typed(), self.title, facts=self.facts)
        return (
            f"<div>{self.to_svg()}{notes}<details><summary>Table</summary>{table}</details></div>"
        )

    def typed(self) -> list[Row]:
        """Return the rows as the collector's own type, for its charts and tables."""
        from .analytics.rows import Row
        from .core.remarks import read

        known = {*Row.__struct_fields__} - {"notes", "refusal"}  # a newer collector may tell more
        return [
            Row(
                **{name: row[name] for name in row if name in known},
                notes=tuple(map(read, row["notes"])),
                refusal=row["reason"] and read(row["reason"]),
            )
            for row in self.rows
        ]

    def _repr_html_(self) -> str:
        """Show the answer in a notebook."""
        return self.to_html()


class Client:
    """Asks one collector, with a token that may read.  Safe to keep; one connection."""

    def __init__(self, url: str, token: str, session: requests.Session | None = None) -> None:
        """Ask the collector at *url* with the read *token*.

        Args:   session: how to speak HTTP, such as through a proxy; a new one if left out.
        Raises: ConfigError: not https (plain http only to this machine), or no token.
        """
        parts = urlsplit(url)
        local = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if (parts.scheme != "https" and not local) or not parts.hostname or parts.username:
            rule = "must begin with https:// (http:// only to this machine), and name no user"
            raise ConfigError("url", f"{parts.scheme}://{parts.hostname}", rule)
        if not token.isascii() or not token.isprintable() or not token.strip():
            raise ConfigError("token", "***", "must be a read token")
        self._url, self._token = url.rstrip("/"), token
        self._session = session or requests.Session()

    def __repr__(self) -> str:
        """Show where it asks, and never the token."""
        return f"Client({self._url!r})"

    def __enter__(self) -> Client:
        """Close the connection at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def metrics(self) -> list[dict[str, Any]]:
        """Return the metrics that the token may see, with all that is declared of each.

        Raises: AnswerError, UnreachableError.
        """
        metrics: list[dict[str, Any]] = self._part(self._ask("GET", "/v1/metrics"), "metrics", list)
        return metrics

    def query(self, metrics: str | Sequence[str], verb: str = "estimate", **fields: Any) -> Result:
        """Ask one question and return its result, all rows of it unless ``pagination`` is given.

        Args:   metrics: one name or several.  fields: date_range, dimensions, filters, order_by,
                alpha, postprocess, version, definition, options and so on, as POST /v1/query takes
                them.
        Raises: AnswerError: the collector refused; its text says where and what would work.
                UnreachableError: there was no answer.
        """
        question = question_of(metrics, verb, fields)
        if "pagination" in fields:
            answer = self._ask("POST", "/v1/query", question)
            return Result(tuple(self._rows(answer)), self._part(answer, "meta", dict))
        rows: list[dict[str, Any]] = []
        while True:
            page = {"pagination": {"limit": PAGE, "offset": len(rows)}}
            answer = self._ask("POST", "/v1/query", question | page)
            part = self._rows(answer)
            rows += part
            if len(part) < PAGE:
                return Result(tuple(rows), self._part(answer, "meta", dict))

    def note(self, at: str, text: str, **about: str) -> dict[str, Any]:
        """Keep a note, such as a release, and return it as it was kept.

        Args:   at: the day, such as 2026-11-20.  about: metric, app or url, if any.
        Raises: AnswerError: the collector refused; its text says why.  UnreachableError.
        """
        note = self._ask("POST", "/v1/notes", {"at": at, "text": text, **about})
        for name in ("at", "text"):
            self._part(note, name, str)
        return dict(note)

    def recent(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the last reports in words that a development collector accepted, oldest first.

        Args:   after: the number of the last one that is known.
        Raises: AnswerError: it is no development collector (404).  UnreachableError.
        """
        path = f"/v1/development/reports?after={after}"
        return self._rows(self._ask("GET", path), "reports")

    def link(self, metrics: str | Sequence[str], verb: str = "estimate", **fields: Any) -> str:
        """Return an address that gives the same answer to whoever has a token of their own."""
        text = json.dumps(question_of(metrics, verb, fields), separators=(",", ":"))
        return f"{self._url}/v1/query?q={quote(text)}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            response = self._session.request(
                method,
                self._url + path,
                data=None if body is None else json.dumps(body),
                headers=_JSON,
                auth=self._authorize,
                timeout=PATIENCE,
                allow_redirects=False,  # the token is for this collector
            )
            answer = response.json()
        except (ValueError, RecursionError):  # the first also of numbers that are too long
            rule = f"answered {response.status_code} with no JSON; is it a collector?"
            raise UnreachableError(f"url={self._url}: {rule}") from None
        except requests.RequestException as error:
            rule = f"did not answer: {type(error).__name__}"
            raise UnreachableError(f"url={self._url}: {rule}") from error
        if response.status_code not in (HTTPStatus.OK, HTTPStatus.CREATED):
            problem = answer if isinstance(answer, dict) else {}
            is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
            raise AnswerError(response.status_code, problem, self._url if is_refused else "")
        return answer

    def _rows(self, answer: Any, name: str = "rows") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._part(answer, name, list)
        if not all(isinstance(row, dict) for row in rows):
            raise self._foreign()
        return rows

    def _part(self, answer: Any, name: str, form: type[T]) -> T:
        """Return what *answer* has under *name*.  Raises ForeignFormError: it has not."""
        part = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(part, form):
            raise self._foreign()
        return part

    def _foreign(self) -> ForeignFormError:
        return ForeignFormError(f"url={self._url}: the answer has another form than Hearsay's")

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Set the token; as a header alone it would give way to a password in ~/.netrc."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def question_of(
    metrics: str | Sequence[str], verb: str, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a question as POST /v1/query takes it."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    return {"metrics": names, "verb": verb, **fields}


def _imported(package: str) -> Any:
    """Return *package*, which the extra ``analysis`` brings."""
    try:
        return import_module(package)
    except ImportError as error:
        rule = "is not installed; pip install 'hearsay-collector[analysis]', or take records()"
        raise MissingPackageError(f"{package.partition('.')[0]}: {rule}") from error
