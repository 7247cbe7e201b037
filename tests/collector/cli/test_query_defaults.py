"""``hearsay query`` takes the defaults of the pages, and says on its own terms what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from client_sdk.registry import Registry
from collector.analytics.verb import names
from collector.cli import main
from collector.client import Client
from collector.core.config import Config
from collector.query import Query
from collector.query.completion import completed
from collector.web import create_app
from tests.support.crowds.asked import store
from tests.support.crowds.uploads import NOON, READ_TOKEN, TODAY
from tests.support.device.every_type import registry_text as every_type
from tests.support.device.registries import BOOLEAN, CATEGORY, file_with, table
from tests.support.sites.served import served
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

SEGMENTS: Final = '[segments]\nversion = ["1.2", "1.3"]\narm = ["treated", "control"]\n'
OF_BOTH: Final = {"every": '"1d"', "min_reports": "100", "segments": '["version", "arm"]'}
TEXT: Final = file_with({**BOOLEAN, **OF_BOTH}) + table("theme", {**CATEGORY, **OF_BOTH})
DECLARED: Final = TEXT.replace("[segments]\n", SEGMENTS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    path, storage = tmp_path_factory.mktemp("registry") / "metrics.toml", MemoryStorage()
    path.write_text(DECLARED, encoding="utf-8")
    for metric in Registry.from_file(path):
        for version, arm in (("1.2", "control"), ("1.3", "treated"), ("1.3", "control")):
            store(storage, metric, TODAY - 2, 1_000, version=version, arm=arm)
    settings = {"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": READ_TOKEN}
    return create_app(Config.from_env(settings), storage, lambda: NOON, MemoryCredentials())


@pytest.fixture(scope="module")
def url(site: Flask) -> Iterator[str]:
    with served(site) as address:
        yield address


def ask(url: str, *arguments: str) -> Result:
    known: dict[str, str | None] = {n: None for n in os.environ if n.startswith("HEARSAY_")}
    known |= {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
    return CliRunner().invoke(main, ["query", *arguments], env=known)


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (["--verb", "lift"], ({"dimension": "arm", "control": "control"}, ["arm"])),
        (
            ["--verb", "lift", "--dimension", "version"],
            ({"dimension": "version", "control": "1.2"}, ["version"]),
        ),
        (
            ["--verb", "lift", "--dimension", "arm", "--option", "control=treated"],
            ({"dimension": "arm", "control": "treated"}, ["arm"]),
        ),
        (["--verb", "segments"], ({}, ["arm"])),
        (["--verb", "adoption"], ({}, ["version"])),
        (["--verb", "compare"], ({}, [])),
        (["--verb", "compare", "--option", "by=arm"], ({"by": "arm"}, ["arm"])),
    ],
)
def test_what_is_left_out_is_taken_as_on_the_pages_and_told_with_the_answer(
    url: str, arguments: list[str], taken: tuple[dict[str, Any], list[str]]
) -> None:
    result = ask(url, "m", *arguments)
    options = dict(part.split("=") for part in arguments if "=" in part)
    by = [arguments[i + 1] for i, part in enumerate(arguments) if part == "--dimension"]
    with Client(url, READ_TOKEN) as client:
        query = client.query("m", verb=arguments[1], options=options, dimensions=by).meta["query"]

    assert result.exit_code == 0, result.output
    assert (query["options"], query["dimensions"]) == taken
    assert query["against"] == ("previous" if taken == ({}, []) else None)


@pytest.mark.parametrize("verb", names())
def test_a_question_is_completed_once_and_for_all(verb: str) -> None:
    """Law: what was completed stays as it is, whatever the metric."""
    for metric in (*Registry.from_text(DECLARED), *Registry.from_text(every_type())):
        query = completed(Query(metrics=[metric.name], verb=verb), metric)

        assert completed(query, metric) == query


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["theme", "--verb", "segments"], "--option item=…: must be one of: "),
        (["m", "--option", "k=5"], "--option: known are none"),
        (["m", "--dimension", "armm"], "--dimension: metric=m has the dimensions time, "),
        (["m", "--filter", "arm=x"], "--filter: arm has the values control, treated"),
        (["m", "--range", "9q"], "--range: must be one of day, 7d, "),
        (["m", "--from", "2026-13-01", "--to", "2026-01-02"], "--from: must be a date"),
        (["m", "--from", "2026-01-01", "--to", "2026-13-02"], "--to: must be a date"),
        (["m", "--order-by", "foo"], "--order-by: must be one of "),
        (["m", "--verb", "foo"], "--verb: must be one of "),
        (["m", "--definition", "x"], "--definition: of m "),
        (["m", "--verb", "retention"], "METRICS: m: does not join the periods"),
        (["thme"], "METRICS: is not known (did you mean theme?); known are theme, m"),
        (["m", "--against", "2026-01-01"], "must be previous, year, or two days such as"),
    ],
)
def test_a_refusal_names_what_was_typed(url: str, arguments: list[str], words: str) -> None:
    result = ask(url, *arguments)

    assert result.exit_code > 0
    assert words in result.output
    assert not any(f"{field}:" in result.output for field in ("options", "date_range", "filters.0"))
