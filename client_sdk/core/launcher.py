"""The command ``hearsay``, started from here because the name ``collector`` may be somebody else's.

The command is the collector's, which knows the device and never the other way round: what is
imported is therefore a name, and all that is known of it is that it lies beside this package.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from .typing import Final

_PACKAGE: Final = "collector"
_COMMAND: Final = f"{_PACKAGE}.cli"


def main() -> object:
    """Run the command; exit with one line where another package has the collector's name."""
    home = os.path.realpath(os.path.join(__file__, *[os.pardir] * 3, _PACKAGE))
    spec = find_spec(_PACKAGE)
    there = list(spec.submodule_search_locations or ()) if spec is not None else []
    if home not in map(os.path.realpath, there):
        name = "missing" if spec is None else spec.origin or "a folder"
        raise SystemExit(
            f"hearsay: {_PACKAGE}={name}: must be {home}; another package or folder of that name "
            "comes first: install hearsay-telemetry into an environment of its own"
        )
    return import_module(_COMMAND).main()
