"""What a mistake in a registry is answered: the place, the rule, what stands there and where."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.fields import inner_metrics

GOOD: Final = """\
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
        'metrics.ui.theme.expected_devices: must be an i … at least 1; found "1000" (line 16)',
    ]),
    ("expected_devices = 1000", "expected_devices = 0", [
        "metrics.ui.theme.expected_devices: must be an i … r of at least 1; found 0 (line 16)",
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
        "metrics.spent.min_reports: must be an i … of at least 100; found 3 (line 27)",
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
    found = problems(GOOD.replace(right, wrong, 1))

    assert right in GOOD
    assert len(found) == len(sentences)
    for problem, sentence in zip(found, sentences, strict=True):
        beginning, _, end = sentence.partition(" … ")
        assert problem.startswith(beginning)
        assert problem.endswith(end)
        assert end or problem == beginning


def test_the_registry_without_a_mistake_is_right() -> None:
    """The control: what is answered is of the mistake alone."""
    assert list(Registry.from_text(GOOD).metrics) == ["ui.theme", "spent"]


def test_a_line_is_named_only_where_it_is_sure() -> None:
    """A key that stands on two lines, one of them in a text, has none."""
    doubled = GOOD.replace('["light"', '[\n"expires = 1"', 1)

    (problem,) = problems(doubled.replace("2099-12-31", '"soon"', 1))

    assert problem.endswith('found "soon"')


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.encode("utf-16"), "must be text in UTF-8, and is not (UTF-16?): save it in that"),
        (GOOD.replace("Theme", "Thème").encode("latin-1"), "must be text in UTF-8, and is not"),
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
    path.write_text(GOOD, encoding="utf-8-sig")

    assert Registry.from_file(path) == Registry.from_text(GOOD)


def test_what_a_pair_or_a_record_calls_question_is_no_metric() -> None:
    """The control of the table in a table: names of parts are free."""
    assert list(inner_metrics({"parts": {"question": ["a", "b"], "type": ["c", "d"]}})) == []
