"""Mechanisms, one file each.  The file name is the wire name, and the folder is the list.

Law of this layer: no clock, no store, no network, no logging; integers and fractions on the
sampling path; numpy is handed in by the collector and never imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..core.errors import IncompleteInstallationError, UnknownMechanismError
from ..core.paths import module_names
from ._base import MAX_DOMAIN_SIZE as MAX_DOMAIN_SIZE
from ._base import MAX_REPORTS as MAX_REPORTS
from ._base import Checked as Checked
from ._base import Debiased as Debiased
from ._base import EpsilonLike as EpsilonLike
from ._base import Mechanism as Mechanism
from ._base import Reach as Reach
from ._distribution import DistributionMechanism as DistributionMechanism
from ._exact import parse_epsilon as parse_epsilon
from ._frequency import FrequencyOracle as FrequencyOracle
from ._frequency import ItemMechanism as ItemMechanism
from ._key_value import KeyValueMechanism as KeyValueMechanism
from ._key_value import Pairs as Pairs
from ._mean import MeanMechanism as MeanMechanism
from ._mixture import Mixture as Mixture
from ._sets import SetMechanism as SetMechanism
from ._supports import Channel as Channel
from ._supports import SupportReports as SupportReports
from ._text import END as END
from ._text import MAX_LENGTH as MAX_LENGTH
from ._text import TextMechanism as TextMechanism


@cache  # reading a folder takes longer than building most mechanisms
def names() -> tuple[str, ...]:
    """Return the wire names of all mechanisms, sorted: the files of this folder.

    Raises: IncompleteInstallationError: there is none.
    """
    found = tuple(sorted(name for name in module_names(__path__) if not name.startswith("_")))
    if not found:
        raise IncompleteInstallationError(
            f"{__name__}: is empty: whatever bundled this application left its modules out, since"
            " they are imported by name; have it collect all submodules of client_sdk"
        )
    return found


@cache
def load(name: str) -> type[Mechanism[Any]]:
    """Return the mechanism class of wire name *name*.

    Raises: UnknownMechanismError: there is no such file.
    """
    if name not in names():
        raise UnknownMechanismError(name, names())
    mechanism: type[Mechanism[Any]] = import_module(f"{__name__}.{name}").MECHANISM
    return mechanism
