"""The compiled registries that the package's own tests read are those of this project."""

from __future__ import annotations

from tests.client_sdk_ts.registries import DATA, written


def test_the_data_of_the_package_is_what_its_registries_compile_to() -> None:
    """If not: python -m tests.client_sdk_ts.registries."""
    files = {path.name: path.read_text("utf-8") for path in DATA.iterdir()}

    assert files == written()
