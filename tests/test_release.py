"""Laws of the release: tag, version and changelog agree, and the workflow names what exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from client_sdk import __version__
from tests.support.release import CHANGELOG, notes, problems, with_links_below

ROOT: Final = Path(__file__).parents[1]
MOST: Final = 125_000  # characters that the page of a release may have
TEXT: Final = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
WORKFLOW: Final[dict[Any, Any]] = yaml.safe_load(TEXT)
JOBS: Final[dict[str, Any]] = WORKFLOW["jobs"]
STEPS: Final[list[dict[str, Any]]] = [step for job in JOBS.values() for step in job["steps"]]
SCRIPTS: Final = [step["run"] for step in STEPS if "run" in step]
CHANGES: Final = """# Changelog

## [0.2.0] - 2027-01-31

### Added

- What is new.

## [0.1.0] - 2026-12-31

- The first.
"""


@pytest.mark.parametrize(
    ("tag", "version", "change", "words"),
    [
        ("v0.2.0", "0.2.0", ("", ""), None),
        ("0.2.0", "0.2.0", ("", ""), "tag=0.2.0: must be v0.2.0"),
        ("v0.1.0", "0.2.0", ("", ""), "tag=v0.1.0: must be v0.2.0"),
        ("v0.3.0", "0.3.0", ("", ""), "CHANGELOG.md=0.2.0: must begin with 0.3.0"),
        ("v0.1.0", "0.1.0", ("", ""), "CHANGELOG.md=0.2.0: must begin with 0.1.0"),
        ("v0.2.0", "0.2.0", ("2027-01-31", "Unreleased"), "needs the day of the release"),
        ("v0.2.0", "0.2.0", ("### Added\n\n- What is new.", ""), "must say what has changed"),
        ("v0.2.0", "0.2.0", ("## [", "## "), "CHANGELOG.md=None: must begin with 0.2.0"),
    ],
)
def test_a_tag_is_released_only_as_this_version_with_a_dated_section(
    tag: str, version: str, change: tuple[str, str], words: str | None
) -> None:
    found = list(problems(tag, version, CHANGES.replace(*change)))

    assert [words in problem for problem in found if words] == ([True] if words else [])
    assert bool(found) == (words is not None)


def test_the_notes_of_a_release_are_its_own_section() -> None:
    assert notes("0.2.0", CHANGES) == "### Added\n\n- What is new."
    assert notes("0.1.0", CHANGES) == "- The first."
    with pytest.raises(LookupError, match=r"CHANGELOG\.md=0\.3\.0: has no such section"):
        notes("0.3.0", CHANGES)


def test_the_notes_of_this_version_fit_the_page_of_a_release() -> None:
    assert 0 < len(notes(__version__, CHANGELOG.read_text(encoding="utf-8"))) <= MOST


def test_a_package_index_shows_the_readme_without_a_relative_link() -> None:
    """Law: each leads to a file of the commit, and nothing else of the page changes."""
    url, page = "https://forge.example/hearsay/blob/1a2b", (ROOT / "README.md").read_text("utf-8")

    shown = with_links_below(f"{url}/", page)

    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    files = [link.removeprefix(f"{url}/").partition("#")[0] for link in links if url in link]
    assert len(files) > 30
    assert [link for link in links if not link.startswith("https://")] == []
    assert [file for file in files if not (ROOT / file.removesuffix("?raw=true")).exists()] == []
    assert shown.replace(f"{url}/", "").replace("?raw=true", "") == page
    assert [script for script in SCRIPTS if "make dist PAGES=" in script]


def test_only_a_tag_releases() -> None:
    """YAML reads the word on as true."""
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}


def test_each_job_has_the_rights_that_it_needs_and_no_more() -> None:
    """Law: what runs tests cannot publish, and what publishes waits for it."""
    assert WORKFLOW["permissions"] == {}
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    assert {
        name for name, job in JOBS.items() if job["permissions"].get("contents") == "write"
    } == {"page"}
    assert {name for name, job in JOBS.items() if "id-token" in job["permissions"]} == {
        "image",
        "index",
        "npm",
    }
    assert JOBS["index"]["environment"] == "pypi"
    assert JOBS["npm"]["environment"] == "npm"
    assert {name: job.get("needs") for name, job in JOBS.items()} == {
        "build": None,
        "image": "build",
        "index": "build",
        "npm": "build",
        "page": ["image", "index", "npm"],
    }


def test_the_tag_is_held_against_the_version_before_anything_is_built() -> None:
    first = next(step for step in JOBS["build"]["steps"] if "run" in step)

    assert 'tests.support.release check "$GITHUB_REF_NAME"' in first["run"]


def test_every_action_is_pinned_by_its_major_version_or_its_commit() -> None:
    actions = [step["uses"] for step in STEPS if "uses" in step]

    loose = [a for a in actions if not re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", a)]
    assert len(actions) > 8
    assert loose == []


def test_no_expression_stands_in_a_script_where_a_tag_could_be_a_command() -> None:
    assert [script for script in SCRIPTS if "${{" in script] == []


def test_the_npm_package_is_published_as_it_was_packed_with_its_provenance() -> None:
    """Law: what publishes runs no script of a package and has no token."""
    packs = [script for script in SCRIPTS if "npm pack" in script]
    publishes = [script for script in SCRIPTS if "npm publish" in script]

    assert [script.count("--ignore-scripts") for script in packs] == [2]
    # npm takes no provenance of another repository than the one that the package names
    assert '"repository.url=git+$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git"' in packs[0]
    assert publishes == ["npm publish --provenance --access public ./npm/*.tgz"]
    assert "NODE_AUTH_TOKEN" not in TEXT


def test_every_script_is_one_that_bash_can_read() -> None:
    for script in SCRIPTS:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_every_target_module_and_file_that_the_workflow_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake ([a-z-]+)", "\n".join(SCRIPTS))
    modules = re.findall(r"python -m (tests[\w.]+)", TEXT)
    files = re.findall(r"(?<![\w/])(?:collector|\.ci)/[\w./-]+", TEXT)

    assert (targets, set(modules)) == (["dist", "install-test"], {"tests.support.release"})
    assert len(files) == 3
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    assert [name for name in files if not (ROOT / name).is_file()] == []
