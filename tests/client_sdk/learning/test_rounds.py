"""A device in a round: what it makes of a public model, and of whatever a server sends instead."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk import Client
from client_sdk.core.errors import InvalidParameterError, UnknownMetricError
from client_sdk.learning.model import Model
from client_sdk.learning.rounds import FINAL, Round, State, predict, signed
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from tests.support.device.learning import OTHER_SEED, SEED, registry, round_model
from tests.support.device.registries import HEAD, VECTOR, table
from tests.support.enumeration.enumeration import distribution, largest_ratio

REGISTRY: Final = registry(more="radius = 16")
METRIC: Final = REGISTRY.metric("ranker")
ROW: Final = {"age": 30, "plan": "paid"}
LIMIT: Final = 16.0  # the radius
HOSTILE: Final = (
    *((LIMIT, 0, 0, 0), (-LIMIT, 0, 0, 0), (0, 0, LIMIT, 0), (8, 8, 8, 8), (0, -0.0, 1e-320, 0)),
)


class Hostile:
    """What raises whatever is done with it."""

    def fail(self, *_: object) -> Any:
        raise ZeroDivisionError("a value that nobody may see")

    __float__ = __eq__ = __hash__ = __iter__ = __bool__ = __len__ = __getitem__ = __getattr__ = fail


class HostileText(str):
    """A text that cannot be compared."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> Any:
        raise ZeroDivisionError("a value that nobody may see")


def refused(source: Any) -> str:
    """Return why a file is refused, of which no row becomes a report."""
    client = MemoryClient(REGISTRY)
    current = Round(client, "ranker", source)
    current.record(ROW, True)
    assert current.state is State.REFUSED
    assert not any(client.stats().values())
    return str(current.problem)


def text(number: object, theta: Any, seed: bytes = SEED) -> bytes:
    return round_model(METRIC, number, theta, seed).text().encode()


def sent(transport: Any) -> list[dict[str, str]]:
    """Return the segments of all uploads."""
    return [json.loads(body)["segment"] for body in transport.uploads]


def test_a_report_names_the_round_of_its_model_and_nothing_else() -> None:
    client = MemoryClient(REGISTRY)

    Round(client, "ranker", text(3, (0, 1, 0, -1))).record(ROW, True)
    client.flush()

    assert sent(client.transport) == [{"round": "3"}]
    assert client.stats()["recorded"] == 1


def test_a_gradient_is_that_of_the_loss_at_the_public_model() -> None:
    """By differences of the loss, derived by hand: (p - y) x with |x| = 1."""
    client = MemoryClient(REGISTRY)

    value: Any = Round(client, "ranker", text(1, (0, 0, 0, 0))).value(ROW, True)

    length = (1 + 0.5**2 + 0 + 1) ** 0.5
    assert value["round"] == 1
    assert value["gradient"] == pytest.approx([-0.5 / length * x for x in (1, -0.5, 0, 1)])


def test_a_device_takes_part_in_one_round_for_ever() -> None:
    client = MemoryClient(REGISTRY)

    for number in (1, 2, 2, 4):
        Round(client, "ranker", text(number, (0, 0, 0, 0))).record(ROW, True)
    client.flush()

    assert client.stats()["already_reported"] == 3
    assert sent(client.transport) == [{"round": "1"}]


def test_another_process_and_a_later_year_give_no_second_report(tmp_path: Path) -> None:
    """The ledger on the disk has room for one charge of the metric, whatever the model is."""
    clock, transport = FrozenClock(), MemoryTransport()
    for number in (1, 2, 4):
        with Client(
            "https://collector.invalid", "k", REGISTRY, consent="granted", data_dir=tmp_path,
            mode="manual", transport=transport, opt_outs=NoOptOuts(), clock=clock,
            uptime=clock.uptime,
        ) as client:  # fmt: skip
            Round(client, "ranker", text(number, (0, 0, 0, 0))).record(ROW, number % 2 == 0)
            client.flush()
        clock.advance(days=400)

    assert sent(transport) == [{"round": "1"}]


