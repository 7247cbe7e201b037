"""The doctor names every illness that it is shown, says why and what next, and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.epoch import DAY, day_of
from client_sdk.registry import Registry
from collector.core.catalog import Orphan
from collector.core.config import HA, STANDARD, STRICT, VOLATILE, Config
from collector.core.credentials import ADMIN, OPERATE, READ, REPORT, VIEWER, WRITE, Credential
from collector.operations.doctor import State, examine
from collector.operations.doctor.findings import FAULT, GOOD, LEVELS, NOTE, WARNING, Finding, worst
from collector.operations.doctor.uploads import SOON_DAYS
from collector.operations.telemetry.activity import WEB, WORKER
from collector.storage.diagnosis import Server, Shard
from collector.storage.preparation import LIBRARY_VERSION
from collector.storage.records import WatchRecord
from collector.storage.values import ArchiveProgress, Count, Counters
from tests.support.crowds.uploads import NOON, WRITE_KEY, registry_text

GIB: Final = 1 << 30
INFO: Final = {
    "redis_version": "7.0.15",
    "maxmemory_policy": "noeviction",
    "role": "master",
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
    "aof_last_bgrewrite_status": "ok",
    "used_memory": str(GIB // 10),
    "maxmemory": str(GIB),
    "connected_slaves": "1",
}
SERVER: Final = Server(INFO, "always", LIBRARY_VERSION, 0.01)
SHARD: Final = Shard(Counters(Count(9, 90), Count(9, 90), Count(), Count(), 0, 0, 0), True)
BACKLOG: Final = Shard(Counters(Count(9, 90), Count(4, 40), Count(), Count(), 0, 5, 0), True)
TODAY: Final = day_of(NOON)
LIMITED: Final = {
    b"\x01" * 32: Credential(WRITE, quota=9),
    b"\x02" * 32: Credential(ADMIN, expires=TODAY + 60),
}
CREDENTIALS: Final = {
    b"\x01" * 32: Credential(WRITE),
    b"\x02" * 32: Credential(ADMIN, expires=TODAY + 60),
}
ORPHAN: Final = Orphan(bytes(6), "theme", "mechanism", "oue", ("mechanism",))
STATE: Final = State(
    servers=[SERVER],
    shards=[SHARD, SHARD],
    recorded_shards=2,
    recorded_profile=STRICT,
    credentials=CREDENTIALS,
    alive={WEB: 1, WORKER: 1},
    metrics=tuple(Registry.from_text(registry_text())),
    granted=None,
    used={},
    archiving=[ArchiveProgress(90, 90, 0, None)],
    stuck=0,
    now=NOON,
)


def server(ahead: float | None = 0.01, library: int | None = LIBRARY_VERSION, **info: str) -> State:
    """Return the healthy state but for what its server tells."""
    return replace(STATE, servers=[Server({**INFO, **info}, "always", library, ahead)])


def shards(*found: Shard) -> State:
    return replace(STATE, shards=list(found))


def counts(**changed: Any) -> Shard:
    assert SHARD.counters is not None
    return Shard(replace(SHARD.counters, **changed), True)


ONE_ASIDE: Final = counts(accepted=Count(10, 100), quarantined=Count(1, 10), aside=1)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    settings = {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_SHARDS": "2",
        "HEARSAY_PROFILE": STRICT,
        "HEARSAY_WRITE_KEY": WRITE_KEY,
    }
    return Config.from_env(settings)


NOT_ON_PAGE: Final = ("shards", "archive", "keys", "definitions", "cluster")


def ill(config: Config, state: State) -> list[tuple[str, str]]:
    """Return level and check of what is not good."""
    return [(one.level, one.check) for one in examine(config, state) if one.level != GOOD]


def test_a_healthy_deployment_has_nothing_but_good_findings(config: Config) -> None:
    """The control of all that follows."""
    assert ill(config, STATE) == []
    assert {one.check for one in examine(config, STATE)} >= {
        *("profile", "library", "shards", "memory", "log", "clock", "workers", "conservation"),
        *("keys", "registry"),
    }


def test_keys_in_the_settings_of_those_that_serve_are_keys(config: Config) -> None:
    """Who runs the doctor elsewhere has other settings, and no reason to be alarmed."""
    state = replace(STATE, credentials={}, granted={REPORT: 1, OPERATE: 1})

    assert ill(config, state) == []


@pytest.mark.parametrize(
    ("state", "level", "check"),
    [
        (server(aof_enabled="0"), FAULT, "profile"),
        (replace(STATE, servers=[replace(SERVER, replays=False)]), FAULT, "profile"),
        (replace(STATE, stuck=1), WARNING, "workers"),
        (replace(STATE, archiving=[ArchiveProgress(90, 90, 3, TODAY - 2)]), WARNING, "archive"),
        (replace(STATE, credentials=LIMITED, used={b"\x01" * 32: 9}), WARNING, "keys"),
        (replace(STATE, begun={b"\x01" * 32: 90_000_000}), WARNING, "keys"),
        (server(maxmemory_policy="allkeys-lru"), FAULT, "profile"),
        (server(library=0), FAULT, "library"),
        (server(library=LIBRARY_VERSION - 1), FAULT, "library"),
        (server(library=LIBRARY_VERSION + 1), NOTE, "library"),
        (server(library=None), NOTE, "library"),
        (replace(STATE, recorded_shards=None), FAULT, "shards"),
        (replace(STATE, recorded_shards=3), FAULT, "shards"),
        (replace(STATE, orphans=None), NOTE, "definitions"),
        (replace(STATE, orphans=[ORPHAN]), WARNING, "definitions"),
        (replace(STATE, orphans=[ORPHAN._replace(in_use=None)]), NOTE, "definitions"),
        (shards(SHARD, Shard(SHARD.counters, False)), FAULT, "shards"),
        (server(maxmemory="0"), WARNING, "memory"),
        (server(used_memory=str(GIB * 7 // 10 + 1)), WARNING, "memory"),
        (server(maxmemory=str(10**10), used_memory=str(7 * 10**9)), WARNING, "memory"),
        (server(maxmemory=str(10**10), used_memory=str(85 * 10**8)), FAULT, "memory"),
        (server(used_memory=str(GIB * 85 // 100 + 1)), FAULT, "memory"),
        (server(aof_last_write_status="err"), FAULT, "log"),
        (server(aof_last_bgrewrite_status="err"), FAULT, "log"),
        (server(ahead=-61.0), WARNING, "clock"),
        (server(ahead=3_601.0), FAULT, "clock"),
        (replace(STATE, alive={WEB: 1, WORKER: 0}), WARNING, "workers"),
        (replace(STATE, alive={WORKER: 0}, shards=[BACKLOG]), FAULT, "workers"),
        (replace(STATE, alive=None), NOTE, "workers"),
        (shards(counts(stream=600_000, accepted=Count(600_009, 0))), WARNING, "workers"),
        (shards(counts(stream=1), counts(accepted=Count(10, 91))), FAULT, "conservation"),
        (shards(ONE_ASIDE), WARNING, "quarantine"),
        (shards(counts(late_reports=9)), NOTE, "lateness"),
        (replace(STATE, credentials=None), NOTE, "keys"),
        (replace(STATE, credentials={b"2": Credential(ADMIN)}), NOTE, "keys"),
        (
            replace(STATE, credentials={b"2": Credential(ADMIN)}, granted={REPORT: 0}),
            WARNING,
            "keys",
        ),
        (replace(STATE, credentials={}, granted={REPORT: 1, OPERATE: 0}), NOTE, "keys"),
        (replace(STATE, credentials={b"1": Credential(WRITE)}), NOTE, "keys"),
        (
            replace(
                STATE,
                credentials=CREDENTIALS
                | {b"3" * 32: Credential(READ, role=VIEWER, expires=TODAY + SOON_DAYS)},
            ),
            WARNING,
            "keys",
        ),
        (
            replace(STATE, metrics=tuple(Registry.from_text(registry_text(expires="2026-03-10")))),
            WARNING,
            "registry",
        ),
        (
            replace(STATE, metrics=tuple(Registry.from_text(registry_text(expires="2026-03-03")))),
            NOTE,
            "registry",
        ),
        (server(maxmemory=str(1_500_000), used_memory="1"), WARNING, "capacity"),
        (
            replace(
                server(maxmemory="10000000", used_memory="1"),
                credentials={
                    name * 32: Credential(WRITE, quota=16_000) for name in (b"\x03", b"\x04")
                }
                | CREDENTIALS,
            ),
            WARNING,
            "capacity",
        ),  # 32,000 reports x 16 days x 12 bytes > 60 % of 10 MB; one alone is below
        (replace(STATE, servers=[replace(SERVER, packed=128)]), WARNING, "memory"),
        (replace(STATE, servers=[replace(SERVER, stops_with_others=True)]), WARNING, "cluster"),
    ],
)
def test_an_illness_is_named_and_no_other(
    config: Config, state: State, level: str, check: str
) -> None:
    assert set(ill(config, state)) == {(level, check)}
    on_page = [found.check for found in examine(config, state, for_page=True)]
    assert check in on_page or check in NOT_ON_PAGE


def test_ids_that_are_kept_by_the_week_are_counted_as_such(config: Config) -> None:
    """Where issuers' keys are set the store keeps an id up to six days longer."""
    full = server(maxmemory=str(3_000_000), used_memory="1")
    with_keys = replace(config, issuer_keys=("issuer.public",))

    assert ill(config, full) == []
    assert ill(with_keys, full) == [(WARNING, "capacity")]


