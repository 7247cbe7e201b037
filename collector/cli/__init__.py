"""The command ``hearsay``: one file a group of commands, found by being in this folder.

A file adds its commands with ``@main.command()`` or ``@main.group()``.  What a command needs is
imported inside it, so that ``hearsay --help`` waits for no numpy and no web framework.
"""

from importlib import import_module
from pkgutil import iter_modules

from .root import main as main

for _module in iter_modules(__path__):
    import_module(f".{_module.name}", __name__)
