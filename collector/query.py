"""One question from parameters to answer: pick epochs, read tallies, merge, answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from client_sdk.epoch import ONCE, epoch_label, epoch_of, epochs_between
from client_sdk.errors import InvalidTallyError
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.metric import Metric

from .analytics import Answer, answer
from .errors import DamagedTallyError, QueryError, TallyOverflowError
from .lateness import LAST_VERSION, version_of
from .segments import matches
from .storage import Storage
from .tally import merge

DEFAULT_DAYS: Final = 30  # days of a window whose beginning is not given
MAX_EPOCHS: Final = 10_000  # epochs of one window: a year of hours
DEFAULT_ALPHA: Final = 0.05
LEAST_ALPHA, MOST_ALPHA = 1e-6, 0.5  # 1 - level
_NUMBER: Final = re.compile(r"[0-9]{0,20}(\.[0-9]{1,40})?(?<=[0-9])([eE][+-]?[0-9]{1,3})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIRST_DAY: Final = date(1970, 1, 1)  # epoch day 0
LAST_DAY: Final = date(2999, 12, 31)  # far from where dates end, so that sums of them do not fail


@dataclass(frozen=True)
class Question:
    """What is asked of one metric: epochs, a segment (dimension to value), and 1 - level.

    ``version`` is one that is published, so that its answer never changes; without one, what has
    been folded so far counts, and the same question may be answered otherwise tomorrow.
    """

    metric: Metric
    epochs: Sequence[int]
    segment: Mapping[str, str]
    alpha: float
    is_open: bool  # the last epoch is still running
    version: int | None

    @property
    def window(self) -> tuple[str, str]:
        """The labels of the first and the last epoch."""
        every = self.metric.every
        return epoch_label(every, self.epochs[0]), epoch_label(every, self.epochs[-1])


class Reply(NamedTuple):
    """An answer and what it rests on."""

    answer: Answer
    n: int  # reports
    late_share: float  # of these reports, those of a class of lateness above 0


def ask(metric: Metric, parameters: Mapping[str, str], now: float) -> Question:
    """Read a question from text *parameters*: from, to, alpha, version, segment.<dimension>.

    Raises: QueryError: names the parameter at fault and what would work.
    """
    today = datetime.fromtimestamp(now, UTC).date()
    last = _date(parameters, "to", today)
    first = _date(parameters, "from", max(last - timedelta(days=DEFAULT_DAYS - 1), FIRST_DAY))
    if first > last:
        raise QueryError(f"from={first}: must not be after to={last}")
    if (last - first).days > MAX_EPOCHS:
        raise QueryError(f"from={first}: must leave at most {MAX_EPOCHS} epochs before to")
    epochs = epochs_between(metric.every, first, last)
    if not epochs:
        raise QueryError(f"from={first}: leaves no whole epoch of {metric.every} up to to={last}")
    if len(epochs) > MAX_EPOCHS:
        raise QueryError(f"from={first}: must leave at most {MAX_EPOCHS} epochs")
    segment = {
        name.removeprefix("segment."): value
        for name, value in parameters.items()
        if name.startswith("segment.")
    }
    _require_segment(metric, segment)
    running = metric.every == ONCE or epochs[-1] >= epoch_of(metric.every, now)
    version = _version(parameters, version_of(metric.every, epochs, now))
    return Question(metric, epochs, segment, _alpha(parameters), running, version)


def reply(question: Question, storage: Storage) -> Reply:
    """Return the answer and what it rests on.

    Raises: StorageUnavailableError: the store does not answer.
            DamagedTallyError: what is stored cannot have come from reports of this metric.
    """
    metric = question.metric
    stored = {
        cell: shards
        for cell, shards in storage.tallies(
            metric.digest, question.epochs, question.version
        ).items()
        if matches(cell.segment, question.segment)
    }
    size = metric.mechanism.tally_size
    try:
        n, tally = merge([vector for shards in stored.values() for vector in shards], size)
        _require_sane(metric, n)
        late = [vector for cell, shards in stored.items() if cell.lateness for vector in shards]
        late_n, _ = merge(late, size)
        return Reply(answer(metric, tally, n, question.alpha), n, late_n / n if n else 0.0)
    except TallyOverflowError:
        raise QueryError(
            "from: leaves more reports than can be added up; take fewer epochs"
        ) from None
    except (InvalidTallyError, ArithmeticError) as error:
        rule = "has a tally that no reports can give; run hearsay fsck"
        raise DamagedTallyError(f"metric={metric.name}: {rule}") from error


def _require_sane(metric: Metric, n: int) -> None:
    if n < 0:
        raise InvalidTallyError(f"metric={metric.name}: n={n}: must not be negative")
    if n > MAX_REPORTS:
        raise QueryError(
            f"from: leaves {n} reports, must be at most {MAX_REPORTS}; take fewer epochs"
        )


def _version(parameters: Mapping[str, str], published: int | None) -> int | None:
    """Return the version asked for, or else the one that is *published*."""
    text = parameters.get("version")
    if text is None:
        return published
    if text not in map(str, range(LAST_VERSION + 1)):
        raise QueryError(f"version: must be from 0 to {LAST_VERSION}")
    if published is None or int(text) > published:
        rule = "none yet" if published is None else f"at most {published}"
        raise QueryError(f"version={text}: is not published; published is {rule}")
    return int(text)


def _date(parameters: Mapping[str, str], name: str, default: date) -> date:
    text = parameters.get(name)
    if text is None:
        return default
    try:
        if not _DATE.fullmatch(text):  # other digits than ours, and short forms, are dates too
            raise ValueError
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise QueryError(f"{name}: must be a date such as 2026-01-31") from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise QueryError(f"{name}={day}: must be from {FIRST_DAY} to {LAST_DAY}")
    return day


def _alpha(parameters: Mapping[str, str]) -> float:
    text = parameters.get("alpha")
    if text is None:
        return DEFAULT_ALPHA
    # float also takes 0_1, digits of any script, and spaces around them
    alpha = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise QueryError(f"alpha: must be a number from {LEAST_ALPHA:f} to {MOST_ALPHA}")
    return alpha


def _require_segment(metric: Metric, segment: Mapping[str, str]) -> None:
    for dimension, value in segment.items():
        known = metric.segments.get(dimension)
        if known is None:
            dimensions = ", ".join(metric.segments) or "none"
            raise QueryError(f"segment: this metric has the dimensions: {dimensions}")
        if value not in known:
            raise QueryError(f"segment.{dimension}: must be one of {', '.join(known)}")
