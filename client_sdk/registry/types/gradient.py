"""Gradients of a model that many devices learn together, one round a device.

A metric of vectors with ``learning`` takes no numbers but gradients, each with the round of the
public model that it was computed at.  The round is a dimension of the report's segment, in the
clear: it reveals which model the device had when the application recorded, so that moment must
not depend on the row.

A row follows from the registry alone, so that its bound is not learned from any device: numbers
are held to their declared ends and scaled to parts of the larger distance from ``zero``, a category
is 1 at its value, the intercept is 1, and all that is scaled to Euclidean length 1.

Derived: a row x has |x| = 1.  The gradient of the logistic loss is (p - y) x with p and y from 0 to
1, hence at most 1 long.  For a linear model the prediction is held to the range of the label, from
-1 to 1, so (prediction - y) x is at most 2 long; that is the gradient of a convex loss, too, as the
hold never falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, isfinite, sqrt

from ...core.base64url import is_hex
from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.limits import KEY_SIZE, MIN_REPORTS_FLOOR
from ...core.typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from ...mechanisms import MAX_VECTOR
from .. import fields
from ..domain import Domain
from ..fields import Problems
from ..metric import ROUND
from .vector import VectorDomain

if TYPE_CHECKING:
    from typing import Self

LOGISTIC, LINEAR = "logistic", "linear"
LONGEST: Final = {LOGISTIC: 1, LINEAR: 2}  # of a gradient
_RADIUS: Final = {LOGISTIC: 8, LINEAR: 2}  # of the coefficients, for each ε, unless declared
MOST_ROUNDS: Final = 1_000
_MOST_RADIUS: Final = 1_000
_INTERCEPT: Final = "(intercept)"
_STEEPEST: Final = 36.0  # log odds; beyond, a float's chance is 0 or 1
_KEYS: Final = {"kind", "rounds", "devices", "radius", "key", "features", "label"}
_NUMBER: Final = {"min", "max", "zero"}


class Feature(NamedTuple):
    """A part of a row: a number from *least* to *most* around *zero*, or one of *values*."""

    name: str
    values: tuple[str, ...] = ()
    least: Fraction = Fraction(0)
    most: Fraction = Fraction(1)
    zero: Fraction = Fraction(0)

    @property
    def names(self) -> tuple[str, ...]:
        """What its coefficients are called."""
        return tuple(f"{self.name}={value}" for value in self.values) or (self.name,)

    def numbers(self, value: object) -> list[float]:
        """Return the parts of a row; what is not said, or is none of the values, adds nothing.

        Raises: ValueError: *value* is no finite number, or no text; it is not shown.
        """
        if self.values:
            if value is not None and not isinstance(value, str):
                raise ValueError("must be a text")
            return [float(value == label) for label in self.values]
        if value is None:
            return [0.0]
        number = _finite(value)
        least, most, zero = float(self.least), float(self.most), float(self.zero)
        return [(min(max(number, least), most) - zero) / max(most - zero, zero - least)]

    def canonical(self) -> dict[str, object]:
        """Return what it means, as JSON."""
        if self.values:
            return {"values": list(self.values)}
        return {"min": str(self.least), "max": str(self.most), "zero": str(self.zero)}


@dataclass(frozen=True)
class GradientDomain(VectorDomain):
    """Gradients of one of ``rounds`` public models of a *model* kind, over ``features``."""

    model: str = LOGISTIC
    rounds: int = 0
    devices: int = 0  # that a round takes at least
    radius: Fraction = Fraction(1)
    key: str = ""  # of who publishes the models, in hexadecimal digits
    features: tuple[Feature, ...] = ()
    label: tuple[Fraction, Fraction] | None = None  # the range of a linear model's

    labelled: ClassVar[bool] = True
    aggregates: ClassVar[tuple[str, ...]] = ()
    python_type: ClassVar[str] = "object"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the table ``learning`` of a metric."""
        before, table = len(problems.lines), entry["learning"]
        for key in sorted(VectorDomain.table_keys - {"learning"} & entry.keys()):
            problems.add(f"{place}.{key}", "must be left out: learning determines it")
        if not isinstance(table, dict):
            problems.add(f"{place}.learning", "must be a table")
            return None
        place = f"{place}.learning"
        fields.refuse_unknown(place, table, _KEYS, problems)
        model = fields.value(
            f"{place}.kind", f"{LOGISTIC}|{LINEAR}", table.get("kind"), problems, LOGISTIC
        )
        kind = f"range.2.{MOST_ROUNDS}"
        rounds = fields.value(f"{place}.rounds", kind, table.get("rounds"), problems)
        kind = f"count.{MIN_REPORTS_FLOOR}"
        devices = fields.value(f"{place}.devices", kind, table.get("devices"), problems)
        radius = fields.decimal(f"{place}.radius", _radius(table, entry, model), problems)
        if radius is None or not 0 < radius <= _MOST_RADIUS:
            problems.add(f"{place}.radius", f"must be above 0 and at most {_MOST_RADIUS}")
        if not is_hex(table.get("key"), KEY_SIZE):
            rule = "must be a public key, in 64 small hexadecimal digits: hearsay learn rounds key"
            problems.add(f"{place}.key", rule)
        features = _features(f"{place}.features", table.get("features"), problems)
        label = None
        if model == LINEAR:
            label = _ends(f"{place}.label", table.get("label"), {"min", "max"}, problems)
        elif "label" in table:
            problems.add(
                f"{place}.label",
                f"is for kind={LINEAR}; with {LOGISTIC} the label is true or false",
            )
        names = (_INTERCEPT, *(name for feature in features for name in feature.names))
        if len(set(names)) != len(names) or not 2 <= len(names) <= MAX_VECTOR:
            rule = f"must give 1 to {MAX_VECTOR - 1} coefficients, each of another name"
            problems.add(f"{place}.features", rule)
        if len(problems.lines) > before or radius is None:
            return None
        return cls(
            names, "l2", Fraction(LONGEST[model]), "gradient",
            model=model, rounds=rounds, devices=devices, radius=radius, key=table["key"],
            features=features, label=None if label is None else (label.least, label.most),
        )  # fmt: skip

    def canonical(self) -> dict[str, object]:
        """Return all that a gradient means, exactly, as JSON."""
        table: dict[str, object] = {
            "kind": self.model,
            "rounds": self.rounds,
            "devices": self.devices,
            "radius": str(self.radius),
            "key": self.key,
            # a list, as the order of the coefficients counts
            "features": [[feature.name, feature.canonical()] for feature in self.features],
        }
        if self.label is not None:
            table["label"] = {"min": str(self.label[0]), "max": str(self.label[1])}
        return {"learning": table}

    def as_json(self) -> dict[str, object]:
        """Return the keys of a vector and those under ``learning``, as JSON."""
        return {**super().as_json(), **self.canonical()}

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        what = f"the step by which a model of {self.size} numbers would fit it better"
        return f"not sent: what is randomized is {what}, at most {float(self.bound):g} long"

    @property
    def segment(self) -> Mapping[str, tuple[str, ...]]:
        """The rounds, as values of the dimension that a report says its own by."""
        return {ROUND: tuple(map(str, range(1, self.rounds + 1)))}

    def encode(self, value: object, metric: str) -> tuple[int, ...]:
        """Return the coordinates of a gradient; what is longer than the bound is shortened to it.

        Raises: InvalidValueError: no gradient with its round, which ``client_sdk.learning.rounds``
                makes.
        """
        return super().encode(self._parts(value, metric)[1], metric)

    def label_of(self, value: object, metric: str) -> Mapping[str, str]:
        """Return the round of a gradient, which is public."""
        return {ROUND: str(self._parts(value, metric)[0])}

    def _parts(self, value: object, metric: str) -> tuple[int, object]:
        if not isinstance(value, Mapping) or value.keys() != {"round", "gradient"}:
            rule = "takes a gradient with its round, as client_sdk.learning.rounds makes it"
            raise InvalidValueError(metric, rule)
        number = value["round"]
        if type(number) is not int or not 1 <= number <= self.rounds:
            raise InvalidValueError(metric, f"takes gradients of round 1 to {self.rounds}")
        return number, value["gradient"]

    def row(self, features: Mapping[str, object]) -> list[float]:
        """Return the row of *features* by name, of Euclidean length 1, the intercept first.

        Raises: ValueError: there is another name, or a value is none of its feature.
        """
        if not isinstance(features, Mapping):
            raise ValueError("features: must be by name, such as {'age': 41}")
        known = {feature.name for feature in self.features}
        if not known.issuperset(features):
            raise ValueError(f"features: must be among {', '.join(sorted(known))}")
        numbers = [1.0]
        for feature in self.features:
            numbers += feature.numbers(features.get(feature.name))
        length = sqrt(sum(number * number for number in numbers))
        return [number / length for number in numbers]

    def target(self, label: object) -> float:
        """Return what is to be predicted: 0 or 1, or the place of a number from -1 to 1.

        Raises: ValueError: *label* is no truth, or no finite number.
        """
        if self.label is None:
            if label is not True and label is not False and label not in (0, 1):
                raise ValueError("label: must be true or false")
            return float(bool(label))
        least, most = map(float, self.label)
        return 2 * (min(max(_finite(label), least), most) - least) / (most - least) - 1

    def prediction(self, row: Sequence[float], theta: Sequence[float]) -> float:
        """Return what a model says of a *row*: the chance of true, or the place from -1 to 1."""
        score = sum(x * weight for x, weight in zip(row, theta, strict=True))
        if self.label is not None:
            return min(max(score, -1.0), 1.0)
        return 1 / (1 + exp(-min(max(score, -_STEEPEST), _STEEPEST)))


