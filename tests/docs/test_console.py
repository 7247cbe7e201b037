"""Commands print what the pages show below them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

import pytest
from click.testing import CliRunner

from collector.cli import main
from tests.docs.pages import PAGES, ROOT, commands
from tests.support.sites.editor_site import TOKEN, editor_app
from tests.support.sites.served import served

RUN: Final[dict[str, str | tuple[str, ...]]] = {  # which commands of a page are run here
    "README.md": "hearsay registry",
    "docs/ask/plan.md": ("hearsay plan", "hearsay registry plan"),
    "docs/ask/query.md": "hearsay query",
    "docs/guide/privacy-budget.md": "hearsay registry",
}
ELSEWHERE: Final = {  # where the other commands of these pages are run
    "README.md": "test_readme.py",
    "docs/guide/embed.md": "test_guide.py",
    "docs/evidence/differencing.md": "test_differencing.py: it draws other numbers each time",
    "docs/ask/release.md": "its metric is no example; tests of releases hold the names of files",
}
CASES: Final = [
    pytest.param(command, shown, id=command)
    for page, prefix in RUN.items()
    for command, shown in commands(page)
    if command.startswith(prefix)
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(editor_app()) as address:
        yield address


@pytest.mark.parametrize(("command", "shown"), CASES)
def test_a_command_prints_what_its_page_shows(
    command: str, shown: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in the root, with the collector of the example's metrics."""
    monkeypatch.chdir(ROOT)
    environment = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": TOKEN}

    done = CliRunner().invoke(main, shlex.split(command)[1:], env=environment)

    assert done.exit_code == 0, done.output
    assert done.output == shown


def test_no_output_is_shown_that_nothing_runs() -> None:
    """A block that no test looks at would grow wrong unseen."""
    left = [
        (page, command)
        for page in (str(path.relative_to(ROOT)) for path in PAGES)
        for command, _ in commands(page)
        if page not in ELSEWHERE and not command.startswith(RUN.get(page, "\n"))
    ]

    assert left == []
