"""Where an application's data folder is, settled once.

A ledger that moved when the application changes its working folder would begin anew there, and a
user's no would be looked for where nobody said it.
"""

from __future__ import annotations

import os
from os import PathLike
from typing import TypeAlias

from .errors import InvalidParameterError

PathOrStr: TypeAlias = str | PathLike[str]


def absolute(data_dir: PathOrStr | None) -> str | None:
    """Return *data_dir* from the root on, with ``~`` as the user's home; None stays None.

    Raises: InvalidParameterError: no path, or an empty one, which would be any folder.
    """
    if data_dir is None:
        return None
    try:
        given = os.fspath(data_dir)
        if isinstance(given, str) and given and "\0" not in given:
            if (path := os.path.expanduser(given)).startswith("~"):
                rule = "must be an absolute path: this user has no home that ~ could stand for"
                raise InvalidParameterError("data_dir", data_dir, rule)
            return os.path.abspath(path)
    except (TypeError, OSError):  # of a working folder that was removed
        pass
    raise InvalidParameterError("data_dir", data_dir, "must be the path of a folder, or None")
