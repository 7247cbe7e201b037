"""Every link leads to a file and to a heading of it, and every page named in the code exists."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT

LINK: Final = re.compile(r"!?\[[^\]]*\]\((?!https?:)([^)\s]*)\)")
NAMED: Final = re.compile(r'(?<!b")\bdocs/[\w/-]+\.md(?:#[\w-]+)?')  # bytes seed a benchmark
PLACE: Final = re.compile(r"`((?:client_sdk|collector|tests|docs)/[\w./]+)`")
CODE: Final = re.compile(r"```.*?```", re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of *page*, as GitHub makes them of headings."""
    text = CODE.sub("", page.read_text("utf-8"))
    titles = [
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {*titles, *re.findall(r'<a id="([\w-]+)"', text)}


def is_broken(link: str, base: Path) -> bool:
    """Whether *link*, written in folder *base*, leads nowhere."""
    name, _, anchor = link.partition("#")
    page = (base / name).resolve()
    return not page.exists() or (page.suffix == ".md" and anchor not in {"", *anchors(page)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    links = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    links = [link if link[0] != "#" else page.name + link for link in links]

    assert [link for link in links if is_broken(link, page.parent)] == []


def test_every_page_named_in_the_code_exists() -> None:
    """With its section: messages and alerts send operators there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kinds = {".py", ".yml", ".toml", ".md", ".html", ".txt", ".conf"}
    files = [ROOT / name for name in listed.stdout.split("\0") if Path(name).suffix in kinds]
    named = {
        (link, str(file.relative_to(ROOT)))
        for file in files
        if file.exists() and not file.is_relative_to(ROOT / "tests" / "docs")
        for link in NAMED.findall(file.read_text("utf-8"))
    }

    assert len(named) > 50
    assert sorted((link, file) for link, file in named if is_broken(link, ROOT)) == []


def test_every_path_that_a_contributor_is_told_exists_and_no_room_is_left_out() -> None:
    files = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "design" / "extend.md"
    text = "".join(file.read_text("utf-8") for file in files)
    paths = set(PLACE.findall(text))
    rooms = {
        str(path.parent.relative_to(ROOT))
        for package in ("client_sdk", "collector")
        for path in (ROOT / package).glob("*/__init__.py")
    }

    assert len(paths) > 40
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
    assert sorted(rooms - paths) == []


def test_the_picture_of_the_way_names_rooms_and_keys_that_exist() -> None:
    drawn = (ROOT / "docs" / "images" / "data-way.svg").read_text("utf-8")
    rooms = {
        room for line in re.findall(r'"room"[^>]*>([^<]+)', drawn) for room in line.split(" · ")
    }
    keys = set(re.findall(r"p:\{s\}:\w+", drawn))
    model = (ROOT / "docs" / "design" / "data-model.md").read_text("utf-8")

    assert len(rooms) > 10
    packages = ROOT / "client_sdk", ROOT / "collector"
    assert {room for room in rooms if not any((one / room).is_dir() for one in packages)} == set()
    assert {key for key in keys if f"`{key}" not in model} == set()
    assert len(keys) == 4


def test_a_planted_link_to_a_missing_file_or_heading_is_found() -> None:
    """The control of the tests above."""
    assert is_broken("docs/no-such-page.md", ROOT)
    assert is_broken("README.md#no-such-heading", ROOT)
    assert not is_broken("README.md", ROOT)
