"""Capsules against the example of RFC 9458, and what neither side takes for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey

from client_sdk.core.base64url import base64url
from client_sdk.core.errors import InvalidParameterError
from client_sdk.upload.ohttp import Capsule, configuration_of, seal
from client_sdk.wire.oblivious import (
    HEADER_SIZE,
    KEY_SIZE,
    OVERHEAD,
    KeyConfiguration,
    answer_keys,
    decode_configurations,
    encode_configurations,
)

VECTORS: Final[dict[str, Any]] = json.loads(
    Path("tests/vectors/http/oblivious_http.json").read_text("utf-8")
)
EXAMPLE: Final = {name: bytes.fromhex(text) for name, text in VECTORS["example"].items()}


def example_key() -> KeyConfiguration:
    whole = EXAMPLE["key_configuration"]
    [key] = decode_configurations(len(whole).to_bytes(2, "big") + whole)
    return key


def example_capsule() -> Capsule:
    return seal(example_key(), EXAMPLE["request"], lambda _: EXAMPLE["ephemeral_secret_key"])


def test_a_request_is_sealed_as_in_the_standard() -> None:
    capsule = example_capsule()

    assert capsule.encapsulated == EXAMPLE["encapsulated_key"]
    assert capsule.message == EXAMPLE["encapsulated_request"]
    assert capsule.secret == EXAMPLE["secret"]
    assert len(capsule.message) == len(EXAMPLE["request"]) + OVERHEAD


def test_a_library_for_hpke_opens_what_is_sealed_and_exports_the_same_secret() -> None:
    """Law: with keys of chance, too, and for each identifier of a key."""
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
    for key_id in (0, 255):
        secret = X25519PrivateKey.generate()
        public = secret.public_key().public_bytes_raw()
        capsule = seal(KeyConfiguration(key_id, public), b"a request")

        header = capsule.message[:HEADER_SIZE]
        info = b"message/bhttp request\0" + header
        private = KEMKey.from_pyca_cryptography_key(secret)
        context = suite.create_recipient_context(capsule.encapsulated, private, info)
        assert context.open(capsule.message[HEADER_SIZE + KEY_SIZE :]) == b"a request"
        assert context.export(b"message/bhttp response", 16) == capsule.secret


def test_an_answer_is_opened_as_in_the_standard() -> None:
    keys = answer_keys(EXAMPLE["secret"], EXAMPLE["encapsulated_key"], EXAMPLE["response_nonce"])

    assert keys == (EXAMPLE["aead_key"], EXAMPLE["aead_nonce"])
    opened = example_capsule().open_answer(EXAMPLE["encapsulated_response"])
    assert opened == EXAMPLE["response"]


@pytest.mark.parametrize("case", VECTORS["bad_responses"], ids=lambda case: str(case["because"]))
def test_what_is_no_answer_to_a_capsule_is_refused(case: dict[str, str]) -> None:
    capsule = example_capsule()

    with pytest.raises(ValueError, match="answer: "):
        capsule.open_answer(bytes.fromhex(case["message"]))


def test_an_answer_to_another_capsule_is_refused() -> None:
    other = seal(example_key(), EXAMPLE["request"])

    with pytest.raises(ValueError, match="belong"):
        other.open_answer(EXAMPLE["encapsulated_response"])


def test_two_capsules_of_the_same_bytes_share_nothing_but_their_header() -> None:
    first, second = (seal(example_key(), EXAMPLE["request"]).message for _ in range(2))

    assert first[:HEADER_SIZE] == second[:HEADER_SIZE]
    blocks = {first[at : at + 8] for at in range(HEADER_SIZE, len(first) - 7)}
    assert not any(second[at : at + 8] in blocks for at in range(HEADER_SIZE, len(second) - 7))


@pytest.mark.parametrize("case", VECTORS["key_configurations"], ids=lambda case: str(case["name"]))
def test_lists_of_keys_are_read_as_the_standard_says(case: dict[str, Any]) -> None:
    usable = [
        KeyConfiguration(key["key_id"], bytes.fromhex(key["public_key"])) for key in case["usable"]
    ]
    listed = bytes.fromhex(case["list"])

    assert decode_configurations(listed) == usable
    assert configuration_of(base64url(listed)) == usable[0]
    assert decode_configurations(encode_configurations(usable)) == usable


@pytest.mark.parametrize(
    "case", VECTORS["bad_key_configurations"], ids=lambda case: str(case["because"])
)
def test_what_is_no_list_of_keys_is_refused_and_not_shown(case: dict[str, str]) -> None:
    text = base64url(bytes.fromhex(case["list"]))

    with pytest.raises(InvalidParameterError) as caught:
        configuration_of(text)

    assert caught.value.name == "relay_key"
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize("text", ["not base64url!", "AAA=", None, 7, b"AA"])
def test_a_key_that_is_no_text_of_base64url_is_refused(text: Any) -> None:
    with pytest.raises(InvalidParameterError, match="relay_key="):
        configuration_of(text)


def test_a_whole_key_survives_its_own_encoding() -> None:
    key = KeyConfiguration(9, bytes(range(KEY_SIZE)))

    assert len(key.encode()) == 1 + 2 + KEY_SIZE + 2 + 4
    assert decode_configurations(encode_configurations([key, key])) == [key, key]
