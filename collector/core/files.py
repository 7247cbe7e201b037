"""Files that commands write: whole or not at all; one line says what stopped it."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ConfigError


def put_text(path: Path, text: str, name: str) -> None:
    """Put *text* in place of the file at *path*, also through a power cut.

    What is no file, such as a pipe or a terminal, is written to as it is.
    Raises: ConfigError: it cannot be written; says so of the setting *name*.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        whole = path.resolve()  # a link stays one
        part = whole.with_name(f".{whole.name}.{os.getpid()}.part")
        try:
            with open(part, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, whole)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(whole.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # or a power cut could bring the old file back
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigError(name, path, f"cannot be written: {error.strerror}") from error