def test_every_finding_that_is_bad_says_why_and_what_next(config: Config) -> None:
    """A finding without a next step only makes people anxious."""
    sick = replace(
        server(library=0, ahead=9_999.0, maxmemory="0", aof_enabled="0"),
        shards=[counts(stream=1, aside=2)],
        recorded_shards=None,
        alive={},
        credentials={},
    )

    bad = [one for one in examine(config, sick) if one.level in (WARNING, FAULT)]

    assert len(bad) >= 8
    assert [one for one in bad if not (one.why and one.next)] == []


def test_appendfsync_that_may_not_be_read_is_taken_from_the_record(config: Config) -> None:
    """hearsay init has read it, and has recorded the profile that it found."""
    silent = replace(STATE, servers=[replace(SERVER, appendfsync=None)])

    assert ill(config, silent) == []
    assert ill(config, replace(silent, recorded_profile=STANDARD)) == [(FAULT, "profile")]


def test_profile_ha_needs_a_replica(config: Config) -> None:
    alone = replace(server(connected_slaves="0"), recorded_profile=HA)

    assert ill(replace(config, profile=HA), alone) == [(FAULT, "profile")]
    assert ill(replace(config, profile=HA), STATE) == []


def test_profile_volatile_is_warned_of(config: Config) -> None:
    assert ill(replace(config, profile=VOLATILE), STATE) == [(WARNING, "profile")]


