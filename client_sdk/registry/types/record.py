"""Records: an outcome and several attributes of a device; a report holds one attribute.

The label is the outcome.  An item is a value of an attribute together with a label, so that the
reports about an attribute are a table of it by label, which a classifier learns from.  What two
attributes have in common is in no report.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from ...mechanisms import MAX_ATTRIBUTES, MAX_CELLS, Record, starts_of
from .. import fields
from ..domain import Domain
from ..encodings import Encoded, RecordEncoding
from ..fields import Problems
from .items import ItemDomain, listed
from .joint import JOINER, PairDomain
from .numbers import exact

if TYPE_CHECKING:
    from typing import Self

LABEL: Final = "label"  # the name of the outcome in a value, which no attribute has
ATTRIBUTE, ANSWER = "attribute", "answer"  # the names of an item's other parts in answers


@dataclass(frozen=True)
class AttributeDomain:
    """The ``values`` of an attribute; of numbers they are the ranges between ``edges``."""

    name: str
    values: ItemDomain
    edges: tuple[Fraction, ...] = ()

    def index_of(self, value: object, what: str) -> int:
        """Return which of the values *value* is.  Raises InvalidValueError, which says of *what*.

        A range holds its lower edge; it may be given by its text, too.
        """
        if not self.edges or isinstance(value, str):
            return self.values.index_of(value, what)
        return bisect_right(self.edges, exact(value, what))

    def canonical(self) -> object:
        """Return what the values mean, as JSON."""
        return {"edges": list(map(str, self.edges))} if self.edges else list(self.values.labels)


@dataclass(frozen=True)
class RecordDomain(Domain):
    """One value of each of ``attributes``, and a label.

    Items are in the order of attributes, then of values, then of labels.
    """

    attributes: tuple[AttributeDomain, ...]
    outcome: ItemDomain

    types: ClassVar[tuple[str, ...]] = ("record",)
    table_keys = frozenset({"attributes", LABEL})
    encodes = RecordEncoding
    ordered = False
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "crosstab"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the labels, and the values of each attribute or the edges between them."""
        before, table = len(problems.lines), entry.get("attributes")
        outcome = _labels(f"{place}.{LABEL}", entry.get(LABEL), problems)
        place = f"{place}.attributes"
        if not isinstance(table, dict) or not 1 <= len(table) <= MAX_ATTRIBUTES:
            rule = f"must be a table of 1 to {MAX_ATTRIBUTES} names, each with a list of values"
            problems.add(place, rule)
            return None
        attributes = [_attribute(f"{place}.{name}", name, table[name], problems) for name in table]
        if LABEL in table:
            problems.add(f"{place}.{LABEL}", "must have another name: the outcome has this one")
        size = len(outcome) * sum(len(attribute.values.labels) for attribute in attributes)
        if size > MAX_CELLS:
            rule = f"must have at most {MAX_CELLS} values, times the labels, not {size}"
            problems.add(place, rule)
        if len(problems.lines) > before:
            return None
        return cls(tuple(attributes), ItemDomain(outcome))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The items: a value of an attribute, and a label."""
        return tuple(
            f"{attribute.name}: {value} {JOINER} {label}"
            for attribute in self.attributes
            for value in attribute.values.labels
            for label in self.outcome.labels
        )

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.labels)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first item of each attribute, and one more than the last of all."""
        firsts = [0]
        for attribute in self.attributes:
            firsts.append(firsts[-1] + attribute.values.size * self.outcome.size)
        return tuple(firsts)

    @property
    def parameters(self) -> Mapping[str, int]:
        """Where attributes begin among the items."""
        pairs = zip(self.firsts[1:], self.firsts[:-1], strict=True)
        return {"starts": starts_of(tuple(end - first for end, first in pairs))}

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The values of each attribute by its name, then the labels."""
        values = {attribute.name: attribute.values.labels for attribute in self.attributes}
        return {**values, LABEL: self.outcome.labels}

    @property
    def numeric_parts(self) -> frozenset[str]:
        """The attributes with edges."""
        return frozenset(attribute.name for attribute in self.attributes if attribute.edges)

    def pair(self, attribute: AttributeDomain) -> PairDomain:
        """Return the domain of the items of one of the attributes: a value and a label."""
        return PairDomain((ANSWER, LABEL), attribute.values, self.outcome)

    def encode(self, value: object, metric: str) -> Record:
        """Return the items of *value*, a mapping of every attribute and "label" to a value of each.

        Raises: InvalidValueError: another type, a missing or another name, or an unknown value; it
                names the part that is wrong, and does not show it.
        """
        names = [attribute.name for attribute in self.attributes]
        if (
            not isinstance(value, Mapping)
            or len(value) != len(names) + 1
            or not all(name in value for name in (*names, LABEL))
        ):
            rule = f"takes a mapping of {LABEL} and its {len(names)} attributes to a value of each"
            raise InvalidValueError(metric, rule)
        label = self.outcome.index_of(value[LABEL], f"{metric}, {LABEL}")
        return Record(
            first + label + self.outcome.size * attribute.index_of(value[name], f"{metric}, {name}")
            for first, name, attribute in zip(self.firsts, names, self.attributes, strict=False)
        )

    def as_given(self, encoded: Encoded) -> dict[str, str]:
        """Return the value of each attribute and the label; of a number its range."""
        assert isinstance(encoded, Record)  # noqa: S101 - what encode returns
        values, labels = {}, self.outcome.labels
        for first, item, attribute in zip(self.firsts, encoded, self.attributes, strict=False):
            value, label = divmod(item - first, len(labels))
            values[attribute.name] = attribute.values.labels[value]
        return {**values, LABEL: labels[label]}

    def in_words(self, encoded: Encoded) -> str:
        """Return all values with their names."""
        return ", ".join(f"{name}: {value}" for name, value in self.as_given(encoded).items())

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        names = listed([attribute.name for attribute in self.attributes])
        return (
            f"one of several things, drawn by chance: {names}; and together with it the label "
            f"(one of: {listed(self.outcome.labels)})"
        )

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON, in which a list keeps its order."""
        attributes = [[attribute.name, attribute.canonical()] for attribute in self.attributes]
        return {"attributes": attributes, LABEL: list(self.outcome.labels)}

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the attributes as a table, with fractions for the texts of edges."""
        entries = canonical.get("attributes")
        table: dict[str, object] = {}
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
                return {**canonical, "attributes": None}
            name, values = entry
            if isinstance(values, dict) and isinstance(values.get("edges"), list):
                values = {**values, "edges": list(map(fields.fraction_of, values["edges"]))}
            table[name] = values
        return {**canonical, "attributes": table}

    def as_json(self) -> dict[str, object]:
        """Return the attributes as objects in a list, with edges as floats."""
        attributes = [
            {
                "name": attribute.name,
                "values": attribute.values.labels,
                **({"edges": list(map(float, attribute.edges))} if attribute.edges else {}),
            }
            for attribute in self.attributes
        ]
        return {"attributes": attributes, LABEL: self.outcome.labels}

    def size_in_words(self) -> str:
        """Return how many attributes there are, and how many items in all."""
        return f"{len(self.attributes):,} attributes, {self.size:,} items"


def _labels(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    labels = fields.labels(place, entry, problems)
    if any(JOINER in label for label in labels):
        problems.add(place, f'must not hold "{JOINER}", which joins a value and a label')
    return labels


def _attribute(place: str, name: str, entry: object, problems: Problems) -> AttributeDomain:
    """Read the values of an attribute, or the edges of its ranges."""
    fields.value(place, "name", name, problems)
    if not isinstance(entry, dict):
        return AttributeDomain(name, ItemDomain(_labels(place, entry, problems)))
    given = entry.get("edges")
    given = given if set(entry) == {"edges"} and isinstance(given, list) else []
    edges = [fields.decimal(f"{place}.edges", edge, problems) for edge in given]
    known = tuple(edge for edge in edges if edge is not None)
    if not known or any(low >= high for low, high in pairwise(known)):
        problems.add(f"{place}.edges", "must be a list of numbers in ascending order, and no other")
        return AttributeDomain(name, ItemDomain(()))
    ends = [format(Decimal(edge.numerator) / edge.denominator, "f") for edge in known]
    between = (f"{low} to {high}" for low, high in pairwise(ends))
    labels = (f"below {ends[0]}", *between, f"{ends[-1]} or more")
    if len(set(labels)) != len(labels):
        problems.add(f"{place}.edges", "must differ in their first 28 digits")
    return AttributeDomain(name, ItemDomain(labels), known)
