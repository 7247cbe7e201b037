"""Metrics of type string: what they take, what they cut, and what their digest covers."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import InvalidValueError, RegistryError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import TextMechanism
from client_sdk.registry import Registry, aggregates
from client_sdk.registry.domains import TextDomain
from client_sdk.registry.metric import Metric
from tests.support.device.device import make_client
from tests.support.device.registries import STRING, file_with

CANARY = "canary-7391"


def metric(**changes: str | None) -> Metric:
    """Return the metric of strings with *changes*."""
    return Registry.from_text(file_with(STRING, **changes)).metric("m")


def test_a_string_metric_has_the_mechanism_of_strings_of_its_length() -> None:
    """``auto`` takes one without being told."""
    found = metric()

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
    assert metric().encode(value) == encoded
    assert metric().domain.in_words(encoded) == (encoded.decode() or "an empty text")


@pytest.mark.parametrize("value", [None, 1, b"bytes", [CANARY], "\ud800", CANARY.encode(), True])
def test_what_is_no_text_is_refused_and_not_shown(value: object) -> None:
    """Neither bytes nor lone surrogates are text."""
    with pytest.raises(InvalidValueError) as caught:
        metric().encode(value)

    assert str(caught.value).startswith("m: takes a text")
    assert CANARY not in f"{caught.value!r} {vars(caught.value)}"


@pytest.mark.parametrize("length", ["1", "129", "true", '"8"', "8.0", None])
def test_a_length_that_no_mechanism_can_have_is_a_problem(length: str | None) -> None:
    """From 2 to 128 bytes."""
    with pytest.raises(RegistryError, match=r"metrics\.m\.length: must be the bytes that count"):
        metric(length=length)


@pytest.mark.parametrize("policy", ["permanent", "two_layer"])
def test_a_string_metric_is_fresh(policy: str) -> None:
    """Permanent responses are for items."""
    with pytest.raises(RegistryError, match="must be fresh for a string"):
        metric(longitudinal=f'"{policy}"')


def test_the_digest_covers_length_and_the_parameters_of_the_mechanism() -> None:
    """Reports of other prefixes or cells mean something else."""
    own = {"mechanism": '"pem"', "parameters": "{ step = 1 }"}

    assert len({metric(**c).digest for c in ({}, {"length": "9"}, own)}) == 3
    assert '"domain":{"length":8}' in metric().meaning


@pytest.mark.parametrize("name", ["grr", "pgr", "olh"])
def test_a_mechanism_of_items_does_not_fit(name: str) -> None:
    """The error names those that do."""
    with pytest.raises(RegistryError, match="fitting: auto, pem"):
        metric(mechanism=f'"{name}"')


@pytest.mark.parametrize(("value", "reason"), [("crash", "recorded"), (17, "invalid_value")])
def test_a_client_counts_what_it_takes_and_what_it_refuses(value: object, reason: str) -> None:
    """Recording never raises, whatever the application passes."""
    with make_client(registry=Registry.from_text(file_with(STRING))) as client:
        client.record("m", value)

    assert client.stats()[reason] == 1


def test_every_payload_has_one_size() -> None:
    """Neither the text nor its length shows in the size of a report."""
    found, randomness = metric(), system_randomness()
    texts = ("", "a", "crash", "a longer one than counts")

    payloads = [found.mechanism.randomize(found.encode(text), randomness) for text in texts]

    assert {len(payload) for payload in payloads} == {found.mechanism.payload_size}


@pytest.mark.parametrize("text", [b"", b"a", b"12345678", b"\0\0"])
def test_a_text_is_kept_in_bytes_of_one_length(text: bytes) -> None:
    """So that the store of a device does not tell how long it was."""
    domain = TextDomain(8)

    kept = aggregates.dump(domain, text)

    assert len(kept) == aggregates.size_of(domain) == 9
    assert aggregates.load(domain, kept) == text
