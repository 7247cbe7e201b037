"""Masks: nothing shows without the secret, and nothing is read as what it is not."""

from __future__ import annotations

import hashlib

import pytest

from client_sdk.core.errors import EntropyError
from client_sdk.recording.aggregation import NONCE_SIZE, TAG_SIZE, Key, mask, unmask
from tests.support.device.device_transport import NoEntropy
from tests.support.enumeration.seeded import SeededRandomness

SECRET, OTHER = bytes(range(32)), bytes(32)
PLACE = Key(b"", b"digest", 7).place
CONTENT = b"what only this device may know"


def masked() -> bytes:
    return mask(SECRET, PLACE, CONTENT, SeededRandomness(b"nonce"))


def test_what_is_masked_comes_back() -> None:
    assert unmask(SECRET, PLACE, masked()) == CONTENT


def test_the_layout_is_nonce_stream_and_tag() -> None:
    """Law: the mask is the SHAKE-256 stream of secret, place and nonce, worked out here again."""
    found = masked()
    at = SECRET + PLACE + found[:NONCE_SIZE]
    stream = hashlib.shake_256(b"hearsay window 1 stream\0" + at).digest(len(CONTENT))
    tag = hashlib.shake_256(b"hearsay window 1 tag\0" + at + CONTENT).digest(TAG_SIZE)

    body = bytes(a ^ b for a, b in zip(CONTENT, stream, strict=True))

    assert found[NONCE_SIZE:] == body + tag


def test_each_write_looks_like_no_other() -> None:
    """Law: the same content twice has no part in common."""
    randomness = SeededRandomness(b"nonce")

    first, second = (mask(SECRET, PLACE, CONTENT, randomness) for _ in range(2))

    assert all(a != b for a, b in ((first[i:][:8], second[i:][:8]) for i in range(0, 56, 8)))


@pytest.mark.parametrize(
    ("secret", "place", "damage"),
    [
        (OTHER, PLACE, b""),
        (SECRET, Key(b"", b"digest", 8).place, b""),
        (SECRET, Key(b"d", b"digest", 7).place, b""),
        (SECRET, Key(b"", b"others", 7).place, b""),
        (SECRET, PLACE, b"\1"),
    ],
)
def test_nothing_is_read_with_another_secret_or_for_another_window_or_damaged(
    secret: bytes, place: bytes, damage: bytes
) -> None:
    assert unmask(secret, place, masked() + damage) is None


def test_what_is_too_short_is_not_read() -> None:
    assert unmask(SECRET, PLACE, b"c0ffee") is None


def test_no_place_is_the_beginning_of_another() -> None:
    keys = [
        Key(device, digest, epoch)
        for device in (b"", b"d" * 6, b"d" * 16)
        for digest in (b"d" * 6, b"\0" * 6)
        for epoch in (-1, 0, 1 << 40)
    ]
    places = [key.place for key in keys]

    assert not any(a != b and b.startswith(a) for a in places for b in places)


def test_without_entropy_nothing_is_masked() -> None:
    with pytest.raises(EntropyError):
        mask(SECRET, PLACE, CONTENT, NoEntropy())
