"""metrics.toml as metrics: each question with its values, its mechanism and its epochs.

``Registry`` is loaded when first used, so that one module of this room does not load all.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from .contract import Registry as Registry

__all__ = ["Registry"]


def __getattr__(name: str) -> object:
    """Load the public name from its module (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .contract import Registry

    return Registry
