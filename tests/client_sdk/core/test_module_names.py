"""Laws of the list of modules: what ``pkgutil`` says, wherever the package is."""

from __future__ import annotations

import py_compile
import sys
import zipfile
from pathlib import Path
from pkgutil import iter_modules

from client_sdk.core.paths import module_names
from client_sdk.mechanisms import items


def test_the_modules_of_a_folder_are_those_that_pkgutil_finds() -> None:
    """The folder of mechanisms, read without loading what pkgutil loads."""
    folders = items.__path__

    assert module_names(folders) == {module.name for module in iter_modules(folders)}


def test_the_modules_of_an_archive_are_found(tmp_path: Path) -> None:
    """A program may carry the SDK in a zip file."""
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("package/__init__.py", "")
        archive.writestr("package/grr.py", "")

    assert module_names([str(tmp_path / "app.zip" / "package")]) == {"grr"}


def test_modules_that_are_compiled_only_are_found(tmp_path: Path) -> None:
    """A program may carry no sources."""
    (tmp_path / "grr.py").write_text("")
    py_compile.compile(str(tmp_path / "grr.py"), cfile=str(tmp_path / "grr.pyc"))
    (tmp_path / "grr.py").unlink()
    sys.path_importer_cache.pop(str(tmp_path), None)

    assert module_names([str(tmp_path)]) == {"grr"}
