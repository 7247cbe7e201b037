"""Each watch is evaluated once a period and told once, in order, whatever dies or is away."""

from __future__ import annotations

import pytest

from client_sdk.core.epoch import DAY
from collector.core.errors import StorageUnavailableError
from collector.storage.records import (
    FIRING,
    QUIET,
    UNABLE,
    UNKNOWN,
    Verdict,
    WatchLedger,
    WatchMessage,
)
from collector.workspace.watch.rounds import (
    GIVEN_UP_S,
    LAST_RETRY_S,
    LEASE_S,
    MOST_WAITING,
    title_of,
)
from tests.support.store.memory_storage import MemoryWatches
from tests.support.store.watched import CHANNEL, NEWEST, NOON, Desk, fold

ABOVE = f"""
[[watch]]
name = "dark"
metric = "m"
above = 0.5
{CHANNEL}
"""


def states(desk: Desk) -> list[tuple[str, str]]:
    """Return what the watch said of each period, oldest first."""
    (series,) = desk.store.series().values()
    return [(verdict.last, verdict.state) for verdict in reversed(series.verdicts)]


def told(desk: Desk) -> list[tuple[str, str]]:
    return [(message.verdict.last, message.verdict.state) for message in desk.received]


def test_an_alarm_is_told_when_it_begins_and_when_it_ends() -> None:
    desk = Desk(ABOVE)
    for day, share in enumerate((0.2, 0.8, 0.8, 0.2, 0.2), NEWEST):
        desk.fold(day, 20_000, share)

    for _ in range(5):
        desk.rounds("one").round()
        desk.store.clock += DAY

    assert [state for _, state in states(desk)] == [QUIET, FIRING, FIRING, QUIET, QUIET]
    assert told(desk) == [("2026-03-03", FIRING), ("2026-03-05", QUIET)]


def test_a_period_is_evaluated_once_however_many_rounds_there_are() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)

    for _ in range(3):
        desk.rounds("one").round()
        desk.store.clock += 60

    assert states(desk) == [("2026-03-02", FIRING)]
    assert len(desk.received) == 1


def test_a_rate_is_stated_only_where_it_bounds_false_alarms() -> None:
    share, cumulative = Desk(ABOVE), Desk(ABOVE.replace("above", 'verb = "cdf"\nabove'))

    for desk in (share, cumulative):
        desk.fold(NEWEST, 20_000, 0.8)
        desk.rounds("one").round()

    assert share.store.series()["dark"].rate == share.watches.rate("1d")
    assert cumulative.store.series()["dark"].rate == 0


def test_what_came_late_does_not_change_what_was_said() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    desk.rounds("one").round()
    before = desk.store.series()["dark"]
    fold(desk.tallies, desk.catalog, NEWEST, 50_000, 0.0, lateness=1)

    desk.store.forget(["*"])  # as if nothing had ever been said
    desk.rounds("one").round()

    assert desk.store.series()["dark"] == before


def test_nothing_is_evaluated_before_it_is_published() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST + 1, 20_000, 0.8)  # yesterday: more may come

    desk.rounds("one").round()

    assert states(desk) == [("2026-03-02", UNKNOWN)]
    assert not desk.received


def test_after_a_pause_each_period_is_made_up_for_in_order() -> None:
    desk = Desk(ABOVE)
    for day, share in enumerate((0.2, 0.8, 0.2, 0.8), NEWEST):
        desk.fold(day, 20_000, share)
    desk.rounds("one").round()
    desk.store.clock += 3 * DAY

    desk.rounds("one").round()

    assert [state for _, state in told(desk)] == [FIRING, QUIET, FIRING]


def test_a_receiver_that_is_down_for_an_hour_gets_each_message_once_and_in_order() -> None:
    desk = Desk(ABOVE)
    for day, share in enumerate((0.2, 0.8, 0.2, 0.8), NEWEST):
        desk.fold(day, 20_000, share)
    desk.rounds("one").round()
    desk.store.clock, desk.is_down = desk.store.clock + 3 * DAY, True
    rounds = desk.rounds("one")

    for second in range(0, 3_600, 30):
        rounds.round()
        desk.store.clock += 30
        assert second >= 0
    assert desk.received == []
    tries = desk.tries
    desk.is_down = False
    desk.store.clock += LAST_RETRY_S
    for _ in range(5):
        rounds.round()
        desk.store.clock += 30

    assert [state for _, state in told(desk)] == [FIRING, QUIET, FIRING]
    assert len({message.id for message in desk.received}) == 3
    assert tries <= 25  # it was not hammered: 5, 10, 20 … 300 s


class DyingWatches(MemoryWatches):
    """A store whose caller dies before, or after, its write number *at*."""

    at, after = 0, False

    def replace(self, read: bytes, ledger: WatchLedger) -> bytes | None:
        self.at -= 1
        if self.at == 0 and not self.after:
            raise KeyboardInterrupt
        text = super().replace(read, ledger)
        if self.at == 0:
            raise KeyboardInterrupt
        return text


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_wherever_a_process_dies_the_next_one_says_the_same_once(at: int, after: bool) -> None:
    """Law: verdicts and messages are those of a process that never dies; of messages that were on
    their way when it died one may come twice, under one id.
    """
    desk = Desk(ABOVE)
    for day, share in enumerate((0.8, 0.2, 0.8), NEWEST):
        desk.fold(day, 20_000, share)
    dying = DyingWatches(NOON)
    desk.store = dying
    desk.rounds("zero").round()
    desk.store.clock += 2 * DAY
    dying.at, dying.after = at, after

    try:
        desk.rounds("one").round()
    except KeyboardInterrupt:
        desk.store.clock += LEASE_S + 1
    dying.at = 0
    desk.rounds("two").round()

    assert [state for _, state in states(desk)] == [FIRING, QUIET, FIRING]
    assert [last for last, _ in states(desk)] == ["2026-03-02", "2026-03-03", "2026-03-04"]
    ids = [message.id for message in desk.received]
    once = list(dict.fromkeys(ids))
    assert len(once) == 3
    assert [i for i, before in zip(ids, [None, *ids], strict=False) if i != before] == once
    assert len(ids) <= 4


