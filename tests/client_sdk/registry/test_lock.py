"""``metrics.lock``: what was chosen stays, whatever release reads the registry."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from client_sdk import Client
from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.lock import lock_text
from collector.core.catalog import Catalog
from collector.planning.compilation import compiled
from tests.support.device.every_type import registry_text
from tests.support.device.registries import CATEGORY, NUMBER, TWO_LAYER, file_with

AUTO = file_with({**NUMBER, "type": '"duration"', "mechanism": '"auto"'})
BEFORE = file_with({**NUMBER, "type": '"duration"', "mechanism": '"hybrid"'})


def lock_for(text: str) -> str:
    """Return the lock that a release writes which chooses as *text* names it."""
    return lock_text(Registry.from_text(text).metrics)


def problems(text: str, lock: str) -> tuple[str, ...]:
    with pytest.raises(RegistryError) as caught:
        Registry.from_text(text, lock)
    return caught.value.problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A registry on auto, whose lock is of a release that chose hybrid."""
    (tmp_path / "metrics.toml").write_text(AUTO, encoding="utf-8")
    (tmp_path / "metrics.lock").write_text(lock_for(BEFORE), encoding="utf-8")
    return tmp_path


def test_every_reader_of_the_file_has_what_the_lock_says(folder: Path) -> None:
    path = folder / "metrics.toml"
    was, would = (Registry.from_text(text).metric("m") for text in (BEFORE, AUTO))

    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.write(path, "metrics.toml")
        archive.write(folder / "metrics.lock", "metrics.lock")
    read = [Registry.from_file(path), Registry.from_file(str(path))]
    read.append(Registry.from_file(zipfile.Path(folder / "app.zip", "metrics.toml")))
    read.append(Catalog.from_files([str(path)]).registries[0])
    with Client(
        "https://collector.invalid", "k", path, consent="granted", data_dir=None, mode="manual"
    ) as client:
        read.append(client.registry)

    assert would.digest != was.digest
    assert {registry.metric("m").digest for registry in read} == {was.digest}


@pytest.mark.parametrize(
    "text",
    [
        registry_text(),
        file_with(TWO_LAYER),
        file_with(CATEGORY, longitudinal='"permanent"', mechanism='"auto"'),
        file_with(NUMBER, mechanism='"auto"', ask='["quantiles"]'),
    ],
    ids=["every type", "two_layer", "permanent", "quantiles"],
)
def test_a_lock_of_this_release_changes_no_digest_and_is_written_again_byte_for_byte(
    text: str,
) -> None:
    plain = Registry.from_text(text)
    lock = lock_text(plain.metrics)

    locked = Registry.from_text(text, lock)

    assert [metric.digest for metric in locked] == [metric.digest for metric in plain]
    assert lock_text(locked.metrics) == lock


def test_a_compiled_registry_is_read_without_the_lock_beside_it(folder: Path) -> None:
    registry = Registry.from_text(AUTO)
    (folder / "metrics.json").write_text(compiled(registry), encoding="ascii")

    read = Registry.from_file(folder / "metrics.json")

    assert read.metric("m").digest == registry.metric("m").digest


def test_what_is_compiled_is_what_the_lock_says(folder: Path) -> None:
    text = compiled(Registry.from_file(folder / "metrics.toml"))

    assert Registry.from_text(text).metric("m").mechanism_name == "hybrid"


LOCK = lock_for(BEFORE)
LINE = LOCK.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "lock", "words"),
    [
        (
            AUTO.replace('"1.0"', '"2.0"'),
            LOCK,
            "metrics.m: does not fit its line in metrics.lock: ",
        ),
        (AUTO, LOCK.replace("hybrid", "grr"), "mechanism=grr: does not fit this type"),
        (AUTO, LOCK.replace("hybrid", "magic"), "mechanism=magic: is not known"),
        (AUTO, LOCK.replace("hybrid", "minimax"), "is not a parameter of minimax"),
        (BEFORE.replace("hybrid", "duchi"), LOCK, "its keys, or that line, were changed"),
        (AUTO, LOCK.replace(LINE, ""), "metrics.m: is not in metrics.lock; "),
        (
            AUTO,
            LOCK + LINE.replace("m =", "old =", 1),
            "metrics.lock: 'old' is no metric of metrics",
        ),
    ],
)
def test_a_lock_that_disagrees_is_one_sentence_with_what_registry_lock_would_write(
    text: str, lock: str, words: str
) -> None:
    (problem,) = problems(text, lock)

    assert words in problem
    assert "; run hearsay registry lock metrics.toml, which " in problem
    if "removes the line" not in problem:
        written = problem.partition("which writes: ")[2] or problem.partition("which adds: ")[2]
        fixed = LOCK.replace(LINE, written)
        assert Registry.from_text(text, fixed).metric("m").digest


@pytest.mark.parametrize(
    "lock",
    ["", "{", "schema = 2\n[metrics]\n", "schema = 1\nmetrics = 1", f"{LOCK}x = 1", LOCK[:-9]],
)
def test_a_broken_lock_is_one_sentence_that_says_how_to_get_a_good_one(lock: str) -> None:
    """Never is it passed over: the digests would change without a word."""
    (problem,) = problems(AUTO, lock)

    assert problem.startswith("metrics.lock: ")
    assert problem.endswith(
        "put it back from version control, or delete it and run hearsay registry lock"
    )


def test_a_registry_that_is_wrong_itself_says_so_and_nothing_of_its_lock() -> None:
    (problem,) = problems(AUTO.replace('every = "7d"', 'every = "2d"'), LOCK)

    assert problem.startswith("metrics.m.every: ")
