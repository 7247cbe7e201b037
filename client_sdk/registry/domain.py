"""A type of values: which a metric takes, how its registry declares them, and how people read them.

A type is one class, known by its names once it is declared: there is no list of types.  Code that
shows, plans, draws or counts asks the domain; a class that says nothing is treated as items.
Mathematics differs only by what mechanisms randomize (``encodes``): a new type is a new form of
one of these few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction

from ..core.typing import TYPE_CHECKING, ClassVar, Final
from .encodings import Encoded, Encoding, ItemEncoding
from .fields import Problems

if TYPE_CHECKING:
    from typing import Self

SHARE: Final = "share"  # the unit of answers that are parts of all devices

KINDS: Final[dict[str, type[Domain]]] = {}  # by the names of the type


class Domain(ABC):
    """Which values a metric takes.  What is not overridden holds of one item among several."""

    types: ClassVar[tuple[str, ...]] = ()  # names in registries; also of types that differ in name
    table_keys: ClassVar[frozenset[str]] = frozenset()  # of a metric that only this type has

    labelled: ClassVar[bool] = False  # a value says in which part of a dimension its report belongs
    encodes: ClassVar[type[Encoding]] = ItemEncoding
    boolean: ClassVar[bool] = False  # a value is True or False
    several: ClassVar[bool] = False  # a value is a set of items
    ordered: ClassVar[bool] = True  # a range of items means something
    coded: ClassVar[bool] = False  # ``labels`` are codes, which ``item_in_words`` spells out
    largest: ClassVar[str | None] = None  # what the last of several items is; None: nothing
    aggregates: ClassVar[tuple[str, ...]] = ("last", "most_common")  # of the values of an epoch

    verb: ClassVar[str] = "top_k"  # that answers the metric's own question
    answer_of: ClassVar[str] = "item"  # what each number of an answer is of; "": of all devices
    hundredth: ClassVar[str] = "points"  # what a hundredth of ``extent`` is
    error_of: ClassVar[str] = "of a share, root mean square over all of them"  # if predicted
    headline_form: ClassVar[str] = "{item}"  # of an item; may use {measure}

    python_type: ClassVar[str] = "{label}"  # of a value, of the type of labels or of a pair's class

    if TYPE_CHECKING:  # in some types these are fields

        @property
        def labels(self) -> tuple[str, ...]:
            """The items in order; none of plain numbers and of open vocabularies."""

        @property
        def unit(self) -> str:
            """The unit of answers."""

        @property
        def numbers(self) -> NumberGrid | None:
            """The numbers that a value has, alone or by key; None: it has none."""

        @property
        def other(self) -> str | None:
            """The item of every text that is none of ``labels``; None: such a text is refused."""
    else:
        labels, unit, numbers, other = (), SHARE, None, None

    def __init_subclass__(cls) -> None:
        """Make the names of the type known.  Raises TypeError: another type has one."""
        for name in cls.__dict__.get("types", ()):
            if KINDS.setdefault(name, cls) is not cls:
                raise TypeError(f"types={name}: must not be the name of another type")

    @classmethod
    @abstractmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Return the domain that a metric's table declares, or None after adding a problem."""

    @property
    @abstractmethod
    def size(self) -> int:
        """What mechanisms call the size of the domain."""

    @property
    def encoding(self) -> Encoding:
        """How what mechanisms randomize is kept and written."""
        return self.encodes(self.size, self.parameters)

    @abstractmethod
    def encode(self, value: object, metric: str) -> Encoded:
        """Return what the mechanism randomizes for *value*.

        Raises: InvalidValueError: not in the domain; the error does not show the value.
        """

    def label_of(self, value: object, metric: str) -> Mapping[str, str]:
        """Return what a report of *value* says in the clear, by dimension: of most types nothing.

        Raises: InvalidValueError, as ``encode``.
        """
        return {}

    @property
    def segment(self) -> Mapping[str, tuple[str, ...]]:
        """The dimensions of ``label_of`` with their vocabularies."""
        return {}

    @abstractmethod
    def as_given(self, encoded: Encoded) -> object:
        """Return the value that *encoded* stands for, as JSON."""

    @abstractmethod
    def canonical(self) -> dict[str, object]:
        """Return what values mean, exactly, as JSON: a part of the metric's digest."""

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the table that ``read`` makes the domain of *canonical* from.

        Args: parameters: of the mechanism, which can follow from the domain.
        """
        return canonical

    @property
    @abstractmethod
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""

    @abstractmethod
    def in_words(self, encoded: Encoded) -> str:
        """Return the value that *encoded* stands for, as people read it."""

    def item_in_words(self, item: int) -> str:
        """Return *item*, one of ``labels``, as people read it."""
        return self.labels[item]

    def as_json(self) -> dict[str, object]:
        """Return the values by the keys of a registry, as JSON for people's programs."""
        return self.canonical()

    def size_in_words(self) -> str:
        """Return how many different values there are."""
        return f"{self.size:,} items"

    @property
    def grid(self) -> NumberGrid | None:
        """The numbers that a value can be; None: a value is not one number."""
        return None

    @property
    def extent(self) -> float:
        """The size of the whole, which errors are parts of, in the unit of answers."""
        return 1.0

    @property
    def least(self) -> float:
        """The least that an answer can truly be, in its unit."""
        return 0.0

    @property
    def error_unit(self) -> str:
        """What a hundredth of a predicted error is."""
        return f"{self.hundredth} per {self.answer_of}" if self.answer_of else self.hundredth

    @property
    def parameters(self) -> Mapping[str, int]:
        """The parameters of a mechanism that follow from the domain."""
        return {}

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each of several answers that one value joins, by its name."""
        return {}

    @property
    def numeric_parts(self) -> frozenset[str]:
        """The names of ``parts`` whose answers are numbers in a value."""
        return frozenset()

    @property
    def compared(self) -> tuple[str, ...]:
        """What several items say together: steps that were reached, or later periods."""
        return ()

    def answer_items(self) -> tuple[str, ...]:
        """Return the items that an answer shows; the others follow from them."""
        return self.labels

    def headline(self, item: str, measure: str = "") -> str:
        """Return what the number of *item* is of; *measure* is what it is compared with, if any."""
        return self.headline_form.format(item=item, measure=f"{measure} " if measure else "")

    def value_labels(self) -> tuple[str, ...]:
        """Return the texts that a value is made of in Python, if it is made of one kind of them."""
        is_made = "{label}" in self.python_type and self.other is None and not self.parts
        return self.labels if is_made else ()

    @property
    def remark(self) -> str:
        """What the type in Python leaves open: sentences that end in a space, or nothing."""
        return ""


class NumberGrid(Domain):
    """Numbers from ``minimum`` to ``maximum`` on a public grid of ``step``, in ``unit``."""

    minimum: Fraction
    maximum: Fraction
    step: Fraction
    unit: str

    @property
    @abstractmethod
    def nanoseconds(self) -> int | None:
        """How many nanoseconds the unit has; None: it is none of time."""

    @abstractmethod
    def encode(self, value: object, metric: str) -> Fraction:
        """Clamp *value* to the range and return its exact position on the grid, in steps.

        Raises: InvalidValueError: not a finite number (bool and str are not numbers).
        """

    @abstractmethod
    def exact(self, value: object, metric: str) -> Fraction:
        """Return *value* as it is, in units, inside the range or not.  Raises as ``encode``."""

    @abstractmethod
    def rounded(self, number: str | Fraction) -> str:
        """Return *number*, which is in units, with six digits and the unit."""
