"""A compiled registry: the same metrics, reports and refusals as of its file."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.tables.compiled_schema import schema
from client_sdk import Client
from client_sdk.core.dataclass import field_names
from client_sdk.core.errors import RegistryError
from client_sdk.core.stats import Reason
from client_sdk.mechanisms import Mechanism, load, names
from client_sdk.privacy.panel import panel_of
from client_sdk.recording.child import serve
from client_sdk.recording.inbox import ReportView
from client_sdk.registry import Registry
from client_sdk.registry.compiled import checksum_of
from client_sdk.registry.encodings import dump_constant, load_constant
from client_sdk.registry.metric import Metric
from client_sdk.upload.transport import ACCEPTED, Answer
from collector.planning.compilation import compiled
from tests.client_sdk_ts.channels import MECHANISMS as TYPESCRIPT
from tests.support.device.device import ENDPOINT, KEY, metric_text
from tests.support.device.every_type import VALUES, registry_text
from tests.support.device.learning import registry_text as learned_text
from tests.support.device.registries import (
    HEAD,
    KEY_VALUE,
    NUMBER,
    RECORD,
    SET,
    STRING,
    TASTE,
    TWO_LAYER,
    VECTOR,
    table,
)
from tests.support.enumeration.seeded import SeededRandomness, ShakeStream
from tests.support.enumeration.vectors import build, cases, every_case, values_of
from tests.support.loops import per_mechanism
from tests.support.references.compiled_device import MECHANISMS, Draws, Entry

PAIRS: Final = "{ video = 2.5, chess = -10 }"
RICH: Final = HEAD + "".join(
    (
        table("kept", TWO_LAYER),
        table("same", {**TWO_LAYER, "longitudinal": '"permanent"'}, epsilon_permanent=None),
        table("runs", NUMBER, every='"1d"', aggregate='"sum"', otherwise="2.5", need="0.75"),
        table("tools", SET, aggregate='"last"', otherwise='["a", "c"]', robust="false"),
        table("hours", KEY_VALUE, aggregate='"last"', otherwise=PAIRS, need="0.1"),
        table("search", STRING, aggregate='"last"', otherwise='"ab"', segments="[]"),
        table("noise", {**NUMBER, "mechanism": '"discrete_gaussian"'}, every='"once"'),
        table("parts", TWO_LAYER, epsilon='"0.75"', epsilon_permanent='"2.5"'),
        table("tenth", {**NUMBER, "step": "0.1"}, epsilon='"0.1"'),
    )
)
_SMALL: Final = {"bound": "0.3", "aggregate": '"last"', "otherwise": "[0.1, -0.05, 0]"}
_ANSWERS: Final = '{ plan = "free", age = 30, label = "stayed" }'
PARTS: Final = HEAD + "".join(
    (
        table("ball", VECTOR, **_SMALL),
        table("cube", VECTOR, norm='"max"', values='["a", "b", "c"]', length=None, **_SMALL),
        table("likes", TASTE),
        table("answers", RECORD, aggregate='"last"', otherwise=_ANSWERS),
    )
)
PANEL: Final = '[panel]\nweek = "8"\n'
Edit = Callable[[dict[str, Any]], None]


@cache
def rich() -> Registry:
    return Registry.from_text(RICH)


@cache
def rich_text() -> str:
    return compiled(rich())


def edited(edit: Edit, text: str | None = None) -> str:
    """Return a compiled registry after *edit*, with the checksum that it has then."""
    document = json.loads(text or rich_text())
    edit(document)
    document["checksum"] = checksum_of(document)
    return json.dumps(document)


def refusal(text: str) -> list[str]:
    """Return why *text*, or a metric of it, is refused."""
    with pytest.raises(RegistryError) as refused:
        [metric.mechanism for metric in Registry.from_text(text)]
    return list(refused.value.problems)


@every_case()
def test_a_mechanism_of_written_constants_gives_the_payloads_of_its_vectors(
    name: str, case: dict[str, Any]
) -> None:
    made = build(name, case)
    written = {key: dump_constant(number) for key, number in made.constant_values().items()}
    read = {key: load_constant(number) for key, number in json.loads(json.dumps(written)).items()}
    own = {"precision": made.precision, **made.parameters}
    again = load(name).with_constants(read, made.epsilon, made.domain_size, **own)
    randomness = SeededRandomness(bytes.fromhex(case["seed"]))

    payloads = [again.randomize(value, randomness) for value in values_of(again, case)]

    assert again == made
    assert [payload.hex() for payload in payloads] == case["expected"]["payloads"]


@per_mechanism("name,case", cases, lambda mechanism: mechanism.name in MECHANISMS)
def test_a_device_that_knows_only_the_page_gives_the_payloads_of_the_vectors(
    name: str, case: dict[str, Any]
) -> None:
    made = build(name, case)
    written = {key: dump_constant(number) for key, number in made.constant_values().items()}
    entry = Entry(made.parameters, written, made.domain_size, made.payload_size)
    draws = Draws(ShakeStream(bytes.fromhex(case["seed"])).read)

    values = [v if isinstance(v, int) else v.as_integer_ratio() for v in values_of(made, case)]
    payloads = [MECHANISMS[name](entry, draws, value) for value in values]

    assert [payload.hex() for payload in payloads] == case["expected"]["payloads"]


def test_every_mechanism_of_the_page_is_written_a_second_time() -> None:
    """In TypeScript or beside; the others were added later, and need none."""
    later = {"codebook", "sampled_attribute", "sampled_number"}

    assert {*MECHANISMS, *TYPESCRIPT} == {*names()} - later
    assert not {*MECHANISMS} & {*TYPESCRIPT}


@pytest.mark.parametrize("name", names())
def test_a_mechanism_draws_by_constants_or_by_its_parameters_alone(name: str) -> None:
    by_parameters = {"discrete_gaussian"}  # sigma and the grid, which are integers

    assert bool(load(name).constants) == (name not in by_parameters)


def test_a_chance_is_drawn_as_it_is_written() -> None:
    """Control: it is the written number that decides, and none that is worked out again."""

    def payloads(mechanism: Mechanism[Any]) -> list[bytes]:
        randomness = SeededRandomness(b"chance")
        return [mechanism.randomize(2, randomness) for _ in range(200)]

    usual = load("grr")("1", 4)
    rare = load("grr").with_constants({"truth": load_constant("5" + 31 * "0")}, "1", 4)

    assert rare.spent < usual.spent
    assert payloads(rare) != payloads(usual)


@pytest.mark.parametrize("every", ["1d", "28d"])
def test_a_value_of_every_type_becomes_the_same_bytes(every: str) -> None:
    registry = Registry.from_text(registry_text(every))
    again = Registry.from_text(compiled(registry))

    for metric, other in zip(registry, again, strict=True):
        for value in VALUES[metric.name]:
            payloads = [
                m.mechanism.randomize(m.encode(value), SeededRandomness(m.digest))
                for m in (metric, other)
            ]
            assert payloads[0] == payloads[1]
            assert metric.digest == other.digest


def parts_of(metric: Metric) -> dict[str, Any]:
    """Return all that a metric says."""
    fields = [name for name in vars(metric) if not name.startswith("_") and name != "seats"]
    return {name: getattr(metric, name) for name in fields if name not in ("entry", "whole")}


LEARNED: Final = [learned_text(kind=kind) for kind in ("logistic", "linear")]


@pytest.mark.parametrize("text", [RICH, PARTS, *LEARNED])
def test_a_compiled_registry_holds_all_that_its_file_says(text: str) -> None:
    registry = Registry.from_text(text)
    again = Registry.from_text(compiled(registry))

    assert (again.app, again.segments, again.seats) == (registry.app, registry.segments, None)
    for metric, other in zip(registry, again, strict=True):
        said = parts_of(metric)
        assert {name: getattr(other, name) for name in said} == said
        assert (other.digest, other.mechanism) == (metric.digest, metric.mechanism)
        assert (other.most_nano, other.whole_delta) == (metric.most_nano, metric.whole_delta)


def test_a_registry_has_no_part_that_is_not_compiled() -> None:
    text = RICH.replace('app = "notes"', 'app = { name = "notes", automation = "segment" }')
    registry = Registry.from_text(text)
    again = Registry.from_text(compiled(registry))
    others = [name for name in field_names(Registry) if name not in ("metrics", "seats")]

    assert [getattr(again, name) for name in others] == [getattr(registry, name) for name in others]
    assert again.automation == "segment"


def test_a_separate_app_is_in_every_digest_and_nothing_else_of_the_file_changes() -> None:
    """A file of an app that is not separate has no key of it: its bytes are as they were."""
    own = 'app = { name = "notes", separate = true }'
    text = compiled(Registry.from_text(RICH.replace('app = "notes"', own)))
    again, plain_document = Registry.from_text(text), json.loads(rich_text())
    document = json.loads(text)

    assert again.separate
    assert not {m.digest for m in again} & {m.digest for m in rich()}
    assert compiled(again) == text
    assert set(document) - set(plain_document) == {"separate"}
    assert refusal(edited(lambda d: d.update(separate=False), text)) == ["separate: must be true"]
    without = refusal(edited(lambda d: d.pop("separate"), text))
    assert len(without) == len(document["metrics"])
    assert all(line.endswith("must match what the metric means") for line in without)
    validator = jsonschema_rs.validator_for(json.loads(schema()))
    assert validator.is_valid(document)


def test_a_compiled_registry_compiles_to_itself() -> None:
    assert compiled(Registry.from_text(rich_text())) == rich_text()


def test_seats_of_a_panel_are_read_as_they_were_drawn() -> None:
    head = 'schema = 1\napp = "demo"\n'
    text = head + PANEL + metric_text("a") + metric_text("b")

    plain_registry = Registry.from_text(text)
    registry = Registry.from_text(compiled(plain_registry))
    drawn = panel_of(plain_registry, 8_000_000_000)

    assert registry.panel_week == 8_000_000_000
    assert registry.seats == drawn.seats


def test_a_compiled_registry_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text("\n " + rich_text())

    assert [metric.digest for metric in Registry.from_file(path)] == [m.digest for m in rich()]


def metric_edit(name: str, key: str, value: object) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        entry = next(entry for entry in document["metrics"] if entry["name"] == name)
        entry[key] = value

    return edit


def constant_edit(name: str, key: str, change: int) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        constants = next(e for e in document["metrics"] if e["name"] == name)["constants"]
        constants[key] = f"{int(constants[key], 16) + change:032x}"

    return edit


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (lambda d: d.update(hearsay_registry=2), ["hearsay_registry: must be 1"]),
        (lambda d: d.update(colour="red"), ["colour: is not a known key"]),
        (lambda d: d.pop("notice"), ["notice: is missing"]),
        (lambda d: d.update(metrics=[]), ["metrics: must be a list of at least 1"]),
        (
            lambda d: d["metrics"].append(d["metrics"][0]),
            ["metrics.kept: stands twice", "metrics."],
        ),
        (
            lambda d: [m.update(title="", weight=0) for m in d["metrics"][:1]],
            ["metrics.kept.title: must", "metrics.kept.weight: must"],
        ),
        (metric_edit("kept", "segments", ["arm"]), ["metrics.kept.segments: must be dimensions"]),
        (metric_edit("kept", "epsilon", "2"), ["metrics.kept.digest: must match"]),
        (metric_edit("kept", "domain", {"values": ["a", "b"]}), ["metrics.kept.digest: must"]),
        (metric_edit("kept", "mechanism", {"name": "nil"}), ["metrics.kept.mechanism: must be"]),
        (
            metric_edit("kept", "mechanism", {"name": "grr", "sets": "0xzz"}),
            ["metrics.kept.digest: must match"],
        ),
        (metric_edit("kept", "expires", "2099-1-1"), ["metrics.kept.expires: must be a date"]),
        (metric_edit("kept", "payload_size", 9), ["metrics.kept.payload_size=9: must be"]),
        (metric_edit("kept", "domain_size", 2), ["metrics.kept.domain_size=2: must be 3"]),
        (
            metric_edit("kept", "constants", {}),
            ["metrics.kept.constants: must be as the mechanism"],
        ),
        (metric_edit("kept", "constants", {"truth": 1}), ["metrics.kept: cannot be made"]),
        (constant_edit("same", "truth", -(1 << 100)), ["metrics.same.spent: must be what"]),
        (constant_edit("same", "truth", 1 << 60), ["metrics.same.epsilon=1: must be at least"]),
        (metric_edit("runs", "constants", {"scale": "0/1"}), ["metrics.runs: cannot be made"]),
        (metric_edit("runs", "constants", {"scale": "-1/1"}), ["metrics.runs: cannot be made"]),
        (constant_edit("kept", "kept", 1), ["metrics.kept.constants: must be as the mechanism"]),
        (
            metric_edit("same", "spent", {"report": 1, "value": 1, "delta": 0}),
            ["metrics.same.spent: must be what"],
        ),
        (
            metric_edit("tools", "otherwise", {"value": ["a", "c"], "encoded": [0, 1]}),
            ["metrics.tools.digest: must match the parts"],
        ),
        (
            metric_edit("tools", "otherwise", {"value": ["a", "c"], "encoded": [0, 9]}),
            ["metrics.tools.otherwise: must be a value of the metric"],
        ),
        (
            metric_edit("tools", "otherwise", {"value": ["a", "c"], "encoded": [2, 0]}),
            ["metrics.tools.otherwise: must be a value of the metric"],
        ),
        (
            metric_edit("runs", "otherwise", {"value": "5/2", "encoded": "many"}),
            ["metrics.runs.otherwise: must be a value of the metric"],
        ),
        (metric_edit("runs", "need", "a lot"), ["metrics.runs.need: must be a fraction"]),
        (lambda d: d.update(seats={"00" * 6: [0, 1, "7d"]}), ["seats: must be of the metrics"]),
        (lambda d: d.update(panel_week=1), ["seats: must be of the metrics"]),
        (
            lambda d: d.update(seats={"00" * 6: [2, 1, "7d"]}),
            ["seats: must be [low, high"],
        ),
    ],
)
def test_an_edited_file_is_refused_by_the_name_of_its_field(edit: Edit, lines: list[str]) -> None:
    problems = refusal(edited(edit))

    assert len(problems) == len(lines)
    for problem, line in zip(problems, lines, strict=True):
        assert problem.startswith(line)


def test_an_edit_without_its_checksum_is_refused_at_once() -> None:
    with pytest.raises(RegistryError, match="checksum: must match the file"):
        Registry.from_text(rich_text().replace("Dark mode", "Dork mode", 1))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"hearsay_registry": 1.0}',
        '{"hearsay_registry": NaN}',
        '{"hearsay_registry": 1, "hearsay_registry": 1}',
        '{"hearsay_registry": 1}',
        '{"a":' * 100_000,
    ],
)
def test_what_is_no_compiled_registry_is_refused(text: str) -> None:
    with pytest.raises(RegistryError):
        Registry.from_text(text)


@settings(max_examples=40)
@given(st.floats(0, 1, exclude_max=True))
def test_a_file_that_ends_anywhere_is_refused(part: float) -> None:
    text = rich_text().rstrip()

    with pytest.raises(RegistryError):
        Registry.from_text(text[: int(part * len(text))])


def numbers_of(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where a document holds a whole number, or one as hexadecimal text."""
    if isinstance(node, dict):
        for key, entry in node.items():
            yield from numbers_of(entry, (*path, key))
    elif isinstance(node, list):
        for place, entry in enumerate(node):
            yield from numbers_of(entry, (*path, place))
    elif type(node) is int or (isinstance(node, str) and "constants" in path):
        yield path


