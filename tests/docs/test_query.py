"""docs/ask/query.md, the notebook and the Grafana dashboard: answers are as they show."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from collector.query import Query, read
from collector.query.window import GRANULARITIES, RANGES
from collector.web.api.formats import FORMS
from tests.docs.pages import only, text_of
from tests.support.crowds.verb_table import verb_table
from tests.support.curl import needs_curl
from tests.support.notebook import code_cells, shown
from tests.support.patience import PATIENCE
from tests.support.sites.demo_site import TOKEN as DEMO_TOKEN
from tests.support.sites.demo_site import demo_app
from tests.support.sites.editor_site import DEVICES, TOKEN, editor_app
from tests.support.sites.served import served

PAGE: Final = text_of("docs/ask/query.md")
NOTEBOOK: Final = json.loads(text_of("examples/answers.ipynb"))
BOARD: Final = json.loads(text_of("examples/grafana/answers.json"))
HERE: Final = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(editor_app()) as address:
        yield address


@pytest.fixture
def environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader has set."""
    monkeypatch.setenv("HEARSAY_URL", url)
    monkeypatch.setenv("HEARSAY_READ_TOKEN", TOKEN)


@needs_curl
def test_curl_and_python_of_the_page_give_the_same_rows(
    url: str, environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    program, command = (only("docs/ask/query.md", name) for name in ("python", "sh"))
    names: dict[str, Any] = {}

    exec(program.replace(HERE, url), names)  # noqa: S102  # the page's own lines
    told = subprocess.run(
        ["sh", "-c", command.replace(HERE, url)], capture_output=True, check=True, timeout=PATIENCE
    )

    assert json.loads(told.stdout)["rows"] == list(names["answer"].rows)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["dark", "system"]


def test_every_field_verb_range_and_form_is_on_the_page() -> None:
    """``python -m tests.support.crowds.verb_table`` prints the table of verbs."""
    words = [
        *(f"| `{name}` |" for name in Query.__struct_fields__),
        *(f"| `{form.name}` |" for form in FORMS),
        *(f"`{name}`" for name in RANGES),
        *(f"`time:{name}`" for name in GRANULARITIES if name != "epoch"),
    ]

    assert [word for word in words if word not in PAGE] == []
    assert verb_table() in PAGE, "paste what tests.support.crowds.verb_table prints"


def test_the_problem_on_the_page_is_what_a_collector_says(url: str, environment: None) -> None:
    shown = only("docs/ask/query.md", "json")
    question = {"metrics": ["theme"], "filters": [["is", "platform", ["amiga"]]]}
    client = editor_app().test_client()

    told = client.post("/v1/query", json=question, headers={"Authorization": f"Bearer {TOKEN}"})

    assert told.get_json(force=True) == json.loads(shown)


def test_every_cell_of_the_notebook_runs_on_the_demo_and_shows_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In order, as a kernel does: what the last expression is worth is shown."""
    asked: list[str] = []
    with served(demo_app()) as url:
        monkeypatch.setenv("HEARSAY_URL", url)
        monkeypatch.setenv("HEARSAY_READ_TOKEN", DEMO_TOKEN)
        for cell, printed, value in shown(NOTEBOOK):
            assert printed or value, cell["id"]
            if hasattr(value, "_repr_html_"):
                asked.append(value.verb)
                assert "<svg" in value._repr_html_()

    assert asked == ["top_k", "compare", "trend", "frequency"]


def test_the_notebook_keeps_what_its_cells_show() -> None:
    """A code host shows nothing else; ``python -m tests.support.notebook answers`` keeps it."""
    kept = {cell["id"]: json.dumps(cell["outputs"]) for cell in code_cells(NOTEBOOK)}

    assert [name for name, outputs in kept.items() if outputs == "[]"] == []
    assert sum("<svg" in outputs for outputs in kept.values()) == 4
    assert not any("Traceback" in outputs for outputs in kept.values())
    assert [cell["execution_count"] for cell in code_cells(NOTEBOOK)] == [*range(1, len(kept) + 1)]


def options(variable: dict[str, Any], chosen: dict[str, str], client: FlaskClient) -> list[str]:
    """Return what Grafana offers for *variable*, where others are *chosen*."""
    if variable["type"] == "custom":
        return list(variable["query"].split(","))
    source = variable["query"]["infinityQuery"]
    answer = client.get(source["url"], headers={"Authorization": f"Bearer {TOKEN}"})
    metrics = answer.get_json()["metrics"]
    if source["root_selector"] == "metrics":
        assert [column["selector"] for column in source["columns"]] == ["title", "name"]
        return [metric["name"] for metric in metrics]
    # JSONata
    assert source["root_selector"] == '[$keys(metrics[name="${metric}"].segments), "time:month"]'
    (metric,) = (metric for metric in metrics if metric["name"] == chosen["metric"])
    return [*metric["segments"], "time:month"]


def choices(client: FlaskClient) -> list[dict[str, str]]:
    """Return all that an analyst can choose on the board."""
    found: list[dict[str, str]] = [{}]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] != "datasource":
            name = variable["name"]
            found = [
                {**chosen, name: option}
                for chosen in found
                for option in options(variable, chosen, client)
            ]
    return found


@pytest.mark.parametrize("panel", BOARD["panels"], ids=lambda panel: panel["title"])
def test_a_panel_of_the_dashboard_gets_records_whatever_is_chosen(panel: dict[str, Any]) -> None:
    """Infinity reads an array of flat objects as it is; times are RFC 3339."""
    (target,) = panel["targets"]
    client = editor_app().test_client()
    chosen = choices(client)
    assert {choice["metric"] for choice in chosen} == set(DEVICES)
    assert {choice["dimension"] for choice in chosen} == {"platform", "time:month"}

    for choice in chosen:
        url = target["url"]
        for name, value in choice.items():
            url = url.replace(f"${{{name}}}", value)
        for name, day in (("from", "2026-08-18"), ("to", "2026-11-16")):  # Grafana's own range
            macro = f"${{__{name}:date:YYYY-MM-DD}}"
            assert macro in url
            url = url.replace(macro, day)
        assert "$" not in url
        answer = client.get(url, headers={"Authorization": f"Bearer {TOKEN}"})

        records = answer.get_json()
        assert answer.status_code == 200, (url, records)
        assert records
        for column in target["columns"]:
            assert all(column["selector"] in record for record in records)
            if column["type"] == "timestamp":
                times = [record["time"] for record in records]
                assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", time) for time in times)


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_the_link_on_the_page_is_a_question() -> None:
    (question,) = re.findall(r"/v1/query\?format=rows&q=(\{.*\})", PAGE)

    assert read(question.encode()).dimensions == ["time:week"]
