"""What an operator asks to be taken out is done, or refused with a reason; nothing in between."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any, Final

import pytest

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.cells import OTHER_KEYS, Cell, key_source, segment_text
from collector.core.entry import AcceptedColumn
from collector.core.errors import CollectorError, ExclusionError, QueryError
from collector.core.exclusions import Exclusion, read_all
from collector.query import plan, read, run
from collector.query.repair import (
    Effect,
    ExclusionRequest,
    exclude,
    include,
    kept_once_only,
    proposed,
)
from tests.collector.query.test_exclusions import (
    DAYS,
    KEYS,
    columns,
    day,
    holding,
    many,
)
from tests.collector.query.test_exclusions import exclusion as exclusion_of
from tests.support.crowds.uploads import NOON, TODAY, registry, registry_text
from tests.support.store.memory_storage import MemoryStorage

CATALOG: Final = Catalog([registry()])
PAGE: Final = CATALOG.metric("page")


class Records:
    """Where exclusions are written, of a store in memory."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.stored = storage.excluded

    def put(self, name: str, record: bytes, read: bytes | None = None) -> bool:
        if self.stored.get(name) != read:
            return self.stored.get(name) == record
        self.stored[name] = record
        return True


def store_of(reports: list[AcceptedColumn]) -> MemoryStorage:
    storage = holding(reports)
    storage.times = (NOON,)
    return storage


def wish(**fields: Any) -> ExclusionRequest:
    days = {"first": day(DAYS[0]), "last": day(DAYS[1])}
    known = {"by": "key", "name": KEYS[0], "because": "2.3 counted twice", "author": "ada"}
    return ExclusionRequest(**(known | days | fields))


def ask(storage: MemoryStorage, **fields: Any) -> tuple[Exclusion, list[Effect]]:
    return proposed(wish(**fields), CATALOG, storage, KEYS)


def test_what_is_proposed_says_what_it_would_do_and_writes_nothing() -> None:
    storage = store_of(columns(1, many))

    exclusion, (effect,) = ask(storage)

    assert not storage.excluded
    assert effect.gone.reports == sum(many(KEYS[0], epoch) for epoch in DAYS[:2]) * 3
    assert effect.of == sum(many(key, epoch) for key in KEYS for epoch in DAYS[:2]) * 3
    assert effect.stretch == f"{day(DAYS[0])} to {day(DAYS[1])}"
    assert (exclusion.author, exclusion.at) == ("ada", int(NOON))


def test_a_proposal_says_how_many_reports_of_other_keys_go_along() -> None:
    def few(key: str, epoch: int) -> int:
        return 7 if key == KEYS[0] else many(key, epoch)

    _, (effect,) = ask(store_of(columns(2, few)))

    along = sum(many(KEYS[1], epoch) for epoch in DAYS[:2]) * 3
    assert effect.gone == (along + 7 * 3 * 2, along)


def test_excluded_and_taken_back_leaves_a_record_of_both() -> None:
    storage = store_of(columns(3, many))
    records = Records(storage)
    exclusion, _ = ask(storage)
    exclude(exclusion, storage, records)
    include(exclusion.id, "it was right", "bob", storage, records)

    (kept,) = read_all(storage.excluded)
    assert kept.included is not None
    assert (kept.because, kept.included.because, kept.included.author) == (
        "2.3 counted twice", "it was right", "bob",
    )  # fmt: skip
    with pytest.raises(ExclusionError, match="was taken back by bob already"):
        include(exclusion.id, "again", "bob", storage, records)
    assert ask(storage)[1]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"name": "000000000000"}, "there is no such key; hearsay keys list"),
        ({"name": KEYS[0], "first": day(TODAY), "last": day(TODAY)}, "no reports of it on these"),
        ({"first": "", "last": ""}, "no metric that is asked once has reports of it; to take"),
        ({"by": "version", "name": "9.9"}, "no metric has it among the values of version: none"),
        ({"by": "version", "name": "2.3", "metrics": ("page",)}, "does not keep a version 2.3"),
        ({"first": day(DAYS[1]), "last": day(DAYS[0])}, "from=.*: must not be after"),
        ({"last": day(TODAY + 1)}, "today by the store's clock; a key that must report no more"),
        ({"last": ""}, "must both be given"),
        ({"first": "yesterday"}, "from: must be a date"),
        ({"metrics": ("opted_in",)}, "is asked once, so it has no days"),
        ({"metrics": ("page",), "first": "", "last": ""}, "is asked every 1d: give --from and"),
        ({"because": " "}, "because: must be 1 to 200 printable"),
        ({"because": "x" * 201}, "because: must be 1 to 200 printable"),
        ({"author": "a\nb"}, "author: must be 1 to 64 printable"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    fields: dict[str, Any], rule: str
) -> None:
    storage = store_of(columns(4, many))

    with pytest.raises((ExclusionError, QueryError), match=rule):
        ask(storage, **fields)

    assert not storage.excluded


