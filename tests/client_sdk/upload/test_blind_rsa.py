"""Blind signatures and tokens against the vectors of their standards, and what must not pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from client_sdk.core.randomness import ByteRandomness, system_randomness
from client_sdk.upload.blind_rsa import (
    blind,
    blind_with,
    encode,
    finalize,
    is_encoding,
    is_permutation,
)
from client_sdk.wire.private_token import (
    Plan,
    challenge,
    challenge_digest,
    from_header,
    header_of,
    key_id_of,
    key_of,
    last_day_of,
    modulus_of,
    parse,
    permutation_targets,
    read_plan,
    token_input,
    upload_id_of,
    week_of,
)

DATA: Final = Path(__file__).parents[2] / "data"
OF_SIGNATURES: Final[dict[str, str]] = json.loads((DATA / "rfc9474.json").read_text("utf-8"))
OF_TOKENS: Final[dict[str, Any]] = json.loads((DATA / "rfc9578.json").read_text("utf-8"))


def number(text: str) -> int:
    return int(text, 16)


def private_key() -> rsa.RSAPrivateNumbers:
    key = load_pem_private_key(bytes.fromhex(OF_TOKENS["skS"]), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.private_numbers()


def test_every_step_is_that_of_rfc_9474() -> None:
    vector = OF_SIGNATURES
    modulus, inverse = number(vector["n"]), number(vector["inv"])
    message, salt = bytes.fromhex(vector["msg"]), bytes.fromhex(vector["salt"])

    encoded = encode(message, salt, modulus.bit_length() - 1)
    blinding = blind_with(encoded, modulus, pow(inverse, -1, modulus))
    answer = pow(number(vector["blinded_msg"]), number(vector["d"]), modulus)

    assert encoded.hex() == vector["encoded_msg"]
    assert blinding.blinded.hex() == vector["blinded_msg"]
    assert blinding.inverse == inverse
    assert f"{answer:01024x}" == vector["blind_sig"]
    signature = finalize(message, modulus, inverse, bytes.fromhex(vector["blind_sig"]))
    assert signature is not None
    assert signature.hex() == vector["sig"]


@pytest.mark.parametrize("vector", OF_TOKENS["vectors"])
def test_every_byte_of_a_token_is_that_of_rfc_9578(vector: dict[str, str]) -> None:
    key = bytes.fromhex(OF_TOKENS["pkS"])
    modulus, key_id = modulus_of(key), key_id_of(key)
    asked = bytes.fromhex(vector["token_challenge"])
    token, salt = bytes.fromhex(vector["token"]), bytes.fromhex(vector["salt"])
    parts = parse(token)
    assert parts is not None

    from hashlib import sha256

    signed = token_input(bytes.fromhex(vector["nonce"]), sha256(asked).digest(), key_id)
    encoded = encode(signed, salt, modulus.bit_length() - 1)
    blinding = blind_with(encoded, modulus, number(vector["blind"]))
    request = b"\x00\x02" + key_id[-1:] + blinding.blinded
    answer = bytes.fromhex(vector["token_response"])

    assert request.hex() == vector["token_request"]
    assert parts.signed == signed
    assert finalize(signed, modulus, blinding.inverse, answer) == parts.authenticator
    numbers = private_key()
    assert pow(int.from_bytes(blinding.blinded, "big"), numbers.d, modulus) == number(answer.hex())
    assert key_of(modulus) == key
    context = bytes.fromhex("8e7acc900e393381e8810b7c9e4a68b5163f1f880ab6688a6ffe780923609e88")
    context = context if len(asked) > 40 else b""
    assert challenge("issuer.example", context, "origin.example") == asked


def test_what_a_device_blinds_by_chance_becomes_a_signature() -> None:
    numbers = private_key()
    modulus, randomness = numbers.public_numbers.n, system_randomness()

    blindings = [blind(b"the same", modulus, randomness) for _ in range(2)]
    answers = [
        pow(int.from_bytes(b.blinded, "big"), numbers.d, modulus).to_bytes(256, "big")
        for b in blindings
    ]

    assert blindings[0].blinded != blindings[1].blinded
    assert all(
        finalize(b"the same", modulus, b.inverse, answer)
        for b, answer in zip(blindings, answers, strict=True)
    )
    assert finalize(b"the same", modulus, blindings[0].inverse, answers[1]) is None
    assert finalize(b"another", modulus, blindings[0].inverse, answers[0]) is None
    assert finalize(b"the same", modulus, blindings[0].inverse, answers[0][1:]) is None
    assert finalize(b"the same", modulus, blindings[0].inverse, b"\xff" * 256) is None


def test_a_request_that_shares_a_divisor_with_the_key_is_drawn_anew() -> None:
    """Else who made a key with small divisors would see which residue a message has."""
    from math import gcd

    modulus = number(OF_SIGNATURES["n"]) // 3 * 3
    requests = [blind(b"x", modulus, system_randomness()).blinded for _ in range(8)]

    assert all(gcd(int.from_bytes(request, "big"), 3) == 1 for request in requests)


def test_every_changed_bit_of_an_encoding_is_seen() -> None:
    encoded = encode(b"message", b"s" * 48, 2_047)
    number_of = int.from_bytes(encoded, "big")

    assert is_encoding(number_of, b"message", 2_047)
    assert not any(is_encoding(number_of ^ 1 << bit, b"message", 2_047) for bit in range(2_048))


def roots_of(p: int, q: int, exponent: int, modulus: int) -> tuple[int, ...]:
    inverse = pow(exponent, -1, (p - 1) * (q - 1))
    return tuple(pow(target, inverse, modulus) for target in permutation_targets(modulus))


def test_an_honest_key_proves_that_it_signs_by_a_permutation() -> None:
    numbers = private_key()
    modulus = numbers.public_numbers.n

    roots = roots_of(numbers.p, numbers.q, 65_537, modulus)

    assert is_permutation(modulus, roots)
    assert not is_permutation(modulus, roots[:-1])
    assert not is_permutation(modulus, (*roots[:-1], roots[-1] ^ 1))
    assert not is_permutation(modulus, tuple(root + modulus for root in roots))


def test_a_key_that_could_tell_requests_apart_has_no_proof() -> None:
    """The exponent divides the order of one prime's group, so most numbers have no root."""
    numbers = private_key()
    step = 2 * 65_537
    candidate = (1 << 1_023) // step * step + 1 + (1 << 1_022) // step * step
    while pow(2, candidate - 1, candidate) != 1:  # a Fermat test does for a control
        candidate += step
    modulus = candidate * numbers.q

    group = (candidate - 1) // 65_537
    with_root = [
        pow(target % candidate, group, candidate) == 1 for target in permutation_targets(modulus)
    ]

    assert not all(with_root)  # so whatever is shown as roots, one of them is none