def test_a_metric_is_asked_on_its_last_day(config: Config) -> None:
    """It expires when the day in ``expires`` is over."""
    last = date(2026, 3, 4)
    metrics = tuple(Registry.from_text(registry_text(expires=last.isoformat())))
    night = replace(STATE, metrics=metrics, now=(TODAY + 1) * DAY - 1)

    assert ill(config, night) == [(WARNING, "registry")]
    assert ill(config, replace(night, now=night.now + 1)) == [(NOTE, "registry")]


@pytest.mark.parametrize("level", LEVELS)
def test_the_worst_level_is_that_of_the_worst_finding(level: str) -> None:
    below = LEVELS[: LEVELS.index(level) + 1]

    assert worst(Finding(one, "x", "y") for one in below) == level
    assert worst([]) == GOOD


def test_the_key_that_begins_too_many_tallies_is_named(config: Config) -> None:
    state = replace(STATE, begun={b"\xab" * 32: 256_000_000, b"\x01" * 32: 85_000_000})

    [found] = [one for one in examine(config, state) if one.level != GOOD]

    assert "abababab" in found.what
    assert "HEARSAY_NEW_TALLIES_MB" in found.next
    assert ill(replace(config, new_tallies_mb=0), state) == []


def test_a_quota_that_is_not_used_up_and_a_worker_that_holds_its_claim_are_no_findings(
    config: Config,
) -> None:
    """The controls: below the quota, and held entries while no worker lives to be wrong."""
    below = replace(STATE, credentials=LIMITED, used={b"\x01" * 32: 8})
    unread = replace(STATE, alive=None, stuck=5)

    assert ill(config, below) == []
    assert [what for what in ill(config, unread) if what[0] == WARNING] == []


