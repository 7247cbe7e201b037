"""Hearsay on the device: telemetry that its users can deny.

Standard library only, but for ``requests``, which the transport imports at the first upload.
Names are loaded when first used, so that ``import client_sdk`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import Client as Client
    from .consent import Consent as Consent
    from .errors import HearsayError as HearsayError
    from .ledger import Caps as Caps
    from .registry import Registry as Registry

__version__ = "0.1.0"

_HOMES = {
    "Caps": "ledger",
    "Client": "client",
    "Consent": "consent",
    "HearsayError": "errors",
    "Registry": "registry",
}
__all__ = ["Caps", "Client", "Consent", "HearsayError", "Registry"]


def __getattr__(name: str) -> object:
    """Load a public name from its module (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
