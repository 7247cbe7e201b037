"""Options are typed as people write them, and read as the verb wants them."""

from __future__ import annotations

from typing import Any

import pytest

from collector.query.options import options_of


@pytest.mark.parametrize(
    ("verb", "text", "meant"),
    [
        ("lift", ("control", "2.2"), "2.2"),
        ("trend", ("item", "true"), "true"),
        ("top_k", ("k", "5"), 5),
        ("quantile", ("levels", "0.5"), [0.5]),
        ("quantile", ("levels", "0.5,0.9"), [0.5, 0.9]),
        ("cdf", ("points", "[500, 1000]"), [500, 1000]),
        ("heavy_hitters", ("candidates", "null,cat"), ["null", "cat"]),
        ("quantile", ("levels", "0.5, 0.9,"), [0.5, 0.9]),
        ("range", ("low", "18"), "18"),
        ("range", ("ranges", '[["18", null]]'), [["18", None]]),
        ("histogram", ("simultaneous", "true"), True),
        ("top_k", ("k", "many"), "many"),
        ("no_such_verb", ("k", "5"), 5),
    ],
)
def test_an_option_has_the_type_that_its_verb_wants(
    verb: str, text: tuple[str, str], meant: Any
) -> None:
    """A version is a text, though it looks like a number."""
    assert options_of(verb, [text]) == {text[0]: meant}
