"""What an engine drives, and the registry that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .consent import ConsentSwitch
from .dataclass import dataclass
from .recorder import Recorder
from .registry import Registry, RegistryFile
from .stats import Stats
from .store import Store
from .uploader import Uploader

if TYPE_CHECKING:
    from .history import History


@dataclass(frozen=True)
class Parts:
    """What an engine drives, made by a client or a gateway."""

    recorder: Recorder
    uploader: Uploader
    store: Store
    stats: Stats
    switch: ConsentSwitch
    history: History | None
    clock: Callable[[], float]
    durable: bool  # whether what waits outlives the process


def registry_for(
    registry: Registry | RegistryFile, segment: Mapping[str, str] | None
) -> tuple[Registry, Mapping[str, str]]:
    """Return the registry, read if it is a path, and a segment that it declares.

    Raises: RegistryError.
    """
    chosen = registry if isinstance(registry, Registry) else Registry.from_file(registry)
    segment = {} if segment is None else segment
    chosen.require_segment(segment)
    return chosen, segment
