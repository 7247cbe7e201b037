"""One question from parameters to answer: pick epochs, read tallies, merge, answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from client_sdk.epoch import ONCE, epoch_label, epoch_of, epochs_between
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.metric import Metric

from .analytics import Answer, answer
from .errors import QueryError, TallyOverflowError
from .segments import matches
from .storage import Storage
from .tally import merge

DEFAULT_DAYS: Final = 30  # days of a window whose beginning is not given
MAX_EPOCHS: Final = 10_000  # epochs of one window: a year of hours
DEFAULT_ALPHA: Final = 0.05
FIRST_DAY: Final = date(1970, 1, 1)  # epoch day 0
LAST_DAY: Final = date(2999, 12, 31)  # far from where dates end, so that sums of them do not fail


@dataclass(frozen=True)
class Question:
    """What is asked of one metric: epochs, a segment (dimension to value), and 1 - level."""

    metric: Metric
    epochs: Sequence[int]
    segment: Mapping[str, str]
    alpha: float
    is_open: bool  # the last epoch is still running

    @property
    def window(self) -> tuple[str, str]:
        """The labels of the first and the last epoch."""
        every = self.metric.every
        return epoch_label(every, self.epochs[0]), epoch_label(every, self.epochs[-1])


def ask(metric: Metric, parameters: Mapping[str, str], now: float) -> Question:
    """Read a question from text *parameters*: from, to, alpha, segment.<dimension>.

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
    return Question(metric, epochs, segment, _alpha(parameters), running)


def reply(question: Question, storage: Storage) -> tuple[Answer, int]:
    """Return the answer and the number of reports it rests on.

    Raises: StorageUnavailableError: the store does not answer.
    """
    metric = question.metric
    stored = storage.tallies(metric.digest, question.epochs)
    vectors = [
        vector
        for (_, segment), shards in stored.items()
        if matches(segment, question.segment)
        for vector in shards
    ]
    try:
        n, tally = merge(vectors, metric.mechanism.tally_size)
    except TallyOverflowError:
        raise QueryError(
            "from: leaves more reports than can be added up; take fewer epochs"
        ) from None
    if n > MAX_REPORTS:
        raise QueryError(
            f"from: leaves {n} reports, must be at most {MAX_REPORTS}; take fewer epochs"
        )
    return answer(metric, tally, n, question.alpha), n


def _date(parameters: Mapping[str, str], name: str, default: date) -> date:
    text = parameters.get(name)
    if text is None:
        return default
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise QueryError(f"{name}: must be a date such as 2026-01-31") from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise QueryError(f"{name}={day}: must be from {FIRST_DAY} to {LAST_DAY}")
    return day


def _alpha(parameters: Mapping[str, str]) -> float:
    text = parameters.get("alpha")
    try:
        alpha = DEFAULT_ALPHA if text is None else float(text)
    except ValueError:
        alpha = 0.0
    if not 1e-6 <= alpha <= 0.5:
        raise QueryError("alpha: must be a number from 0.000001 to 0.5")
    return alpha


def _require_segment(metric: Metric, segment: Mapping[str, str]) -> None:
    for dimension, value in segment.items():
        known = metric.segments.get(dimension)
        if known is None:
            dimensions = ", ".join(metric.segments) or "none"
            raise QueryError(f"segment: this metric has the dimensions: {dimensions}")
        if value not in known:
            raise QueryError(f"segment.{dimension}: must be one of {', '.join(known)}")
