"""A pass over devices: which reports are in which step, and what is published of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.learning.model import read
from client_sdk.learning.rounds import FINAL, final_model, public_model
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.errors import QueryError
from collector.learning.publishing import CURRENT, STATE, UNNAMED, Folder, reports_by_round
from collector.learning.reading import NOTHING, LeftOut
from collector.learning.rounds import Pass, Reports, averaged, half_width, step_size
from tests.support.crowds.uploads import NOON
from tests.support.device.learning import OTHER_SEED, SEED, registry
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage

REGISTRY: Final = registry()
METRIC: Final = REGISTRY.metric("ranker")
CODEBOOK: Final = Codebook("4", 4)  # what the metric has
FLAT: Final = (0.5, 0.0, 0.0, 0.0)


def reports(
    n: int, gradient: Sequence[float] = FLAT, seed: bytes = b"r", metric: Metric = METRIC
) -> Reports:
    """Return so many real reports of one gradient."""
    randomness = SeededRandomness(seed)
    encoded = metric.encode({"round": 1, "gradient": gradient})
    payloads = b"".join(metric.mechanism.randomize(encoded, randomness) for _ in range(n))
    return Reports(n, tuple(map(int, metric.mechanism.tally(payloads, np))))


MANY: Final = reports(150)
OTHERS: Final = reports(120, (0.0, 0.0, 0.9, 0.0), b"o")


def added(*parts: Reports) -> Reports:
    return Reports(
        sum(part.n for part in parts),
        tuple(map(sum, zip(*(part.tally for part in parts), strict=True))),
    )


def finished(folder: Folder) -> Pass:
    """Return the pass after four steps of the same reports."""
    everything = dict.fromkeys(range(1, 5), MANY)
    folder.step({}, SEED)
    for number in range(1, 5):
        state = folder.step({n: everything[n] for n in range(1, number + 1)}, SEED)
    return state


def test_a_step_goes_against_the_mean_gradient_of_the_reports_of_its_round() -> None:
    state = Pass(METRIC).begun({}).stepped({1: MANY})

    (step,) = state.steps
    totals, variances = METRIC.mechanism.debias(np.array(MANY.tally), 150, np)
    mean = 2 * totals / 150 - 1
    assert step.gradient == pytest.approx(mean)
    assert step.theta == pytest.approx(-step_size(METRIC) * mean)
    assert step.variance == pytest.approx(4 * max(variances) / 150**2)


def test_reports_of_another_round_are_in_no_step() -> None:
    """Stale ones stay where they are, and a round that grows after its step changes nothing."""
    alone = Pass(METRIC).begun({}).stepped({1: MANY}).stepped({1: MANY, 2: OTHERS})
    beside = (
        Pass(METRIC)
        .begun({})
        .stepped({UNNAMED: OTHERS, 1: MANY})
        .stepped({UNNAMED: OTHERS, 1: added(MANY, OTHERS), 2: OTHERS})
    )

    assert beside.steps == alone.steps
    assert beside.used == 270


def test_reports_that_came_before_their_model_are_taken_off_exactly() -> None:
    """They cannot be gradients at a model that nobody knew."""
    early = reports(40, (0.0, 0.9, 0.0, 0.0), b"early")
    alone = Pass(METRIC).begun({}).stepped({1: MANY}).stepped({2: OTHERS})

    state = Pass(METRIC).begun({}).stepped({1: MANY, 2: early})
    state = state.stepped({1: MANY, 2: added(early, OTHERS)})

    assert state.steps == alone.steps
    assert state.left_early == 40


def test_too_few_reports_give_no_step() -> None:
    """Neither below what the round declares, nor below what any answer needs."""
    state = Pass(METRIC).begun({})
    few = reports(99)

    for known in ({}, {1: few}, {2: MANY}):
        with pytest.raises(QueryError, match="of at least 100 reports"):
            state.stepped(known)
    guarded = registry(devices=150).metric("ranker")
    with pytest.raises(QueryError, match="149 of at least 150"):
        Pass(guarded).begun({}).stepped({1: reports(149, metric=guarded)})


def test_coefficients_never_leave_the_radius() -> None:
    tight = registry(more="radius = 0.25").metric("ranker")
    state = Pass(tight).begun({})
    for number in range(1, 5):
        state = state.stepped({number: reports(150, (1.0, 0, 0, 0), metric=tight)})

        assert np.linalg.norm(state.theta) <= 0.25 * (1 + 1e-12)


def test_steps_are_settled_before_anything_is_reported() -> None:
    """By the formula of the module, of the registry and the mechanism alone."""
    noise = 4 * CODEBOOK.noise * (1 + CODEBOOK.stretch / 4) / 100

    assert step_size(METRIC) == pytest.approx(min(32 / (4 * (1 + noise)) ** 0.5, 4.0))
    longer = registry(rounds=1_000).metric("ranker")
    assert step_size(longer) == pytest.approx(32 / (1_000 * (1 + noise)) ** 0.5)


def test_the_model_is_the_mean_after_the_later_half_of_the_steps(tmp_path: Path) -> None:
    state = finished(Folder(tmp_path, METRIC))

    third, fourth = (np.array(state.steps[at].theta) for at in (2, 3))
    assert averaged(state) == pytest.approx((third + fourth) / 2)


def test_the_interval_is_that_of_its_formula() -> None:
    """Rounds 1 to 3 are in both averaged models, round 4 in one of two."""
    state = Pass(METRIC).begun({})
    for number in range(1, 5):
        state = state.stepped({number: MANY})
    variance, size = state.steps[0].variance, step_size(METRIC)

    bias = CODEBOOK.bias * 2 * 3.5
    by_hand = size * (1.959964 * (variance * (3 + 0.25)) ** 0.5 + bias)
    assert half_width(state) == pytest.approx(by_hand, rel=1e-6)


def test_devices_take_the_files_of_a_pass_and_its_model(tmp_path: Path) -> None:
    folder = Folder(tmp_path, METRIC)
    folder.step({}, SEED)
    assert public_model(METRIC, tmp_path / CURRENT).number == 1
    state = folder.step({1: MANY}, SEED)

    second = public_model(METRIC, tmp_path / CURRENT)
    assert (second.number, second.theta) == (2, state.theta)
    assert public_model(METRIC, tmp_path / "round-0001.json").number == 1
    for number in range(2, 5):
        state = folder.step({n: MANY for n in range(1, number + 1)}, SEED)
    assert final_model(METRIC, tmp_path / CURRENT)[1] == averaged(state)
    model = read(tmp_path / CURRENT)
    assert (model.kind, model.reports) == (FINAL, 600)
    with pytest.raises(InvalidParameterError):
        public_model(METRIC, tmp_path / CURRENT)
    with pytest.raises(QueryError, match="every round had its step"):
        folder.step({n: MANY for n in range(1, 5)}, SEED)


def test_a_state_that_was_put_back_publishes_no_second_model_of_a_round(tmp_path: Path) -> None:
    """Devices may have used the first: a gradient at it must not be added to one at another."""
    folder = Folder(tmp_path, METRIC)
    folder.step({}, SEED)
    before = (tmp_path / STATE).read_text()
    folder.step({1: MANY}, SEED)
    published = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    (tmp_path / STATE).write_text(before)

    with pytest.raises(QueryError, match=r"round-0002\.json: is published with other coefficients"):
        folder.step({1: added(MANY, OTHERS)}, SEED)
    for name in ("round-0001.json", "round-0002.json", CURRENT):
        assert (tmp_path / name).read_bytes() == published[name]
    folder.step({1: MANY}, SEED)
    assert (tmp_path / STATE).read_bytes() == published[STATE]


def test_a_step_that_was_cut_short_is_published_by_the_next(tmp_path: Path) -> None:
    """The state is written first, so what devices saw always has its state."""
    folder = Folder(tmp_path, METRIC)
    folder.step({}, SEED)
    folder.step({1: MANY}, SEED)
    (tmp_path / "round-0002.json").unlink()
    (tmp_path / CURRENT).unlink()

    with pytest.raises(QueryError, match="0 of at least 100"):
        folder.step({1: MANY}, SEED)

    assert public_model(METRIC, tmp_path / CURRENT).number == 2
    assert (tmp_path / "round-0002.json").exists()


def test_another_key_or_another_metric_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"learning\.key="):
        Folder(tmp_path / "new", METRIC).step({}, OTHER_SEED)
    assert not (tmp_path / "new").exists()
    Folder(tmp_path, METRIC).step({}, SEED)

    other = registry(rounds=5).metric("ranker")
    with pytest.raises(QueryError, match="is not what this pass learns"):
        Folder(tmp_path, other).step({}, SEED)


def test_the_store_gives_reports_by_the_round_that_they_name() -> None:
    storage = MemoryStorage()
    parts: Mapping[str, Reports] = {"2": MANY, "4": OTHERS, "": reports(7)}
    for label, part in parts.items():
        text = segment_text(METRIC, {"round": label} if label else {})
        pairs = [(0, part.n), *((at + 1, n) for at, n in enumerate(part.tally))]
        storage.put({Cell(METRIC.digest, 0, text): pairs})

    read_back, left_out = reports_by_round("ranker", Catalog([REGISTRY]), storage, NOON)

    assert left_out == NOTHING
    assert read_back == {2: MANY, 4: OTHERS, UNNAMED: parts[""]}


def test_the_file_of_a_pass_holds_it_exactly(tmp_path: Path) -> None:
    folder = Folder(tmp_path, METRIC)
    folder.step({1: reports(3)}, SEED)
    state: Any = folder.step({1: added(MANY, reports(3)), 2: OTHERS}, SEED)

    assert folder.state() == state
    assert json.loads((tmp_path / STATE).read_text())["left_early"] == 123


def test_a_round_counts_afresh_only_where_its_early_reports_may_be_others() -> None:
    """With none that came early, to exclude more changes no report that stays."""
    early, spoiled = reports(40, (0.0, 0.9, 0.0, 0.0), b"early"), LeftOut(("1f",), 40, ("said",))
    on_time = Pass(METRIC).begun({})
    late = Pass(METRIC).begun({1: early})
    cleared = Pass(METRIC).begun({}, spoiled)

    assert on_time.restarted({1: MANY}, spoiled) is on_time
    assert late.restarted({1: added(early, MANY)}) is late
    afresh = late.restarted({1: MANY}, spoiled)
    assert (afresh.early, afresh.left_early, afresh.exclusions) == (MANY, 150, ("1f",))
    assert afresh.restarted({1: added(MANY, OTHERS)}, spoiled) is afresh
    assert cleared.restarted({1: added(early, MANY)}).early == added(early, MANY)
    (step,) = afresh.stepped({1: added(MANY, OTHERS)}, spoiled).steps
    alone = Pass(METRIC).begun({}).stepped({1: OTHERS})
    assert step == replace(alone.steps[0], left_out=spoiled)


def test_the_file_of_a_pass_holds_what_was_left_out(tmp_path: Path) -> None:
    spoiled, folder = LeftOut(("1f",), 40, ("said",)), Folder(tmp_path, METRIC)
    folder.step({}, SEED, spoiled)
    state = folder.step({1: MANY}, SEED, spoiled)

    assert folder.state() == state
    assert read(tmp_path / CURRENT).parts["excluded"] == {"reports": 40, "notes": ["said"]}
    assert "excluded" not in read(tmp_path / "round-0001.json").parts