def test_a_second_process_does_nothing_while_the_first_one_works() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    first, second = desk.rounds("one"), desk.rounds("two")

    assert first.round() is not None
    assert second.round() is None
    desk.store.clock += LEASE_S + 1
    assert second.round() is not None
    assert first.round() is None
    assert len(desk.received) == 1


def test_a_process_that_was_frozen_commits_nothing_when_it_wakes_up() -> None:
    """The planted fault that compare-and-replace is there for: a lease that has run out."""
    desk = Desk(ABOVE)
    for day in (NEWEST, NEWEST + 1):
        desk.fold(day, 20_000, 0.8 if day == NEWEST else 0.2)
    frozen = desk.rounds("one")

    def deliver(*_: object) -> None:
        desk.store.clock += LEASE_S + DAY  # it sleeps while it sends
        desk.rounds("two").round()

    frozen = desk.rounds("one", deliver)
    assert frozen.round() is None

    assert [state for _, state in states(desk)] == [FIRING, QUIET]
    assert [state for _, state in told(desk)] == [FIRING, QUIET]


def test_a_released_lease_lets_another_go_on_at_once() -> None:
    desk = Desk(ABOVE)
    first = desk.rounds("one")
    first.round()

    first.release()

    assert desk.rounds("two").round() is not None


def test_a_message_that_nobody_takes_for_a_week_is_given_up_and_counted() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    desk.is_down = True
    desk.rounds("one").round()

    desk.store.clock += GIVEN_UP_S + 1
    desk.is_down = False
    desk.rounds("one").round()

    _, ledger = desk.store.ledger()
    assert ledger.outbox == ()
    assert (ledger.sent, ledger.given_up) == (0, 1)


def test_the_outbox_never_grows_beyond_its_limit() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    old = WatchMessage("x", "w", "m", NOON, "", Verdict("", "", FIRING, "", NOON), {"team": (1, 0)})
    desk.store.replace(b"", WatchLedger(outbox=(old,) * MOST_WAITING))
    desk.is_down = True

    desk.rounds("one").round()

    _, ledger = desk.store.ledger()
    assert len(ledger.outbox) == MOST_WAITING
    assert ledger.outbox[-1].watch == "dark"
    assert ledger.given_up == 1


def test_a_watch_of_a_metric_that_is_gone_says_so_and_the_others_go_on() -> None:
    text = '[[watch]]\nname = "gone"\nmetric = "nobody"\nabove = 1\n' + ABOVE
    desk = Desk(text)
    desk.fold(NEWEST, 20_000, 0.8)

    desk.rounds("one").round()

    series = desk.store.series()
    assert series["gone"].verdicts[0].state == UNABLE
    assert "cannot be computed" in series["gone"].verdicts[0].text
    assert series["dark"].verdicts[0].state == FIRING
    assert [message.watch for message in desk.received] == ["gone", "dark"]


def test_a_store_that_is_away_ends_the_round_and_nothing_is_missed() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    desk.tallies.failure = StorageUnavailableError("store: away")
    rounds = desk.rounds("one")

    with pytest.raises(StorageUnavailableError):
        rounds.round()
    desk.tallies.failure = None
    rounds.round()

    assert states(desk) == [("2026-03-02", FIRING)]
    assert len(desk.received) == 1


def test_another_question_under_a_name_begins_anew_and_a_removed_watch_is_forgotten() -> None:
    desk = Desk(ABOVE)
    desk.fold(NEWEST, 20_000, 0.8)
    desk.rounds("one").round()

    changed = Desk(ABOVE.replace("above = 0.5", "above = 0.9").replace('"dark"', '"light"'))
    changed.tallies, changed.store = desk.tallies, desk.store
    changed.rounds("one").round()

    assert set(desk.store.series()) == {"light"}
    assert states(desk) == [("2026-03-02", QUIET)]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("above = 0.5", "Dark mode: above 50 %"),
        ("below = 0.125", "Dark mode: below 12.5 %"),
        ("changed = 0", "Dark mode: changed"),
        ("changed = 0.03", "Dark mode: changed by more than 3 points"),
        ("silent = 0.5", "Dark mode: fewer than 50 % of the usual reports"),
        (
            'above = 0.5\nfilters = [["is_not", "platform", ["mac"]]]',
            "Dark mode: above 50 %, platform is not mac",
        ),
    ],
)
def test_a_question_is_told_in_words(rule: str, words: str) -> None:
    desk = Desk(f'[[watch]]\nname = "w"\nmetric = "m"\n{rule}')

    assert title_of(desk.watches.watch[0], desk.catalog.metric("m")) == words
