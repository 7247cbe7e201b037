"""A registry file: what is read of it, and every mistake by its place, rule and line."""

from __future__ import annotations

import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import RegistryError, UnknownMetricError
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry.fields import inner_metrics
from client_sdk.registry.keys import AGGREGATES, ANY, GRID, SHAPES
from tests.support.device.device import make_client
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    HEAD,
    KEY_VALUE,
    NUMBER,
    SET,
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
    ("text", "problem"),
    [
        *(
            (GOOD.replace(old, new), problem)
            for old, new, problem in (
                ("schema = 1", "schema = true", "schema: must be 1"),
                ("schema = 1", "schema = 1.0", "schema: must be 1"),
                ('app = "notes"', 'app = "notes"\ncolour = 1', "registry.colour: is not a known"),
                ("platform =", '"Plat form" =', "segments.Plat form: must be a name of 1 to 64"),
                ("metrics.", "metrix.", "metrics: must hold at least one metric"),
                ('metrics."plan"', 'metrics."Plan!"', "metrics.Plan!: must be a name of 1 to 64"),
            )
        ),
        (
            'schema = 1\napp = "notes"\n[metrics]\nplan = 3\n',
            "metrics.plan: must be a table; found 3 (line 4)",
        ),
        # no text of a file acts on a terminal
        ('"a\\u001b[2Jb" = 1\n' + HEAD + table("m", BOOLEAN), "registry.a?[2Jb: is not a known"),
        # nor fills stack, memory or an hour
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
def test_a_broken_rule_of_the_whole_file_is_named(text: str, problem: str) -> None:
    assert [line for line in problems_of(text) if line.startswith(problem)]


def test_a_text_may_have_as_many_dots_as_it_likes() -> None:
    question = "Why? " + "e.g. 1.3.6.1.4.1.311.21.20, " * 40

    assert metric_of(BOOLEAN, question=f'"{question}"').question == question


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(RegistryError, match="must have at most"):
        Registry.from_file("/dev/zero")


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


FITTING = {
    "boolean": (BOOLEAN, {"last", "any"}),
    "category": (CATEGORY, {"last", "most_common"}),
    "set": (SET, {"last"}),
    "number": (NUMBER, {"sum", "max", "last"}),
    "key_value": (KEY_VALUE, {"last"}),
}
OTHERWISE = {
    "boolean": ("false", "true"),
    "category": ('"free"', '"team"'),
    "set": ("[]", '["a", "c"]'),
    "number": ("0", "10.5"),
    "key_value": ("{}", "{ video = -10, chess = 1.5 }"),
}


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_fits_some_types_and_no_other(kind: str, name: str) -> None:
    """Law: an unknown combination is an error that names those that fit."""
    fields, fitting = FITTING[kind]

    if name in fitting:
        assert metric_of(fields, aggregate=f'"{name}"').aggregate == name
    else:
        with pytest.raises(RegistryError, match=r"^metrics\.m\.aggregate: must be one of .*last"):
            metric_of(fields, aggregate=f'"{name}"')


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_otherwise_reported_is_a_value_of_the_metric(kind: str) -> None:
    """Law: it is encoded as a recorded value would be, and part of the meaning of a report."""
    fields, values = FITTING[kind][0], OTHERWISE[kind]
    digests = {metric_of(fields, aggregate='"last"', otherwise=text).digest for text in values}

    assert (
        len(digests | {metric_of(fields).digest, metric_of(fields, aggregate='"last"').digest}) == 4
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"aggregate": '"sum"'}, "the sum"),
        ({"aggregate": '"max"', "otherwise": "1.5"}, "the largest, or else 1.5 minutes"),
    ],
)
def test_an_aggregation_is_told_in_words(changes: dict[str, str], words: str | None) -> None:
    assert metric_of(NUMBER, **changes).aggregation == words


@pytest.mark.parametrize(
    ("fields", "key", "text", "value"),
    [
        (CATEGORY, "need", "0.02", Fraction(1, 50)),
        (CATEGORY, "need", "1", Fraction(1)),
        (CATEGORY, "need", None, None),
        (NUMBER, "need", "2.5", Fraction(5, 2)),
        (NUMBER, "need", "10.5", Fraction(21, 2)),
        (KEY_VALUE, "need", "0.1", Fraction(1, 10)),
        *((NUMBER, "shape", f'"{shape}"', shape) for shape in SHAPES),
    ],
)
def test_a_need_and_a_shape_are_read_exactly_and_no_part_of_the_digest(
    fields: dict[str, str], key: str, text: str | None, value: object
) -> None:
    """Law: they change what is shown, and nothing of what a report means."""
    read = metric_of(fields, **{key: text})

    assert (getattr(read, key), read.digest) == (value, metric_of(fields).digest)