def promises(metric: Metric) -> tuple[Any, ...]:
    """Return what a report of *metric* costs, and what it is a report of."""
    of_value = None if metric.policy is None else metric.policy.nano_after(1)
    return metric.digest, metric.meaning, metric.most_nano, metric.whole_delta, of_value


PLACES: Final = tuple(numbers_of(json.loads(rich_text())))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), st.integers(-(1 << 127), 1 << 127) | st.integers(-3, 3))
def test_one_edited_number_is_refused_or_changes_nothing_that_is_private(
    place: tuple[Any, ...], change: int
) -> None:
    def edit(document: dict[str, Any]) -> None:
        *way, last = place
        for key in way:
            document = document[key]
        number = document[last]
        if isinstance(number, int):
            document[last] = number + change
        else:
            top, slash, bottom = number.partition("/")
            document[last] = f"{abs(int(top, 16) + change):0{len(top)}x}{slash}{bottom}"

    text = edited(edit)
    try:
        metrics = list(Registry.from_text(text))
        found = [promises(metric) for metric in metrics]
    except RegistryError:
        return

    assert found == [promises(metric) for metric in rich()]
    assert all(metric.mechanism.spent <= metric.epsilon for metric in metrics)


def test_the_fuzz_above_meets_every_kind_of_number() -> None:
    kinds = {next(key for key in reversed(place) if isinstance(key, str)) for place in PLACES}

    assert kinds >= {"truth", "scale", "kept", "report", "value", "delta", "payload_size", "noise"}