def test_a_metric_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownMetricError):
        ask(store_of(columns(5, many)), metrics=("pages",))


def test_what_was_folded_before_keys_were_known_cannot_be_parted() -> None:
    reports = columns(6, many)
    old = AcceptedColumn(Cell(PAGE.digest, DAYS[0], segment_text(PAGE, {})), bytes(12))
    storage = store_of([*reports, old])

    with pytest.raises(ExclusionError, match=f"has 12 reports of {day(DAYS[0])} whose key is not"):
        ask(storage)

    assert ask(storage, first=day(DAYS[1]))[1]


def test_days_of_which_no_key_is_known_are_named_as_such() -> None:
    old = [
        AcceptedColumn(Cell(PAGE.digest, epoch, segment_text(PAGE, {})), bytes(12))
        for epoch in DAYS
    ]

    with pytest.raises(ExclusionError, match="no reports of it there, but 24 came before keys"):
        ask(store_of(old))


def test_what_is_excluded_already_is_refused_and_an_overlap_is_not() -> None:
    storage = store_of(columns(7, many))
    exclusion, _ = ask(storage)
    exclude(exclusion, storage, Records(storage))

    with pytest.raises(ExclusionError, match=f"is excluded there already, by {exclusion.id}"):
        ask(storage)

    assert ask(storage, last=day(DAYS[2]))[1]


def test_no_day_is_checked_by_the_clock_of_an_operator() -> None:
    storage = store_of(columns(8, many))
    storage.times = ()

    with pytest.raises(ExclusionError, match="the store does not tell its time"):
        ask(storage)


def test_two_operators_who_exclude_the_same_at_once_write_it_once() -> None:
    """Both were told that it is not excluded yet; only one of them has done it."""
    storage = store_of(columns(9, many))
    first, second = ask(storage)[0], ask(storage, author="bob", because="leaked")[0]
    exclude(first, storage, Records(storage))

    with pytest.raises(ExclusionError, match="is taken; run the command again"):
        exclude(second, storage, Records(storage))

    assert len(storage.excluded) == 1
    include(first.id, "it was right", "ada", storage, Records(storage))
    exclude(ask(storage, author="bob")[0], storage, Records(storage))
    assert [each.author for each in read_all(storage.excluded)] == ["ada", "bob"]


def versioned(*versions: str) -> Catalog:
    text = registry_text().replace("[segments]", f"[segments]\nversion = {list(versions)}")
    text = text.replace('segments = ["platform"]', 'segments = ["platform", "version"]')
    return Catalog([Registry.from_text(text)])


def test_a_version_stays_excluded_once_the_registry_lists_it_no_more() -> None:
    """As old versions do; its reports are still there, and were not right."""
    then, now = versioned("2.2", "2.3"), versioned("2.4", "2.5")
    page = then.metric("page")
    reports = [
        AcceptedColumn(Cell(page.digest, DAYS[0], segment_text(page, {"version": version})), n)
        for version, n in (("2.2", bytes(500)), ("2.3", bytes(300)))
    ]
    storage = store_of(reports)
    exclusion, _ = proposed(wish(by="version", name="2.3"), then, storage, KEYS)
    exclude(exclusion, storage, Records(storage))
    query = {"metrics": ["page"], "date_range": [day(DAYS[0])] * 2}

    answers = [
        run(plan(read(json.dumps(query).encode()), catalog, NOON), storage)
        for catalog in (then, now)
    ]

    assert exclusion.metrics == ("test/page",)
    for answer in answers:
        assert (answer.meta.n, answer.meta.metrics[0].left_out) == (500, 300)
        assert "reports of version 2.3" in answer.meta.warnings[0].text


