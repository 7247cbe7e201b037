"""The report of a week: every metric, what changed, what watches said; and it loads nothing."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

import pytest

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.errors import StorageUnavailableError
from collector.storage.records import (
    QUIET,
    UNKNOWN,
    Verdict,
    WatchCursor,
    WatchLedger,
    WatchSeries,
    WatchState,
)
from collector.workspace.watch.report import Report, has_reports, report, week_of
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import NOON
from tests.support.device.every_type import FORMS, fill, registry_text
from tests.support.device.registries import BOOLEAN, HEAD, file_with, table
from tests.support.sites.page import Page
from tests.support.sites.watch_states import watch_state
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.watched import TODAY, Desk

MONDAY: Final = date(2026, 2, 23)  # of the week before that of NOON
DAYS: Final = ("2026-03-01", "2026-02-28", "2026-02-27")  # of that week


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    fill(storage)
    return storage


@pytest.fixture(scope="module")
def week(storage: MemoryStorage) -> Report:
    catalog = Catalog([Registry.from_text(registry_text())])
    return report(catalog, storage, watch_state("set"), NOON)


def test_the_week_is_the_last_that_has_ended() -> None:
    assert week_of(NOON) == (MONDAY, MONDAY + timedelta(days=6))
    assert week_of(NOON + 4 * DAY) == (MONDAY, MONDAY + timedelta(days=6))  # a Sunday
    assert week_of(NOON + 5 * DAY) == (MONDAY + timedelta(days=7), MONDAY + timedelta(days=13))
    assert week_of(NOON, 3)[0] == MONDAY - timedelta(days=14)


def test_every_metric_has_its_section_with_a_chart_and_a_table(week: Report) -> None:
    page = Page(week.html)

    assert page.tags.count("section") == len(FORMS)
    assert page.tags.count("table") == page.tags.count("details") >= len(FORMS) - 1
    assert page.tags.count("svg") >= len(FORMS) - 1
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert "Week of 2026-02-23 to 2026-03-01" in week.html


def test_it_loads_nothing_and_runs_nothing(week: Report) -> None:
    page = Page(week.html)

    assert page.acting == ["style"]  # its own, in the head
    assert page.scripts.strip() == ""
    assert page.values("src") == []
    assert [url for url in page.values("href") if not url.startswith("#")] == []
    assert "default-src 'none'" in week.html
    assert not re.search(r"url\(|@import", week.html)


def test_what_watches_said_in_that_week_stands_first_and_of_other_weeks_not() -> None:
    catalog = Catalog([Registry.from_text(registry_text())])
    state = watch_state("set", "sets: above 5 %")  # of 2026-03-01 and 02

    said = report(catalog, MemoryStorage(), state, NOON).text
    later = report(catalog, MemoryStorage(), state, NOON + 20 * DAY).text

    assert "2026-03-01 hot: sets: above 5 %" in said
    assert "2026-03-02" not in said
    assert "Nothing is kept of what watches said of these days." in later


def kept(*states: str) -> WatchState:
    """What is kept where one watch said these *states* of the days of the week, the last first."""
    verdicts = tuple(
        Verdict(day, day, state, "", 1) for day, state in zip(DAYS, states, strict=False)
    )
    cursors = {"w": WatchCursor("d", DAYS[0], states[0], DAYS[0])}
    series = {"w": WatchSeries("w", "set", "set above 5 %", "d", 1e-6, verdicts)}
    return WatchState(WatchLedger(cursors=cursors), series)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (kept(QUIET, QUIET), "All watches were quiet."),
        (kept(UNKNOWN), "No alarm; 1 answer of 1 had not enough reports."),
        (kept(QUIET, UNKNOWN, UNKNOWN), "No alarm; 2 answers of 3 had not enough reports."),
    ],
)
def test_watches_are_called_quiet_only_where_each_answer_was(state: WatchState, words: str) -> None:
    catalog = Catalog([Registry.from_text(registry_text())])

    assert words in report(catalog, MemoryStorage(), state, NOON).text.splitlines()


def test_a_store_has_reports_if_the_week_or_the_last_days_have(storage: MemoryStorage) -> None:
    catalog = Catalog([Registry.from_text(registry_text())])

    assert has_reports(catalog, storage, NOON)
    assert not has_reports(catalog, MemoryStorage(), NOON)
    desk = Desk('[[watch]]\nname = "w"\nmetric = "m"\nabove = 0.5')
    desk.fold(TODAY, 1, 0.5)
    assert not has_reports(desk.catalog, desk.tallies, NOON + 100 * 7 * DAY)
    assert has_reports(desk.catalog, desk.tallies, NOON + 100 * 7 * DAY, 100)


@pytest.mark.parametrize("markup", MARKUP[::131])
def test_no_text_becomes_markup(markup: str) -> None:
    state = watch_state("set", markup)
    text = registry_text().replace('question = "', "question = '''" + markup.replace("'", "") + " ")
    text = re.sub(r"(question = '''.*?)\"$", r"\1'''", text, flags=re.MULTILINE)
    catalog = Catalog([Registry.from_text(text)])

    shown = Page(report(catalog, MemoryStorage(), state, NOON).html)

    assert shown.acting == ["style"]
    assert shown.scripts.strip() == ""


def test_what_changed_is_told_and_what_noise_could_do_is_not() -> None:
    desk = Desk('[[watch]]\nname = "w"\nmetric = "m"\nabove = 1')
    sunday = TODAY - 3
    for back in range(14):
        desk.fold(sunday - back, 5_000, 0.7 if back < 7 else 0.3)
    still = Desk('[[watch]]\nname = "w"\nmetric = "m"\nabove = 1')
    for back in range(14):
        still.fold(sunday - back, 5_000, 0.5)

    changed = report(desk.catalog, desk.tallies, WatchState(), NOON).text
    same = report(still.catalog, still.tallies, WatchState(), NOON).text

    first, line = [text for text in changed.splitlines() if "Dark mode" in text]
    how = r"\+(39|4[01])[\d.]* points ± .* against the week before"
    share = r"(29|3[01]|69|7[01])[\d.]* % ± [\d.]+"
    sentence = f"  Dark mode rose from {share} to {share} against the week before\\."
    assert re.fullmatch(sentence, first)
    assert re.fullmatch(rf"Dark mode: (69|7[01])[\d.]* % ± .* yes; .*; {how}", line)
    assert "What changed:\n  No change that is more than noise." in same
    assert "watch" not in same.lower()


def test_each_item_that_changed_has_a_sentence_with_both_numbers() -> None:
    form = {"type": '"category"', "values": '["a", "b", "c"]', "every": '"1d"', "epsilon": '"8"'}
    catalog = Catalog([Registry.from_text(file_with({**BOOLEAN, **form, "min_reports": "100"}))])
    (metric,), storage = list(catalog), MemoryStorage()
    for back in range(14):
        counts = (4_000, 1_000, 5_000) if back < 7 else (2_000, 3_000, 5_000)
        cell = Cell(metric.digest, TODAY - 3 - back, "")
        storage.put({cell: [(0, 10_000), *enumerate(counts, 1)]})

    text = report(catalog, storage, WatchState(), NOON).text

    said = text.partition("What changed:\n")[2].partition("\n\n")[0].splitlines()
    share = r"[\d.]+ % ± [\d.]+"
    words = [re.sub(share, "#", sentence.strip()) for sentence in said]
    assert sorted(words) == [
        "Dark mode (a) rose from # to # against the week before.",
        "Dark mode (b) fell from # to # against the week before.",
    ]
    assert re.search(r"\(a\) rose from (19\.9|20)[\d.]* % ± [\d.]+ to (39\.9|40)[\d.]* % ±", text)


def test_of_many_metrics_none_changed_where_only_chance_made_one_differ() -> None:
    """Law: p-values of all metrics are corrected together (Holm)."""
    form = {**BOOLEAN, "every": '"1d"', "min_reports": "100", "epsilon": '"8"'}
    text = HEAD + "".join(table(f"m{place}", form) for place in range(20))

    def said(names: int) -> str:
        catalog = Catalog([Registry.from_text(text)])
        kept = list(catalog)[:names]
        storage = MemoryStorage()
        for place, metric in enumerate(kept):
            for back in range(14):
                yes = 500 - (20 if place == 0 and back < 7 else 0)
                cell = Cell(metric.digest, TODAY - 3 - back, "")
                storage.put({cell: [(0, 1_000), (1, yes), (2, 1_000 - yes)]})
        return report(catalog, storage, WatchState(), NOON).text

    alone, among = said(1), said(20)

    changed = "What changed:\n  Dark mode rose from "
    assert alone.count(changed) == 1
    assert among.count(changed) == 0


def test_no_change_of_an_item_is_surer_because_another_item_changed() -> None:
    """Law: of 20 metrics, what one of them says of a further item counts all 20."""
    form = {"type": '"category"', "values": '["a", "b", "c"]', "every": '"1d"', "epsilon": '"8"'}
    asked = {**BOOLEAN, **form, "min_reports": "100"}
    text = HEAD + "".join(table(f"m{place}", asked) for place in range(20))
    catalog, storage = Catalog([Registry.from_text(text)]), MemoryStorage()
    for place, metric in enumerate(catalog):
        for back in range(14):
            is_late = place == 0 and back < 7
            counts = (450, 480, 70) if is_late else (300, 500, 200)
            cell = Cell(metric.digest, TODAY - 3 - back, "")
            storage.put({cell: [(0, 1_000), *enumerate(counts, 1)]})

    said = report(catalog, storage, WatchState(), NOON).text
    changed, _, lines = said.partition("\n\nDark mode")

    assert sorted(re.findall(r"Dark mode \(.\) \w+", changed)) == [
        "Dark mode (a) rose",
        "Dark mode (c) fell",
    ]
    assert re.search(r"b −\d.* points .*against the week before", lines)


def test_a_metric_of_four_weeks_is_held_against_the_four_weeks_before() -> None:
    """Law: of the last whole period, which says when it began."""
    form = {**BOOLEAN, "every": '"28d"', "min_reports": "100"}
    catalog = Catalog([Registry.from_text(file_with(form))])
    (metric,), storage = list(catalog), MemoryStorage()
    running = epoch_of("28d", NOON)
    for back, yes in ((0, 5_000), (1, 3_500), (2, 1_500)):
        cell = Cell(metric.digest, running - back, "")
        storage.put({cell: [(0, 5_000), (1, yes), (2, 5_000 - yes)]})

    text = report(catalog, storage, WatchState(), NOON).text

    assert "Dark mode: the four weeks from 2026-01-12: " in text
    assert text.count("against the four weeks before") == 2  # above, and in its line
    assert "against the week before" not in text


def test_a_metric_without_reports_says_so_and_the_others_are_told() -> None:
    catalog = Catalog([Registry.from_text(registry_text())])

    text = report(catalog, MemoryStorage(), WatchState(), NOON).text

    assert text.count("not enough reports") >= len(FORMS) - 2


def test_a_store_that_is_away_gives_no_report() -> None:
    away = MemoryStorage()
    away.failure = StorageUnavailableError("store: away")

    with pytest.raises(StorageUnavailableError):
        report(Catalog([Registry.from_text(registry_text())]), away, WatchState(), NOON)
