"""Naive Bayes on the device: the chance of a label, from the attributes of a record that are known.

The log-odds of the label are the log-odds of its share among all devices, plus for each attribute
the ``slope`` times how much more likely its value makes the label than the attribute's ``centre``.
A missing attribute adds nothing.  The slope is below 1, as attributes overlap:
``collector/learning/naive_bayes.py`` says how it is found.

A record is read as ``client.record`` reads it.  Whatever it holds, nothing but InvalidValueError is
raised: a ValueError that shows no value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import exp, log

from ..core.dataclass import dataclass
from ..core.errors import InvalidValueError
from ..core.typing import TYPE_CHECKING, Final
from ..registry.types.items import listed, plain
from ..registry.types.numbers import exact
from ..registry.types.record import LABEL, RecordDomain
from .model import Model, ModelSource, numbers_of, read, wrong

if TYPE_CHECKING:
    from ..registry.metric import Metric

KIND: Final = "naive-bayes"
RECORD: Final = "record"  # what errors call the values that are given
MOST: Final = 1e3  # of a number in log-odds; ours are below 10


@dataclass(frozen=True)
class Attribute:
    """The ``values`` of an attribute, each with its weight in log-odds; of numbers their edges."""

    values: Mapping[str, int]
    edges: tuple[Fraction, ...]
    weights: tuple[float, ...]
    centre: float

    @classmethod
    def of(cls, entry: Mapping[str, object]) -> Attribute:
        """Read an attribute of a file.  Raises InvalidParameterError."""
        values, edges = entry.get("values"), entry.get("edges", [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise wrong("attributes must have values, a list of texts")
        if not isinstance(edges, list) or edges != sorted(
            set(numbers_of(edges, "edges", len(edges)))
        ):
            raise wrong("edges must be numbers in ascending order")
        places = {value: place for place, value in enumerate(values)}
        if len(places) != len(values) or (edges and len(edges) != len(values) - 1):
            raise wrong("values must differ, and be one more than edges")
        weights = numbers_of(entry.get("weights"), "weights", len(values), -MOST, MOST)
        (centre,) = numbers_of([entry.get("centre")], "centre", 1, -MOST, MOST)
        return cls(places, tuple(map(_decimal, edges)), weights, centre)

    def log_odds(self, value: object, name: str) -> float:
        """Return by how much *value* moves the log-odds, before the slope.

        Raises: InvalidValueError: it is none of the values; it is not shown.
        """
        if self.edges and not isinstance(value, str):
            return self.weights[bisect_right(self.edges, exact(value, name))] - self.centre
        text = plain(value) if isinstance(value, str) else None
        if not isinstance(text, str) or text not in self.values:
            rule = f"takes one of the {len(self.weights)} values of the model"
            raise InvalidValueError(name, rule)
        return self.weights[self.values[text]] - self.centre


@dataclass(frozen=True)
class NaiveBayes:
    """A model of how likely ``label`` is: made by ``load``, asked by ``probability``."""

    label: str
    prior: float  # share of the label among all devices
    slope: float
    attributes: Mapping[str, Attribute]
    left_out: tuple[str, ...] = ()  # attributes that no report was about

    @classmethod
    def of(cls, model: Model) -> NaiveBayes:
        """Return what *model* holds.  Raises InvalidParameterError: it is no such model."""
        model.require(KIND)
        label, entries = model.parts.get("label"), model.parts.get("attributes")
        if not isinstance(label, str) or not isinstance(entries, list):
            raise wrong("label must be a text, and attributes a list")
        attributes = {}
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise wrong("attributes must be objects with a name")
            attributes[entry["name"]] = Attribute.of(entry)
        if not len(attributes) == len(entries) > 0:
            raise wrong("attributes must differ in their names")
        (prior,) = numbers_of([model.parts.get("prior")], "prior", 1, 1e-9, 1 - 1e-9)
        (slope,) = numbers_of([model.parts.get("slope")], "slope", 1, 0, 1)
        left_out = model.parts.get("left_out", [])
        if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
            raise wrong("left_out must be a list of attributes")
        return cls(label, prior, slope, attributes, tuple(left_out))

    def require(self, metric: Metric) -> None:
        """Raise InvalidParameterError unless label, attributes, values and edges are *metric*'s."""
        domain = metric.domain
        if not isinstance(domain, RecordDomain):
            raise wrong(f"{metric.name} must be of the type record")
        known = {each.name: each for each in domain.attributes}
        names, labels = {*self.attributes, *self.left_out}, domain.outcome.labels
        if names != known.keys() or self.label not in labels:
            raise wrong(f"label and attributes must match {metric.name}")
        for name, attribute in self.attributes.items():
            edges = tuple(_decimal(float(edge)) for edge in known[name].edges)
            if (tuple(attribute.values), attribute.edges) != (known[name].values.labels, edges):
                raise wrong(f"values and edges of {name} must match {metric.name}")

    def log_odds(self, record: Mapping[str, object]) -> float:
        """Return the log-odds of the label, given the attributes of *record* that it has.

        What is missing or None is left out, as is the label.
        Raises: InvalidValueError: no mapping, a name that is no attribute, or a value that the
                model does not know; none is shown.
        """
        try:
            known = sum(self._moves(record))
        except InvalidValueError:
            raise
        except Exception:  # noqa: BLE001 - a value of another's type may raise anything
            raise InvalidValueError(RECORD, "takes texts and numbers") from None
        return log(self.prior / (1 - self.prior)) + self.slope * known

    def _moves(self, record: object) -> Iterator[float]:
        """Yield by how much each attribute that *record* has moves the log-odds."""
        if not isinstance(record, Mapping):
            raise InvalidValueError(RECORD, "takes a mapping of attributes to values")
        for name in record:
            if name not in self.attributes and name not in (*self.left_out, LABEL):
                rule = f"takes no other names than {listed((*self.attributes, *self.left_out))}"
                raise InvalidValueError(RECORD, rule)
        for name, attribute in self.attributes.items():
            value = record.get(name)
            if value is not None:
                yield attribute.log_odds(value, name)

    def probability(self, record: Mapping[str, object]) -> float:
        """Return the calibrated chance of the label.  Raises as ``log_odds``."""
        odds = self.log_odds(record)
        return 1 / (1 + exp(-odds)) if odds > 0 else exp(odds) / (1 + exp(odds))


def load(source: ModelSource, metric: Metric | None = None) -> NaiveBayes:
    """Return the model in a file, or the bytes of one.

    Args:   metric: of the application's registry, of whose definition it then must be.
    Raises: InvalidParameterError: it cannot be read, or is no naive Bayes model of the metric.
    """
    model = read(source)
    model.require(KIND, metric)
    naive_bayes = NaiveBayes.of(model)
    if metric is not None:
        naive_bayes.require(metric)
    return naive_bayes


def _decimal(edge: float) -> Fraction:
    """Return an edge as the registry has it: a decimal, which a float only comes near."""
    return Fraction(repr(edge))