def test_the_schema_describes_what_is_written() -> None:
    validator = jsonschema_rs.validator_for(json.loads(schema()))
    texts = [rich_text(), compiled(Registry.from_text(registry_text()))]

    for text in texts:
        assert [str(error) for error in validator.iter_errors(json.loads(text))] == []


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.update(colour="red"),
        lambda d: d["metrics"][0].update(spent={}),
        lambda d: d["metrics"][0].pop("constants"),
        lambda d: d["metrics"][0]["constants"].update(truth="5"),
    ],
)
def test_the_schema_refuses_what_is_read_by_nobody(edit: Edit) -> None:
    document = json.loads(rich_text())
    edit(document)

    assert not jsonschema_rs.validator_for(json.loads(schema())).is_valid(document)


def test_a_metric_expires_on_the_day_of_its_file() -> None:
    assert {metric.expires for metric in Registry.from_text(rich_text())} == {date(2099, 12, 31)}


TEXT: Final = 'schema = 1\napp = "demo"\n' + metric_text("dark_mode") + metric_text("compact")


class _Bodies:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.bodies.append(body)
        return Answer(ACCEPTED, None, b'{"accepted": 1}')


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """A registry and the same one compiled."""
    paths = {name: tmp_path / f"metrics.{name}" for name in ("toml", "json")}
    paths["toml"].write_text(TEXT)
    paths["json"].write_text(compiled(Registry.from_text(TEXT)))
    return paths


