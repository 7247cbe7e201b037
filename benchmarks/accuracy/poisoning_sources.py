"""What fakes gain where keys are kept apart, what is found of them, and what an exclusion undoes.

Every report is a payload of the mechanism's own code; each device's upload is judged by intake,
folded as a worker folds, watched as a worker watches, excluded by the command's code and answered
by the query's.  Honest devices report under eight keys for some days, under each of them a number
that goes up and down by a quarter; on the last day fakes come too, under one key or spread over
all.  The gain is the answer with them less the answer without, of the same honest reports.

Run: ``python -m benchmarks poisoning_sources``; about three minutes.  Its output is on
docs/evidence/tables/poisoning.md.

Attacks and stated gains are those of ``_poisoning_cases``.  All settings were fixed before
anything was measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean, stdev
from typing import Final

from benchmarks.accuracy._poisoning_cases import Case, cases
from benchmarks.lib.page import head, row
from client_sdk.core.epoch import DAY, epoch_label
from client_sdk.wire.reports import Column
from collector.core.catalog import Catalog
from collector.core.cells import key_source
from collector.core.entry import AcceptedColumn
from collector.core.exclusions import to_json
from collector.estimation.tally import tally_entries
from collector.intake.validation import judge
from collector.intake.wire import Upload
from collector.query import Answer, plan, read, run
from collector.query.plan import Plan
from collector.query.reading import slices_of, without_pruned
from collector.query.repair import ExclusionRequest, proposed
from collector.storage.hashes import MemoryHashes
from collector.storage.records import SuspicionStore
from collector.worker.poisoning_watch import Watch
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage

KEYS: Final = tuple(f"{place:012x}" for place in range(8))
SHARE: Final = 0.05  # of fakes, of all reports of the last day
SEEDS: Final = 5
TODAY: Final = 20_000  # the last day, which has closed
NOW: Final = (TODAY + 1) * DAY + 3_600
FOUND: Final = ("found in the day", "found in a key")


class Site:
    """The reports of some days of one case, and of them all that is asked."""

    def __init__(self, case: Case, seed: int) -> None:
        """Let honest devices report on the last day and on those before."""
        self.case, self.seed = case, seed
        self._catalog = Catalog([case.registry])
        self.past = [self._day(TODAY - back) for back in range(case.earlier, 0, -1)]
        self.honest = self._day(TODAY)

    def _day(self, day: int) -> dict[str, list[AcceptedColumn]]:
        """Return what devices report on a day: under each key about as many as on others."""
        chance = SeededRandomness(f"{self.case.name} {self.seed} {day}".encode())
        randomize, held, usual = self.case.mechanism.randomize, self.case.held, self.case.per_key
        came = {key: usual * 3 // 4 + chance.uniform(usual // 2) for key in KEYS}
        return {
            key: self._judged(key, day, [randomize(held(i), chance) for i in range(came[key])])
            for key in KEYS
        }

    def _judged(self, key: str, day: int, reports: Sequence[bytes]) -> list[AcceptedColumn]:
        """Return what intake accepts of devices that upload a report each."""
        columns: list[AcceptedColumn] = []
        for report in reports:
            upload = Upload(bytes(16), day, {}, (Column(self.case.metric.digest, day, report),))
            source = key_source(key)
            verdict = judge(upload, self._catalog, day, of_device=True, source=source)
            assert not verdict.rejected
            columns += verdict.accepted
        return columns

    def fakes(self, attack: str, *, spread: bool) -> dict[str, list[AcceptedColumn]]:
        """Return reports of fakes, SHARE of all, under the first key or by turns under all."""
        chance = SeededRandomness(f"{self.case.name} {self.seed} {attack}".encode())
        honest, made = sum(map(len, self.honest.values())), self.case.mechanism
        count = round(honest * SHARE / (1 - SHARE))
        reports = made.split(self.case.fakes(made, attack, count, chance))
        turns = len(KEYS) if spread else 1
        return {KEYS[i]: self._judged(KEYS[i], TODAY, reports[i::turns]) for i in range(turns)}

    def store(self, *days: Mapping[str, list[AcceptedColumn]], without: str = "") -> MemoryStorage:
        """Return a store that holds what came on *days*, but nothing under one key."""
        storage = MemoryStorage()
        storage.clock, storage.times = NOW, (float(NOW),)
        entries = [columns for day in days for key, columns in day.items() if key != without]
        storage.put(tally_entries(entries, {self.case.metric.digest: self.case.mechanism}))
        return storage

    def answer(self, storage: MemoryStorage) -> Answer:
        """Return the answer about the last day."""
        return run(self.plan, storage)

    @cached_property
    def plan(self) -> Plan:
        """The question about the last day."""
        day = epoch_label("1d", TODAY)
        query = {"metrics": ["m"], "date_range": [day, day], "verb": self.case.verb}
        return plan(read(json.dumps(query).encode()), self._catalog, NOW)

    def integers(self, storage: MemoryStorage) -> list[tuple[int, list[int]]]:
        """Return reports and tallies that the answer rests on."""
        made = without_pruned(self.plan, storage)
        read = slices_of(made, made.readings[0], self.case.metric, storage)
        return [(part.n, part.tally.tolist()) for part in read]

    def values(self, storage: MemoryStorage) -> dict[str, float]:
        """Return the targets' sum of shares, and their mean; nothing of what is not listed."""
        found: dict[str, float] = {}
        for line in self.answer(storage).rows:
            name = line.item.removeprefix("mean of ")
            if name in self.case.measures and line.value is not None:
                unit = "share" if line.unit == "share" else "mean"
                found[unit] = found.get(unit, 0.0) + line.value
        return found

    def alarms(self, storage: MemoryStorage) -> tuple[bool, bool]:
        """Return whether a worker finds the last day suspicious, and whether a key."""
        suspicions = SuspicionStore(MemoryHashes())
        Watch(storage, suspicions, [self.case.metric], lambda: NOW).look()
        sentences = suspicions.records()[self.case.metric.digest].sentences
        of_keys = [text.startswith("key ") for text in sentences.get(epoch_label("1d", TODAY), [])]
        return not all(of_keys), any(of_keys)

    def exclude(self, storage: MemoryStorage) -> None:
        """Take the first key out of the last day, by the command's own code."""
        day = epoch_label("1d", TODAY)
        wish = ExclusionRequest("key", KEYS[0], "fakes", "benchmark", first=day, last=day)
        exclusion, _ = proposed(wish, self._catalog, storage, KEYS)
        storage.excluded[exclusion.id] = to_json(exclusion)


