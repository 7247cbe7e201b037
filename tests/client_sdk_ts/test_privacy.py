"""Caps, opt-outs and automation: both languages read the same words alike."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.privacy.automation import VARIABLES, sign_of_automation
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.opt_outs import forbids, policy_path, who_says_no
from tests.support.node import Node

NAMES: Final = ("report", "metric_week", "week", "lifetime", "delta")
WORDS: Final = (
    "",
    "0",
    "1",
    "true",
    " True ",
    "false",
    "FALSE",
    "yes",
    "on",
    "off",
    "no",
    "2",
    "-",
)
DECIMALS: Final = (
    *("0", "0.0", "0.000000001", "0.1", "00.10", "7.25", "2.000000001", "999999", "1000", "10"),
    *("999999.999999999", "-1", "1e9", "nan", "", " 1", "1.", ".5", "1.0000000001", "1000000"),
    *("1\n", "1,5", "٣", "0x1", "+1", "0.000001", "0.000000000001", "0.0000000000001", "9007"),
)
PLAIN: Final = (  # what both understand
    "",
    "# nothing\n\n",
    "telemetry = true",
    "telemetry = false",
    "telemetry=true # yes\r\n",
    '"telemetry" = true',
    "'telemetry' = false",
    "telemetry = 1",
    'telemetry = "true"',
    "telemetry = true\ntelemetry = true",
    "telemetry = true\ntelemetry = false",
    "[other]\ntelemetry = false",
    "[telemetry]\nenabled = true",
    "other = 5\nowner = 'it'\n[a]\nx = -0.5\n[b]\nx = 1",
    "a = 1\n[a]",
    "[a]\n[a]",
    "telemetry",
    "telemetry = no",
    "telemetry : true",
    "\ufefftelemetry = true",
    "telemetry = true\x00",
    "x = 01",
    "x = 'a\nb'",
)
PARTS: Final = (
    *(
        "telemetry",
        '"telemetry"',
        "other",
        "[a]",
        "[telemetry]",
        "[[a]]",
        "a.b",
        "=",
        " = ",
        "true",
    ),
    *("false", "1", "'x'", '"x"', '"""', "'''", "[", "]", "{", "}", ",", "#", "# no", "\n", "\n"),
    *("\r\n", "\r", " ", "\t", "\\", "0x1", "1_0", "1e3", "-", "inf", "1979-05-27", "\x0b", "é"),
)
PRIVACY: Final = "./dist/privacy"


def evaluate(node: Node, imports: str, values: Any, expression: str) -> Any:
    """Return ``expression`` of each of *values*, as ``value``."""
    return node.evaluate(
        f"{imports}; import {{ readFileSync }} from 'node:fs';"
        "const values = JSON.parse(readFileSync(0));"
        f"console.log(JSON.stringify(values.map((value) => {expression})))",
        stdin=json.dumps(values),
    )


def caps_of(name: str, text: str) -> int | None:
    try:
        return int(getattr(Caps(**{name: text}), name))
    except InvalidParameterError:
        return None


def test_caps_are_the_same_whole_numbers(node: Node) -> None:
    """Law: a text is a cap in both languages or in neither, to the last unit.

    A delta beyond 9,007 is held at the largest number that JavaScript has exactly.
    """
    cases = [(name, text) for name in NAMES for text in DECIMALS]

    results = evaluate(
        node,
        f"import {{ capsOf }} from '{PRIVACY}/caps.js';"
        "const cap = ([name, text]) => {"
        " try { return capsOf({ [name]: text })[name]; } catch { return null; } }",
        cases,
        "cap(value)",
    )

    expected = [caps_of(*case) for case in cases]
    assert results == [cap if cap is None else min(cap, 2**53 - 1) for cap in expected]
    assert sum(cap is None for cap in expected) > len(NAMES) * 10


def test_caps_left_out_are_the_same_and_can_be_shown(node: Node) -> None:
    text = f"import {{ capsOf, capTexts }} from '{PRIVACY}/caps.js';"

    caps, texts = node.evaluate(
        f"{text} console.log(JSON.stringify([capsOf(), capTexts(capsOf())]))"
    )

    assert caps == {name: getattr(Caps(), name) for name in NAMES}
    assert texts == Caps().decimals()


def test_the_services_that_run_programs_are_the_same(node: Node) -> None:
    """Law: one list, in the same order."""
    text = f"import {{ VARIABLES }} from '{PRIVACY}/automation.js';"

    assert node.evaluate(f"{text} console.log(JSON.stringify(VARIABLES))") == list(VARIABLES)


def test_the_environment_says_the_same(node: Node) -> None:
    environments = [
        {"DO_NOT_TRACK": track, "HEARSAY_TELEMETRY": hearsay, variable: word}
        for track in WORDS
        for hearsay in WORDS
        for variable, word in (("CI", "1"), ("bamboo_buildKey", "False"), ("DRONE", " "))
    ]

    results = evaluate(
        node,
        f"import {{ environmentSaysNo }} from '{PRIVACY}/opt_outs.js';"
        f"import {{ signOfAutomation }} from '{PRIVACY}/automation.js'",
        environments,
        "[environmentSaysNo(value), signOfAutomation(null, value)]",
    )

    assert results == [
        [who_says_no(None, env, "/nowhere"), sign_of_automation(None, env)] for env in environments
    ]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_the_policy_lies_at_the_same_place(node: Node, platform: str) -> None:
    text = f"import {{ policyPath }} from '{PRIVACY}/node_opt_outs.js';"

    path = node.evaluate(f"{text} console.log(JSON.stringify(policyPath({{}}, '{platform}')))")

    assert path == policy_path({}, platform)


def test_a_policy_forbids_in_typescript_whenever_it_does_in_python(
    node: Node, tmp_path: Path
) -> None:
    """Law: of plain texts and 5,000 random ones none that Python takes for a no is missed."""
    rng = random.Random("policies")
    chance = ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(5_000)]
    texts = [text.encode() for text in (*PLAIN, *chance)] + [b"telemetry = true\xff"]
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)

    results = evaluate(
        node,
        f"import {{ forbids }} from '{PRIVACY}/node_opt_outs.js'",
        [*map(str, paths), str(tmp_path), str(tmp_path / "none"), str(paths[0] / "none")],
        "forbids(value)",
    )

    expected = [forbids(path) for path in paths]
    assert results[-3:] == [True, False, False]
    assert results[: len(PLAIN)] == expected[: len(PLAIN)]
    missed = [
        text for text, ours, theirs in zip(texts, results, expected, strict=False) if theirs > ours
    ]
    assert missed == []
    assert 50 < expected.count(False) < len(expected)