@pytest.mark.parametrize(
    ("kind", "low", "step", "shape"),
    [
        ("number", "0", "1", ANY),
        ("duration", "0", "1", ANY),
        ("count", "0", "1", GRID),
        ("count", "0", "0.5", GRID),
        ("count", "0", "2", ANY),
        ("count", "0.5", "1", ANY),
    ],
)
def test_nothing_is_assumed_but_of_counts_whose_grid_has_all_whole_numbers(
    kind: str, low: str, step: str, shape: str
) -> None:
    """A count of 37 is not on a grid of tens."""
    fields = {**NUMBER, "type": f'"{kind}"', "min": low, "max": "20" if low == "0" else "20.5"}

    assert metric_of(fields, step=step).shape == shape


WITHOUT_MISTAKE: Final = """\
schema = 1
app = "notes"

[segments]
platform = ["linux", "mac"]

[metrics."ui.theme"]
title = "Theme"
question = "Which theme?"
type = "category"
values = ["light", "dark"]
epsilon = "1.0"
every = "7d"
longitudinal = "fresh"
segments = ["platform"]
expected_devices = 1000
owner = "o"
expires = 2099-12-31

[metrics.spent]
title = "Spent"
question = "How much?"
type = "number"
min = 0
max = 100
step = 1
unit = "EUR"
epsilon = "1.0"
every = "1d"
longitudinal = "fresh"
expected_devices = 1000
owner = "o"
expires = 2099-12-31
"""
# What is written in place of what, and the sentences: their beginnings and ends.
MISTAKES: Final = [
    ('[metrics."ui.theme"]', "[metrics.ui.theme]", [
        'metrics.ui.theme: is a table i … cs."ui.theme"], in quotes (line 7)',
    ]),
    ('question = "Which', 'quesiton = "Which', [
        "metrics.ui.theme.quesiton: is not a kno … (did you mean question?) (line 9)",
        "metrics.ui.theme.question: must be a no … characters; it is missing (line 7)",
    ]),
    ('title = "Theme"\n', "", [
        "metrics.ui.theme.title: must be a no … characters; it is missing (line 7)",
    ]),
    ("min = 0\nmax = 100", "min = 100\nmax = 0", [
        "metrics.spent.min: must be belo … x, which is 0; found 100 (line 24)",
    ]),
    ("schema = 1\n", "", [
        "schema: must be 1; it is missing",
    ]),
    ("schema = 1\n", "schema = 2\n", [
        "schema: must be 1; found 2 (line 1)",
    ]),
    ("schema = 1\n", 'schema = "1"\n', [
        'schema: must be 1; found "1" (line 1)',
    ]),
    ('app = "notes"\n', "", [
        "app: must be a name … f a-z, 0-9, _ and .; it is missing",
    ]),
    ('app = "notes"', 'app = "My Notes"', [
        'app: must be a name … _ and .; found "My Notes" (line 2)',
    ]),
    ('epsilon = "1.0"', "epsilon = 1.0", [
        "metrics.ui.theme.epsilon: must be a de … st 9 decimals; found 1.0 (line 12)",
    ]),
    ('epsilon = "1.0"', 'epsilon = "0"', [
        "metrics.ui.theme: epsilon=0: must be a decimal from 1e-9 to 16",
    ]),
    ('epsilon = "1.0"', 'epsilon = "99"', [
        "metrics.ui.theme: epsilon=99: … must be a decimal from 1e-9 to 16",
    ]),
    ('epsilon = "1.0"\n', "", [
        "metrics.ui.theme.epsilon: must be a de … 9 decimals; it is missing (line 7)",
    ]),
    ('every = "7d"', 'every = "2d"', [
        'metrics.ui.theme.every: must be one … u mean 28d?); found "2d" (line 13)',
    ]),
    ('every = "7d"', "every = 7", [
        "metrics.ui.theme.every: must be one … , 7d, 28d, once; found 7 (line 13)",
    ]),
    ('every = "7d"\n', "", [
        "metrics.ui.theme.every: must be one … 28d, once; it is missing (line 7)",
    ]),
    ('type = "category"', 'type = "categroy"', [
        'metrics.ui.theme.type: must be one … gory?); found "categroy" (line 10)',
    ]),
    ('type = "category"\n', "", [
        "metrics.ui.theme.type: must be one … ; it is missing (line 7)",
    ]),
    ('values = ["light", "dark"]\n', "", [
        "metrics.ui.theme.values: must be a li … characters; it is missing (line 7)",
    ]),
    ('values = ["light", "dark"]', 'values = ["light"]', [
        'metrics.ui.theme.values: must be a li … racters; found ["light"] (line 11)',
    ]),
    ('values = ["light", "dark"]', 'values = ["light", "light"]', [
        'metrics.ui.theme.values: must be a li … found ["light", "light"] (line 11)',
    ]),
    ('values = ["light", "dark"]', 'values = "light"', [
        'metrics.ui.theme.values: must be a li … haracters; found "light" (line 11)',
    ]),
    ('longitudinal = "fresh"', 'longitudinal = "permanant"', [
        'metrics.ui.theme.longitudinal: must be one … ent?); found "permanant" (line 14)',
    ]),
    ('segments = ["platform"]', 'segments = ["platfrom"]', [
        'metrics.ui.theme.segments: must be a li … nts]; found ["platfrom"] (line 15)',
    ]),
    ('segments = ["platform"]', 'segments = "platform"', [
        'metrics.ui.theme.segments: must be a li … ments]; found "platform" (line 15)',
    ]),
    ("expected_devices = 1000", 'expected_devices = "1000"', [
        'metrics.ui.theme.expected_devices: must be an i … w 2^53; found "1000" (line 16)',
    ]),
    ("expected_devices = 1000", "expected_devices = 0", [
        "metrics.ui.theme.expected_devices: must be an i … elow 2^53; found 0 (line 16)",
    ]),
    ("expected_devices = 1000", f"expected_devices = 1{400 * '0'}", [
        f"metrics.ui.theme.expected_devices: must be an i … ; found 1{39 * '0'}… (line 16)",
    ]),
    ("expected_devices = 1000", f"expected_devices = 0x{4_000 * 'f'}", [
        "metrics.ui.theme.expected_devices: must be an i … ber of too many digits (line 16)",
    ]),
    ('owner = "o"', 'owner = ""', [
        'metrics.ui.theme.owner: must be a no … ble characters; found "" (line 17)',
    ]),
    ("expires = 2099-12-31", 'expires = "2099-12-31"', [
        'metrics.ui.theme.expires: must be a da … 2-31; found "2099-12-31" (line 18)',
    ]),
    ("expires = 2099-12-31\n", "", [
        "metrics.ui.theme.expires: must be a da … 2027-12-31; it is missing (line 7)",
    ]),
    ("expires = 2099-12-31", "expires = 2099-13-31", [
        "registry: is not TOML: E … statement (at line 18, column 15)",
    ]),
    ("max = 100\n", "", [
        "metrics.spent.max: must be a fi … te number; it is missing (line 20)",
    ]),
    ("step = 1\n", "step = 0\n", [
        "metrics.spent.step: must be posi … n, which is 100; found 0 (line 26)",
    ]),
    ("step = 1\n", "step = 7\n", [
        "metrics.spent.step: must be posi … n, which is 100; found 7 (line 26)",
    ]),
    ('unit = "EUR"\n', "", [
        "metrics.spent.unit: must be a no … haracters; it is missing (line 20)",
    ]),
    ('unit = "EUR"', 'mechanism = "minmax"\nunit = "EUR"', [
        "metrics.spent: mechanism=mi … e_bit_mean, piecewise, square_wave",
    ]),
    ('unit = "EUR"', 'min_reports = 3\nunit = "EUR"', [
        "metrics.spent.min_reports: must be an i … 00, below 2^53; found 3 (line 27)",
    ]),
    ('unit = "EUR"', 'aggregate = "total"\nunit = "EUR"', [
        'metrics.spent.aggregate: must be one … this type; found "total" (line 27)',
    ]),
    ('unit = "EUR"', 'ask = ["median"]\nunit = "EUR"', [
        'metrics.spent.ask: must be a li … tiles"; found ["median"] (line 27)',
    ]),
    ('unit = "EUR"', 'weight = 2\nunit = "EUR"', [
        "metrics.spent.weight: is for registries with a [panel] only",
    ]),
    ('unit = "EUR"', 'need = 0\nunit = "EUR"', [
        "metrics.spent.need: must be abov … and at most 100; found 0 (line 27)",
    ]),
    ('unit = "EUR"', 'parameters = { order = "x" }\nunit = "EUR"', [
        "metrics.spent.parameters: must be a ta … s, such as { order = 5 } (line 27)",
    ]),
    ('unit = "EUR"', 'unit = "EUR"\nunit = "USD"', [
        "registry: is not TOML: C … te a value (at line 28, column 13)",
    ]),
    ("[metrics.spent]", "[metrics.Spent]", [
        "metrics.Spent: must … 64 of a-z, 0-9, _ and . (line 20)",
    ]),
    ("[metrics.spent]", "[metric.spent]", [
        "registry.metric: is not a known key (did you mean metrics?)",
    ]),
    ("[segments]", "[segment]", [
        "registry.segment: is not a kno … (did you mean segments?) (line 4)",
        'metrics.ui.theme.segments: must be a li … nts]; found ["platform"] (line 15)',
    ]),
    ('platform = ["linux", "mac"]', 'platform = ["linux"]', [
        'segments.platform: must be a li … aracters; found ["linux"] (line 5)',
    ]),
    ('title = "Theme"', "title = Theme", [
        "registry: is not TOML: Invalid value (at line 8, column 9)",
    ]),
    ('[metrics."ui.theme"]', '[metrics."ui.theme"', [
        "registry: is not TOML: E … declaration (at line 7, column 20)",
    ]),
    ('unit = "EUR"', 'values = ["a","b"]\nunit = "EUR"', [
        "metrics.spent.values: is not a kno … itle, type, unit, weight (line 27)",
    ]),
    ("[metrics.spent]", "[metrics.a.b.spent]", [
        'metrics.a.b.spent: is a table i … ."a.b.spent"], in quotes (line 20)',
    ]),
    ('longitudinal = "fresh"\nsegments', 'longitudinal = "two_layer"\nsegments', [
        "metrics.ui.theme.epsilon_permanent: must be a de … 9 decimals; it is missing (line 7)",
    ]),
    ('unit = "EUR"', 'epsilon_permanent = "4"\nunit = "EUR"', [
        "metrics.spent.epsilon_permanent: is for longi … is for longitudinal=two_layer only",
    ]),
    ('segments = ["platform"]', 'automation = "segment"\nsegments = ["platform"]', [
        "metrics.ui.theme.automation: is not a kno … le, type, values, weight (line 15)",
    ]),
    ('app = "notes"', 'app = { name = "notes", automation = "count" }', [
        'app.automation: must be one … ignore, segment; found "count" (line 2)',
    ]),
    ('app = "notes"', 'app = { nam = "notes" }', [
        "app.nam: is not a known key (did you mean name?) (line 2)",
        "app.name: must be … 9, _ and .; it is missing (line 2)",
    ]),
    ("schema = 1", "schema = 1\npanel = { week = 8 }", [
        "panel.week: must be a po … most 9 decimals; found 8 (line 2)",
    ]),
    ("[metrics.spent]", '[metrics."ui.theme"]', [
        "registry: is not TOML: C … me') twice (at line 20, column 20)",
    ]),
    ('title = "Spent"', 'title = "a title that is longer than what is shown\\u0007"', [
        "metrics.spent.title: must be a no … a title that is longer than what is sho… (line 21)",
    ]),
    ("max = 100", "max = inf", [
        "metrics.spent.max: must be a fi … e number; found Infinity (line 25)",
    ]),
    ("min = 0\n", "# min = 0\n", [
        "metrics.spent.min: must be a fi … te number; it is missing (line 20)",
    ]),
]  # fmt: skip


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(RegistryError) as caught:
        Registry.from_text(text)
    return caught.value.problems


