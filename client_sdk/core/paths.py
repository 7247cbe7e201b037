"""Paths: an application's data folder, files for one user only, and the modules of a package.

A data folder is settled once.  A ledger that moved when the application changes its working folder
would start empty there, and a user's opt-out would be looked up in the wrong place.

Files and folders are made for one user only, and never through a link.  If root makes them in
another user's folder, as under ``sudo``, that user owns them: otherwise the application could
never write there again as itself.
"""

from __future__ import annotations

import os
from os import PathLike

from .errors import InvalidParameterError

TYPE_CHECKING = False  # type checkers take it for true; a program that ends at once loads this

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.resources.abc import Traversable

    from .typing import Final, TypeAlias

PathOrStr: TypeAlias = str | PathLike[str]
RegistryFile: TypeAlias = "PathOrStr | Traversable"  # a file, or a resource of a package

# no link is followed, and no pipe waited for; Windows has neither
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_SUFFIX = ".py"


def absolute(data_dir: PathOrStr | None) -> str | None:
    """Return *data_dir* from the root on, with ``~`` as the user's home; None stays None.

    Raises: InvalidParameterError: no path, or an empty one, which would be any folder.
    """
    if data_dir is None:
        return None
    try:
        path = os.fspath(data_dir)
        if isinstance(path, str) and path and "\0" not in path:
            if (expanded := os.path.expanduser(path)).startswith("~"):
                rule = "must be an absolute path: this user has no home that ~ could stand for"
                raise InvalidParameterError("data_dir", data_dir, rule)
            return os.path.abspath(expanded)
    except (TypeError, OSError):  # the working folder was removed
        pass
    raise InvalidParameterError("data_dir", data_dir, "must be the path of a folder, or None")


def make_folder(path: str) -> None:
    """Make the folder at *path* and those above it, where there are none.  Raises OSError."""
    missing, above = [], path
    while not os.path.exists(above):
        missing.append(above)
        above = os.path.dirname(above) or os.curdir
    os.makedirs(path, mode=0o700, exist_ok=True)
    if not missing or not _is_root():
        return
    for folder in reversed(missing):
        try:
            descriptor = os.open(folder, os.O_RDONLY | _NO_LINK)
        except OSError:  # Windows opens no folders
            continue
        _give(descriptor, folder)
        os.close(descriptor)


def create(path: str) -> int:
    """Return a descriptor that writes to a new file.  Raises FileExistsError, OSError."""
    return _open(path, os.O_EXCL)


def create_or_open(path: str) -> int:
    """Return a descriptor that writes to the beginning of a file, new or not.  Raises OSError."""
    return _open(path, 0)


def open_existing(path: str) -> int:
    """Return a descriptor that reads and writes a file that is no link.  Raises OSError."""
    return os.open(path, os.O_RDWR | _NO_LINK)


def _open(path: str, exclusive: int) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | exclusive | _NO_LINK, 0o600)
    _give(descriptor, path)
    return descriptor


def _give(descriptor: int, path: str) -> None:
    """Give what root made to the owner of the folder that it lies in."""
    if _is_root():
        try:
            owner = os.stat(os.path.dirname(path) or os.curdir)
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        except OSError:  # some file systems have no owners, or refuse to change them
            return


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


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
    if names := names - {"__init__"}:
        return names
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(paths)}