VectorDomain.learned = GradientDomain


def _radius(table: Mapping[str, object], entry: Mapping[str, object], model: str) -> object:
    """Return the declared radius, or the usual one: the less noise, the longer."""
    epsilon = fields.fraction_of(entry.get("epsilon"))
    usual = _RADIUS[model] * (epsilon if isinstance(epsilon, Fraction) else 1)
    return fields.fraction_of(table.get("radius", usual))


def _finite(value: object) -> float:
    """Return *value* as a float.  Raises ValueError: it is no finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ArithmeticError):
        raise ValueError("must be a number") from None
    if isinstance(value, str) or not isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _features(place: str, entry: object, problems: Problems) -> tuple[Feature, ...]:
    """Return the features of a table, in its order; of a compiled one, of its list."""
    rows = list(entry.items()) if isinstance(entry, dict) else entry
    if not isinstance(rows, list) or not all(
        isinstance(row, (list, tuple)) and len(row) == 2 and isinstance(row[1], dict)
        for row in rows
    ):
        problems.add(place, "must be a table of features, such as age = { min = 17, max = 90 }")
        return ()
    return tuple(_feature(f"{place}.{name}", str(name), table, problems) for name, table in rows)


def _feature(place: str, name: str, table: Mapping[str, object], problems: Problems) -> Feature:
    fields.value(place, "label", name, problems)
    if "values" in table:
        fields.refuse_unknown(place, table, {"values"}, problems)
        return Feature(name, fields.labels(f"{place}.values", table["values"], problems))
    ends = _ends(place, table, _NUMBER, problems)
    zero = (ends.least + ends.most) / 2
    if "zero" in table:
        given = fields.decimal(f"{place}.zero", fields.fraction_of(table["zero"]), problems)
        zero = zero if given is None else given
    if not ends.least <= zero <= ends.most:
        problems.add(f"{place}.zero", "must be from min to max")
    return ends._replace(name=name, zero=zero)


def _ends(place: str, table: object, known: set[str], problems: Problems) -> Feature:
    """Return a feature from ``min`` to ``max``."""
    if not isinstance(table, dict):
        problems.add(place, "must be a table with min and max")
        return Feature("")
    fields.refuse_unknown(place, table, known, problems)
    ends = [
        fields.decimal(f"{place}.{key}", fields.fraction_of(table.get(key)), problems)
        for key in ("min", "max")
    ]
    if ends[0] is None or ends[1] is None or ends[0] >= ends[1]:
        problems.add(place, "must have a min below its max")
        return Feature("")
    return Feature("", least=ends[0], most=ends[1])


def learning_of(domain: Domain) -> GradientDomain | None:
    """Return what a metric of *domain* learns; None: it learns nothing."""
    return domain if isinstance(domain, GradientDomain) else None