def reports_of(registry: Path, **changes: Any) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    """Return the reports that a client makes of two values, and its counts."""
    seen: list[tuple[str, bytes]] = []

    def see(report: ReportView) -> bool:
        seen.append((report.metric, report.payload))
        return True

    client = Client(
        ENDPOINT,
        KEY,
        registry,
        consent="granted",
        data_dir=None,
        mode="manual",
        randomness=SeededRandomness(b"both"),
        on_report=see,
        transport=_Bodies(),
        **changes,
    )
    with client:
        client.record("dark_mode", True)
        client.record("compact", False)
    return seen, dict(client.stats())


def spoil(path: Path) -> None:
    """Let the truth of the first metric be likelier than its epsilon allows, checksum and all."""
    document = json.loads(path.read_text())
    document["metrics"][0]["constants"]["truth"] = "f" * 32
    document["checksum"] = checksum_of(document)
    path.write_text(json.dumps(document))


def test_a_client_makes_the_same_reports_of_either_file(paths: dict[str, Path]) -> None:
    reports, counts = reports_of(paths["json"])

    assert (reports, counts) == reports_of(paths["toml"])
    assert [name for name, _ in reports] == ["dark_mode", "compact"]
    assert counts[Reason.UPLOADED] == 2


def test_a_metric_that_spends_more_than_it_says_reports_nothing(
    paths: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(paths["json"])

    with caplog.at_level(logging.WARNING, logger="hearsay"):
        reports, counts = reports_of(paths["json"])

    assert [name for name, _ in reports] == ["compact"]
    assert (counts[Reason.INTERNAL], counts[Reason.RECORDED]) == (1, 1)
    assert "metrics.dark_mode.epsilon" in caplog.text


def test_a_strict_client_raises_for_it(paths: dict[str, Path]) -> None:
    spoil(paths["json"])

    with pytest.raises(RegistryError, match=r"metrics\.dark_mode"):
        reports_of(paths["json"], strict=True)


def test_the_constructor_refuses_a_damaged_file(paths: dict[str, Path]) -> None:
    paths["json"].write_text(paths["json"].read_text().replace("demo", "memo", 1))

    with pytest.raises(RegistryError, match="checksum"):
        reports_of(paths["json"])


def test_devices_draw_the_same_panel_by_either_file(tmp_path: Path) -> None:
    head = 'schema = 1\napp = "demo"\n[panel]\nweek = "8"\n'
    text = head + "".join(metric_text(name) for name in "abcd")
    counts = []
    for name, kept in (("toml", text), ("json", compiled(Registry.from_text(text)))):
        path = tmp_path / f"panel.{name}"
        path.write_text(kept)
        client = Client(
            ENDPOINT,
            KEY,
            path,
            consent="granted",
            data_dir=None,
            mode="manual",
            randomness=SeededRandomness(b"secret"),
            transport=_Bodies(),
            clock=lambda: 1_800_000_000.0,
        )
        with client:
            for metric in client.registry:
                client.record(metric.name, True)
        counts.append(dict(client.stats()))

    assert counts[0] == counts[1]
    assert (counts[0][Reason.RECORDED], counts[0][Reason.NOT_IN_PANEL]) == (1, 3)


def test_a_child_of_command_mode_records_by_it(paths: dict[str, Path], tmp_path: Path) -> None:
    counts = serve(
        [("dark_mode", True, 1_800_000_000.0)],
        {
            "endpoint": ENDPOINT,
            "write_key": KEY,
            "registry": str(paths["json"]),
            "data_dir": str(tmp_path / "data"),
            "consent": "granted",
            "caps": {},
        },
        sends=False,
        clock=lambda: 1_800_000_000.0,
    )

    assert counts[Reason.RECORDED] == 1