def test_a_report_that_waits_keeps_its_round_while_the_models_go_on(tmp_path: Path) -> None:
    """Recorded at round 1, and sent by a process that knows round 2 only."""
    transport, clock = MemoryTransport(503), FrozenClock()
    arguments: dict[str, Any] = {
        "consent": "granted", "data_dir": tmp_path, "mode": "manual", "transport": transport,
        "opt_outs": NoOptOuts(), "clock": clock, "uptime": clock.uptime,
    }  # fmt: skip
    with Client("https://collector.invalid", "k", REGISTRY, **arguments) as client:
        Round(client, "ranker", text(1, (0, 0, 0, 0))).record(ROW, True)
        client.flush()
    clock.advance(days=1)
    with Client("https://collector.invalid", "k", REGISTRY, **arguments) as client:
        Round(client, "ranker", text(2, (1, 0, 0, 0))).record(ROW, True)
        client.flush()

    assert set(transport.uploads) == {transport.uploads[0]}
    assert sent(transport) == [{"round": "1"}] * 2


@pytest.mark.parametrize(
    "theta",
    [
        (float("nan"), 0, 0, 0),
        (float("inf"), 0, 0, 0),
        (1e300, 0, 0, 0),
        (16.001, 0, 0, 0),
        (12, 12, 0, 0),
        (0, 0, 0),
        (0, 0, 0, 0, 0),
        (True, 0, 0, 0),
        ("1", 0, 0, 0),
        (None, 0, 0, 0),
        (10**400, 0, 0, 0),
    ],
    ids=str,
)
def test_a_model_of_other_numbers_is_refused_before_a_row_is_looked_at(theta: Any) -> None:
    """Else a model that overflows on some rows would learn from silence which they are."""
    form = json.loads(round_model(METRIC, 1, (0, 0, 0, 0)).text()) | {"theta": list(theta)}
    try:
        body = text(1, theta)
    except (ValueError, InvalidParameterError):  # what no honest publisher can sign
        body = json.dumps(form).encode()

    assert "theta must" in refused(body) or "finite" in refused(body)


@pytest.mark.parametrize("number", [0, 5, -1, True, "1", 1.0, None])
def test_a_model_of_no_round_is_refused(number: object) -> None:
    assert "round must be" in refused(text(number, (0, 0, 0, 0)))


def test_a_model_that_somebody_else_signed_or_changed_is_refused() -> None:
    right = text(1, (0, 0, 0, 0))
    forged = [
        text(1, (0, 0, 0, 0), OTHER_SEED),
        right.replace(b'"round": 1', b'"round": 2'),
        right.replace(b"[0, 0, 0, 0]", b"[0, 0, 0, 1]"),
        right.replace(b'"signature": "', b'"signature": "0'),
        right.replace(b'"reports": 0', b'"reports": 9'),
    ]

    assert Round(MemoryClient(REGISTRY), "ranker", right).state is State.OPEN
    for body in forged:
        assert body != right
        assert "signature must be" in refused(body)


def test_a_model_of_another_definition_or_kind_is_refused() -> None:
    other = registry(rounds=5).metric("ranker")
    final = Model.of(FINAL, METRIC, 0, {"theta": [0, 0, 0, 0]})
    factors = signed(Model.of("factors", METRIC, 0, {"theta": [0, 0, 0, 0]}), SEED)

    assert "as this registry defines it" in refused(round_model(other, 1, (0, 0, 0, 0)))
    assert "must be of kind round" in refused(factors)
    assert "signature must be" in refused(signed(final, OTHER_SEED))  # nobody else ends the rounds


