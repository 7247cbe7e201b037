"""Ed25519 against the vectors of RFC 8032, and what must not verify."""

from __future__ import annotations

import secrets
from typing import Final

import pytest

from client_sdk.wire.ed25519 import public_of, sign, verify

# RFC 8032, section 7.1, tests 1 to 3: secret, public, message, signature.
VECTORS: Final = (
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
        "f9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0"
        "f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
        "4dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
)
ORDER: Final = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize("vector", VECTORS)
def test_keys_and_signatures_are_those_of_the_standard(vector: tuple[str, ...]) -> None:
    seed, public, message, signature = map(bytes.fromhex, vector)

    assert public_of(seed) == public
    assert sign(seed, message) == signature
    assert verify(public, message, signature)


def test_no_bit_of_message_signature_or_key_can_be_changed() -> None:
    """Law: one changed bit anywhere, drawn anew in each run, is refused; unchanged it verifies."""
    seed, message = secrets.token_bytes(32), secrets.token_bytes(20)
    parts = public_of(seed), message, sign(seed, message)

    assert verify(*parts)
    for place, part in enumerate(parts):
        for _ in range(8):
            changed = bytearray(part)
            changed[secrets.randbelow(len(part))] ^= 1 << secrets.randbelow(8)
            broken = [*parts[:place], bytes(changed), *parts[place + 1 :]]
            assert not verify(*broken)


def test_a_signature_has_one_form_only() -> None:
    """Law: S + L is refused, which would verify if it were reduced; so are other lengths."""
    seed, public, message, signature = map(bytes.fromhex, VECTORS[1])
    larger = int.from_bytes(signature[32:], "little") + ORDER

    assert not verify(public, message, signature[:32] + larger.to_bytes(32, "little"))
    assert not verify(public, message, signature + b"\0")
    assert not verify(public, message, signature[:-1])
    assert not verify(public + b"\0", message, signature)
    assert not verify(public, message, b"")
    assert seed != public


@pytest.mark.parametrize(
    "key",
    [
        b"\xff" * 32,  # y is above p
        (2**255 - 19).to_bytes(32, "little"),  # y is p
        (1 | 1 << 255).to_bytes(32, "little"),  # x is 0, and said to be odd
        (2).to_bytes(32, "little"),  # no point has this y
    ],
)
def test_what_is_no_point_is_no_key(key: bytes) -> None:
    _, _, message, signature = map(bytes.fromhex, VECTORS[0])

    assert not verify(key, message, signature)
    assert not verify(bytes.fromhex(VECTORS[0][1]), message, key + signature[32:])
