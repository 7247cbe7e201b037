"""One-time tokens against privacypass-ts: each side of an exchange is its program, the other ours.

Of npm's 0.9.0 a dependency is in no registry, so it is 0.8.1.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from client_sdk.upload.blind_rsa import SALT_SIZE, blind, finalize
from client_sdk.wire.private_token import (
    EXPONENT,
    KIND,
    RESPONSE_TYPE,
    challenge,
    challenge_digest,
    modulus_of,
    parse,
    token_input,
)
from collector.issuer.keys import SigningKey, write_keys
from collector.planning.compilation import compiled
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY
from tests.support.device.issuing import MACHINES, NAME, keys_from, running_issuer
from tests.support.node import Node
from tests.support.sites.site import running_site
from tests.support.store.servers import needs_real

PROGRAM: Final = "programs/tokens.js"
OF_TOKENS: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "rfc9578.json").read_text("utf-8")
)
APP: Final = "editor"
NOW: Final = 1_795_000_000.0
WEEK: Final = 2_968
TOKENS: Final = 3


def test_a_device_of_other_people_gets_a_token_of_our_issuer(node: Node, tmp_path: Path) -> None:
    """It is bound to what ours would bind it to, and any verifier of RSASSA-PSS takes it."""
    with running_issuer(tmp_path, lambda: NOW) as site:
        week = site.keys.plan.first + 1
        context = week.to_bytes(32, "big").hex()
        asked = {"issuer": NAME, "context": context, "origin": APP, "place": 1, "url": site.url}

        said = node.ask(
            PROGRAM, "ask", question={**asked, "attestation": MACHINES.attestation_of("laptop-7")}
        )

    key = SigningKey(site.keys.secrets[week])
    token = parse(bytes.fromhex(said["token"]))
    assert token is not None
    assert said["kind"] == RESPONSE_TYPE
    assert (token.key_id, token.challenge_digest) == (key.key_id, challenge_digest(NAME, APP, week))
    public = RSAPublicNumbers(EXPONENT, modulus_of(key.public)).public_key()
    hashed = SHA384()
    public.verify(token.authenticator, token.signed, PSS(MGF1(hashed), SALT_SIZE), hashed)


def test_a_device_of_ours_gets_tokens_of_an_issuer_of_other_people(node: Node) -> None:
    """And an origin of theirs takes them as they are, but not with one bit changed."""
    secret = keys_from(WEEK).secrets[WEEK]
    key = SigningKey(secret)
    modulus, randomness = modulus_of(key.public), system_randomness()
    digest = challenge_digest(NAME, APP, WEEK)
    messages = [token_input(bytes([n]) * 32, digest, key.key_id) for n in range(TOKENS)]
    blindings = [blind(message, modulus, randomness) for message in messages]
    head = KIND.to_bytes(2, "big") + key.key_id[-1:]

    signed = node.ask(
        PROGRAM,
        "issue",
        question={
            "secret": secret.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()).hex(),
            "key": key.public.hex(),
            "requests": [(head + blinding.blinded).hex() for blinding in blindings],
        },
    )

    assert bytes.fromhex(signed["key_id"]) == key.key_id
    tokens = []
    for message, blinding, answer in zip(messages, blindings, signed["answers"], strict=True):
        signature = finalize(message, modulus, blinding.inverse, bytes.fromhex(answer))
        assert signature is not None
        tokens.append(message + signature)
    changed = [bytes([*token[:40], token[40] ^ 1, *token[41:]]) for token in tokens]
    question = {"key": key.public.hex(), "tokens": [token.hex() for token in tokens + changed]}
    assert node.ask(PROGRAM, "verify", question=question) == [True] * TOKENS + [False] * TOKENS


@pytest.mark.parametrize("vector", OF_TOKENS["vectors"], ids=("with a context", "without"))
def test_every_byte_of_a_token_in_typescript_is_that_of_rfc_9578(
    node: Node, vector: dict[str, str]
) -> None:
    token = bytes.fromhex(vector["token"])
    parts = parse(token)
    assert parts is not None
    question = {
        "key": OF_TOKENS["pkS"],
        "message": parts.signed.hex(),
        "salt": vector["salt"],
        "factor": vector["blind"],
        "answer": vector["token_response"],
    }

    steps = node.ask(PROGRAM, "steps", question=question)

    assert vector["token_request"][6:] == steps["blinded"]
    assert steps["signature"] == parts.authenticator.hex()
    wrong = bytes.fromhex(vector["token_response"])[::-1].hex()
    assert node.ask(PROGRAM, "steps", question=question | {"answer": wrong})["signature"] is None


@pytest.mark.real
@needs_real
def test_a_collector_that_requires_tokens_takes_what_typescript_sends(
    node: Node, tmp_path: Path
) -> None:
    """Of a fleet without them it takes nothing."""
    registry = Path(__file__).parents[2] / "examples" / "metrics.toml"
    with running_issuer(tmp_path, time.time) as issuer:
        public = tmp_path / "issuer.public"
        write_keys(issuer.keys, tmp_path / "issuer.keys", public)
        settings = {"HEARSAY_ISSUER_KEYS": str(public), "HEARSAY_REQUIRE_TOKEN": "1"}
        with running_site(tmp_path, registry, WRITE_KEY, READ_TOKEN, settings=settings) as site:
            device = {
                "endpoint": site.url,
                "writeKey": WRITE_KEY,
                "registry": compiled(Registry.from_file(registry)),
                "segment": {"platform": "linux"},
                "values": {"theme": "dark"},
                "patience": 20_000,
            }
            given = {
                "url": issuer.url,
                "plan": issuer.keys.plan.digest,
                "attestation": MACHINES.attestation_of("laptop-8"),
            }

            attested = node.ask(PROGRAM, "report", question=device | {"tokens": given})
            before = site.wait_for_reports("theme", 1)
            bare = node.ask(PROGRAM, "report", question=device)
            site.wait_until_folded()

            assert (attested["passes"], attested["counts"]["uploaded"]) == ([False, True], 1)
            assert (bare["passes"], bare["counts"].get("uploaded")) == ([False, False], None)
            assert site.reports("theme") == before == 1


def test_a_challenge_is_that_of_other_people(node: Node) -> None:
    context = WEEK.to_bytes(32, "big")
    question = {"issuer": NAME, "context": context.hex(), "origin": APP}

    assert node.ask(PROGRAM, "challenge", question=question) == challenge(NAME, context, APP).hex()
