"""The caps of the application, published beside the ledger for readers without the application.

Only to be shown: what is enforced are the caps compiled into the application, never these.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from .core.dataclass import as_dict
from .meta import property_of, set_property
from .privacy.caps import Caps

if TYPE_CHECKING:
    from .schema import Transaction

_KEY: Final = "caps"


def publish_caps(tx: Transaction, caps: Caps) -> None:
    """Store *caps*, unless they are those that were published last."""
    text = json.dumps(as_dict(caps))
    if property_of(tx, _KEY) != text:
        set_property(tx, _KEY, text)


def published_caps(tx: Transaction) -> dict[str, int]:
    """Return the caps published last, in nano-epsilon by name; empty if none can be read."""
    try:
        caps = json.loads(str(property_of(tx, _KEY)))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(caps, dict) or any(type(cap) is not int for cap in caps.values()):
        return {}
    return caps
