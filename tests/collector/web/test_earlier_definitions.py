"""Reports under an earlier definition: every surface names them, and asks for them alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, Final

import pytest
from click.testing import CliRunner
from flask import Flask

from client_sdk.registry import Registry
from collector.cli import main
from collector.client import Client
from collector.core.cells import Cell
from collector.core.errors import AnswerError
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import READ_TOKEN, TODAY, bearer
from tests.support.device.registries import CATEGORY, NUMBER, file_with, table
from tests.support.sites.in_memory import in_memory
from tests.support.sites.served import served
from tests.support.store.memory_storage import MemoryStorage

DURATION: Final = {**NUMBER, "type": '"duration"', "every": '"1d"', "min_reports": "100"}
NOW: Final = file_with({**DURATION, "mechanism": '"minimax"'}) + table("c", CATEGORY)
BEFORE: Final = file_with({**DURATION, "mechanism": '"hybrid"', "max": "20"})
TYPE: Final = file_with({**CATEGORY, "every": '"1d"', "min_reports": "100"})
IN_USE, EARLIER, OTHER_TYPE = (
    Registry.from_text(text).metric("m").digest.hex() for text in (NOW, BEFORE, TYPE)
)
REPORTS: Final = {NOW: 1_000, BEFORE: 5_000, TYPE: 300}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """A collector whose metric had another mechanism, and once another type."""
    storage = MemoryStorage()
    for text, n in REPORTS.items():
        metric = Registry.from_text(text).metric("m")
        share, rest = divmod(n, metric.mechanism.tally_size)
        counts = [share + (place < rest) for place in range(metric.mechanism.tally_size)]
        storage.put({Cell(metric.digest, TODAY - 2, ""): list(enumerate([n, *counts]))})
    return in_memory(tmp_path_factory.mktemp("registries"), *REPORTS, storage=storage)


@pytest.fixture(scope="module")
def url(site: Flask) -> Iterator[str]:
    with served(site) as address:
        yield address


def ask(site: Flask, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = post(site.test_client(), {"metrics": ["m"], **fields}).json or {}
    return answer


def test_what_is_left_out_names_the_definition_that_asks_for_it(site: Flask) -> None:
    meta = ask(site, verb="mean")["meta"]

    said = "5000 reports under earlier definitions are left out; ask for them by their definition:"
    remark = {"code": "earlier_left_out", "text": f"{said} {EARLIER}", "metric": "m"}
    assert remark in meta["warnings"]


@pytest.mark.parametrize(
    ("definition", "verb", "n"),
    [(IN_USE, "mean", 1_000), (EARLIER, "mean", 5_000), (OTHER_TYPE, "frequency", 300)],
)
def test_a_definition_is_answered_alone_by_its_own_mechanism_and_says_so(
    site: Flask, definition: str, verb: str, n: int
) -> None:
    answer = ask(site, verb=verb, definition=definition)

    (basis,) = answer["meta"]["metrics"]
    assert {row["n"] for row in answer["rows"]} == {n}
    assert [basis["digest"], *(d["digest"] for d in basis["definitions"])] == [definition] * 2
    (said,) = [each for each in answer["meta"]["warnings"] if each["code"] == "definition"]
    assert said["metric"] == "m"
    assert f"only reports under definition {definition} are counted" in said["text"]
    assert answer["meta"]["query"]["definition"] == definition


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"definition": "0" * 12}, f"definition: of m {IN_USE} is in use, earlier are {EARLIER}"),
        ({"definition": EARLIER, "metrics": ["c"]}, "definition: of c "),
        (
            {"definition": EARLIER, "metrics": ["m", "c"], "verb": "crosstab"},
            "definition: is of one metric",
        ),
        ({"definition": OTHER_TYPE, "verb": "mean"}, "m"),
    ],
)
def test_a_definition_that_the_metric_never_had_is_refused_with_those_it_has(
    site: Flask, fields: dict[str, Any], words: str
) -> None:
    answer = ask(site, **{"verb": "mean", **fields})

    assert answer["status"] == 400
    assert words in answer["detail"]


def test_the_command_and_the_client_ask_for_an_earlier_definition(url: str) -> None:
    known = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
    arguments = ["query", "m", "--verb", "mean", "--definition", EARLIER]
    printed = CliRunner().invoke(main, arguments, env=known)
    with Client(url, READ_TOKEN) as client:
        result = client.query("m", verb="mean", definition=EARLIER)
        with pytest.raises(AnswerError, match="is in use, earlier are"):
            client.query("m", verb="mean", definition="x")

    assert printed.exit_code == 0, printed.output
    assert "5,000" in printed.output
    assert f"only reports under definition {EARLIER}" in printed.output
    assert [row["n"] for row in result] == [5_000]


@pytest.mark.parametrize("address", ["/ask?metric=m&verb=mean", "/metric/m"])
def test_a_page_links_what_is_left_out_to_its_own_answer(site: Flask, address: str) -> None:
    visitor = site.test_client()
    headers = bearer(READ_TOKEN)
    page = visitor.get(address, headers=headers).text
    words = "Only the 5,000 reports of the earlier hybrid, ε 1"
    links = re.findall(rf'<a href="([^"]+)">{words}</a>', page)

    assert links
    answer = visitor.get(unescape(links[0]), headers=headers)

    assert answer.status_code == 200
    assert f"Only reports under definition {EARLIER} are counted" in answer.text
    assert "Only the 5,000 reports" not in answer.text