def test_a_key_of_another_kind_is_refused() -> None:
    key = bytes.fromhex(OF_TOKENS["pkS"])
    even = key[:-6] + bytes([key[-6] & 0xFE]) + key[-5:]
    small = key.replace(b"\x82\x01\x01\x00\xcb", b"\x82\x01\x01\x00\x4b")
    other = key.replace(bytes.fromhex("a203020130"), bytes.fromhex("a203020120"))

    assert modulus_of(key).bit_length() == 2_048
    for wrong in (b"", key[:-1], key + b"\0", even, small, other, key[:-1] + b"\x03"):
        with pytest.raises(ValueError, match="key: "):
            modulus_of(wrong)


def test_a_token_is_of_one_length_and_kind_only() -> None:
    token = bytes.fromhex(OF_TOKENS["vectors"][0]["token"])

    assert from_header(header_of(token)) == token
    assert parse(token) is not None
    assert [parse(token[:-1]), parse(token + b"\0"), parse(b"\0\1" + token[2:])] == [None] * 3
    for text in (
        "",
        header_of(token)[:-1],
        header_of(token) + "A",
        "*" * 472,
        header_of(token)[:-1] + "*",
    ):
        assert from_header(text) is None
    assert len(upload_id_of(token)) == 16


def test_a_challenge_differs_by_issuer_app_and_week() -> None:
    digests = {
        challenge_digest(issuer, app, week)
        for issuer in ("a.example", "b.example")
        for app in ("shop", "editor")
        for week in (2_960, 2_961)
    }

    assert len(digests) == 8


def test_the_last_day_of_a_week_is_never_before_any_of_its_days() -> None:
    for day in range(20_000, 20_030):
        last = last_day_of(week_of(day))

        assert day <= last < day + 7
        assert week_of(last) == week_of(day) != week_of(last + 1)


def test_the_digest_of_a_plan_differs_with_each_of_its_parts() -> None:
    plan = Plan("issuer.example", 2_961, 16, (bytes(32), bytes(31) + b"\1"))
    others = [
        Plan("issuer.example.org", 2_961, 16, plan.key_ids),
        Plan("issuer.example", 2_962, 16, plan.key_ids),
        Plan("issuer.example", 2_961, 17, plan.key_ids),
        Plan("issuer.example", 2_961, 16, plan.key_ids[::-1]),
    ]

    assert len({plan.digest, *(other.digest for other in others)}) == 5
    assert read_plan(json.loads(json.dumps(plan.as_json()))) == plan
    assert [plan.key_id(week) for week in (2_960, 2_961, 2_963)] == [None, bytes(32), None]


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "User@Example"},
        {"issuer": 7},
        {"first": 1.0},
        {"first": True},
        {"tokens": 0},
        {"tokens": 1_001},
        {"key_ids": []},
        {"key_ids": ["00"]},
        {"key_ids": "00" * 32},
        {"more": 1},
    ],
)
def test_a_plan_that_is_none_is_refused(change: dict[str, object]) -> None:
    document = {"issuer": "a.example", "first": 1, "tokens": 1, "key_ids": ["00" * 32]}

    assert read_plan(document).tokens == 1
    with pytest.raises(ValueError, match="plan"):
        read_plan(document | change)


def test_draws_that_fail_make_no_request() -> None:
    def fail(count: int) -> bytes:
        raise OSError

    with pytest.raises(OSError, match="byte source"):
        blind(b"x", number(OF_SIGNATURES["n"]), ByteRandomness(fail))
