"""A small disk, for tests of what happens when it is full or cannot be written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SIZE = 1024 * 1024  # bytes


@contextmanager
def small_disk(folder: Path, size: int = SIZE) -> Iterator[Path]:
    """Mount a file system of *size* bytes at *folder* until the block ends, or skip the test."""
    folder.mkdir()
    options = f"size={size},mode=700"
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system can be mounted by root on Linux only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Take up all the room that is left, and return the file that does."""
    path = folder / "of-somebody-else"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(os.urandom(4_096))
    return path


def remount(folder: Path, how: str) -> None:
    """Make the file system read only ("ro") or writable again ("rw")."""
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)
