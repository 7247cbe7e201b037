"""/metrics tells the state in Prometheus' words; alerts, dashboard and docs use only these."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from collector.core.config import STRICT, VOLATILE
from collector.operations.telemetry.activity import (
    DUPLICATES,
    FOLD_US,
    FOLDS,
    REFUSED,
    REJECTED,
    WORKER,
    Totals,
)
from collector.operations.telemetry.exposition import expose
from collector.operations.telemetry.flow import Flow
from collector.operations.telemetry.snapshot import Snapshot
from collector.storage.diagnosis import Server
from collector.storage.records import (
    FIRING,
    QUIET,
    UNABLE,
    Verdict,
    WatchCursor,
    WatchLedger,
    WatchMessage,
    WatchRecord,
    WatchState,
)
from collector.storage.values import Count, Counters

ROOT: Final = Path(__file__).parents[4]
ALERTS: Final = yaml.safe_load((ROOT / "examples/prometheus/alerts.yml").read_text("utf-8"))
RULES: Final[list[dict[str, Any]]] = [r for group in ALERTS["groups"] for r in group["rules"]]
DASHBOARD: Final = json.loads((ROOT / "examples/grafana/dashboard.json").read_text("utf-8"))
PAGE: Final = (ROOT / "docs/operate/operate.md").read_text("utf-8")

SHARD: Final = Counters(
    accepted=Count(10, 100),
    folded=Count(6, 60),
    quarantined=Count(1, 10),
    dropped=Count(1, 10),
    late_reports=15,
    stream=2,
    aside=1,
)
SNAPSHOT: Final = Snapshot(
    refused={0: False, 1: True},
    store_is_up=True,
    shards=[SHARD, SHARD],
    servers=[Server({"used_memory": "70", "maxmemory": "100"}, None, 2, -0.25)],
    unarchived=7,
    totals=Totals(
        {
            REJECTED: {"payload_size": 3},
            REFUSED: {"unauthorized": 4},
            DUPLICATES: {"": 5},
            FOLDS: {"0": 2, "3": 1, "11": 1},
            FOLD_US: {"": 2_500_000},
        },
        {WORKER: 2},
    ),
    flow=Flow((), 1_650_000_000),
    expired_metrics=1,
    next_metric_expiry=1_800_000_000,
    next_token_expiry=1_700_000_000,
    process="0a",
    profile="strict",
    begun={"0b0b0b0b": 16_500},
    watches=WatchState(WatchLedger("a", looked=7, cursors={"w": WatchCursor("d", "", QUIET, "")})),
    watched={"page": WatchRecord(1, 2, 7, {"2026-03-03": ["a", "b"], "2026-03-02": ["a"]})},
)


def samples(snapshot: Snapshot) -> dict[str, float]:
    """Return every sample as ``name{label=value}``."""
    return {
        sample.name + "".join(f"{{{k}={v}}}" for k, v in sample.labels.items()): sample.value
        for family in text_string_to_metric_families(expose(snapshot).decode())
        for sample in family.samples
    }


def names(snapshot: Snapshot) -> set[str]:
    return {name.partition("{")[0] for name in samples(snapshot)}


def used_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:hearsay|process)_\w+", expression))


def test_the_counts_of_all_shards_are_added() -> None:
    """Accepted is folded, pending, set aside and dropped; so it is in the metrics."""
    told = samples(SNAPSHOT)

    assert told["hearsay_accepted_reports_total"] == 200
    assert told["hearsay_folded_reports_total"] == 120
    assert told["hearsay_pending_reports"] == 40
    assert told["hearsay_quarantined_uploads"] == 2
    assert told["hearsay_dropped_uploads_total"] == 2
    assert told["hearsay_backlog_uploads"] == told["hearsay_pending_uploads"] == 4
    assert told["hearsay_late_share"] == 0.25
    assert told["hearsay_conservation_drift_uploads"] == 0


def test_an_upload_that_is_missing_shows_as_drift_whichever_shard_has_one_too_many() -> None:
    """Drifts of two shards do not cancel."""
    shards = [replace(SHARD, stream=1), replace(SHARD, stream=3)]

    told = samples(replace(SNAPSHOT, shards=shards))

    assert told["hearsay_conservation_drift_uploads"] == 2


def test_what_processes_counted_is_told_by_reason() -> None:
    told = samples(SNAPSHOT)

    assert told["hearsay_rejected_reports_total{reason=payload_size}"] == 3
    assert told["hearsay_refused_requests_total{problem=unauthorized}"] == 4
    assert told["hearsay_duplicate_uploads_total"] == 5
    assert told["hearsay_new_tally_bytes{key=0b0b0b0b}"] == 16_500
    assert told["hearsay_processes_alive{role=worker}"] == 2


def test_suspicious_epochs_are_counted_by_metric() -> None:
    """Of one that was looked at and is clean, 0: an alert must be able to end."""
    clean = WatchRecord(1, 2, 7, {})
    told = samples(replace(SNAPSHOT, watched={**SNAPSHOT.watched, "theme": clean}))

    assert told["hearsay_suspicious_epochs{metric=page}"] == 2
    assert told["hearsay_suspicious_epochs{metric=theme}"] == 0


def test_what_watches_say_is_told_by_name_and_so_are_messages_that_wait() -> None:
    verdict = Verdict("", "", FIRING, "", 1)
    message = WatchMessage("a", "w", "m", 1, "", verdict, {"team": (0, 0)})
    cursors = {
        name: WatchCursor("d", "2026-03-02", state, "2026-03-02")
        for name, state in (("hot", FIRING), ("gone", UNABLE), ("calm", QUIET))
    }
    ledger = WatchLedger("a", looked=7, cursors=cursors, outbox=(message,), given_up=2)

    told = samples(replace(SNAPSHOT, watches=WatchState(ledger)))

    assert told["hearsay_watch_firing{watch=hot}"] == 1
    assert told["hearsay_watch_firing{watch=calm}"] == told["hearsay_watch_firing{watch=gone}"] == 0
    assert told["hearsay_watch_unable{watch=gone}"] == 1
    assert told["hearsay_watch_waiting_messages"] == 1
    assert told["hearsay_watch_given_up_messages_total"] == 2
    assert told["hearsay_watch_looked_timestamp_seconds"] == 7
    assert "hearsay_watch_looked_timestamp_seconds" not in samples(
        replace(SNAPSHOT, watches=WatchState(WatchLedger(looked=7)))
    )


def test_the_buckets_of_folds_add_up() -> None:
    """Each bucket holds those below it, the last one all."""
    told = samples(SNAPSHOT)

    assert told["hearsay_fold_seconds_bucket{le=0.005}"] == 2
    assert told["hearsay_fold_seconds_bucket{le=0.05}"] == 3
    assert told["hearsay_fold_seconds_bucket{le=10.0}"] == 3
    assert told["hearsay_fold_seconds_bucket{le=+Inf}"] == told["hearsay_fold_seconds_count"] == 4
    assert told["hearsay_fold_seconds_sum"] == 2.5


def test_what_a_server_tells_is_told_and_what_it_does_not_tell_is_left_out() -> None:
    """No number is better than a wrong one."""
    silent = Server({}, None, None, None)
    told = samples(replace(SNAPSHOT, servers=[*SNAPSHOT.servers, silent]))

    assert told["hearsay_store_memory_bytes{server=0}"] == 70
    assert told["hearsay_store_memory_limit_bytes{server=0}"] == 100
    assert told["hearsay_store_clock_ahead_seconds{server=0}"] == -0.25
    assert "hearsay_store_clock_ahead_seconds{server=1}" not in told
    assert "hearsay_store_library_version{server=1}" not in told


def test_the_process_that_answers_is_told_by_standard_names_under_its_own_label() -> None:
    """Several processes answer in turn: without the label their counters would seem to reset."""
    told = samples(SNAPSHOT)

    of_process = {name for name in told if name.startswith("process_")}
    assert {name.partition("{")[2] for name in of_process} == {"process=0a}"}
    assert told["process_resident_memory_bytes{process=0a}"] > 0
    assert told["process_start_time_seconds{process=0a}"] <= time.time()


def test_what_waits_for_the_archive_is_told_where_it_may_be_asked() -> None:
    """Law: it takes memory, so it is watched; a user without the right tells nothing, not 0."""
    assert samples(SNAPSHOT)["hearsay_unarchived_folds"] == 7
    assert "hearsay_unarchived_folds" not in samples(replace(SNAPSHOT, unarchived=None))


@pytest.mark.parametrize(
    ("changed", "profile", "sound"),
    [
        ({}, STRICT, 1),
        ({"aof_enabled": "0"}, STRICT, 0),
        ({"maxmemory_policy": "allkeys-lru"}, STRICT, 0),
        ({"aof_last_write_status": "err"}, STRICT, 0),
        ({"aof_enabled": "0"}, VOLATILE, 1),
    ],
)
def test_a_store_whose_settings_would_lose_what_it_takes_is_not_sound(
    changed: dict[str, str], profile: str, sound: int
) -> None:
    """A server that was started again with others answers as before."""
    good = {
        "redis_version": "7.0.15",
        "role": "master",
        "maxmemory_policy": "noeviction",
        "aof_enabled": "1",
    }
    told = Server({**good, **changed}, None, None, None)

    found = samples(replace(SNAPSHOT, servers=[told], profile=profile))

    assert found["hearsay_store_log_sound{server=0}"] == sound


def test_a_store_that_is_away_is_told_of_and_nothing_is_made_up() -> None:
    """Zero uploads accepted would be a lie."""
    nothing = Totals({}, {})
    away = replace(
        SNAPSHOT, store_is_up=False, shards=(), servers=(), unarchived=None, totals=nothing
    )

    told = samples(replace(away, refused={0: False, 2: True}))

    assert told["hearsay_store_up"] == 0
    assert (told["hearsay_shard_up{shard=0}"], told["hearsay_shard_up{shard=2}"]) == (1, 0)
    assert not any("uploads" in name or "reports" in name for name in told)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_metrics_that_exist_and_a_section_of_the_runbook(
    rule: dict[str, Any],
) -> None:
    """Who is woken finds what to do."""
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    where, _, page = page.rpartition("}}")

    assert used_in(rule["expr"]) - names(SNAPSHOT) == set()
    assert used_in(rule["expr"]) or rule["expr"].startswith("up{")
    assert page == "docs/operate/operate.md"
    assert where == "{{ $externalLabels.hearsay_docs "
    assert f'<a id="{anchor}"></a>' in PAGE
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["alert"] in PAGE


def test_a_planted_alert_on_a_metric_that_does_not_exist_is_found() -> None:
    """The control of the test above."""
    assert used_in("rate(hearsay_unknown_total[5m]) > 0") - names(SNAPSHOT)


def test_every_section_of_the_runbook_is_reached_by_an_alert() -> None:
    """A section that nothing leads to is old, or its alert is missing."""
    reached = {rule["annotations"]["runbook_url"].partition("#")[2] for rule in RULES}

    assert set(re.findall(r'<a id="([\w-]+)"></a>', PAGE)) == reached


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: str(panel["title"]))
def test_every_panel_of_the_dashboard_shows_metrics_that_exist(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        assert used_in(target["expr"])
        assert used_in(target["expr"]) - names(SNAPSHOT) == set()


def test_every_metric_is_in_the_docs_and_no_other() -> None:
    """The table of the page is the list of what there is."""
    exposed = {re.sub(r"_(bucket|count|sum)$", "", name) for name in names(SNAPSHOT)}
    listed = set(re.findall(r"^\| `((?:hearsay|process)_\w+)`", PAGE, re.MULTILINE))

    assert listed == exposed
