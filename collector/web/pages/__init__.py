"""The pages that people read: server-rendered, complete without a script; the folder is the list.

A module that has a ``blueprint`` is a page, or several of one subject; others are what pages share.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from flask import Blueprint


def blueprints() -> Iterator[Blueprint]:
    """Yield the routes of each page, in the order of the alphabet."""
    for each in iter_modules(__path__):
        module = import_module(f".{each.name}", __name__)
        if hasattr(module, "blueprint"):
            yield module.blueprint
