"""How a value of each type becomes an item or a number: exactly, or refused unseen."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.client import Client
from client_sdk.core.errors import InvalidValueError, RegistryError, TransportError
from client_sdk.mechanisms import UNIT, ItemMechanism, KeyValueMechanism, Record, TextMechanism
from client_sdk.registry import Registry
from client_sdk.registry.types.gradient import GradientDomain, learning_of
from client_sdk.registry.types.items import (
    ItemDomain,
    SetDomain,
    TextDomain,
)
from client_sdk.registry.types.joint import MAX_JOINT, FunnelDomain, PairDomain, RetentionDomain
from client_sdk.registry.types.numbers import KeyValueDomain, NumberDomain
from client_sdk.registry.types.places import GridDomain
from client_sdk.testing import MemoryClient
from collector.planning.codegen import module_of
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client, metric_text, registry_of, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.learning import registry, registry_text
from tests.support.device.registries import (
    BOOLEAN,
    FUNNEL,
    HEAD,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    STRING,
    VECTOR,
    file_with,
    table,
)
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.populations import metric_of

GRID = NumberDomain(Fraction(-5), Fraction(5), Fraction(1, 4), "degrees")
PETS = SetDomain(("cat", "dog", "1"))


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_set_takes_any_collection_of_its_labels(kind: type[list[str]]) -> None:
    held = [PETS.encode(kind(labels), "m") for labels in ([], ["1"], ["1", "cat", "1"])]

    assert held == [frozenset(), frozenset({2}), frozenset({0, 2})]


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (0, 20), (-5, 0), (5.0, 40), (0.125, Fraction(41, 2)), (Decimal("0.1"), Fraction(102, 5)),
        (Fraction(1, 3), Fraction(64, 3)), (-0.0, 20), (5e-324, 20 + 4 * Fraction(5e-324)),
        (2**63, 40), (-(10**400), 0), (1e308, 40), (sys.float_info.max, 40), (-6, 0),
        (Decimal("1e300"), 40),
    ],
)  # fmt: skip
def test_a_number_is_clamped_and_placed_exactly(value: float, position: Fraction) -> None:
    encoded = GRID.encode(value, "m")

    assert encoded == position
    assert type(encoded) is Fraction


@given(st.floats() | st.integers() | st.decimals() | st.fractions() | st.text() | st.none())
def test_whatever_is_accepted_lies_on_the_range(value: object) -> None:
    try:
        position = GRID.encode(value, "m")
    except InvalidValueError as error:
        assert str(error).startswith("m: takes a ")  # noqa: PT017  # both outcomes are the law
        return

    assert 0 <= position <= GRID.size - 1


def test_the_meaning_is_canonical() -> None:
    assert metric_of(NUMBER).meaning == (
        '{"domain":{"max":"21/2","min":"0","step":"1/2","unit":"minutes"},"epsilon":"1",'
        '"every":"7d","longitudinal":"fresh","mechanism":{"name":"discrete_laplace"},'
        '"name":"m","type":"number"}'
    )


def test_the_name_is_part_of_the_meaning() -> None:
    first, second = Registry.from_text(HEAD + table("a", BOOLEAN) + table("b", BOOLEAN))

    assert first.digest != second.digest


TEXT = """
schema = 1
app = "editor"
{metrics}
"""
COMMON = """
title = "t"
question = "q?"
epsilon = "0.1"
every = "1d"
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "o"
expires = 2099-12-31
"""
TYPES = {
    "theme": 'type = "category"\nvalues = ["dark", "light"]',
    "tools": 'type = "set"\nvalues = ["git", "zip"]',
    "crashed": 'type = "boolean"',
    "startup": 'type = "number"\nmin = 0\nmax = 100\nstep = 1\nunit = "ms"',
    "saves": 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "saves"\naggregate = "sum"',
    "word": 'type = "string"\nlength = 6',
    "minutes": 'type = "key_value"\nvalues = ["git", "zip"]\nmin = 0\nmax = 9\nunit = "min"',
}


class Theme(StrEnum):
    DARK = "dark"


class OldTheme(str, Enum):  # noqa: UP042  # as many programs still write it
    DARK = "dark"


class Level(IntEnum):
    TWO = 2


class Liar(str):
    """A text that says something else than it is."""

    def __str__(self) -> str:
        return "light"


@pytest.fixture
def client() -> MemoryClient:
    metrics = "\n".join(f"[metrics.{name}]\n{body}\n{COMMON}" for name, body in TYPES.items())
    return MemoryClient(Registry.from_text(TEXT.format(metrics=metrics)))


@pytest.mark.parametrize(
    ("metric", "value", "meant"),
    [
        ("theme", Theme.DARK, "dark"),
        ("theme", OldTheme.DARK, "dark"),
        ("theme", np.str_("dark"), "dark"),
        ("theme", Liar("dark"), "dark"),
        ("tools", [Theme.DARK, np.str_("git")], None),
        ("tools", {np.str_("git")}, "git"),
        ("crashed", np.bool_(True), "true"),
        ("crashed", 1, None),
        ("crashed", np.int64(1), None),
        ("startup", np.int64(7), "7 ms"),
        ("startup", np.float32(7), "7 ms"),
        ("startup", np.float64(7), "7 ms"),
        ("startup", Level.TWO, "2 ms"),
        ("startup", Decimal("7.0"), "7 ms"),
        ("startup", Fraction(7), "7 ms"),
        ("startup", np.bool_(True), None),
        ("startup", np.float32("nan"), None),
        ("startup", np.array([7]), None),
        ("startup", "7", None),
        ("word", np.str_("unzip"), "unzip"),
        ("word", Theme.DARK, "dark"),
        ("minutes", {np.str_("git"): np.int32(3)}, "git: 3 min"),
    ],
)
def test_a_value_is_taken_as_what_it_stands_for(
    client: MemoryClient, metric: str, value: Any, meant: str | None
) -> None:
    """What no metric could mean is refused, and counted as such."""
    client.record(metric, value)

    reports = [report for report in client.history() if report.metric == metric]
    assert [report.truth for report in reports] == ([] if meant is None else [meant])
    assert client.stats()["invalid_value"] == (meant is None)
    assert client.stats()["internal"] == 0


def test_values_of_numpy_are_added_up(client: MemoryClient) -> None:
    """As their numbers are."""
    for value in (np.int64(3), np.uint8(4), 5):
        client.record("saves", value)

    client.clock.advance(days=1)
    client.flush()

    (report,) = client.history()
    assert report.truth == "12 saves"


def mechanism(**changes: str | None) -> KeyValueMechanism:
    return cast("KeyValueMechanism", metric_of(KEY_VALUE, **changes).mechanism)


@pytest.mark.parametrize("kind", [dict, MappingProxyType])
def test_a_mapping_of_known_keys_is_placed_exactly_on_the_range(
    kind: Callable[[dict[str, object]], object],
) -> None:
    """-10 … 30 becomes 0 … 1, whatever the type of the number; beyond the ends is clamped."""
    held: dict[str, object] = {"video": 12.5, "music": Fraction(1, 3), "chess": Decimal("1e300")}

    encoded = metric_of(KEY_VALUE).encode(kind(held))

    assert encoded == {0: Fraction(9, 16), 1: Fraction(31, 120), 2: 1}
    assert metric_of(KEY_VALUE).encode(kind({})) == {}


@pytest.mark.parametrize(
    "value", [{3: Fraction(0)}, {-1: Fraction(0)}, {True: Fraction(0)}, {0: Fraction(2)}, {0: 0.5}]
)
def test_a_mechanism_refuses_a_wrong_mapping_before_anything_is_drawn(value: Any) -> None:
    """A value outside the domain costs no randomness."""
    with pytest.raises(InvalidValueError):
        mechanism().randomize(value, Untouchable())


def test_without_most_nothing_is_cut() -> None:
    """By default a mapping of all keys counts in full."""
    domain = metric_of(KEY_VALUE, most=None).domain

    assert isinstance(domain, KeyValueDomain)
    assert domain.most == 3
    assert mechanism(most=None).pad == 3


def test_only_keys_with_numbers_fix_parameters() -> None:
    """Of other types every parameter of a mechanism may be named."""
    assert metric_of(KEY_VALUE).domain.parameters == {"pad": 2, "top": 1}
    assert ItemDomain(("a", "b")).parameters == {}


def test_a_string_metric_has_the_mechanism_of_strings_of_its_length() -> None:
    """``auto`` takes one without being told."""
    found = metric_of(STRING)

    assert isinstance(found.mechanism, TextMechanism)
    assert found.domain == TextDomain(8)
    assert found.mechanism.domain_size == 8


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("", b""),
        ("Crash", b"Crash"),
        ("a" * 9, b"a" * 8),
        ("a" * 100_000, b"a" * 8),
        ("grüße du", b"gr\xc3\xbc\xc3\x9fe "),
        ("1234567ü", b"1234567"),
        ("\U0001f600\U0001f600\U0001f600", "\U0001f600\U0001f600".encode()),
        ("\U0001f600aaa\U0001f600", "\U0001f600aaa".encode()),
        ("\0", b"\0"),
    ],
)
def test_a_text_counts_up_to_its_length_cut_between_characters(value: str, encoded: bytes) -> None:
    """What is cut is whole characters, so that every value is text again."""
    assert metric_of(STRING).encode(value) == encoded
    assert metric_of(STRING).domain.in_words(encoded) == (encoded.decode() or "an empty text")


GOOD: Final = {"plan": "pro", "age": 41, "label": "left"}


@pytest.mark.parametrize(
    ("age", "item"),
    [
        *((-1e300, 0), (29.999, 0), (30, 1), (Decimal("50.49"), 1), (np.float64(50.5), 2)),
        *((Fraction(101, 2), 2), (10**400, 2), ("30 to 50.5", 1), ("50.5 or more", 2)),
    ],
)
def test_a_number_is_of_the_range_that_begins_at_it_or_below(age: Any, item: int) -> None:
    of = metric_of(RECORD)

    assert of.encode({**GOOD, "age": age}) == Record((3, 6 + 2 * item + 1))


def test_items_are_told_by_attribute_value_and_label() -> None:
    domain: Any = metric_of(RECORD).domain

    assert domain.labels[3] == "plan: pro | left"
    assert domain.labels[6:8] == ("age: below 30 | stayed", "age: below 30 | left")
    assert domain.as_given(Record((3, 9))) == {"plan": "pro", "age": "30 to 50.5", "label": "left"}
    assert domain.in_words(Record((3, 9))) == "plan: pro, age: 30 to 50.5, label: left"


def test_typed_handles_take_labels_as_they_are_declared_and_numbers() -> None:
    module = module_of(Registry.from_text(file_with(RECORD)))

    assert "class MValue(TypedDict):" in module
    assert "    age: float\n    label: Literal[" in module


def device(tmp_path: Path, transport: ScriptedTransport) -> Client:
    form = (
        'type = "record"\nlabel = ["stayed", "left"]\n'
        'attributes = { plan = ["free", "pro", "team"], age = { edges = [30, 50.5] } }'
    )
    registry = registry_of(metric_text("m", form, every="once"))
    return make_client(tmp_path, registry=registry, transport=transport)


def test_a_device_that_is_asked_twice_answers_once_and_repeats_its_bytes(tmp_path: Path) -> None:
    """Whatever is recorded later, also by a later run: one report and one charge."""
    transport = ScriptedTransport([TransportError("the network is down")])
    with device(tmp_path, transport) as client:
        client.record("m", GOOD)
        client.flush()
        client.record("m", {**GOOD, "plan": "free"})
        client.flush()
    with device(tmp_path, transport) as again:
        again.record("m", {**GOOD, "label": "stayed"})
        again.flush()

    assert len(set(transport.sent)) == 1
    (total,) = rows(tmp_path, "SELECT nano FROM totals")
    assert total == (metric_of(RECORD).mechanism.spent_nano,)


@pytest.mark.parametrize(
    "value",
    [
        [0.5, -0.25, 0],
        (0.5, Decimal("-0.25"), Fraction(0)),
        array("d", [0.5, -0.25, 0]),
        np.array([0.5, -0.25, 0]),
        [np.float32(0.5), -0.25, np.int64(0)],
    ],
)
def test_any_sequence_of_numbers_is_a_vector(value: Any) -> None:
    assert metric_of(VECTOR).encode(value) == (UNIT // 2, -UNIT // 4, 0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_whatever_its_length_a_vector_becomes_one_within_the_bound(value: list[float]) -> None:
    """The mechanism takes it: its own check comes before any draw."""
    for norm in ("l2", "max"):
        of = metric_of(VECTOR, norm=f'"{norm}"', bound="2.5")
        encoded = of.encode(value)
        with pytest.raises(AssertionError, match="drawn"):
            of.mechanism.randomize(encoded, Untouchable())
        if norm == "max" or sum(Fraction(x) ** 2 for x in value) <= Fraction("6.25"):
            kept = [min(max(Fraction(x), Fraction("-2.5")), Fraction("2.5")) for x in value]
            numbers: Any = of.domain.as_given(encoded)
            off = [abs(a - Fraction(b)) for a, b in zip(kept, numbers, strict=True)]
            assert max(off) < Fraction("2.5") / UNIT


def test_a_longer_vector_counts_as_that_of_the_bound_in_its_direction() -> None:
    assert metric_of(VECTOR).encode([30, 40, 0]) == (UNIT * 3 // 5, UNIT * 4 // 5, 0)
    assert metric_of(VECTOR, norm='"max"').encode([30, -40, 0.5]) == (UNIT, -UNIT, UNIT // 2)


def test_a_report_of_a_cube_reaches_its_corners_by_the_diagonal() -> None:
    """With ``max`` no vector is cut to the ball, and errors are those of the longest."""
    named = {"mechanism": '"codebook"'}
    ball, cube = (
        metric_of(VECTOR, **named).mechanism,
        metric_of(VECTOR, **named, norm='"max"').mechanism,
    )

    assert cube.predict(1) == pytest.approx(3**0.5 * ball.predict(1))
    assert (ball.parameters["cube"], cube.parameters["cube"]) == (0, 1)


def learned(**changes: Any) -> GradientDomain:
    domain = learning_of(registry(**changes).metric("ranker").domain)
    assert domain is not None
    return domain


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"every": "7d"}, "every: must be once with learning"),
        ({"rounds": 1}, "rounds: must be an integer from 2 to 1000"),
        ({"rounds": 1_001}, "rounds: must be an integer from 2 to 1000"),
        ({"devices": 99}, "devices: must be an integer of at least 100"),
        ({"kind": "forest"}, "kind: must be one of logistic, linear"),
        ({"key": "ab"}, "key: must be a public key"),
        ({"more": "radius = 0"}, "radius: must be above 0"),
        ({"more": "clip = 1"}, "learning.clip: is not a known key"),
        ({"more": "label = { min = 0, max = 1 }"}, "label: is for kind=linear"),
        ({"kind": "linear", "more": "radius = 1"}, "label: must be a table with min and max"),
        ({"features": ""}, "features: must give 1 to 4095 coefficients"),
        ({"features": "age = { min = 3, max = 3 }"}, "age: must have a min below its max"),
        ({"features": "age = { min = 3 }"}, "age: must have a min below its max"),
        ({"features": "age = { min = 3, max = 4, zero = 5 }"}, "age.zero: must be from min to max"),
        ({"features": "age = 3"}, "features: must be a table of features"),
        ({"features": 'plan = { values = ["a", "a"] }'}, "plan.values: must be a list"),
        ({"features": '"a=b" = {min=0,max=1}\na = {values=["b", "c"]}'}, "each of another name"),
    ],
)
def test_what_cannot_be_learned_is_refused_by_name(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(RegistryError) as caught:
        registry(**changes)

    assert rule in str(caught.value)


def test_what_learning_settles_must_not_stand_beside_it() -> None:
    text = registry_text().replace('type = "vector"', 'type = "vector"\nlength = 3\nbound = 2')

    with pytest.raises(RegistryError, match="must be left out: learning") as caught:
        Registry.from_text(text)
    assert len(caught.value.problems) == 2


def test_the_dimension_of_rounds_is_nobody_elses() -> None:
    text = registry_text().replace(
        "[metrics.ranker]", '[segments]\nround = ["1", "2"]\n[metrics.ranker]'
    )

    with pytest.raises(RegistryError, match=r"segments\.round: is what a metric with learning"):
        Registry.from_text(text)


@pytest.mark.parametrize(
    "row",
    [{}, {"age": 1e308}, {"age": -5, "plan": "paid"}, {"plan": "none of them"}, {"age": 40.0}],
)
def test_a_row_is_one_long_whatever_a_device_holds(row: dict[str, object]) -> None:
    numbers = learned().row(row)

    assert sum(x * x for x in numbers) == pytest.approx(1)
    assert numbers[0] > 0


def test_a_row_is_made_by_the_bounds_of_the_registry_alone() -> None:
    """A number beyond its end counts as the end, so no row makes another one smaller."""
    domain = learned()

    assert domain.row({"age": 1_000}) == domain.row({"age": 60})
    assert domain.row({"age": 60}) == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])
    assert domain.row({"age": 30, "plan": "paid"}) == pytest.approx(
        [x / 1.5 for x in (1, -0.5, 0, 1)]
    )


@pytest.mark.parametrize(
    "value",
    [
        [0.0, 0, 0, 0], None, {"gradient": [0, 0, 0, 0]}, {"round": 0, "gradient": [0] * 4},
        {"round": 5, "gradient": [0] * 4}, {"round": True, "gradient": [0] * 4},
        {"round": "1", "gradient": [0] * 4}, {"round": 1, "gradient": [0] * 3},
        {"round": 1, "gradient": [float("nan")] * 4}, {"round": 1, "gradient": [0] * 4, "x": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_only_a_gradient_with_its_round_is_a_value(value: object) -> None:
    with pytest.raises(InvalidValueError):
        registry().metric("ranker").encode(value)


@pytest.mark.parametrize(("label", "target"), [(0, 0.0), (1, 1.0), (False, 0.0), (True, 1.0)])
def test_labels_that_are_truths_are_taken(label: object, target: float) -> None:
    assert learned().target(label) == target


KINDS = {
    "location": (LOCATION, GridDomain, 8, (8.5, 47.3)),
    "pair": (PAIR, PairDomain, 6, {"sex": "male", "income": "low"}),
    "funnel": (FUNNEL, FunnelDomain, 4, None),
    "retention": (RETENTION, RetentionDomain, 16, ["week 0", "week 2"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("longitudinal", ["fresh", "permanent"])
def test_a_joint_type_is_served_by_the_mechanisms_of_items(kind: str, longitudinal: str) -> None:
    """Whatever serves a category serves it, once or again and again."""
    fields, domain, size, value = KINDS[kind]

    found = metric_of(fields, longitudinal=f'"{longitudinal}"')

    assert found.type == kind
    assert isinstance(found.domain, ItemDomain)
    assert type(found.domain) is domain
    assert found.domain.encodes.family is ItemMechanism
    assert found.mechanism.domain_size == found.domain.size == size
    assert 0 <= found.domain.encode(value, "m") < size


def test_the_largest_grid_and_the_largest_pair_are_served() -> None:
    """The limit itself is allowed."""
    labels = ", ".join(f'"{i}"' for i in range(64))

    assert metric_of(LOCATION, cells="[128, 32]").domain.size == MAX_JOINT
    assert metric_of(PAIR, parts=f"{{ a = [{labels}], b = [{labels}] }}").domain.size == MAX_JOINT


def test_a_funnel_reports_the_furthest_step_of_an_epoch() -> None:
    """Steps may be recorded as they happen, in any order; of a silent epoch none is reported."""
    clock = FakeClock()
    text = file_with(FUNNEL, every='"1d"', aggregate='"max"', otherwise='"none"')
    registry = Registry.from_text(text)
    assert registry.metric("m").aggregation == "the furthest, or else no step"

    with make_client(registry=registry, clock=clock, remember=True) as client:
        for step in ("visit", "paid", "cart"):
            client.record("m", step)
        clock.advance(days=1)
        client.flush()
        clock.advance(days=1)
        client.flush()

        assert [told.truth for told in client.history()] == ["as far as paid", "no step"]
