"""The page of watches: every state, for who may see it, and nothing that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from collector.core.credentials import READ, VIEWER, Credential
from collector.operations.telemetry.snapshot import Sources
from collector.storage.records import WatchState
from collector.web.pages.watches import STOPPED_S, WORDS
from tests.collector.web.pages.conftest import BROWSER, END, token_of
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.device.every_type import registry_text
from tests.support.sites.in_memory import in_memory
from tests.support.sites.page import Page
from tests.support.sites.watch_states import STATES, watch_state
from tests.support.store.memory_credentials import MemoryCredentials


def page(tmp_path: Path, state: WatchState, token: str = READ_TOKEN, path: str = "/watches") -> str:
    """Return the page that *token* opens while watches say *state*."""
    response = answer(tmp_path, state, token, path)
    assert response.status_code == 200
    text: str = response.text
    return text


def answer(tmp_path: Path, state: WatchState, token: str, address: str) -> Any:
    stored = MemoryCredentials()
    for name in ("set", "boolean"):
        one = frozenset({name})
        stored.add(token_of(name), Credential(READ, role=VIEWER, metrics=one, expires=END))
    other = {"other": VIEWER}
    stored.add(token_of("other"), Credential(READ, app="other", role=VIEWER, expires=END))
    stored.add(token_of("other-role"), Credential(READ, roles=other, expires=END))
    sources = Sources.alone()._replace(watches=lambda: state)
    app = in_memory(tmp_path, registry_text(), credentials=stored, sources=sources)
    headers = {**BROWSER, "Authorization": f"Bearer {token}"}
    return app.test_client().get(address, headers=headers)


def test_watches_stand_in_the_order_of_what_needs_attention(tmp_path: Path) -> None:
    text = page(tmp_path, watch_state("set", looked=int(NOON)))

    words = re.sub("<[^>]*>", "", text)
    places = [words.index(f"{name}: {WORDS[state]}") for name, state in STATES.items()]
    assert places == sorted(places)
    assert "at most 5 %" in text
    assert "1 in 1,000,000" in text
    for verdict in (series.verdicts[0] for series in watch_state("set").series.values()):
        assert f">{verdict.first}" in text  # of which days it is
    assert 'href="/metric/set"' in text
    assert "1 <span" in text


def test_an_empty_page_says_how_to_begin(tmp_path: Path) -> None:
    text = page(tmp_path, WatchState())

    assert "Nothing is watched" in text
    assert "hearsay watch --check" in text


@pytest.mark.parametrize(("ago", "said"), [(0, False), (STOPPED_S, False), (STOPPED_S + 1, True)])
def test_watches_that_nobody_looks_at_any_more_are_said_to_have_stopped(
    tmp_path: Path, ago: int, said: bool
) -> None:
    text = page(tmp_path, watch_state("set", looked=int(NOON) - ago))

    assert ("No process has looked" in text) is said


def test_a_token_of_one_metric_sees_its_watches_and_no_others(tmp_path: Path) -> None:
    state = watch_state("set", "a number of sets")

    own, other = (page(tmp_path, state, token_of(name)) for name in ("set", "boolean"))

    assert "a number of sets" in own
    assert "gone" not in own  # what is gone may have been anybody's
    assert "given up" not in own
    assert "a number of sets" not in other
    assert "Nothing is watched that you may see" in other


@pytest.mark.parametrize("name", ["other", "other-role"])
def test_who_sees_another_app_only_sees_no_watch_of_this_one(tmp_path: Path, name: str) -> None:
    state = watch_state("set", "a number of sets")

    text = page(tmp_path, state, token_of(name))

    assert "a number of sets" not in text
    assert "gone" not in text
    assert "given up" not in text
    assert answer(tmp_path, state, token_of(name), "/watches/hot").status_code == 404


@pytest.mark.parametrize("markup", MARKUP[::97])
def test_no_text_of_a_watch_becomes_markup(tmp_path: Path, markup: str) -> None:
    for path in ("/watches", "/watches/hot"):
        shown = Page(page(tmp_path, watch_state("set", markup), path=path))

        assert shown.acting == []
        assert shown.scripts.strip() == ""


def test_a_watch_has_a_page_with_all_that_it_said(tmp_path: Path) -> None:
    text = page(tmp_path, watch_state("set"), path="/watches/hot")

    assert text.count("<tr>") == 3  # its head, and two days
    assert text.index("2026-03-02") < text.rindex("2026-03-01")


@pytest.mark.parametrize("name", ["nobody", "*", "hot/", "%2e%2e"])
def test_a_watch_that_is_none_is_not_found(tmp_path: Path, name: str) -> None:
    assert answer(tmp_path, watch_state("set"), READ_TOKEN, f"/watches/{name}").status_code == 404


def test_the_watch_of_another_metric_is_as_unknown_as_none(tmp_path: Path) -> None:
    response = answer(tmp_path, watch_state("set"), token_of("boolean"), "/watches/hot")

    assert response.status_code == 404


def test_a_thousand_watches_make_no_heavy_page_and_those_that_fire_stand_on_it(
    tmp_path: Path,
) -> None:
    state = watch_state("set", "x" * 150)
    calm = state.series["calm"]
    names = [f"w{place}" for place in range(1_000)]
    series = {**state.series, **{name: replace(calm, name=name) for name in names}}
    cursors = dict.fromkeys(names, state.ledger.cursors["calm"]) | state.ledger.cursors

    text = page(tmp_path, WatchState(replace(state.ledger, cursors=cursors), series))

    assert len(text) < 110_000  # with 40 kB of styles and scripts beside it
    assert "hot: firing" in re.sub("<[^>]*>", "", text)
    assert "and 904 more" in text


def test_a_ledger_without_its_series_shows_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    """A process died between its two first writes, or somebody deleted a field."""
    state = watch_state("set")
    series = {name: replace_verdicts(each) for name, each in state.series.items() if name != "hot"}

    assert "Nothing is watched" in page(tmp_path, WatchState(state.ledger, series))


def replace_verdicts(series: Any) -> Any:
    return type(series)(series.name, series.metric, series.title, series.definition, 0.0)
