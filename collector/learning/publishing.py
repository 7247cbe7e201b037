"""The folder of a pass: its state, and the signed files that devices fetch.

| file | what it is |
|---|---|
| ``pass.json`` | the state: all steps so far |
| ``round-0001.json`` and so on | the public model of each round, never changed once it is there |
| ``model.json`` | what was learned, after the last step |
| ``current.json`` | the last of all these |

Everything in it is computed from reports, so any web server may serve the folder as it is.  A model
that is published stays what it is: devices may have used it, so a state that was put back and would
publish another under the same number is refused.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from client_sdk.core.errors import InvalidParameterError
from client_sdk.learning.model import Model
from client_sdk.learning.rounds import learning, signed
from client_sdk.registry.metric import ROUND as DIMENSION
from client_sdk.registry.metric import Metric
from client_sdk.wire.ed25519 import public_of

from ..analytics.verb import NOT_SAID
from ..core.catalog import Catalog
from ..core.errors import ConfigError, PrunedError, QueryError
from ..core.files import put_text
from ..query import Query, plan, without_pruned
from ..query.basis import or_emptied
from ..query.reader import Reader
from ..query.reading import naming
from ..storage.protocols import TallyStore
from .reading import NOTHING, LeftOut
from .rounds import DAMAGED, Pass, Reports, as_json, current_model, from_json

STATE: Final = "pass.json"
CURRENT: Final = "current.json"
UNNAMED: Final = 0  # the round of reports that name none


class Folder:
    """Where one metric is learned.  One process at a time writes; others wait."""

    def __init__(self, path: Path, metric: Metric) -> None:
        """Learn *metric* in the folder *path*, which need not be there yet."""
        self.path, self.metric = path, metric

    def state(self) -> Pass:
        """Return the pass so far; a new one if there is none.

        Raises: QueryError: it is damaged, or of another metric.
        """
        file = self.path / STATE
        if not file.exists():
            return Pass(self.metric)
        try:
            form = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise QueryError("file", f"cannot be read: {error.strerror}", file) from error
        except (ValueError, RecursionError):
            raise QueryError("file", DAMAGED, file) from None
        return from_json(form, self.metric)

    def begun(self) -> Pass:
        """Return the pass so far.  Raises QueryError: none has begun here."""
        if not (self.path / STATE).exists():
            rule = f"has no {STATE}; hearsay learn rounds step begins a pass"
            raise QueryError("folder", rule, self.path)
        return self.state()

    def step(
        self, reports: Mapping[int, Reports], seed: bytes, left_out: LeftOut = NOTHING
    ) -> Pass:
        """Take the step of the current round, if its reports are there, and publish the next.

        In a new folder it publishes the first round.  Where exclusions changed, the round may have
        to count afresh: then there is no step, and the state is written.
        Args:   reports: those of the store, by the round that they name.  seed: the secret key.
                left_out: what was taken out of them.
        Raises: QueryError: too few reports, the rounds are over, or the state is an older one.
                InvalidParameterError: the key is another than the registry names.
                ConfigError: the folder cannot be written.
        """
        _require_key(self.metric, seed)
        with self._alone():
            state = self.state()
            if not (self.path / STATE).exists():
                state = state.begun(reports, left_out)
            elif state.is_over:
                raise QueryError("metric", "every round had its step", self.metric.name)
            else:
                if not (self.path / _name(state.number + 1, state)).exists():
                    self._publish(state, seed)  # it may have been cut short
                if (afresh := state.restarted(reports, left_out)) is state:
                    afresh = state.stepped(reports, left_out)
                state = afresh
            self._require_new(signed(current_model(state), seed), state)
            put_text(self.path / STATE, json.dumps(as_json(state)) + "\n", "folder")
            self._publish(state, seed)
            return state

    def _publish(self, state: Pass, seed: bytes) -> None:
        model = signed(current_model(state), seed)
        self._require_new(model, state)
        for name in (_name(state.number, state), CURRENT):
            put_text(self.path / name, model.text(), "folder")

    def _require_new(self, model: Model, state: Pass) -> None:
        """Raise QueryError if another *model* is published under its number."""
        file = self.path / _name(state.number, state)
        if file.exists() and file.read_text(encoding="utf-8") != model.text():
            rule = f"is published with other coefficients; {STATE} is an older one"
            raise QueryError(file.name, f"{rule}: put the last one back")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with ExitStack() as held:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                lock = held.enter_context(open(self.path / "pass.lock", "w", encoding="ascii"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError as error:
                rule = f"cannot be written: {error.strerror}"
                raise ConfigError("folder", self.path, rule) from error
            yield


def _require_key(metric: Metric, seed: bytes) -> None:
    """Raise InvalidParameterError unless *seed* is the secret of the key in the registry."""
    if public_of(seed).hex() != learning(metric).key:
        rule = (
            f"must be {public_of(seed).hex()}, the public key of this file: devices heed no other"
        )
        raise InvalidParameterError("learning.key", learning(metric).key, rule)


def _name(number: int, state: Pass) -> str:
    """Return the file of round *number*, or of what is learned after the last."""
    last = learning(state.metric).rounds
    return f"round-{number:04}.json" if number <= last else "model.json"


def reports_by_round(
    name: str, catalog: Catalog, storage: TallyStore, now: float
) -> tuple[dict[int, Reports], LeftOut]:
    """Return all reports of the metric called *name* by the round that they name.

    And what operators have taken out of them.

    Raises: UnknownMetricError, PrunedError, StorageUnavailableError, DamagedTallyError.
            InvalidParameterError: it learns nothing.
    """
    metric = catalog.metric(name)
    learning(metric)
    query = Query(metrics=[metric.address], verb=metric.domain.verb, dimensions=[DIMENSION])
    reader = Reader(storage)
    resolved = without_pruned(plan(query, catalog, now), reader)
    if resolved.notes:
        raise PrunedError("metric", f"{resolved.notes[0]}; a pass needs all reports", name)
    (reading,) = resolved.readings
    with naming(metric):
        slices = reader.slices(resolved, reading, metric)
        whole = or_emptied(slices, resolved, reading, metric, reader)
        reader.require_unpruned(resolved)
    numbers = {part.dimensions[DIMENSION]: part for part in slices}
    reports = {
        UNNAMED if label == NOT_SAID else int(label): Reports(part.n, tuple(map(int, part.tally)))
        for label, part in numbers.items()
    }
    return reports, LeftOut.of(resolved, whole)
