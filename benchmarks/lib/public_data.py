"""Public data of real people, where this machine has them; they are too large to be shipped."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

FOLDER: Final = "HEARSAY_PUBLIC_DATA"  # the name of a variable


def opened(name: str, settings: Mapping[str, str] = os.environ) -> TextIO:
    """Return the published file *name* as text, compressed by gzip or not.

    Raises:
        SystemExit: It is not there.
    """
    folder = settings.get(FOLDER)
    if folder:
        for path in (Path(folder) / f"{name}.gz", Path(folder) / name):
            if path.exists():
                return gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    rule = f"must be a folder with {name}; examples/data/README.md says where it is published"
    raise SystemExit(f"{FOLDER}={folder or 'missing'}: {rule}")
