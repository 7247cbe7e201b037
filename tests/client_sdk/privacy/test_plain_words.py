"""What a report says, in words: for every mechanism, and right where it is easy to check."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import names
from client_sdk.privacy.wording import what_was_sent, why_deniable
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    LOCATION,
    NUMBER,
    PAIR,
    SET,
    STRING,
    file_with,
)

KEY_VALUE = {**NUMBER, "type": '"key_value"', "values": '["a", "b", "c"]'}
del KEY_VALUE["step"]
KINDS = {
    "category": CATEGORY,
    "set": SET,
    "number": NUMBER,
    "key_value": KEY_VALUE,
    "string": STRING,
}
VALUES = {
    "category": "pro",
    "set": ["a", "c"],
    "number": 4.5,
    "key_value": {"a": 3, "b": 10},
    "string": "word",
}


def metric_of(fields: dict[str, str], **changes: str) -> Metric:
    return Registry.from_text(file_with(fields, **changes)).metric("m")


def metric_with(mechanism: str) -> Metric:
    """Return a metric of the first type that *mechanism* serves."""
    for fields in KINDS.values():
        try:
            return metric_of(fields, mechanism=f'"{mechanism}"')
        except RegistryError:
            continue
    raise AssertionError(f"{mechanism} serves no type")


@pytest.mark.parametrize("mechanism", names())
def test_every_report_of_every_mechanism_has_words(mechanism: str) -> None:
    """A mechanism added later is shown to people without further work."""
    metric = metric_with(mechanism)
    encoded = metric.encode(VALUES[metric.type])

    payloads = [metric.mechanism.randomize(encoded, system_randomness()) for _ in range(20)]

    assert all(what_was_sent(metric, payload) for payload in payloads)
    assert not any("mean nothing" in what_was_sent(metric, payload) for payload in payloads)
    assert "odds by more than" in why_deniable(metric)


def test_a_report_of_one_item_is_its_label() -> None:
    """Randomized response sends one of the labels, and its words are that label."""
    metric = metric_of(CATEGORY, mechanism='"grr"')

    assert [what_was_sent(metric, bytes([item])) for item in range(3)] == [
        '"free"',
        '"pro"',
        '"team"',
    ]


def test_a_report_of_several_items_names_them_and_one_of_none_says_so() -> None:
    """Unary encoding sends a set of items; long sets are cut."""
    labels = ", ".join(f'"v{i}"' for i in range(8))
    metric = metric_of(CATEGORY, mechanism='"oue"', values=f"[{labels}]")

    assert what_was_sent(metric, b"\0") == "none of the 8 answers"
    assert what_was_sent(metric, b"\xff") == '8 of 8 answers: "v0", "v1", "v2", "v3" and 4 more'


def test_items_of_joint_values_are_told_as_people_say_them() -> None:
    """A report about a place names places: a row and a column would mean nothing to anybody."""
    place, pair = metric_of(LOCATION, mechanism='"grr"'), metric_of(PAIR, mechanism='"oue"')

    assert what_was_sent(place, b"\5") == '"from 0° to 10° east, 46.5° to 47.5° north"'
    assert what_was_sent(pair, b"\x84") == (
        '2 of 6 answers: "sex: female, income: low", "sex: male, income: high"'
    )


def test_a_noisy_number_is_shown_in_its_unit() -> None:
    """The words hold the number that the collector will count."""
    metric = metric_of(NUMBER)
    mechanism = metric.mechanism
    payload = mechanism.randomize(metric.encode(4.5), system_randomness())
    decoded = mechanism.decode(payload)  # type: ignore[attr-defined]  # it is a MeanMechanism

    assert what_was_sent(metric, payload) == (
        f"{float(decoded / 2):g} minutes, which is the value and noise together"
    )


def test_a_key_is_shown_with_the_end_of_the_range_it_was_rounded_to() -> None:
    """Cells are keys with the upper end, then keys with the lower end."""
    metric = metric_of(KEY_VALUE, mechanism='"pckv_grr"')

    assert what_was_sent(metric, b"\1") == '"b" with 10.5 minutes'
    assert what_was_sent(metric, b"\3") == '"a" with 0 minutes'


@pytest.mark.parametrize("payload", [b"", b"\x09", b"\0\0"])
def test_bytes_of_another_definition_mean_nothing(payload: bytes) -> None:
    """A damaged history is shown as it is, never as an answer."""
    metric = metric_of(CATEGORY, mechanism='"grr"')

    assert what_was_sent(metric, payload) == f"the bytes {payload.hex()}, which mean nothing here"


def test_the_odds_are_those_of_the_epsilon_that_was_charged() -> None:
    """Rounded outward: the words promise no more than the channel keeps."""
    metric = metric_of(BOOLEAN)

    said = why_deniable(metric)

    assert "at most 73.2 %, and to each other answer with at least 26.8 %" in said
    assert "It shifts nobody's odds by more than 2.8 to 1." in said


def test_a_delta_is_said_beside_the_odds() -> None:
    """What is not pure is not called pure."""
    loose = metric_of(NUMBER, mechanism='"discrete_gaussian"')

    assert "to 1, but for a chance of 1e-06 of saying more" in why_deniable(loose)


def test_a_repeated_response_says_what_all_its_reports_together_can_tell() -> None:
    """A permanent response is the same however often it is sent, and so are its odds."""
    metric = metric_of(CATEGORY, mechanism='"grr"', longitudinal='"permanent"')

    assert "All reports of one answer together: by no more than 2.8 to 1" in why_deniable(metric)
