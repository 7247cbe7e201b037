"""What the length of an upload tells: one of four classes, and never what is in it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.core.randomness import system_randomness
from client_sdk.core.wire import Column, Report, columns_of, seal, seal_binary, seal_padded
from client_sdk.mechanisms import load
from collector.intake.wire import JSON, MSGPACK, decode

UPLOAD_ID = bytes(range(16))
DRAWS = 10_000
Sealing = Callable[..., bytes]


def lengths_of(sealing: Sealing, name: str) -> set[int]:
    """Return the lengths of uploads of one report, over draws of values and of noise."""
    mechanism, randomness = load(name)("1", 64), system_randomness()
    payloads = (mechanism.randomize(draw % 64, randomness) for draw in range(DRAWS))
    return {
        len(sealing(UPLOAD_ID, 20_000, {}, [Column(b"digest", 20_000, payload)]))
        for payload in payloads
    }


@pytest.mark.parametrize("name", ["grr", "oue", "olh"])
def test_the_length_of_an_upload_is_the_same_for_every_value_and_every_noise(name: str) -> None:
    """Law: over 10^4 draws of a metric there is one length."""
    assert lengths_of(seal_padded, name) == {SIZE_CLASSES[0]}


def lengths_of_mixtures(sealing: Sealing, draws: int) -> set[int]:
    """Return the lengths of uploads of a chance number of reports, of a chance size each."""
    chance = random.Random(7)
    lengths = set()
    for _ in range(draws):
        count, size = int(30 ** chance.random()), chance.choice([1, 8, 128, 1_024])
        reports = [Report(b"digest", 20_000 - i, chance.randbytes(size)) for i in range(count)]
        lengths.add(len(sealing(UPLOAD_ID, 20_000, {}, columns_of(reports))))
    return lengths


def test_uploads_of_a_device_have_one_of_four_lengths() -> None:
    """Law: 10^4 uploads, whatever is in them, have at most four lengths, the size classes."""
    assert lengths_of_mixtures(seal_padded, DRAWS) == set(SIZE_CLASSES)


def test_without_padding_the_length_would_tell_the_number_of_reports() -> None:
    """Control: 500 of the same draws have over 50 lengths unpadded, so the law above can fail."""
    assert len(lengths_of_mixtures(seal, 500)) > 50


@pytest.mark.parametrize("count", [0, 1, 8, 9, 40, 41, 170, 171, 700, 2_000])
def test_padding_is_spaces_after_the_document_up_to_the_next_class(count: int) -> None:
    """Law: the padded body is the JSON, then spaces; beyond the last class nothing is added."""
    columns = [Column(b"digest", epoch, b"\x01") for epoch in range(count)]

    plain = seal(UPLOAD_ID, 20_000, {}, columns)
    padded = seal_padded(UPLOAD_ID, 20_000, {}, columns)

    expected = min((size for size in SIZE_CLASSES if size >= len(plain)), default=len(plain))
    assert padded == plain.ljust(expected, b" ")
    assert SIZE_CLASSES[-1] == MAX_DEVICE_BODY
    assert json.loads(padded) == json.loads(plain)


def test_the_collector_reads_every_form_alike() -> None:
    """Law: padded or not, JSON or MessagePack, it is the same upload."""
    columns = [Column(b"digest", 7, b"\xff\xfe"), Column(b"second", -1, bytes(300))]
    arguments = (UPLOAD_ID, 19_800, {"os": "é", "plan": "free"}, columns)

    uploads = [
        decode(seal(*arguments), JSON),
        decode(seal_padded(*arguments), JSON),
        decode(seal_binary(*arguments), MSGPACK),
    ]

    assert uploads[0].columns == tuple(columns)
    assert uploads[1:] == uploads[:1] * 2
