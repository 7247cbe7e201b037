"""The modules of a package, found without loading what ``pkgutil`` loads."""

from __future__ import annotations

import os
from collections.abc import Iterable

_SUFFIX = ".py"


def module_names(folders: Iterable[str]) -> set[str]:
    """Return the names of the modules in *folders*, the ``__path__`` of a package.

    A plain folder is read as it is.  For a package in an archive, or compiled only, ``pkgutil`` is
    asked, which loads ``inspect``, and much with it.
    """
    paths = list(folders)
    try:
        files = [file for path in paths for file in os.listdir(path)]
    except OSError:  # an archive is no folder
        files = []
    names = {file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX)}
    return names - {"__init__"} or _ask(paths)


def _ask(paths: list[str]) -> set[str]:
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(paths)}