@pytest.mark.parametrize(("right", "wrong", "sentences"), MISTAKES)
def test_a_mistake_is_answered_with_its_place_the_rule_what_stands_there_and_the_line(
    right: str, wrong: str, sentences: list[str]
) -> None:
    found = problems(WITHOUT_MISTAKE.replace(right, wrong, 1))

    assert right in WITHOUT_MISTAKE
    assert len(found) == len(sentences)
    for problem, sentence in zip(found, sentences, strict=True):
        beginning, _, end = sentence.partition(" … ")
        assert problem.startswith(beginning)
        assert problem.endswith(end)
        assert end or problem == beginning


def test_the_registry_without_a_mistake_is_right() -> None:
    """The control: what is answered is of the mistake alone."""
    assert list(Registry.from_text(WITHOUT_MISTAKE).metrics) == ["ui.theme", "spent"]


def test_a_line_is_named_only_where_it_is_sure() -> None:
    """A key that stands on two lines, one of them in a text, has none."""
    doubled = WITHOUT_MISTAKE.replace('["light"', '[\n"expires = 1"', 1)

    (problem,) = problems(doubled.replace("2099-12-31", '"soon"', 1))

    assert problem.endswith('found "soon"')


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            WITHOUT_MISTAKE.encode("utf-16"),
            "must be text in UTF-8, and is not (UTF-16?): save it in that",
        ),
        (
            WITHOUT_MISTAKE.replace("Theme", "Thème").encode("latin-1"),
            "must be text in UTF-8, and is not",
        ),
        (None, "cannot be read: [Errno 2]"),
    ],
)
def test_a_file_that_is_no_text_in_utf_8_is_told_so(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "metrics.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(RegistryError, match="registry=") as caught:
        Registry.from_file(path)

    assert words in str(caught.value)


def test_the_mark_that_editors_of_windows_write_first_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(WITHOUT_MISTAKE, encoding="utf-8-sig")

    assert Registry.from_file(path) == Registry.from_text(WITHOUT_MISTAKE)


def test_what_a_pair_or_a_record_calls_question_is_no_metric() -> None:
    """The control of the table in a table: names of parts are free."""
    assert list(inner_metrics({"parts": {"question": ["a", "b"], "type": ["c", "d"]}})) == []
