"""Our JSON is that of the standard module, with and without the interpreter's own functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core import compact_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
DAMAGED = (
    *("", " ", "{", "[1,]", "[1] 2", "{1:2}", "nul", '"a', '"\n"', "\ufeff1", "01", "1 }"),
    *("1" * 5_000, "[" * 100_000, '{"a":1,"a":2'),
)


@pytest.fixture(params=["own", "standard"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let JSON go one way or the other."""
    if request.param == "standard":
        monkeypatch.setattr(compact_json, "_functions", None)


def test_this_interpreter_has_functions_of_its_own() -> None:
    assert compact_json._functions is not None


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sort_keys", [False, True])
def test_the_text_is_that_of_the_standard_module(sort_keys: bool) -> None:
    @given(values)
    def same(value: Any) -> None:
        usual = json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
        assert compact_json.dumps(value, sort_keys=sort_keys) == usual

    same()


@pytest.mark.usefixtures("way")
def test_what_is_read_is_what_the_standard_module_reads() -> None:
    @given(values, st.text(" \t\r\n"), st.integers(0, 2))
    def same(value: Any, space: str, indent: int) -> None:
        text = space + json.dumps(value, indent=indent or None) + space
        assert repr(compact_json.loads(text)) == repr(json.loads(text))

    same()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_text_is_refused_in_the_words_of_the_standard_module(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as usual:
        json.loads(text)
    with pytest.raises(usual.type) as ours:
        compact_json.loads(text)

    assert str(ours.value) == str(usual.value)


@pytest.mark.usefixtures("way")
def test_hooks_make_objects_and_numbers_that_are_not_whole() -> None:
    text = '{"a": 1.5, "b": [NaN, -Infinity, 1e3, 7], "a": {}}'

    read = compact_json.loads(text, pairs=list, number=lambda text: f"<{text}>")

    assert read == [("a", "<1.5>"), ("b", ["<NaN>", "<-Infinity>", "<1e3>", 7]), ("a", [])]


@pytest.mark.usefixtures("way")
def test_a_value_without_a_form_of_its_own_is_replaced_or_refused() -> None:
    assert compact_json.dumps([b"\x01"], default=bytes.hex) == '["01"]'
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        compact_json.dumps([b"\x01"])