def test_a_version_that_the_registry_lists_no_more_is_still_taken_out() -> None:
    """The planted bug: the registry of today is asked which versions there were."""
    then, now = versioned("2.2", "2.3"), versioned("2.4", "2.5")
    page = then.metric("page")
    text = segment_text(page, {"version": "2.3"})
    storage = store_of([AcceptedColumn(Cell(page.digest, DAYS[0], text), bytes(300))])

    for metrics in ((), ("page",)):
        asked = wish(by="version", name="2.3", metrics=metrics)
        exclusion, (effect,) = proposed(asked, now, storage, KEYS)
        assert (exclusion.metrics, effect.gone.reports) == (("test/page",), 300)
    with pytest.raises(ExclusionError, match=r"among the values of version: 2\.4, 2\.5"):
        proposed(wish(by="version", name="2.3", first=day(DAYS[1])), now, storage, KEYS)


def test_what_earlier_exclusions_leave_out_already_is_told() -> None:
    storage = store_of(columns(13, many))
    exclusion, _ = ask(storage)
    exclude(exclusion, storage, Records(storage))

    _, (effect,) = ask(storage, last=day(DAYS[2]))

    assert effect.already == sum(many(KEYS[0], epoch) for epoch in DAYS[:2]) * 3
    assert effect.gone.reports == effect.already + many(KEYS[0], DAYS[2]) * 3


def test_metrics_that_are_asked_once_are_named_where_days_leave_them_in() -> None:
    once = CATALOG.metric("opted_in")
    text = segment_text(once, {}, key_source(KEYS[0]))
    joined = AcceptedColumn(Cell(once.digest, 0, text), bytes(300))
    storage, asked = store_of([*columns(14, many), joined]), wish()
    exclusion, _ = proposed(asked, CATALOG, storage, KEYS)

    assert kept_once_only(asked, exclusion, CATALOG, storage) == [once]
    assert kept_once_only(wish(metrics=("page",)), exclusion, CATALOG, storage) == []
    assert kept_once_only(wish(name=KEYS[1]), ask(storage, name=KEYS[1])[0], CATALOG, storage) == []


def test_reports_of_keys_that_were_not_kept_apart_are_named() -> None:
    """A key may be one of the first 64 on one day, and not on the next."""
    other = AcceptedColumn(
        Cell(PAGE.digest, DAYS[0], segment_text(PAGE, {}, key_source(OTHER_KEYS))), bytes(40)
    )
    storage, alone = store_of([*columns(10, many), other]), store_of([other])

    (effect,) = ask(storage)[1]

    assert (effect.others, ask(storage, name=OTHER_KEYS)[1][0].others) == (40, 0)
    with pytest.raises(ExclusionError, match="but 40 are of keys that are not kept apart"):
        ask(alone)


def test_an_id_that_there_is_not_cannot_be_taken_back() -> None:
    storage = store_of(columns(9, many))

    with pytest.raises(ExclusionError, match="no such exclusion; see hearsay exclusions"):
        include("12345678", "why", "bob", storage, Records(storage))


def test_two_operators_at_once_do_not_undo_each_other() -> None:
    storage = store_of(columns(10, many))
    exclusion, _ = ask(storage)
    exclude(exclusion, storage, Records(storage))

    class Late(Records):
        def put(self, name: str, record: bytes, read: bytes | None = None) -> bool:
            self.stored[name] = b"{}"
            return super().put(name, record, read)

    with pytest.raises(ExclusionError, match="somebody else has changed it meanwhile"):
        include(exclusion.id, "why", "bob", storage, Late(storage))


def test_a_store_has_a_bounded_number_of_exclusions() -> None:
    storage = store_of(columns(11, many))
    exclusion, _ = ask(storage)
    storage.excluded.update({str(place): b"" for place in range(1_000)})

    with pytest.raises(CollectorError, match="there are 1000 already"):
        exclude(exclusion, storage, Records(storage))


def test_epochs_longer_than_a_day_go_whole() -> None:
    theme = CATALOG.metric("theme")
    week = (TODAY + 3) // 7 - 1
    exclusion, _ = ask(store_of(columns(12, many)))

    of_two_days = exclusion_of(KEYS[0], TODAY - 7, TODAY - 6)
    epochs = of_two_days.epochs(theme)
    first, last = map(date.fromisoformat, of_two_days.stretch(theme).split(" to "))

    assert len(epochs) == 1
    assert week - 1 <= epochs[0] <= week + 1
    assert (first.weekday(), last - first) == (0, timedelta(6))
    assert of_two_days.stretch(CATALOG.metric("opted_in")) == ""
    assert exclusion.epochs(CATALOG.metric("crashed")) == range(DAYS[0] * 24, DAYS[2] * 24)