def test_a_fold_that_waits_for_the_next_run_of_the_archive_is_no_finding(config: Config) -> None:
    """Law: a fold of yesterday may be minutes old; only a day of waiting tells of a fault."""
    waiting = replace(
        STATE, archiving=[ArchiveProgress(90, 90, 3, TODAY - 1), ArchiveProgress(9, 9, 0, None)]
    )

    assert ill(config, waiting) == []


def test_epochs_that_look_made_up_are_told_with_reason_and_next_step(config: Config) -> None:
    texts = ["changed suddenly: 'a'", "second", "third", "fourth"]
    watched = {
        "page": WatchRecord(1, 2, 7, {"2026-03-03": texts}),
        "theme": WatchRecord(1, 2, 7, {}),
    }

    (found,) = [
        one for one in examine(config, replace(STATE, watched=watched)) if one.check == "poisoning"
    ]

    assert found.level == WARNING
    assert found.what == "page, 2026-03-03: changed suddenly: 'a'; second; third; and 1 more"
    assert "docs/operate/operate.md#suspicious" in found.next


def test_clean_epochs_are_said_to_have_been_looked_at(config: Config) -> None:
    clean = replace(
        STATE, watched={"page": WatchRecord(1, 2, 7, {}), "theme": WatchRecord(1, 2, 5, {})}
    )

    (found,) = [one for one in examine(config, clean) if one.check == "poisoning"]

    assert (found.level, found.what) == (GOOD, "nothing in the 12 last closed epochs looks made up")


def test_the_page_judges_only_what_a_web_process_may_see(config: Config) -> None:
    blind = replace(STATE, credentials=None, recorded_shards=None)

    in_full, on_page = examine(config, blind), examine(config, blind, for_page=True)

    assert {finding.check for finding in in_full if finding.level != GOOD} == {"keys", "shards"}
    assert on_page == [finding for finding in in_full if finding in on_page]
    assert {finding.level for finding in on_page} == {GOOD}


def of_generations(*generations: str | None, confirmed: int | None = TODAY) -> State:
    return shards(*(Shard(None, True, generation, confirmed) for generation in generations))


def levels(config: Config, state: State, check: str) -> list[str]:
    return [one.level for one in examine(config, state) if one.check == check]


@pytest.mark.parametrize(
    ("generations", "told"),
    [
        (("a", "a"), [GOOD]),
        (("a", ""), [FAULT]),
        (("", ""), [FAULT]),
        (("a", "b"), [FAULT]),
        ((None, None), []),
    ],
)
def test_a_store_of_which_a_part_is_gone_is_a_fault(
    config: Config, generations: tuple[str | None, ...], told: list[str]
) -> None:
    assert levels(config, of_generations(*generations), "generation") == told


@pytest.mark.parametrize(
    ("day", "told"),
    [
        *((TODAY, [GOOD]), (TODAY + 1, [GOOD]), (TODAY - 2, [GOOD])),
        *((TODAY - 3, [WARNING]), (TODAY + 2, [FAULT]), (None, [])),
    ],
)
def test_days_that_lag_or_run_ahead_are_told(
    config: Config, day: int | None, told: list[str]
) -> None:
    assert levels(config, of_generations("a", "a", confirmed=day), "ids") == told


def test_workers_that_waited_for_clocks_are_told(config: Config) -> None:
    assert levels(config, replace(STATE, clock_waits=3), "clock") == [GOOD, NOTE]


def test_a_token_that_ends_soon_is_told_of_with_its_days(config: Config) -> None:
    def ending(days: int) -> list[str]:
        soon = Credential(READ, role=VIEWER, expires=TODAY + days)
        state = replace(STATE, credentials={**CREDENTIALS, b"3" * 32: soon})
        return [found.what for found in examine(config, state) if found.level != GOOD]

    (what,) = ending(SOON_DAYS)
    assert what.endswith(f"is good for {SOON_DAYS} days more")
    assert ending(SOON_DAYS + 1) == []
