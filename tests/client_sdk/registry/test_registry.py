"""The registry: every rule is named with its place, all at once, and a meaning has one digest."""

from __future__ import annotations

import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from client_sdk.core.errors import RegistryError, UnknownMetricError
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from tests.support.device.device import make_client
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    HEAD,
    NUMBER,
    SET,
    TWO_LAYER,
    file_with,
    table,
)

GOOD = HEAD + table("dark_mode", BOOLEAN) + table("plan", CATEGORY) + table("session", NUMBER)


def problems_of(text: str) -> tuple[str, ...]:
    """Return the problems of a registry, or none."""
    try:
        Registry.from_text(text)
    except RegistryError as error:
        return error.problems
    return ()


def only(text: str) -> Metric:
    """Return the one metric of a registry."""
    return next(iter(Registry.from_text(text)))


def test_a_good_file_is_read_in_its_order() -> None:
    registry = Registry.from_text(GOOD)

    assert registry.app == "notes"
    assert registry.segments == {"platform": ("linux", "mac")}
    assert [metric.name for metric in registry] == ["dark_mode", "plan", "session"]
    assert registry.metric("plan").epsilon == 1
    assert registry.by_digest[registry.metric("plan").digest] is registry.metric("plan")


def test_a_file_is_read_from_a_path_as_from_text(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(GOOD, encoding="utf-8")

    assert Registry.from_file(path) == Registry.from_text(GOOD)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"missing\.toml: cannot be read"):
        Registry.from_file(tmp_path / "missing.toml")


def test_an_unknown_metric_is_refused_and_the_known_ones_are_shown() -> None:
    with pytest.raises(UnknownMetricError, match="known: dark_mode, plan, session"):
        Registry.from_text(GOOD).metric("darkmode")


