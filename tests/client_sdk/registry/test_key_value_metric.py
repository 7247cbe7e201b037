"""Metrics of type key_value and string: what they take, refuse and cut, and their digests."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, cast

import pytest

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import KeyValueMechanism, TextMechanism
from client_sdk.registry.types.items import ItemDomain, TextDomain
from client_sdk.registry.types.numbers import KeyValueDomain
from tests.support.device.registries import KEY_VALUE, STRING
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.populations import metric_of


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
    "value",
    [
        *(None, 0, True, "video", ["video"], {"video"}, [("video", 1)], ("video", 1)),
        *({"video"}, iter({"video": 1}), object()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_no_mapping_is_refused(value: object) -> None:
    """Only a mapping says which number belongs to which key."""
    with pytest.raises(
        InvalidValueError, match=r"^m: takes a mapping of its 3 registered keys to numbers$"
    ):
        metric_of(KEY_VALUE).encode(value)


@pytest.mark.parametrize("key", ["Video", "", 0, None, b"video", ("video",), float("nan")])
def test_an_unknown_key_is_refused_as_a_key(key: object) -> None:
    """The error says that the key is wrong, and not which it was."""
    with pytest.raises(InvalidValueError, match=r"^m, key: takes one of its 3 registered values$"):
        metric_of(KEY_VALUE).encode({"music": 1, key: 1})


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), True, "1", None, [1], Decimal("1e999999999"), 1j]
)
def test_what_is_no_finite_number_is_refused_as_a_number(number: object) -> None:
    """The error says that the number is wrong, and not which it was."""
    with pytest.raises(InvalidValueError, match=r"^m, number: takes a "):
        metric_of(KEY_VALUE).encode({"music": 1, "video": number})


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


def test_every_payload_has_one_size() -> None:
    """Neither the text nor its length shows in the size of a report."""
    found, randomness = metric_of(STRING), system_randomness()
    texts = ("", "a", "crash", "a longer one than counts")

    payloads = [found.mechanism.randomize(found.encode(text), randomness) for text in texts]

    assert {len(payload) for payload in payloads} == {found.mechanism.payload_size}


@pytest.mark.parametrize("text", [b"", b"a", b"12345678", b"\0\0"])
def test_a_text_is_kept_in_bytes_of_one_length(text: bytes) -> None:
    """So that the store of a device does not tell how long it was."""
    encoding = TextDomain(8).encoding

    kept = encoding.dump(text)

    assert len(kept) == encoding.size == 9
    assert encoding.load(kept) == text
