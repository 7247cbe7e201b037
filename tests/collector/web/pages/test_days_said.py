"""Of which days an answer is: said beside it; what has none offers none to choose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.collector.web.pages.conftest import BROWSER, Visit
from tests.support.device.every_type import fill, registry_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_storage import MemoryStorage

ALONE = "Each device is asked once; these are all reports so far."


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the pages of a collector whose metrics are asked once of each device."""
    storage, folder = MemoryStorage(), tmp_path_factory.mktemp("once")
    fill(storage, "once", epochs=1)
    browser = browser_of(in_memory(folder, registry_text("once"), storage=storage))
    return lambda address: browser.get(address, headers=BROWSER).text


@pytest.mark.parametrize(
    "address",
    [
        "/ask?metric=retention&verb=retention",
        "/metric/retention",
        "/compare?metric=boolean&by=platform",
    ],
)
def test_what_is_asked_once_offers_no_days_to_choose(
    asked_once: Callable[[str], str], visit: Visit, address: str
) -> None:
    """Law: a choice that changes nothing is not shown."""
    assert 'name="range"' not in asked_once(address)
    assert 'name="range"' in visit(address).text


def test_what_is_asked_once_says_so_and_is_not_in_progress(
    asked_once: Callable[[str], str],
) -> None:
    assert f'<p class="hint">{ALONE}</p>' in asked_once("/ask?metric=retention&verb=retention")
    assert "once of each device</dd>" in asked_once("/metric/retention")


def test_warnings_are_sentences_without_the_title_above_them(visit: Visit) -> None:
    """Law: an answer about a single metric has its title as heading, so no remark repeats it."""
    answer = visit("/ask?metric=boolean&verb=lift&by=platform").text.partition("answer-title")[2]
    remarks = [text.partition("</p>")[0] for text in answer.split('<p class="hint">')[1:]]

    assert remarks
    assert all(text[0].isupper() or text.startswith("<a ") for text in remarks)
    assert not any(text.startswith("boolean: ") for text in remarks)