@pytest.mark.parametrize(
    ("fields", "key", "text", "start"),
    [
        (BOOLEAN, "title", None, "metrics.m.title: must be a non-empty text"),
        (BOOLEAN, "question", '" "', "metrics.m.question: must be a non-empty text"),
        (
            BOOLEAN,
            "title",
            '"two\\nlines"',
            "metrics.m.title: must be a non-empty text of printable",
        ),
        (BOOLEAN, "question", '"\\u001b[2J?"', "metrics.m.question: must be a non-empty text of"),
        (BOOLEAN, "owner", '"\\u202eteam"', "metrics.m.owner: must be a non-empty text of print"),
        (NUMBER, "unit", '"\\u2066s"', "metrics.m.unit: must be a non-empty text of printable"),
        (BOOLEAN, "owner", "7", "metrics.m.owner: must be a non-empty text"),
        (BOOLEAN, "type", '"bool"', "metrics.m.type: must be one of boolean, category"),
        (BOOLEAN, "type", None, "metrics.m.type: must be one of"),
        (BOOLEAN, "every", '"2d"', "metrics.m.every: must be one of 1h, 1d, 7d, 28d, once"),
        (BOOLEAN, "longitudinal", '"often"', "metrics.m.longitudinal: must be one of fresh, "),
        (NUMBER, "longitudinal", '"permanent"', "metrics.m.longitudinal: must be fresh for a"),
        (SET, "longitudinal", '"permanent"', "metrics.m.longitudinal: must be fresh for a set"),
        (BOOLEAN, "longitudinal", '"two_layer"', "metrics.m.epsilon_permanent: must be a decimal"),
        (TWO_LAYER, "epsilon_permanent", '"1e3"', "metrics.m.epsilon_permanent: must be a dec"),
        (TWO_LAYER, "epsilon_permanent", '"1.00"', "metrics.m.epsilon_permanent: must be above"),
        (TWO_LAYER, "longitudinal", '"fresh"', "metrics.m.epsilon_permanent: is for longitudi"),
        (TWO_LAYER, "epsilon_permanent", '"99"', "metrics.m: epsilon=99: must be"),
        (TWO_LAYER, "mechanism", '"rappor"', "metrics.m: mechanism=rappor: has no pure channel"),
        (TWO_LAYER, "mechanism", '"exponential"', "metrics.m: mechanism=exponential: has no pur"),
        (BOOLEAN, "mechanism", "1", 'metrics.m.mechanism: must be "auto" or'),
        (BOOLEAN, "mechanism", '"magic"', "metrics.m: mechanism=magic: is not known"),
        (BOOLEAN, "mechanism", '"discrete_laplace"', "metrics.m: mechanism=discrete_laplace: does"),
        (NUMBER, "mechanism", '"grr"', "metrics.m: mechanism=grr: does not fit this type"),
        (SET, "mechanism", '"grr"', "metrics.m: mechanism=grr: does not fit this type"),
        (CATEGORY, "mechanism", '"padding_sampling"', "metrics.m: mechanism=padding_sampling: do"),
        (SET, "parameters", "{ pad = 2 }", "metrics.m: parameters=pad: needs a mechanism by name"),
        (SET, "values", '["a"]', "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, "parameters", "3", "metrics.m.parameters: must be a table of integers"),
        (CATEGORY, "parameters", "{ order = 5.0 }", "metrics.m.parameters: must be a table of"),
        (CATEGORY, "parameters", "{ order = true }", "metrics.m.parameters: must be a table of"),
        (CATEGORY, "parameters", "{ order = 5 }", "metrics.m: order=5: is not a parameter of grr"),
        (BOOLEAN, "segments", '["country"]', "metrics.m.segments: must be a list of dimensions"),
        (BOOLEAN, "segments", '"platform"', "metrics.m.segments: must be a list of dimensions"),
        (BOOLEAN, "expected_devices", "0", "metrics.m.expected_devices: must be an integer of at"),
        (BOOLEAN, "expected_devices", "true", "metrics.m.expected_devices: must be an integer"),
        (BOOLEAN, "min_reports", "99", "metrics.m.min_reports: must be an integer of at least 100"),
        (BOOLEAN, "expires", '"2099-12-31"', "metrics.m.expires: must be a date such as"),
        (BOOLEAN, "expires", "2099-12-31T00:00:00", "metrics.m.expires: must be a date such as"),
        (BOOLEAN, "expires", None, "metrics.m.expires: must be a date such as"),
        (BOOLEAN, "values", '["a", "b"]', "metrics.m.values: is not a known key; known: "),
        (
            BOOLEAN,
            "epsilom",
            '"1"',
            "metrics.m.epsilom: is not a known key (did you mean epsilon?)",
        ),
        (CATEGORY, "values", '["a"]', "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, "values", '["a", "a"]', "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, "values", '["a", 1]', "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, "values", '["a", "\\u202eb"]', "metrics.m.values: must be a list of at least"),
        (CATEGORY, "values", f'["a", "{"b" * 101}"]', "metrics.m.values: must be a list of at"),
        (CATEGORY, "min", "1", "metrics.m.min: is not a known key"),
        (NUMBER, "step", "0.4", "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, "step", "0", "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, "step", "-0.5", "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, "max", "0", "metrics.m.min: must be below max, which is 0"),
        (NUMBER, "max", "nan", "metrics.m.max: must be a finite number"),
        (NUMBER, "min", "-inf", "metrics.m.min: must be a finite number"),
        (NUMBER, "max", "1e999999999", "metrics.m.max: must be a finite number"),
        (NUMBER, "min", "true", "metrics.m.min: must be a finite number"),
        (NUMBER, "step", None, "metrics.m.step: must be a finite number"),
        (NUMBER, "unit", None, "metrics.m.unit: must be a non-empty text"),
        (NUMBER, "max", "16777216", "metrics.m.step: must leave fewer than 16777216 grid points"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(
    fields: dict[str, str], key: str, text: str | None, start: str
) -> None:
    problems = problems_of(file_with(fields, **{key: text}))

    assert [problem for problem in problems if problem.startswith(start)]


@pytest.mark.parametrize(
    "epsilon",
    [
        *('"0"', '"nan"', '"inf"', '"1e9"', '"-1"', '""', '"1."', '".5"', '" 1"', '"+1"', '"17"'),
        *('"0.1234567891"', '"0.0000000000"', '"1_0"', '"١"', '"16.000000001"', "1.0", "1", "true"),
        None,
    ],
)
def test_an_epsilon_that_is_no_quoted_decimal_in_range_is_refused(epsilon: str | None) -> None:
    problems = problems_of(file_with(BOOLEAN, epsilon=epsilon))

    assert len(problems) == 1
    assert problems[0].startswith(("metrics.m.epsilon: must be", "metrics.m: epsilon="))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("schema = 1", "schema = 2", "schema: must be 1"),
        ("schema = 1", "schema = true", "schema: must be 1"),
        ("schema = 1", "schema = 1.0", "schema: must be 1"),
        ("schema = 1", "", "schema: must be 1"),
        (
            'app = "notes"',
            'app = "My Notes"',
            "app: must be a name of 1 to 64 of a-z, 0-9, _ and .",
        ),
        ('app = "notes"', "", "app: must be a name of 1 to 64 of a-z, 0-9, _ and ."),
        ('app = "notes"', 'app = "notes"\ncolour = 1', "registry.colour: is not a known key"),
        ('["linux", "mac"]', '["linux"]', "segments.platform: must be a list of at least 2"),
        ("platform =", '"Plat form" =', "segments.Plat form: must be a name of 1 to 64"),
        ("metrics.", "metrix.", "metrics: must hold at least one metric"),
        ('metrics."plan"', 'metrics."Plan!"', "metrics.Plan!: must be a name of 1 to 64"),
    ],
)
def test_a_broken_rule_of_the_whole_file_is_named(old: str, new: str, problem: str) -> None:
    assert [line for line in problems_of(GOOD.replace(old, new)) if line.startswith(problem)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("schema = = 1", "registry: is not TOML: "),
        ("a = " + "[" * 100_000, "registry: is not TOML: is too deep or long"),
        ("a = " + "{a = " * 5_000, "registry: is not TOML: is too deep or long"),
        ("schema = " + "9" * 5_000, "registry: is not TOML: is too deep or long"),
        ("a = 1e99999999999999999999", "registry: is not TOML: is too deep or long"),
        ("a" + ".a" * 20_000 + " = 1", "registry: must have no key of more than 32 parts"),
        ("[a" + " . 'a'" * 20_000 + "]", "registry: must have no key of more than 32 parts"),
        ("a = {b" + '."\\u0061"' * 20_000 + " = 1}", "registry: must have no key of more than 32"),
        ("#" * 2_000_000, "registry: must have at most 1048576 characters"),
    ],
    ids=lambda text: text[:12],
)
def test_text_that_would_fill_stack_memory_or_an_hour_is_refused(text: str, problem: str) -> None:
    assert problems_of(text)[0].startswith(problem)


def test_a_text_may_have_as_many_dots_as_it_likes() -> None:
    question = "Why? " + "e.g. 1.3.6.1.4.1.311.21.20, " * 40

    assert only(file_with(BOOLEAN, question=f'"{question}"')).question == question


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(RegistryError, match="must have at most"):
        Registry.from_file("/dev/zero")


def test_a_problem_does_not_write_to_the_terminal_what_the_file_has() -> None:
    problems = problems_of('"a\\u001b[2Jb" = 1\n' + HEAD + table("m", BOOLEAN))

    assert problems[0].startswith("registry.a?[2Jb: is not a known key")


def test_a_metric_that_is_no_table_is_refused() -> None:
    text = 'schema = 1\napp = "notes"\n[metrics]\nplan = 3\n'

    assert problems_of(text) == ("metrics.plan: must be a table; found 3 (line 4)",)


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    text = GOOD.replace("schema = 1", "schema = 3") + table(
        "last", BOOLEAN, epsilon='"x"', title=None
    )
    text = text.replace('"7d"', '"8d"', 1)

    problems = problems_of(text)

    places = [problem.split(":")[0] for problem in problems]
    assert places == [
        "schema",
        "metrics.dark_mode.every",
        "metrics.last.title",
        "metrics.last.epsilon",
    ]


def test_parameters_reach_the_mechanism_and_the_digest() -> None:
    plain, small = (
        only(file_with(CATEGORY, mechanism='"pgr"', parameters=parameters))
        for parameters in (None, "{ order = 7 }")
    )

    assert small.mechanism.parameters == {"order": 7}
    assert plain.mechanism.parameters != small.mechanism.parameters
    assert plain.digest != small.digest


def test_parameters_that_are_the_best_anyway_keep_the_digest() -> None:
    plain = only(file_with(CATEGORY, mechanism='"pgr"'))
    order = plain.mechanism.parameters["order"]

    same = only(file_with(CATEGORY, mechanism='"pgr"', parameters=f"{{ order = {order} }}"))

    assert same.digest == plain.digest


@pytest.mark.parametrize(
    ("mechanism", "parameters", "problem"),
    [
        ('"pgr"', "{ order = 4 }", "metrics.m: order=4: must be a prime up to 257"),
        ('"olh"', "{ buckets = 1 }", "metrics.m: buckets=1: must be from 2 to 256"),
        ('"olh"', "{ order = 5 }", "metrics.m: order=5: is not a parameter of olh; known: buckets"),
        ('"auto"', "{ order = 5 }", "metrics.m: parameters=order: needs a mechanism by name"),
        ('"grr"', "{ precision = 8 }", "metrics.m: precision=8: is not a parameter of grr"),
    ],
)
def test_a_parameter_that_breaks_a_rule_is_named(
    mechanism: str, parameters: str, problem: str
) -> None:
    problems = problems_of(file_with(CATEGORY, mechanism=mechanism, parameters=parameters))

    assert [line for line in problems if line.startswith(problem)]


def test_the_mechanism_and_min_reports_have_defaults() -> None:
    metric = only(file_with(CATEGORY, mechanism=None, min_reports=None))

    assert metric.min_reports == 1000
    assert metric.mechanism_name in names()


def test_a_segment_must_be_declared() -> None:
    registry = Registry.from_text(GOOD)

    registry.require_segment({"platform": "mac"})
    with pytest.raises(RegistryError, match=r"^segment\.platform: must be a declared dimension"):
        registry.require_segment({"platform": "amiga"})
    with pytest.raises(RegistryError, match=r"^segment\.country: must be a declared dimension"):
        registry.require_segment({"country": "mac"})


def test_the_domain_of_a_number_metric_is_its_exact_grid() -> None:
    metric = only(file_with(NUMBER))

    assert metric.domain.size == 22
    assert metric.encode(Fraction(3, 4)) == Fraction(3, 2)


def test_a_resource_of_a_package_in_a_zip_is_read_like_a_file(tmp_path: Path) -> None:
    """Law: what ``importlib.resources.files`` gives is enough, wherever the package lies."""
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("app/metrics.toml", GOOD)

    resource = zipfile.Path(tmp_path / "app.pyz", "app/metrics.toml")

    assert Registry.from_file(resource) == Registry.from_text(GOOD)
    assert make_client(registry=resource).registry == Registry.from_text(GOOD)  # type: ignore[arg-type]  # one file serves where a resource is taken
    with pytest.raises(RegistryError, match=r"none\.toml: cannot be read"):
        Registry.from_file(zipfile.Path(tmp_path / "app.pyz", "app/none.toml"))


@pytest.mark.parametrize("given", [GOOD, {"schema": 1}, 7, None, b"metrics.toml"])
def test_what_is_no_registry_is_refused_by_what_to_give_and_not_shown(given: Any) -> None:
    """Law: the text of a file in place of its path names ``from_text``, and is not repeated."""
    with pytest.raises(RegistryError) as caught:
        Registry.from_file(given)

    assert "from_text takes the text" in str(caught.value)
    assert "dark_mode" not in str(caught.value)
    assert len(str(caught.value)) < 200
