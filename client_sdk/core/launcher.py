"""The command ``hearsay``, started here because another package may be called ``collector``.

The command is the collector's, which knows the device and never the other way round: what is
imported is therefore a name, and all that is known of it is that it lies next to this package.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from .typing import Final

_PACKAGE: Final = "collector"
_COMMAND: Final = f"{_PACKAGE}.cli"


def main() -> object:
    """Run the command; exit with one line where it is missing, or another has its name."""
    home = os.path.realpath(os.path.join(__file__, *[os.pardir] * 3, _PACKAGE))
    spec = find_spec(_PACKAGE)
    there = list(spec.submodule_search_locations or ()) if spec is not None else []
    if spec is None:
        raise SystemExit(
            "hearsay: the collector is not installed: pip install hearsay-collector;"
            " of a device, python -m client_sdk shows what is sent"
        )
    if home not in map(os.path.realpath, there):
        raise SystemExit(
            f"hearsay: {_PACKAGE}={spec.origin or 'a folder'}: must be {home}; another package or "
            "folder of that name comes first: install hearsay-collector into an environment of its "
            "own"
        )
    return import_module(_COMMAND).main()
