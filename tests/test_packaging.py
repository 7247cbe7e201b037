"""Laws of what is shipped and of the pages around it: they agree with the code and each other."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tomllib
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from setuptools import find_namespace_packages

from benchmarks.speed.sdk_costs import device_bytes
from client_sdk import __version__
from collector.core.config import MIN_SECRET

ROOT = Path(__file__).parents[1]
PACKAGES = ("client_sdk", "collector")
DEVICE: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
COLLECTOR: dict[str, Any] = tomllib.loads((ROOT / "collector/pyproject.toml").read_text("utf-8"))
DATA: dict[str, list[str]] = {
    name: glob
    for project in (DEVICE, COLLECTOR)
    for name, glob in project["tool"]["setuptools"]["package-data"].items()
}
NOT_IN_WHEEL = (
    "collector/Dockerfile",
    "collector/LICENSE",
    "collector/README.md",
    "collector/pyproject.toml",
    "collector/requirements.txt",
    "collector/requirements-archive.txt",
    "collector/requirements-issuer.txt",
)  # of the folders of packages: they build the image, or the wheel
APACHE_2_0 = (
    "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # SHA-256 of the text
)
EGG = "hearsay_collector.egg-info"  # of who has built in this folder
HOLDER = "Copyright 2026 Hearsay contributors"
MAX_DEVICE_PART = (
    412_000  # bytes in the wheel; the bar of 350 KB is missed, see docs/guide/costs.md
)
SECRETS = ("write_key", "gateway_key", "read_token", "admin_token", "ingest_url", "users_acl")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def shipped_files(package: str) -> list[str]:
    """Return the files below *package* that are not Python, relative to the package."""
    files = [path for path in (ROOT / package).rglob("*") if path.is_file()]
    return [
        path.relative_to(ROOT / package).as_posix()
        for path in files
        if path.suffix not in {".py", ".pyc"}
        and not {"build", EGG} & {*path.parts}
        and path.relative_to(ROOT).as_posix() not in NOT_IN_WHEEL
    ]


def pins(name: str = "collector/requirements.txt") -> dict[str, Version]:
    """Return the version that the image installs of each distribution in the file *name*."""
    found = re.findall(r"^([a-z0-9-]+)==(\S+)", page(name), re.MULTILINE)
    return {name: Version(version) for name, version in found}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_glob_of_package_data_matches_a_file(package: str) -> None:
    files = shipped_files(package)

    assert [glob for glob in DATA[package] if not any(fnmatch(f, glob) for f in files)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_that_is_not_python_is_in_the_wheel(package: str) -> None:
    unmatched = [
        file for file in shipped_files(package) if not any(fnmatch(file, g) for g in DATA[package])
    ]

    assert unmatched == []


def test_each_wheel_has_its_package_and_nothing_of_another() -> None:
    """The name of the one in TypeScript begins alike, and folders without modules are packages."""
    device = find_namespace_packages(str(ROOT), **DEVICE["tool"]["setuptools"]["packages"]["find"])
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "collector").rglob("*.py")}

    assert {name.partition(".")[0] for name in device} == {"client_sdk"}
    assert COLLECTOR["tool"]["setuptools"]["packages"] == sorted(
        str(folder).replace("/", ".") for folder in folders
    )


def test_the_sdist_has_no_build_result_of_typescript() -> None:
    pruned = re.findall(r"^prune client_sdk_ts/(\S+)$", page("MANIFEST.in"), re.MULTILINE)

    assert pruned == ["build", "dist", "node_modules"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
    assert "py.typed" in DATA[package]


def test_the_device_part_is_pure_python_and_small() -> None:
    """A wheel is a zip file of these files, compressed as here."""
    files = [path for path in (ROOT / "client_sdk").rglob("*") if path.is_file()]
    shipped = [path for path in files if path.suffix != ".pyc"]
    wheel = BytesIO()
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for path in shipped:
            archive.write(path, path.relative_to(ROOT).as_posix())

        assert {path.suffix for path in shipped} == {".dat", ".py", ".typed"}
        assert 0 < device_bytes(archive) <= MAX_DEVICE_PART


def test_the_version_has_one_home_in_each_distribution() -> None:
    candidates = [ROOT / "pyproject.toml", ROOT / "docker-compose.yml", ROOT / NOT_IN_WHEEL[0]]
    candidates += [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    homes = [
        path.relative_to(ROOT).as_posix()
        for path in candidates
        if re.search(rf'[":]{re.escape(__version__)}\b', path.read_text(encoding="utf-8"))
    ]

    assert homes == ["client_sdk/__init__.py"]
    dynamic = DEVICE["tool"]["setuptools"]["dynamic"]
    assert dynamic["version"] == {"attr": "client_sdk.__version__"}
    assert COLLECTOR["project"]["version"] == __version__
    assert f"hearsay-telemetry=={__version__}" in COLLECTOR["project"]["dependencies"]


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## \[([^]]+)\] - (\S+)$", page("CHANGELOG.md"), re.MULTILINE)

    assert versions[0][0] == __version__


def test_the_licence_is_the_text_of_apache_2_0_and_names_its_holder() -> None:
    text = page("LICENSE")
    original = text.replace(HOLDER, "Copyright [yyyy] [name of copyright owner]")

    assert HOLDER in text
    assert hashlib.sha256(original.encode()).hexdigest() == APACHE_2_0
    assert page("collector/LICENSE") == text
    assert {project["project"]["license"] for project in (DEVICE, COLLECTOR)} == {"Apache-2.0"}


def test_the_device_needs_nothing_but_requests() -> None:
    (only,) = DEVICE["project"]["dependencies"]

    assert Requirement(only).name == "requests"


def test_a_clone_has_all_that_the_collector_and_its_extras_need() -> None:
    """There it runs from its folder, and is not installed."""
    project = COLLECTOR["project"]
    wanted = {need for extra in project["optional-dependencies"].values() for need in extra}
    wanted |= {*project["dependencies"]} - {f"hearsay-telemetry=={__version__}"}

    assert wanted - {*DEVICE["project"]["optional-dependencies"]["dev"]} == set()


def test_every_extra_that_somebody_is_told_to_install_exists() -> None:
    extras = {
        project["project"]["name"]: {*project["project"]["optional-dependencies"]}
        for project in (DEVICE, COLLECTOR)
    }
    pages = list(ROOT.glob("*.md"))
    for folder, suffix in (("docs", "md"), ("client_sdk", "py"), ("collector", "py")):
        pages += (ROOT / folder).rglob(f"*.{suffix}")
    told = {
        (name, extra)
        for path in pages
        for name, some in re.findall(r"(hearsay-\w+|\.)\[([a-z,]+)\]'", path.read_text("utf-8"))
        for extra in some.split(",")
    }

    assert len(told) >= 4
    assert {one for one in told if one[1] not in extras.get(one[0], set())} == set()


def test_the_image_installs_every_dependency_as_the_distributions_want_it() -> None:
    wanted = map(
        Requirement, DEVICE["project"]["dependencies"] + COLLECTOR["project"]["dependencies"][1:]
    )

    assert [str(one) for one in wanted if pins()[one.name] not in one.specifier] == []


@pytest.mark.parametrize("name", ["archive", "issuer"])
def test_an_image_that_does_more_has_all_of_the_other_and_what_that_needs(name: str) -> None:
    """Law: it differs by what the extra adds, not by versions."""
    more = pins(f"collector/requirements-{name}.txt")
    extra = map(Requirement, COLLECTOR["project"]["optional-dependencies"][name])

    assert pins().items() <= more.items()
    assert [str(one) for one in extra if more[one.name] not in one.specifier] == []


@pytest.mark.parametrize("name", [one for one in NOT_IN_WHEEL if one.endswith(".txt")])
def test_every_pin_of_the_image_has_its_hashes(name: str) -> None:
    entries = re.split(r"^(?=[a-z])", page(name), flags=re.MULTILINE)[1:]

    assert len(entries) == len(pins(name))
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_a_page_says_that_a_mechanism_is_two_files_and_how_the_second_is_made() -> None:
    text = page("docs/design/extend.md")

    assert "two files" in text
    assert "client_sdk/mechanisms/<folder>/<name>.py" in text
    assert "tests/vectors/<name>.json" in text
    assert "python -m tests.support.enumeration.make_vectors <name>" in text
    assert (ROOT / "tests" / "support" / "enumeration" / "make_vectors.py").is_file()


def test_every_make_target_that_a_page_names_exists_and_is_in_the_help() -> None:
    makefile = page("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    helped = set(re.findall(r'@echo "make ([a-z-]+)', makefile))
    named = {
        target
        for name in ("CONTRIBUTING.md", "SECURITY.md", "README.md", "docker-compose.yml")
        for target in re.findall(r"(?:`|\$ |#   )make ([a-z-]+)", page(name))
    }

    assert named - targets == set()
    assert targets - helped == {"help"}


def test_security_says_how_to_report_and_what_is_not_promised() -> None:
    headings = re.findall(r"^## (.+)$", page("SECURITY.md"), re.MULTILINE)

    assert headings[:4] == [
        "Report a vulnerability",
        "Supported versions",
        "What is promised",
        "What is not promised",
    ]


def test_the_ci_script_can_be_run_and_runs_the_tests() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    runs = re.findall(r"^(?:exec )?make (test\S*)", page(".ci/run"), re.MULTILINE)
    assert runs == ["test", "test-rest"]  # each test once, and the first with Python and a store
    assert page(".ci/run").index("\nmake test\n") < page(".ci/run").index("install faketime")


def test_make_secrets_makes_keys_that_only_their_owner_can_reach(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)

    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert len(set(made.values())) == len(SECRETS)
    assert all(len(secret.strip()) >= MIN_SECRET for secret in made.values())


def test_make_secrets_never_replaces_a_key(tmp_path: Path) -> None:
    first = make_secrets(tmp_path)

    assert make_secrets(tmp_path) == first


def test_git_and_the_image_builder_never_see_a_secret() -> None:
    assert "/secrets/" in page(".gitignore").splitlines()
    assert "!secrets" not in page(".dockerignore")


def make_secrets(folder: Path) -> dict[str, str]:
    """Run ``make secrets`` in *folder* and return what the files hold."""
    make = shutil.which("make")
    assert make is not None, "these tests need make"
    shutil.copy(ROOT / "Makefile", folder)
    for package in ("collector", "client_sdk"):  # the users of the store are defined there
        if not (folder / package).exists():
            (folder / package).symlink_to(ROOT / package)
    subprocess.run([make, "--silent", "secrets"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return {name: (folder / "secrets" / name).read_text(encoding="utf-8") for name in SECRETS}
