"""The types by their names.  A type is known once its module is loaded; few registries have all."""

from __future__ import annotations

from collections.abc import Mapping

from .domain import KINDS, Domain


def kind_of(name: str) -> type[Domain] | None:
    """Return the class of the type *name*; None: there is no such type."""
    from .types import items, numbers  # noqa: F401 - declared types are known

    return KINDS.get(name) or kinds().get(name)


def kinds() -> Mapping[str, type[Domain]]:
    """Return all types by name.  Joint values are loaded late: few registries have any."""
    from .types import (  # noqa: F401 - as above
        gradient,
        items,
        joint,
        numbers,
        places,
        record,
        vector,
    )

    return KINDS
