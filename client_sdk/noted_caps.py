"""The caps of the application, noted beside the ledger for who reads it without the application.

Only to be shown: what is enforced are the caps compiled into the application, never these.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from . import meta
from .caps import Caps
from .dataclass import as_dict

if TYPE_CHECKING:
    from .store import Transaction

_KEY: Final = "caps"


def note(tx: Transaction, caps: Caps) -> None:
    """Remember *caps*, if they are not those that were noted last."""
    text = json.dumps(as_dict(caps))
    if meta.get(tx, _KEY) != text:
        meta.put(tx, _KEY, text)


def noted(tx: Transaction) -> dict[str, int]:
    """Return the caps that were noted last, in nano-epsilon by name; empty if none can be read."""
    try:
        caps = json.loads(str(meta.get(tx, _KEY)))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(caps, dict) or any(type(cap) is not int for cap in caps.values()):
        return {}
    return caps
