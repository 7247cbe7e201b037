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
from tests.support.device.device import make_client
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    HEAD,
    NUMBER,
    file_with,
    table,
)
from tests.support.enumeration.populations import metric_of

GOOD = HEAD + table("dark_mode", BOOLEAN) + table("plan", CATEGORY) + table("session", NUMBER)


def problems_of(text: str) -> tuple[str, ...]:
    """Return the problems of a registry, or none."""
    try:
        Registry.from_text(text)
    except RegistryError as error:
        return error.problems
    return ()


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
    "epsilon",
    [
        *('"0"', '"nan"', '"inf"', '"1e9"', '"-1"', '""', '"1."', '".5"', '" 1"', '"+1"', '"17"'),
        *('"100"', '"1e309"', '"∞"', '"0.1234567891"', '"0.0000000000"'),
        *('"1_0"', '"١"', '"16.000000001"', "1.0", "1", "true"),
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

    assert metric_of(BOOLEAN, question=f'"{question}"').question == question


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
        metric_of(CATEGORY, mechanism='"pgr"', parameters=parameters)
        for parameters in (None, "{ order = 7 }")
    )

    assert small.mechanism.parameters == {"order": 7}
    assert plain.mechanism.parameters != small.mechanism.parameters
    assert plain.digest != small.digest


def test_parameters_that_are_the_best_anyway_keep_the_digest() -> None:
    plain = metric_of(CATEGORY, mechanism='"pgr"')
    order = plain.mechanism.parameters["order"]

    same = metric_of(CATEGORY, mechanism='"pgr"', parameters=f"{{ order = {order} }}")

    assert same.digest == plain.digest


def test_the_mechanism_and_min_reports_have_defaults() -> None:
    metric = metric_of(CATEGORY, mechanism=None, min_reports=None)

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
    metric = metric_of(NUMBER)

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
