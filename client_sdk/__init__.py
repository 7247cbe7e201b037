"""Hearsay on the device: telemetry that its users can deny.

Standard library only, but for ``requests``, which the transport imports at the first upload.
Names are loaded when first used, so that ``import client_sdk`` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from .client import Client as Client
    from .core.errors import HearsayError as HearsayError
    from .privacy.caps import Caps as Caps
    from .privacy.consent import Consent as Consent
    from .registry.contract import Registry as Registry
    from .upload.tokens import Issuer as Issuer
    from .upload.uploader import Delivery as Delivery

__version__ = "0.1.0"

_HOMES = {
    "Caps": "privacy.caps",
    "Client": "client",
    "Consent": "privacy.consent",
    "Delivery": "upload.uploader",
    "HearsayError": "core.errors",
    "Issuer": "upload.tokens",
    "Registry": "registry.contract",
}
__all__ = ["Caps", "Client", "Consent", "Delivery", "HearsayError", "Issuer", "Registry"]


def __getattr__(name: str) -> object:
    """Load a public name from its module (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(__import__(f"{__name__}.{_HOMES[name]}", fromlist=[name]), name)
