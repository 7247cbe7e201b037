"""Mechanisms, one file each.  The file name is the wire name, and the folders are the list.

Law of this layer: no clock, no store, no network, no logging; integers and fractions on the
sampling path; numpy is handed in by the collector and never imported.
"""

from __future__ import annotations

from functools import cache

from ..core.errors import IncompleteInstallationError, UnknownMechanismError
from ..core.paths import module_names
from ..core.typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .base import MAX_DOMAIN_SIZE as MAX_DOMAIN_SIZE
    from .base import MAX_REPORTS as MAX_REPORTS
    from .base import Checked as Checked
    from .base import Constant as Constant
    from .base import Debiased as Debiased
    from .base import EpsilonLike as EpsilonLike
    from .base import Mechanism as Mechanism
    from .base import Reach as Reach
    from .exact import parse_epsilon as parse_epsilon
    from .families import END as END
    from .families import MAX_LENGTH as MAX_LENGTH
    from .families import DistributionMechanism as DistributionMechanism
    from .families import MeanMechanism as MeanMechanism
    from .families import NumberReports as NumberReports
    from .families import SetMechanism as SetMechanism
    from .families import TextMechanism as TextMechanism
    from .frequency import DesignedMechanism as DesignedMechanism
    from .frequency import FrequencyOracle as FrequencyOracle
    from .frequency import ItemMechanism as ItemMechanism
    from .key_value import KeyValueMechanism as KeyValueMechanism
    from .key_value import Pairs as Pairs
    from .mixture import Mixture as Mixture
    from .records import MAX_ATTRIBUTES as MAX_ATTRIBUTES
    from .records import MAX_CELLS as MAX_CELLS
    from .records import Record as Record
    from .records import RecordMechanism as RecordMechanism
    from .records import starts_of as starts_of
    from .supports import Channel as Channel
    from .supports import SupportReports as SupportReports
    from .vectors import MAX_VECTOR as MAX_VECTOR
    from .vectors import UNIT as UNIT
    from .vectors import Vector as Vector
    from .vectors import VectorMechanism as VectorMechanism

_HOMES: Final = {  # the public names, loaded when first used: most need a few of them
    "base": (
        "MAX_DOMAIN_SIZE",
        "MAX_REPORTS",
        "Checked",
        "Constant",
        "Debiased",
        "EpsilonLike",
        "Mechanism",
        "Reach",
    ),
    "exact": ("parse_epsilon",),
    "families": (
        "END",
        "MAX_LENGTH",
        "DistributionMechanism",
        "MeanMechanism",
        "NumberReports",
        "SetMechanism",
        "TextMechanism",
    ),
    "frequency": (
        "DesignedMechanism",
        "FrequencyOracle",
        "ItemMechanism",
    ),
    "key_value": (
        "KeyValueMechanism",
        "Pairs",
    ),
    "mixture": ("Mixture",),
    "records": (
        "MAX_ATTRIBUTES",
        "MAX_CELLS",
        "Record",
        "RecordMechanism",
        "starts_of",
    ),
    "supports": (
        "Channel",
        "SupportReports",
    ),
    "vectors": (
        "MAX_VECTOR",
        "UNIT",
        "Vector",
        "VectorMechanism",
    ),
}


def __getattr__(name: str) -> object:
    """Load a public name from its module (PEP 562)."""
    for module, public in _HOMES.items():
        if name in public:
            return getattr(_imported(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache  # reading folders takes longer than building most mechanisms
def _modules() -> dict[str, str]:
    """Return the module of each mechanism by wire name: the files of the folders of kinds."""
    from . import composite, deployed, items, numbers

    return {
        name: f"{folder.__name__}.{name}"
        for folder in (composite, deployed, items, numbers)
        for name in module_names(folder.__path__)
        if not name.startswith("_")
    }


@cache
def names() -> tuple[str, ...]:
    """Return the wire names of all mechanisms, sorted.

    Raises: IncompleteInstallationError: there is none.
    """
    modules = _modules()
    if not modules:
        raise IncompleteInstallationError(
            f"{__name__}: is empty: whatever bundled this application left its modules out, since"
            " they are imported by name; have it collect all submodules of client_sdk"
        )
    return tuple(sorted(modules))


@cache
def load(name: str) -> type[Mechanism[Any]]:
    """Return the mechanism class of wire name *name*.

    Raises: UnknownMechanismError: there is no such file.
    """
    if name not in names():
        raise UnknownMechanismError(name, names())
    mechanism: type[Mechanism[Any]] = _imported(_modules()[name]).MECHANISM
    return mechanism


def _imported(module: str) -> Any:
    """Return a module of this package, without ``importlib``, which loads ``warnings``."""
    return __import__(module, fromlist=[""])