def gains(site: Site, attack: str, *, spread: bool) -> tuple[MemoryStorage, dict[str, float]]:
    """Return a store with fakes, and what they add to the answer about the last day."""
    fakes = site.fakes(attack, spread=spread)
    storage = site.store(*site.past, site.honest, fakes)
    before, after = site.values(site.store(site.honest)), site.values(storage)
    return storage, {unit: value - before.get(unit, 0.0) for unit, value in after.items()}


def is_as_never_sent(site: Site, attack: str, storage: MemoryStorage) -> bool:
    """Exclude the first key; return whether all integers are as if it had sent nothing."""
    site.exclude(storage)
    never = site.store(site.honest, site.fakes(attack, spread=False), without=KEYS[0])
    return site.integers(storage) == site.integers(never)


def under_one_key(case: Case, sites: Sequence[Site], undone: list[bool]) -> Iterator[str]:
    """Yield of each attack its gain and what is found; *undone* gets what an exclusion undoes."""
    for name, attack in case.attacks.items():
        results = [gains(site, attack, spread=False) for site in sites]
        alarms = [site.alarms(storage) for site, (storage, _) in zip(sites, results, strict=True)]
        undone += [
            is_as_never_sent(site, attack, storage)
            for site, (storage, _) in zip(sites, results, strict=True)
        ]
        for unit, stated in case.stated(case, attack, SHARE).items():
            measured = [gain[unit] for _, gain in results if unit in gain]
            said = "no formula" if stated is None else _number(stated, unit)
            yield row(case.name, name, unit, said, _mean(measured, unit), *_counts(alarms))


def under_all_keys(case: Case, sites: Sequence[Site]) -> Iterator[str]:
    """Yield of the best attack, spread over all keys, its gain, what is found, and what is left."""
    name, attack = next(iter(case.attacks.items()))
    results = [gains(site, attack, spread=True) for site in sites]
    alarms = [site.alarms(storage) for site, (storage, _) in zip(sites, results, strict=True)]
    left: list[dict[str, float]] = []
    for site, (storage, _) in zip(sites, results, strict=True):
        site.exclude(storage)
        before = site.values(site.store(site.honest, without=KEYS[0]))
        after = site.values(storage)
        left.append({unit: value - before.get(unit, 0.0) for unit, value in after.items()})
    for unit in case.stated(case, attack, SHARE):
        gained = _mean([gain[unit] for _, gain in results if unit in gain], unit)
        rest = _mean([gain[unit] for gain in left if unit in gain], unit)
        yield row(case.name, name, unit, gained, *_counts(alarms), rest)


def _mean(values: Sequence[float], unit: str) -> str:
    if len(values) < SEEDS:
        return f"listed in {len(values)} of {SEEDS}"
    return f"{_number(fmean(values), unit)} ±{_number(stdev(values), unit).lstrip('+')}"


def _number(value: float, unit: str) -> str:
    return f"{value:+.3f}" if unit == "share" else f"{value:+.2f}"


def _counts(alarms: Sequence[tuple[bool, bool]]) -> tuple[str, str]:
    return str(sum(day for day, _ in alarms)), str(sum(key for _, key in alarms))


def main() -> None:
    """Print what fakes do under one key, under all keys, and what is found without any."""
    one: list[str] = []
    undone: list[bool] = []
    every: list[str] = []
    clean: list[tuple[bool, bool]] = []
    for case in cases():
        sites = [Site(case, seed) for seed in range(SEEDS)]
        one += under_one_key(case, sites, undone)
        every += under_all_keys(case, sites)
        clean += [site.alarms(site.store(*site.past, site.honest)) for site in sites]
    found = [f"{alarm}, of {SEEDS}" for alarm in FOUND]
    _show(
        "Under one key", ("metric", "attack", "of", "gain, stated", "gain, measured", *found), one
    )
    print(f"Excluded, a key is as if it had never sent: in {sum(undone)} of {len(undone)} runs.\n")
    spread = ("metric", "attack", "of", "gain, measured", *found, "gain left without one key")
    _show("Spread over all keys", spread, every)
    _show("Without fakes", ("days", *FOUND), [row(str(len(clean)), *_counts(clean))])


def _show(heading: str, heads: Sequence[str], lines: Sequence[str]) -> None:
    print(f"### {heading}\n", head(*heads), *lines, "", sep="\n", flush=True)