def test_after_the_last_round_and_before_the_first_nothing_is_done(tmp_path: Path) -> None:
    """The file of the server becomes the model itself, and need not be there at first."""
    over = signed(Model.of(FINAL, METRIC, 400, {"theta": [0.0] * 4}), SEED)
    kept = tmp_path / "current.json"
    states = []
    for source in (None, kept, str(tmp_path / "no" / "current.json"), over):
        client = MemoryClient(REGISTRY)
        current = Round(client, "ranker", source)
        current.record(ROW, True)
        current.record(7, Hostile())  # type: ignore[arg-type]  # it is not looked at
        states.append(current.state)
        assert (current.model, current.problem) == (None, None)
        assert not any(client.stats().values())

    assert states == [*[State.ABSENT] * 3, State.OVER]
    kept.write_bytes(text(1, (0, 0, 0, 0)))
    assert Round(MemoryClient(REGISTRY), "ranker", kept).state is State.OPEN


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"<html>404</html>", b"[]", b"{", b"[" * 100_000, b"1" * 5_000, b'{"a": NaN}'],
    ids=range(8),
)
def test_no_file_raises_into_an_application_that_a_developer_is_told_of(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    told = refused(body)

    assert caplog.messages == [f"ranker: {told}; nothing is recorded"]


def test_a_developer_who_learns_nothing_is_told_at_once() -> None:
    with pytest.raises(UnknownMetricError):
        Round(MemoryClient(REGISTRY), "rank", None)
    weekly = Registry.from_text(HEAD + table("m", VECTOR))
    with pytest.raises(InvalidParameterError, match="must be a vector with learning"):
        Round(MemoryClient(weekly), "m", None)


def test_every_row_gives_one_report_at_every_model_that_is_taken() -> None:
    """Whether there is a report tells nothing of the row."""
    rows: list[dict[str, object]] = [
        {},
        ROW,
        {"age": 1e308, "plan": "unheard of"},
        {"age": None, "plan": None},
        {"age": -(10**300)},
    ]
    for theta in HOSTILE[2:]:
        for row in rows:
            for label in (True, False):
                client = MemoryClient(REGISTRY)
                Round(client, "ranker", text(1, theta)).record(row, label)
                assert client.stats()["recorded"] == 1


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ({"age": float("nan")}, True),
        ({"age": "30"}, True),
        ({"age": 10**400}, True),
        ({"height": 3}, True),
        ({"plan": 3}, True),
        (ROW, 2),
        (ROW, "yes"),
        (ROW, None),
        (7, True),
        (["age"], True),
        ("", True),
        (None, True),
        ([], True),
        (ROW, [True, False]),
    ],
    ids=repr,
)
def test_what_is_no_row_is_counted_and_costs_nothing(row: Any, label: object) -> None:
    require_counted_and_free(row, label)


def require_counted_and_free(row: Any, label: object) -> None:
    """Record what is no row, and a row behind it."""
    clock = FrozenClock()
    with Client(
        "https://collector.invalid", "k", REGISTRY, consent="granted", data_dir=None,
        mode="manual", transport=MemoryTransport(), opt_outs=NoOptOuts(), clock=clock,
    ) as client:  # fmt: skip
        current = Round(client, "ranker", text(1, (0, 0, 0, 0)))
        current.record(row, label)
        assert client.stats()["invalid_value"] == 1
        current.record(ROW, True)
        assert client.stats()["recorded"] == 1


def test_values_that_raise_by_themselves_are_counted_as_no_row() -> None:
    """As ``Client.record`` counts what is none of its values."""
    rows: list[tuple[Any, Any]] = [
        ({"age": Hostile()}, True),
        ({"plan": HostileText("paid")}, True),
        (Hostile(), True),
        (ROW, Hostile()),
    ]
    for row, label in rows:
        require_counted_and_free(row, label)


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_no_model_and_no_row_makes_a_report_likelier_than_e_to_the_epsilon(kind: str) -> None:
    """By enumeration, of a codebook of one seed and four words: the gradients of hostile models."""
    of = registry(kind=kind).metric("ranker")
    radius = float(of.domain.radius)  # type: ignore[attr-defined]  # it learns
    small = Codebook(Fraction(1), of.domain.size, words=4, subset_size=1, seeds=1, precision=6)
    laws = []
    for theta in HOSTILE:
        scaled = [weight * radius / LIMIT for weight in theta]
        for row, label in ((ROW, True), ({"age": 60, "plan": "free"}, False), ({}, True)):
            client = MemoryClient(registry(kind=kind))
            current = Round(client, "ranker", round_model(of, 1, scaled))
            encoded: Any = of.encode(current.value(row, label))
            laws.append(distribution(partial(small.randomize, encoded)).pmf)

    assert len(laws[0]) == 4
    assert largest_ratio(laws) <= small.likelihood_ratio


def test_a_final_model_predicts_where_the_row_is() -> None:
    linear = registry(kind="linear").metric("ranker")

    for of, chance in ((METRIC, 0.5), (linear, 5.0)):
        model = signed(Model.of(FINAL, of, 400, {"theta": [0.0] * 4}), SEED)
        assert predict(of, model, ROW) == chance
        forged = signed(model, OTHER_SEED)
        with pytest.raises(InvalidParameterError, match="signature must be"):
            predict(of, forged, ROW)
    with pytest.raises(ValueError, match="features: must be among"):
        predict(METRIC, signed(Model.of(FINAL, METRIC, 1, {"theta": [0.0] * 4}), SEED), {"x": 1})
