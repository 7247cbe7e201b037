"""What changed, on the overview: a sentence a change, with the numbers of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from flask.testing import FlaskClient
from markupsafe import escape

from client_sdk.core.epoch import epoch_label, epoch_of
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from collector.core.cells import Cell
from collector.storage.documents import DocumentStore
from collector.storage.hashes import MemoryHashes
from collector.workspace.documents import Author, Note
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import NOON
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_storage import MemoryStorage

N: Final = 4_000  # reports of a day or a week
DAYS: Final = 12  # with reports; the last is running
ADA: Final = Author("ada", "Ada")
FORM: Final = """
[metrics.{name}]
title = "The {name}"
question = "Did they?"
type = "{type}"
{values}epsilon = "1"
every = "{every}"
longitudinal = "fresh"
mechanism = "grr"
expected_devices = 10000
min_reports = 100
owner = "tests"
expires = 2027-12-31
"""
Site: TypeAlias = Callable[..., FlaskClient]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a browser of metrics that fell so many periods ago, or rose before 0; None: never."""

    def of(*notes: Note, every: str = "1d", kind: str = "boolean", **steps: int | None) -> Any:
        values = 'values = ["home", "else"]\n' if kind == "category" else ""
        text = 'schema = 1\napp = "a"\n' + "".join(
            FORM.format(name=name, type=kind, values=values, every=every) for name in steps
        )
        storage = MemoryStorage()
        for metric in Registry.from_text(text):
            mechanism, step = metric.mechanism, steps[metric.name]
            assert isinstance(mechanism, GRR)
            p, q = float(mechanism.channel.p), float(mechanism.channel.q)
            for back in range(DAYS):
                share = 0.16 if step and back <= abs(step) else 0.39
                if step and step < 0:
                    share = 0.55 - share
                yes = round(N * (share * p + (1 - share) * q))
                cell = Cell(metric.digest, epoch_of(every, NOON) - back, "")
                storage.put({cell: [(0, N), (1, N - yes), (2, yes)]})
        app = in_memory(tmp_path, text, storage=storage, documents=DocumentStore(MemoryHashes()))
        for note in notes:
            app.extensions["hearsay"].workspace.notes.add(note, ADA)
        return browser_of(app)

    return of


def day(back: int, every: str = "1d") -> str:
    return epoch_label(every, epoch_of(every, NOON) - back)


def main_of(client: FlaskClient, address: str = "/") -> str:
    reply = client.get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return reply.text.partition("<main")[2]


def sentences(client: FlaskClient, address: str = "/") -> list[str]:
    """Return the words of each change on the overview, in their order."""
    listed = main_of(client, address).partition('changes">')[2].partition("</ol>")[0]
    items = re.findall(r"<li>(.*?)</li>", listed, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", "", item).split()) for item in items]


def test_a_sentence_says_from_which_number_to_which_a_metric_changed_and_when(site: Site) -> None:
    """Law: both numbers are those of the API for the days on either side, with intervals."""
    client = site(left=5)

    (said,) = sentences(client)

    before, now = (
        re.search(rf"{way} ([\d.]+) % ± (\d+(?:\.\d+)?)", said) for way in ("from", "to")
    )
    for match, (first, last) in (
        (before, (day(DAYS - 1), day(6))),
        (now, (day(5), day(1))),
    ):
        query = {"metrics": ["left"], "date_range": [first, last], "verb": "estimate"}
        (row,) = post(client, query).get_json()["rows"]
        assert match
        assert float(match[1]) == pytest.approx(100 * row["value"], abs=0.06)
        half = 50 * (row["ci_high"] - row["ci_low"])
        assert half <= float(match[2]) <= half + 0.2
    assert said.startswith("27 Feb The left fell from ")


def test_the_newest_change_is_first_and_its_direction_is_said(site: Site) -> None:
    client = site(old=7, new=3, steady=None, risen=-5)

    said = sentences(client)

    starts = [re.match(r"(\d+ \w+) The (\w+) (\w+) ", text) for text in said]
    assert [match.groups() for match in starts if match] == [
        ("1 Mar", "new", "fell"),
        ("27 Feb", "risen", "rose"),
        ("25 Feb", "old", "fell"),
    ]


def test_a_change_of_a_week_is_said_with_the_days_of_the_week(site: Site) -> None:
    """Law: the first day of a week is not said to be that of the change."""
    (said,) = sentences(site(left=3, every="7d"), "/?range=91d")

    assert said.startswith("9 to 15 Feb The left fell")


def test_a_change_of_an_item_names_it(site: Site) -> None:
    (said,) = sentences(site(page=5, kind="category"))

    assert re.match(r"27 Feb The page \((home|else)\) (rose|fell) from", said)


@pytest.mark.parametrize(
    ("backs", "noted"),
    [
        ((5,), "27 Feb"),
        ((12,), "20 Feb"),
        ((4,), "28 Feb"),
        ((8, 6, 11), "26 Feb"),
        ((13,), ""),
        ((3,), ""),
        ((), ""),
    ],
)
def test_the_nearest_note_stands_by_a_change(
    site: Site, backs: tuple[int, ...], noted: str
) -> None:
    """Law: of a week before to a day after, as the day of a change is estimated."""
    client = site(*(Note(day(back), f"Note {back}") for back in backs), left=5)

    (said,) = sentences(client)

    noted_at = re.search(r"Noted near it: Note \d+ \((.*?)\)\.", said)
    assert (noted_at[1] if noted_at else "") == noted


def test_a_note_of_another_metric_does_not_stand_there(site: Site) -> None:
    note = Note(day(5), "Only of the other", metric="steady")

    (said,) = sentences(site(note, left=5, steady=None))

    assert "Noted" not in said


def test_a_note_stays_a_text(site: Site) -> None:
    hostile = "<script>alert(1)</script>"

    page = main_of(site(Note(day(5), hostile), left=5))

    assert hostile not in page
    assert str(escape(hostile)) in page


def test_without_a_change_the_page_says_that_there_is_none(site: Site) -> None:
    page = main_of(site(steady=None, other=None))

    assert "Nothing beyond noise." in page
    assert '<ol class="findings changes">' not in page
