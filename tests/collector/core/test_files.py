"""A file is written whole or not at all, and nothing else is touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from collector.core.errors import ConfigError
from collector.core.files import put_text


def test_a_file_is_replaced_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for text in ("a much longer text", "ε"):
        put_text(path, text, "output")

        assert path.read_text(encoding="utf-8") == text
        assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_whole_leaves_the_old_file(tmp_path: Path) -> None:
    """Half of a model would be refused by every device that fetches it."""
    path = tmp_path / "model.json"
    put_text(path, "old", "output")

    with pytest.raises(UnicodeEncodeError):
        put_text(path, "new" * 100_000 + "\ud800", "output")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "model.json"

    with pytest.raises(ConfigError, match=r"output=.*cannot be written: No such file"):
        put_text(missing, "text", "output")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "real.json", tmp_path / "link.json"
    path.write_text("old")
    link.symlink_to(path)

    put_text(link, "new", "output")

    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As /dev/stdout is, which an administrator could replace by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        put_text(path, "text", "output")

        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
