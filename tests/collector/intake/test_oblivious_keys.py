"""Keys of capsules, and capsules that they open."""

from __future__ import annotations

import json
import os
import stat
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.limits import SIZE_CLASSES
from client_sdk.upload.ohttp import configuration_of, seal
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Request
from client_sdk.wire.oblivious import decode_configurations
from collector.cli import main
from collector.core.errors import CapsuleError, ConfigError, MalformedUploadError
from collector.intake.capsules import OpenCapsule, Opener
from collector.intake.oblivious_keys import SETTING, ObliviousKey, add_key, read_keys, relay_key

DAY = date(2026, 11, 23)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "keys.json")


def test_a_new_key_is_read_again_and_is_for_its_owner_only(path: str) -> None:
    written = add_key(path, DAY)

    assert read_keys(path) == written
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert configuration_of(relay_key(written)) == written[0].configuration


def test_a_new_key_outlives_a_power_cut(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced after the file has its name."""
    synced: list[tuple[bool, bool]] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), os.path.exists(path)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    add_key(path, DAY)

    assert synced == [(False, False), (True, True)]


def test_the_key_before_stays_good_and_a_third_pushes_none_out(path: str) -> None:
    [first] = add_key(path, DAY)
    second, *rest = add_key(path, DAY)

    assert rest == [first]
    assert second.key_id == (first.key_id + 1) % 256
    with pytest.raises(ConfigError, match=f"--drop {first.key_id}"):
        add_key(path, DAY)
    assert read_keys(path) == [second, first]


def test_a_key_goes_where_its_number_is_given(path: str) -> None:
    [first], [second, _] = add_key(path, DAY), add_key(path, DAY)

    keys = add_key(path, DAY, drop=first.key_id)

    assert [key.public for key in keys[1:]] == [second.public]
    assert len({key.key_id for key in [*keys, first]}) == 3
    with pytest.raises(ConfigError, match="must be in the file"):
        add_key(path, DAY, drop=first.key_id)


def test_numbers_begin_again_after_the_last(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        row = {"id": 255, "secret": "A" * 43, "since": "2026-01-01"}
        file.write(json.dumps({"schema": 1, "keys": [row]}))
    os.chmod(path, 0o600)

    assert [key.key_id for key in add_key(path, DAY)] == [0, 255]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [{"id": 1, "secret": "AAAA", "since": "2026-01-01"}]}',
        '{"keys": [{"id": 256, "secret": "%s", "since": "2026-01-01"}]}' % ("B" * 43),
        '{"keys": [{"id": true, "secret": "%s", "since": "2026-01-01"}]}' % ("B" * 43),
        '{"keys": [{"id": 1, "secret": "%s", "since": "soon"}]}' % ("B" * 43),
    ],
)
def test_a_file_of_another_form_is_refused_and_not_shown(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")
    os.chmod(path, 0o600)

    with pytest.raises(ConfigError, match=f"{SETTING}=.*oblivious-key new") as caught:
        read_keys(path)

    assert "BBBB" not in str(caught.value)


def test_a_file_that_is_open_to_everybody_is_refused(path: str) -> None:
    add_key(path, DAY)
    os.chmod(path, 0o644)

    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(path)


def test_a_file_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=f"{SETTING}={path}: cannot be read"):
        read_keys(path)


def test_the_command_prints_what_applications_need_and_no_secret(path: str) -> None:
    runner = CliRunner()

    first = runner.invoke(main, ["oblivious-key", "new", path])
    second = runner.invoke(main, ["oblivious-key", "new", path])
    shown = runner.invoke(main, ["oblivious-key", "show", path])
    third = runner.invoke(main, ["oblivious-key", "new", path])

    assert [run.exit_code for run in (first, second, shown, third)] == [0, 0, 0, 1]
    assert shown.stdout == second.stdout != first.stdout
    assert "stays good" in second.stderr
    secrets = [row["secret"] for row in json.loads(Path(path).read_text("ascii"))["keys"]]
    printed = "".join(run.output for run in (first, second, shown, third))
    assert not any(secret in printed for secret in secrets)


VECTORS: Final[dict[str, Any]] = json.loads(
    Path("tests/vectors/http/oblivious_http.json").read_text("utf-8")
)
EXAMPLE: Final = {name: bytes.fromhex(text) for name, text in VECTORS["example"].items()}
KEY: Final = decode_configurations(
    len(EXAMPLE["key_configuration"]).to_bytes(2, "big") + EXAMPLE["key_configuration"]
)[0]
OURS: Final = ObliviousKey(KEY.key_id, EXAMPLE["secret_key"], KEY.public, "2026-11-01")
OPENER: Final = Opener([OURS])


def test_the_request_of_the_standard_is_opened() -> None:
    capsule = OPENER.open(EXAMPLE["encapsulated_request"])

    assert capsule.request == EXAMPLE["request"]
    assert capsule.secret == EXAMPLE["secret"]
    assert capsule.read() == Request("GET", "https", "example.com", "/")


def test_the_answer_of_the_standard_is_sealed() -> None:
    opened = OPENER.open(EXAMPLE["encapsulated_request"])
    nonce = EXAMPLE["response_nonce"]
    parts = opened.request, opened.encapsulated, opened.secret
    capsule = OpenCapsule(*parts, AESGCM, lambda _: nonce)

    assert capsule.seal(EXAMPLE["response"]) == EXAMPLE["encapsulated_response"]


@pytest.mark.parametrize("case", VECTORS["bad_requests"], ids=lambda case: str(case["because"]))
def test_what_cannot_be_opened_says_always_the_same(case: dict[str, str]) -> None:
    with pytest.raises(CapsuleError) as caught:
        OPENER.open(bytes.fromhex(case["message"]))

    assert str(caught.value) == str(CapsuleError())
    assert caught.value.__cause__ is None


@given(request=st.binary(max_size=200), flipped=st.integers(0, 2_000))
def test_a_capsule_with_another_bit_is_not_opened(request: bytes, flipped: int) -> None:
    message = bytearray(seal(KEY, request).message)
    assert OPENER.open(bytes(message)).request == request

    message[flipped // 8 % len(message)] ^= 1 << flipped % 8

    with pytest.raises(CapsuleError):
        OPENER.open(bytes(message))


def test_two_keys_are_good_at_a_time() -> None:
    other = ObliviousKey(9, secret := bytes(range(32)), public_of(secret), "2026-11-02")
    both = Opener([other, OURS])

    for key in (KEY, other.configuration):
        assert both.open(seal(key, b"x").message).request == b"x"
    with pytest.raises(CapsuleError):
        OPENER.open(seal(other.configuration, b"x").message)


def public_of(secret: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


@pytest.mark.parametrize("size", [0, 1, 900, 990, 991, 992, 1_000, 4_000, 60_000])
def test_answers_have_one_of_few_sizes(size: int) -> None:
    sealed = seal(KEY, EXAMPLE["request"])

    answer = OPENER.open(sealed.message).answer(202, (("a", "b"),), b"x" * size)

    assert len(answer) in SIZE_CLASSES
    response = binary_http.decode_response(sealed.open_answer(answer))
    assert (response.status, response.content) == (202, b"x" * size)


def test_two_answers_to_one_capsule_share_nothing() -> None:
    capsule = OPENER.open(EXAMPLE["encapsulated_request"])

    first, second = (capsule.answer(202, (), b"") for _ in range(2))

    blocks = {first[at : at + 8] for at in range(len(first) - 7)}
    assert not any(second[at : at + 8] in blocks for at in range(len(second) - 7))


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\x01\x40\xc8",
        binary_http.encode_request(Request("GET", "https", "", "/", (("a", "1"), ("a", "2")))),
        binary_http.encode_request(Request("GET", "https", "", "/", trailers=(("a", "1"),))),
        binary_http.encode_request(Request("GET", "https", "", "/", (("expect", "100-continue"),))),
    ],
)
def test_what_is_no_plain_request_is_refused(request_: bytes) -> None:
    capsule = OPENER.open(seal(KEY, request_).message)

    with pytest.raises(MalformedUploadError, match="capsule: "):
        capsule.read()


def test_a_key_and_a_capsule_show_no_secret_where_they_are_printed() -> None:
    shown = repr(OURS) + repr(OPENER.open(EXAMPLE["encapsulated_request"]))

    for name in ("secret_key", "secret", "request"):
        assert repr(EXAMPLE[name]) not in shown
