"""Oblivious HTTP in TypeScript: the vectors, the bytes of Python, and two programs of other people.

The peers are hpke-js and bhttp-js; of Oblivious HTTP itself npm has no package that is kept up, so
what joins the two is in client_sdk_ts/tests/support/peer.ts, by the words of RFC 9458.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from client_sdk.core.base64url import base64url
from client_sdk.upload.endpoint import PATH
from client_sdk.upload.ohttp import RelayTransport, seal
from client_sdk.upload.transport import RETIRED_PATH
from client_sdk.wire.binary_http import Request, decode_response, encode_request
from client_sdk.wire.oblivious import KeyConfiguration
from tests.support.node import Node

PROGRAM: Final = "programs/relay.js"
FOLDER: Final = Path(__file__).parents[1] / "vectors" / "http"
BINARY: Final = json.loads((FOLDER / "binary_http.json").read_text("utf-8"))
OBLIVIOUS: Final = json.loads((FOLDER / "oblivious_http.json").read_text("utf-8"))
EXAMPLE: Final[dict[str, str]] = OBLIVIOUS["example"]


def listed(configuration: str) -> str:
    """Return a list of one key configuration in hexadecimal."""
    return f"{len(configuration) // 2:04x}{configuration}"


def test_responses_are_read_as_the_standard_says_cut_and_padded_too(node: Node) -> None:
    messages, expected = [], []
    for case in BINARY["responses"]:
        meaning = {key: case[key] for key in ("status", "fields", "content", "trailers")}
        whole = case["message"]
        cuts = range(case["truncatable"] + 1)
        messages += [whole[: len(whole) - 2 * cut] for cut in cuts]
        messages.append(whole + "00" * 9)
        expected += [meaning] * (len(cuts) + 1)

    assert node.ask(PROGRAM, "responses", question=messages) == expected


def test_what_is_no_response_is_refused(node: Node) -> None:
    """Each message that the vectors call bad, and each of theirs cut one byte too early."""
    bad = [case["message"] for case in BINARY["bad"] if case["kind"] == "response"]
    cut = [
        case["message"][: len(case["message"]) - 2 * (case["truncatable"] + 1)]
        for case in BINARY["responses"]
        if case["content"]
    ]
    requests = [case["message"] for case in BINARY["requests"]]

    messages = [*bad, *cut, *requests]

    assert len(bad) >= 5
    assert node.ask(PROGRAM, "responses", question=messages) == [None] * len(messages)


def test_requests_are_written_bit_for_bit(node: Node) -> None:
    known = [case for case in BINARY["requests"] if case["known_length"]]

    assert known
    assert node.ask(PROGRAM, "requests", question=known) == [case["message"] for case in known]


def test_key_configurations_are_read_as_by_python(node: Node) -> None:
    good, bad = OBLIVIOUS["key_configurations"], OBLIVIOUS["bad_key_configurations"]

    keys = node.ask(
        PROGRAM, "keys", question=[base64url(bytes.fromhex(case["list"])) for case in [*good, *bad]]
    )

    assert keys == [*(case["usable"] for case in good), *[None] * len(bad)]


def test_the_example_of_the_standard_is_sealed_bit_for_bit_and_only_its_answer_opens(
    node: Node,
) -> None:
    configuration = bytes.fromhex(listed(EXAMPLE["key_configuration"]))
    bad = [case["message"] for case in OBLIVIOUS["bad_responses"]]

    done = node.ask(
        PROGRAM,
        "capsule",
        question={
            "list": base64url(configuration),
            "request": EXAMPLE["request"],
            "secret": EXAMPLE["ephemeral_secret_key"],
            "answers": [EXAMPLE["encapsulated_response"], *bad],
        },
    )

    assert done["message"] == EXAMPLE["encapsulated_request"]
    assert done["answers"] == [EXAMPLE["response"], *[None] * len(bad)]


def test_the_requests_in_capsules_are_those_of_python_bit_for_bit(node: Node) -> None:
    """Of an upload, and of a question for a list, which is as long as the least upload."""
    endpoint, write_key = "https://stats.example.org:8443/below/v1/reports", "a-write-key"
    body = '{"v":1,"id":"…"}'.encode().ljust(1_024).decode()
    relay_key = base64url(bytes.fromhex(listed(EXAMPLE["key_configuration"])))
    python = RelayTransport("https://relay.example", relay_key, endpoint, write_key)

    sent = node.ask(
        PROGRAM,
        "sent",
        question={"endpoint": endpoint, "writeKey": write_key, "body": body, "path": RETIRED_PATH},
    )

    expected = [python._inner(PATH, body.encode()), python._inner(RETIRED_PATH, None)]
    assert sent == [request.hex() for request in expected]


def test_a_gateway_of_other_people_opens_what_python_seals(node: Node) -> None:
    """And Python opens its answer."""
    fields = (("authorization", "Bearer key"), ("content-type", "application/json"))
    request = Request("POST", "https", "stats.example", "/v1/reports", fields, b'{"v":1}')
    public = bytes.fromhex(EXAMPLE["key_configuration"])[3:35]
    capsule = seal(KeyConfiguration(1, public), encode_request(request))

    opened = node.ask(
        PROGRAM,
        "open",
        question={
            "secret": EXAMPLE["secret_key"],
            "id": 1,
            "capsule": capsule.message.hex(),
            "status": 202,
            "fields": [["content-type", "application/json"]],
            "content": '{"accepted":1}',
        },
    )

    answer = decode_response(capsule.open_answer(bytes.fromhex(opened.pop("answer"))))
    assert opened == {
        "method": "POST",
        "url": "https://stats.example/v1/reports",
        "fields": [list(field) for field in fields],
        "content": '{"v":1}',
    }
    assert (answer.status, answer.content) == (202, b'{"accepted":1}')
    assert dict(answer.fields)["content-type"] == "application/json"
