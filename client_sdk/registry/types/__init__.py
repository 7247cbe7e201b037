"""The types of values, a file for each family, by their names; the folder is the list.

It knows ``domain``, ``encodings``, ``fields`` and ``metric``.  A type is known once its module is
loaded; few registries have all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.paths import module_names
from ..domain import KINDS, Domain


def kind_of(name: str) -> type[Domain] | None:
    """Return the class of the type *name*; None: there is no such type."""
    from . import items, numbers  # noqa: F401 - declared types are known

    return KINDS.get(name) or kinds().get(name)


def kinds() -> Mapping[str, type[Domain]]:
    """Return all types by name.  Joint values are loaded late: few registries have any."""
    for name in sorted(module_names(__path__)):
        __import__(f"{__name__}.{name}")
    return KINDS
