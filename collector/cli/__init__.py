"""The command ``hearsay``: one file a group of commands, found by being in this folder.

A file adds its commands with ``@main.command()`` or ``@main.group()``.  What a command needs is
imported inside it, so that ``hearsay --help`` waits for no numpy and no web framework.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

if find_spec("click") is None:  # the device part alone was installed, and brings the command, too
    raise SystemExit(
        "hearsay: the collector is not installed: pip install 'hearsay-telemetry[collector]';"
        " of a device, python -m client_sdk shows what is sent"
    )

from .root import main as main

for _module in iter_modules(__path__):
    import_module(f".{_module.name}", __name__)
