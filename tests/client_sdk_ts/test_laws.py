"""The laws of draws in TypeScript are those of Python, of mechanisms and of whole registries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import RegistryError
from client_sdk.mechanisms import Mechanism, load
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.privacy.panel import Panel, Seat
from client_sdk.registry import Registry
from client_sdk.registry.aggregates import aggregate_of
from client_sdk.registry.compiled import checksum_of
from client_sdk.registry.metric import Metric
from collector.planning.compilation import compiled
from tests.client_sdk_ts.channels import MECHANISMS, write_channel, write_value
from tests.client_sdk_ts.device import PLAIN, write
from tests.client_sdk_ts.registries import EVERY_TYPE, PANEL
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    HEAD,
    KEY_VALUE,
    NUMBER,
    SET,
    STRING,
    table,
)
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.vectors import Small, read
from tests.support.node import PACKAGE, Node, patched

LAWS: Final = Path("tests", "support", "laws.js")  # below build
MOST_VALUES: Final = 4  # of a mechanism
TAIL: Final = Fraction(1, 10**4)  # mass below which a path of Laplace noise is left
# its weights have 128 bits in a compiled registry, whatever the precision: paths are followed alone
FINE: Final = {"exponential"}
UNBOUNDED: Final = {"discrete_laplace"}

Laws = list[dict[str, Fraction]]


def coarse(name: str) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = read(name).get("exhaustive", [])
    return parameters


def without_precision(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: number for key, number in parameters.items() if key != "precision"}


def values_of(name: str, mechanism: Mechanism[Any]) -> list[Any]:
    values = Small(name, mechanism, Fraction(0)).values
    return values[:: -(-len(values) // MOST_VALUES)]


def job(name: str, mechanism: Mechanism[Any], **options: str) -> dict[str, Any]:
    values = [write_value(value) for value in values_of(name, mechanism)]
    return {
        "mechanism": name,
        "channel": write_channel(mechanism),
        "values": values,
        **options,
    }


def laws_of(node: Node, jobs: list[dict[str, Any]], build: Path = PACKAGE / "build") -> list[Laws]:
    answers = node.ask(build / LAWS, question=jobs)
    return [
        [{key: Fraction(mass) for key, mass in law.items()} for law in laws] for laws in answers
    ]


def expected_laws(name: str, mechanism: Mechanism[Any], least: Fraction = Fraction(0)) -> Laws:
    laws = []
    for value in values_of(name, mechanism):
        pmf, rest = distribution(partial(mechanism.randomize, value), least)
        law = {payload.hex(): mass for payload, mass in pmf.items() if isinstance(payload, bytes)}
        laws.append({**law, "rest": rest} if rest else law)
    return laws


def every_coarse() -> Iterator[tuple[str, Mechanism[Any]]]:
    for name in MECHANISMS:
        if name not in FINE:
            yield from ((name, load(name)(**parameters)) for parameters in coarse(name))


def every_fine() -> Iterator[tuple[str, Mechanism[Any]]]:
    for name in MECHANISMS:
        for parameters in coarse(name):
            yield name, load(name)(**without_precision(parameters))


@pytest.mark.parametrize(
    ("by", "every", "names"),
    [
        ("strings", every_coarse, {*MECHANISMS} - FINE - UNBOUNDED),
        ("paths", every_fine, {*MECHANISMS} - UNBOUNDED),  # with the chances as they ship
    ],
)
def test_all_that_can_be_drawn_gives_the_law_of_python(
    node: Node, by: str, every: Callable[[], Iterable[Any]], names: set[str]
) -> None:
    """Every string of entropy, and every path of the draws."""
    cases = list(every())

    laws = laws_of(node, [job(name, mechanism, by=by) for name, mechanism in cases])

    assert {name for name, _ in cases} == names
    for (name, mechanism), law in zip(cases, laws, strict=True):
        assert law == expected_laws(name, mechanism), name


def test_the_noise_without_bound_follows_the_law_of_python(node: Node) -> None:
    mechanism = DiscreteLaplace("2", 3)

    (laws,) = laws_of(node, [job("discrete_laplace", mechanism, by="paths", leastMass=str(TAIL))])
    expected = expected_laws("discrete_laplace", mechanism, TAIL)

    for law, other in zip(laws, expected, strict=True):
        rest = law.pop("rest") + other.pop("rest")
        assert rest < Fraction(1, 2)
        assert law.keys() == other.keys()
        assert sum(abs(law[payload] - other[payload]) for payload in law) <= rest


BUGS: Final = {
    "a lie may be the truth": ("core/exact.js", "other >= symbol", "other > symbol", "grr"),
    "the lie is of all items": ("core/exact.js", "symbols - 1n)", "symbols)", "grr"),
    "the largest number is left out": ("core/randomness.js", "drawn < n", "drawn < n - 1n", "grr"),
    "a coin falls once too often": (
        *("core/randomness.js", "(p.denominator) < p.numerator"),
        *("(p.denominator) <= p.numerator", "grr"),
    ),
    "zero is drawn less": ("core/randomness.js", "(drawn < n)", "(drawn < n && drawn)", "hadamard"),
    "a tie is below": ("core/randomness.js", "return below;", "return below | open;", "sue"),
    "digits are read the wrong way": ("core/randomness.js", "open & ~word", "open & word", "oue"),
    "the own bit is seen": ("mechanisms/oue.js", "& ~own", "", "oue"),
    "nothing is flipped": ("mechanisms/sue.js", "flips ^ ", "", "sue"),
    "the sign is never turned": ("core/exact.js", "even = !even", "even = true", "hadamard"),
    "a seed has no offset": ("mechanisms/olh.js", "(seed % prime)", "0n", "olh"),
    "a block without the item may hold it": (
        *("mechanisms/block_design.js", "size + randomness.uniform(prime - size)"),
        *("randomness.uniform(prime)", "block_design"),
    ),
    "the subset lacks a place": (
        *("mechanisms/subset_selection.js", "places.has(place) ? last : place"),
        *("place", "subset_selection"),
    ),
    "rounding is down": (
        "core/exact.js",
        "denominator: b }) ? 1n : 0n",
        "denominator: b }) ? 0n : 0n",
        "duchi",
    ),
    "the window is not skipped": ("core/exact.js", "other + width", "other + 0n", "piecewise"),
    "a value that misses is not raised": (
        *("mechanisms/privset.js", "(y) => width + y"),
        *("(y) => y", "privset"),
    ),
    "a dummy is the last item": (
        "mechanisms/padding_sampling.js",
        "size + slot",
        "slot",
        "padding_sampling",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_changes_a_law(node: Node, tmp_path: Path, bug: str) -> None:
    file, right, wrong, name = BUGS[bug]
    build = patched(tmp_path, PACKAGE / "build", f"src/{file}", {right: wrong})
    every = [(name, load(name)(**parameters)) for parameters in coarse(name)]

    laws = laws_of(node, [job(name, mechanism, by="strings") for name, mechanism in every], build)

    assert laws != [expected_laws(name, mechanism) for name, mechanism in every]


PROGRAM: Final = "programs/registry.js"
SECRETS: Final = 10_000
ITEMS: Final = [f"item {i}" for i in range(100)]  # more than are counted exactly
KEYS: Final = ("video", "music", "chess")
_DAY: Final = {"every": '"1d"'}
AGGREGATED: Final = HEAD + "".join(
    table(f"{kind}.{name}", {**fields, **_DAY, "aggregate": f'"{name}"'})
    for kind, fields, names in (
        ("boolean", BOOLEAN, ("last", "any")),
        ("category", CATEGORY, ("last", "most_common")),
        ("many", {**CATEGORY, "values": json.dumps(ITEMS)}, ("most_common",)),
        ("funnel", FUNNEL, ("last", "most_common", "max")),
        ("number", NUMBER, ("sum", "max", "last")),
        ("third", {**NUMBER, "min": "-0.1", "max": "0.2", "step": "0.003"}, ("sum", "max")),
        ("tiny", {**NUMBER, "min": "0", "max": "1e-300", "step": "1e-301"}, ("sum",)),
        ("huge", {**NUMBER, "min": "0", "max": "3e300", "step": "1e300"}, ("sum", "last")),
        ("set", SET, ("last",)),
        ("key_value", KEY_VALUE, ("last",)),
        ("unit", {**KEY_VALUE, "min": "0", "max": "1"}, ("last",)),
        ("string", STRING, ("last",)),
    )
    for name in names
)
_NUMBERS: Final = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-20, 20)
    | st.integers(-20, 20)
    | st.integers(-(1 << 70), 1 << 70)
).map(lambda number: int(number) if number == int(number) and abs(number) < PLAIN else number)
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "boolean": st.booleans(),
    "category": st.sampled_from(["free", "pro", "team"]),
    "many": st.sampled_from(ITEMS),
    "funnel": st.sampled_from([None, "visit", "cart", "paid"]),
    **dict.fromkeys(("number", "third", "tiny", "huge"), _NUMBERS),
    "set": st.lists(st.sampled_from("abc")),
    **dict.fromkeys(("key_value", "unit"), st.dictionaries(st.sampled_from(KEYS), _NUMBERS)),
    "string": st.text(st.characters(codec="utf-8"), max_size=9),
}
PYTHON_ALONE: Final = {f"metrics.{key}" for key in ("constants", "payload_size", "spent", "need")}
Lot = tuple[Sequence[Any], Sequence[Any]]


def steps_of(metric: Metric, lots: Sequence[Lot]) -> list[list[Any]]:
    """Return what is kept after each of *lots*, and what would be reported."""
    aggregate = aggregate_of(metric)
    checked: Callable[[Any], Any] = metric.encode if metric.domain.grid is None else lambda v: v
    kept, steps = None, []
    for lot in lots:
        state = None
        for part in filter(None, lot):
            state = aggregate.fold(state, [checked(value) for value in part])
        data = aggregate.dump(aggregate.merge(kept, state))
        kept = aggregate.load(data)
        steps.append([data.hex(), write_value(aggregate.result(kept)), len(data) == aggregate.size])
    return steps


def test_aggregates_are_those_of_python_step_by_step(node: Node) -> None:
    """The examples are drawn first, and asked for in one run of Node."""
    registry = Registry.from_text(AGGREGATED)
    lots: list[tuple[Metric, list[Lot]]] = []

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        for metric in registry:
            values = VALUES[metric.name.partition(".")[0]]
            most = 150 if metric.name.startswith("many") else 6
            lot = st.tuples(
                st.lists(values, min_size=1, max_size=most), st.lists(values, max_size=6)
            )
            lots.append((metric, data.draw(st.lists(lot, min_size=1, max_size=4))))

    draw()
    text = compiled(registry)
    written = [
        (metric.name, [[[write(v) for v in part] for part in lot] for lot in each])
        for metric, each in lots
    ]

    steps = node.ask(PROGRAM, "aggregates", question={"registry": text, "lots": written})

    expected = [steps_of(metric, each) for metric, each in lots]
    assert steps == expected
    assert all(fits for metric in expected for _, _, fits in metric)
    assert len({data for metric in expected for data, _, _ in metric}) > 50


def test_a_full_count_of_items_drops_the_same_ones(node: Node) -> None:
    registry = Registry.from_text(AGGREGATED)
    metric = registry.metric("many.most_common")
    lots = [([ITEMS[i * 37 % 100]] * (i % 5 + 1), [ITEMS[i % 3]]) for i in range(200)]

    (steps,) = node.ask(
        PROGRAM,
        "aggregates",
        question={"registry": compiled(registry), "lots": [[metric.name, lots]]},
    )

    assert steps == steps_of(metric, lots)
    assert len({data for data, _, _ in steps}) > 150


def test_a_number_of_a_key_in_the_middle_is_rounded_to_the_even_one(node: Node) -> None:
    registry = Registry.from_text(AGGREGATED)
    metric = registry.metric("unit.last")
    lots: list[Lot] = [([{"video": k * 2.0**-61, "chess": 1 - k * 2.0**-53}], []) for k in range(9)]

    question = {"registry": compiled(registry), "lots": [[metric.name, lots]]}
    (steps,) = node.ask(PROGRAM, "aggregates", question=question)

    assert steps == steps_of(metric, lots)
    numbers = [value["pairs"][0][1] for _, value, _ in steps]
    assert numbers[1:6] == ["0/1", f"1/{1 << 60}", *[f"1/{1 << 59}"] * 3]


def test_panels_are_those_of_python(node: Node) -> None:
    registry = Registry.from_text(compiled(Registry.from_text(PANEL)))
    assert registry.seats is not None
    panel = Panel({digest: Seat(*seat) for digest, seat in registry.seats.items()})
    epochs = [0, 1, 2, 7, 2_000, 20_000, 20_001, 20_779]

    drawn = node.ask(
        PROGRAM,
        "panels",
        question={"registry": compiled(registry), "secrets": SECRETS, "epochs": epochs},
    )

    expected = [
        "".join(
            str(int(panel.includes(metric, epochs[i % len(epochs)], i.to_bytes(32, "big"))))
            for metric in registry
        )
        for i in range(SECRETS)
    ]
    assert drawn == expected
    assert len(set(expected)) > 10
    assert {row[list(registry.metrics).index("always")] for row in expected} == {"1"}


def test_segments_are_those_of_python(node: Node) -> None:
    registries = [Registry.from_text(EVERY_TYPE), Registry.from_text(PANEL)]
    values = ["linux", "mac", "people", "automated", "", "__proto__"]
    names = ["platform", "automation", "__proto__", "constructor"]
    segments: list[dict[str, str]] = [{}, {"platform": "mac", "automation": "people"}]
    segments += [{name: value} for name, value in product(names, values)]

    answers = node.ask(
        PROGRAM,
        "segments",
        question={"registries": [compiled(r) for r in registries], "segments": segments},
    )

    for registry, ours in zip(registries, answers, strict=True):
        for automated, wholes in zip((True, False), ours, strict=True):
            assert wholes == [whole_of(registry, segment, automated) for segment in segments]


def whole_of(registry: Registry, segment: dict[str, str], automated: bool) -> Any:
    try:
        return [list(item) for item in registry.whole_segment(segment, automated=automated).items()]
    except RegistryError as error:
        return str(error)


def test_a_text_that_python_can_print_is_read(node: Node) -> None:
    """Refused is what would turn, hide or break a text; Python refuses more."""
    refused = set(node.ask(PROGRAM, "unprintable", question=0x110000))

    assert [code for code in refused if chr(code).isprintable()] == []
    assert refused >= {0, 0x1B, 0x7F, 0x200F, 0x2028, 0x202E, 0x2066, 0xD800, 0xDFFF, 0xFEFF}


def edits() -> list[tuple[str, dict[str, Any]]]:
    """Return documents with one key left out, or of another kind, each with its checksum."""
    whole = json.loads(compiled(Registry.from_text(EVERY_TYPE)))
    whole["metrics"] = whole["metrics"][:2]
    documents = []
    value: Any
    for key, value in product(
        (k for k in whole if k != "checksum"), (..., None, -1, 1, "", [], {})
    ):
        documents.append((f"{key}={value}", changed(whole, whole, key, value)))
    for key, value in product(whole["metrics"][0], (..., None, -1, 1, "", "x", [], {}, True)):
        if key == "name" and value in (-1, 1, True):  # Python calls the metric so all the same
            continue
        documents.append(
            (f"metrics.{key}={value}", changed(whole, whole["metrics"][0], key, value))
        )
    return documents


def changed(whole: dict[str, Any], table: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    kept = table[key]
    if value is ...:
        del table[key]
    else:
        table[key] = value
    document: dict[str, Any] = json.loads(json.dumps(whole))
    table[key] = kept
    return {**document, "checksum": checksum_of(document)}


def places_of(problems: Sequence[str]) -> set[str]:
    return {problem.partition(":")[0].partition("=")[0] for problem in problems}


def problems_of(text: str) -> list[str]:
    try:
        [metric.mechanism for metric in Registry.from_text(text)]
    except RegistryError as error:
        return list(error.problems)
    return []


def test_a_file_that_python_refuses_is_refused_at_the_same_place(node: Node) -> None:
    """Left out is what takes mathematics to tell, or what the collector alone reads."""
    documents = edits()
    texts = [json.dumps(document) for _, document in documents]

    answers = node.ask(PROGRAM, "problems", question=texts)

    for (edit, _), text, ours in zip(documents, texts, answers, strict=True):
        theirs = problems_of(text)
        if edit.partition("=")[0] not in PYTHON_ALONE:
            assert places_of(ours) == places_of(theirs), (edit, ours, theirs)
