"""What a verb is.  Pure.

A verb is one file of ``verbs/``, whose name is that of the verb and which holds one ``VERB``.
Nothing lists the verbs: ``names`` reads the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from msgspec import Struct

from client_sdk.registry.domains import Domain
from client_sdk.registry.metric import Metric

from . import verbs
from .rows import RAW, Findings
from .slices import Asked, Slice

ESTIMATE: Final = "estimate"  # the verb of a request that names none


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a verb that has none."""


def _never(_: Any) -> bool:
    """Return False, whatever is asked."""
    return False


def always(domain: Domain) -> bool:
    """Return True: rows of the verb are averages over reports."""
    return True


@dataclass(frozen=True)
class Verb:
    """How one kind of question is answered, and of which metrics it can be asked.

    ``answer`` gets the slices in the order of metrics, then of dimensions; it raises QueryError
    with the field of the request at fault, and InvalidTallyError.  ``refusal`` tells why it cannot
    be asked of a metric, with a verb or a declaration that would work, or returns None.
    """

    answer: Callable[[Sequence[Slice], Asked], Findings]
    refusal: Callable[[Metric], str | None]
    options: type[Struct] = NoOptions
    postprocess: tuple[str, ...] = (RAW,)
    most_metrics: int = 1
    needs_time: bool = False  # slices by epochs: asked for by dimension "time" if it is missing
    estimates: bool = True  # rows are shares and means of slices, to be held against the need
    combines: Callable[[Any], bool] = _never  # of a domain: rows are averages over reports, of
    # which the average over several definitions of a metric is one again
    counts: Callable[[Any], bool] = _never  # with these options it only counts reports, and so is
    # given the slices of all definitions at once
    joins: bool = False  # of a funnel and a retention, rows are of what one report says together
    merges_small: bool = True  # groups with too few reports are told as one, *(other)*
    most_slices: int = 50_000  # of one question, so that none keeps a processor for long


@cache
def names() -> tuple[str, ...]:
    """Return the verbs, in the order of the alphabet."""
    return tuple(sorted(module.name for module in iter_modules(verbs.__path__)))


@cache
def load(name: str) -> Verb:
    """Return the verb *name*.  Raises LookupError: there is none."""
    if name not in names():
        raise LookupError(name)
    verb: Verb = import_module(f"{verbs.__name__}.{name}").VERB
    return verb


def summary(name: str) -> str:
    """Return what the verb *name* answers, in one line."""
    return (import_module(f"{verbs.__name__}.{name}").__doc__ or "").partition("\n")[0]
