"""One gradient a device and life, at the public model of one round: private stochastic gradients.

>>> current = Round(client, "ranker", text)  # a model file, the same for everybody
>>> current.record({"age": 41, "sex": "female"}, True)

The file is signed by who publishes the models; the key is in the registry.  A device cannot be
asked twice: the metric is one of ``once``, so its ledger has room for one report, of one round, for
life.  Which round that is says in the clear which model the device had when it recorded: so an
application records at a moment that depends on neither the row nor its label.

No file, whatever it holds, raises into the application: a server could stop it by a file.

Whatever coefficients a server sends, the report is randomized by the same mechanism, which is ε-LDP
for every vector: the worst model learns no more of a row than ε allows, and as there is one report,
nothing is added up.  A model is checked before a row is looked at, and every row gives a gradient
then: what the server sends does not make it depend on the row whether there is a report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from ..core.base64url import is_hex
from ..core.dataclass import dataclass, replace
from ..core.epoch import ONCE
from ..core.errors import InvalidParameterError
from ..core.stats import warn
from ..core.typing import TYPE_CHECKING, Final, Protocol
from ..registry.types.gradient import GradientDomain, learning_of
from .model import Model, ModelSource, read, wrong

if TYPE_CHECKING:
    from ..registry.contract import Registry
    from ..registry.metric import Metric

ROUND, FINAL = "round", "rounds"  # kinds: what a device takes part in, and what came of it
_SIGNATURE: Final = "signature"
_SIZE: Final = 64  # bytes of a signature
_PURPOSE: Final = b"hearsay public model\n"  # begins what is signed, and nothing else that is
_SLACK: Final = 1 + 1e-9  # of a radius, which floats round


class RecordingClient(Protocol):
    """What records gradients: a client."""

    @property
    def registry(self) -> Registry:
        """The registry by which it records."""

    def record(self, name: str, value: object, /) -> None:
        """Report *value* of the metric called *name*."""


@dataclass(frozen=True)
class PublicModel:
    """The coefficients that everybody in round ``number`` computes a gradient at."""

    number: int
    theta: tuple[float, ...]


class State(StrEnum):
    """What a file says that there is to do.  Only at an open round is anything recorded."""

    OPEN = "open"  # the file is the model of a round
    OVER = "over"  # it is what was learned, for ``predict``
    ABSENT = "absent"  # there is none yet
    REFUSED = "refused"  # ``problem`` says why; the developer is warned


class Round:
    """One round of the metric called *name*, for a client that may take part in it."""

    def __init__(self, client: RecordingClient, name: str, model: ModelSource | None) -> None:
        """Read the *model* file of a round; None, or a path without a file, is none yet.

        Raises: UnknownMetricError.  InvalidParameterError: the metric learns nothing.
        """
        metric = client.registry.metric(name)
        self._client, self._name, self._learning = client, name, learning(metric)
        self.model: PublicModel | None = None  # of a round that is open
        self.problem: str | None = None  # of a file that is refused
        self.state = State.ABSENT
        if model is None:
            return
        try:
            known = read(model)
            if known.kind == FINAL:
                final_model(metric, known)
                self.state = State.OVER
            else:
                self.model, self.state = public_model(metric, known), State.OPEN
        except InvalidParameterError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                self.state, self.problem = State.REFUSED, str(error)
                warn(f"{name}: {self.problem}; nothing is recorded")

    def record(self, features: Mapping[str, object], label: object) -> None:
        """Report the gradient of a row, if this device has never reported of this metric.

        Does nothing unless the round is open.  It never raises for what a row is: what is no row
        is counted as an invalid value, which a ``strict`` client raises.  A feature that is left
        out, or None, adds nothing to the row.
        """
        if self.model is not None:
            self._client.record(self._name, self.value(features, label))

    def value(self, features: Mapping[str, object], label: object) -> object:
        """Return what ``Client.record`` takes for a row; None if it is no row, or no open round."""
        if self.model is None:
            return None
        try:
            row, target = self._learning.row(features), self._learning.target(label)
        except Exception:  # noqa: BLE001 - an application's own types may raise anything
            return None  # the metric refuses and counts it
        return {
            "round": self.model.number,
            "gradient": gradient(self._learning, row, target, self.model.theta),
        }


def gradient(
    domain: GradientDomain, row: Sequence[float], target: float, theta: Sequence[float]
) -> list[float]:
    """Return the gradient of a *row*'s loss at *theta*, finite and within the domain's bound."""
    error = domain.prediction(row, theta) - target
    return [error * x for x in row]


def learning(metric: Metric) -> GradientDomain:
    """Return what *metric* learns.  Raises InvalidParameterError: nothing, or more than once."""
    domain = learning_of(metric.domain)
    if domain is None or metric.every != ONCE:
        rule = f"must be a vector with learning and every = {ONCE}"
        raise InvalidParameterError("metric", metric.name, rule)
    return domain


def public_model(metric: Metric, source: ModelSource) -> PublicModel:
    """Return the model of a round of *metric*, checked.

    Raises: InvalidParameterError: it is of another metric or definition, was not signed with its
            key, or its coefficients are not finite or too long.
    """
    model, domain = read(source), learning(metric)
    model.require(ROUND, metric)
    require_signed(model, domain.key)
    number = model.parts.get("round")
    if type(number) is not int or not 1 <= number <= domain.rounds:
        raise wrong(f"round must be from 1 to {domain.rounds}")
    return PublicModel(number, _theta_of(model, domain))


def _theta_of(model: Model, domain: GradientDomain) -> tuple[float, ...]:
    """Return the coefficients of *model*, no longer than the radius.

    Raises: InvalidParameterError.
    """
    most = float(domain.radius) * _SLACK
    theta = model.numbers("theta", domain.size, -most, most)
    if sum(weight * weight for weight in theta) > most * most:
        raise wrong(f"theta must be of length {float(domain.radius):g} at most")
    return theta


def final_model(metric: Metric, source: ModelSource) -> tuple[GradientDomain, tuple[float, ...]]:
    """Return what *metric* learns, and the coefficients that came of it.

    Raises: InvalidParameterError: the file is no final model of it that was signed with its key.
    """
    model, domain = read(source), learning(metric)
    model.require(FINAL, metric)
    require_signed(model, domain.key)
    return domain, _theta_of(model, domain)


def predict(metric: Metric, source: ModelSource, features: Mapping[str, object]) -> float:
    """Return what a final model says of *features*: the chance of true, or the number.

    It is computed here, and nothing is sent or charged.
    Raises: InvalidParameterError: the file is wrong.  ValueError: *features* are no row.
    """
    domain, theta = final_model(metric, source)
    place = domain.prediction(domain.row(features), theta)
    if domain.label is None:
        return place
    least, most = map(float, domain.label)
    return least + (place + 1) / 2 * (most - least)


def signed(model: Model, seed: bytes) -> Model:
    """Return *model* with the signature of the secret *seed*."""
    from ..wire.ed25519 import sign

    return replace(model, parts={**model.parts, _SIGNATURE: sign(seed, _message(model)).hex()})


def require_signed(model: Model, key: str) -> None:
    """Raise InvalidParameterError unless the holder of the public *key* signed *model*."""
    from ..wire.ed25519 import verify  # 9 ms, for those who learn

    signature = model.parts.get(_SIGNATURE)
    if not is_hex(signature, _SIZE) or not verify(
        bytes.fromhex(key), _message(model), bytes.fromhex(str(signature))
    ):
        raise wrong("signature must be made with the key in the registry")


def _message(model: Model) -> bytes:
    """Return what is signed: the purpose, and sorted, compact JSON of all but the signature.

    Raises: InvalidParameterError: a number is not finite.
    """
    try:
        form = json.loads(model.text())
        form.pop(_SIGNATURE, None)
        text = json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise wrong("every number must be finite") from None
    return _PURPOSE + text.encode()
