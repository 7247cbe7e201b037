"""Who has all that an issuer saw, and all spent tokens, matches them no better than blind.

A matcher that knows nothing gets k or more of n pairs right with a chance of at most 1/k!: each of
the n over k sets of k pairs is right with chance (n - k)!/n!.  LIMIT right ones, of MATCHERS
matchers, are therefore a false alarm with a chance below 10^-9; blind is 1 on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import factorial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from client_sdk.core.epoch import day_of
from client_sdk.core.randomness import system_randomness
from client_sdk.core.stats import Stats
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.storage.store import Store
from client_sdk.upload.blind_rsa import Blinding, blind_with, encode, finalize
from client_sdk.upload.tokens import TokenStore
from client_sdk.wire.private_token import TOKEN_SIZE, modulus_of, week_of
from collector.issuer.keys import SigningKey
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.issuing import keys_from, running_issuer

COUNT: Final = 32  # tokens
LIMIT: Final = 13  # right pairs that nobody gets by chance
WEEK: Final = week_of(day_of(NOON))

Guess = Iterator[tuple[int, int]]  # of requests and tokens, by their places


@cache
def modulus() -> int:
    """Return the modulus of the issuer's key."""
    return modulus_of(SigningKey(keys_from(WEEK, COUNT).secrets[WEEK]).public)


class Seen(NamedTuple):
    """What an issuer saw of one token."""

    blinded: bytes
    answer: bytes


def by_order(requests: Sequence[Seen], spent: Sequence[bytes]) -> Guess:
    yield from ((place, place) for place in range(len(spent)))


def by_likeness(requests: Sequence[Seen], spent: Sequence[bytes]) -> Guess:
    """Guess the request whose bits differ least from those of the token."""
    for place, token in enumerate(spent):
        own = int.from_bytes(token[-256:], "big")
        likeness = [(own ^ int.from_bytes(seen.answer, "big")).bit_count() for seen in requests]
        yield likeness.index(min(likeness)), place


def by_factor(requests: Sequence[Seen], spent: Sequence[bytes]) -> Guess:
    """Guess the pairs that have one factor, if a factor hides several."""
    inverses = [pow(int.from_bytes(token[-256:], "big"), -1, modulus()) for token in spent]
    factors = {
        (row, column): int.from_bytes(seen.answer, "big") * inverse % modulus()
        for row, seen in enumerate(requests)
        for column, inverse in enumerate(inverses)
    }
    [(common, _)] = Counter(factors.values()).most_common(1)
    yield from (pair for pair, factor in factors.items() if factor == common)


def by_message(requests: Sequence[Seen], spent: Sequence[bytes]) -> Guess:
    """Guess the request that is the token's message, or shares eight bytes with the token."""
    for place, token in enumerate(spent):
        plain = pow(int.from_bytes(token[-256:], "big"), 65_537, modulus()).to_bytes(256, "big")
        parts = [token[at : at + 8] for at in range(2, 27)]
        for row, seen in enumerate(requests):
            both = seen.blinded + seen.answer
            if seen.blinded == plain or any(part in both for part in parts):
                yield row, place


MATCHERS: Final[tuple[Callable[..., Guess], ...]] = (by_order, by_likeness, by_factor, by_message)


def most_right(requests: Sequence[Seen], spent: Sequence[bytes], issued: Sequence[bytes]) -> int:
    """Return how many tokens the best matcher gives to their requests.

    Args: issued: the tokens in the order of the requests.
    """
    truth = {(issued.index(token), place) for place, token in enumerate(spent)}
    return max(len(truth & set(matcher(requests, spent))) for matcher in MATCHERS)


def tokens_of(issuer_url: str, plan: str, attestation: str, clock: FakeClock) -> TokenStore:
    from client_sdk.upload.tokens import Issuer

    return TokenStore(
        Issuer(issuer_url, plan, attestation),
        "demo",
        store=Store(None),
        stats=Stats(),
        clock=clock,
        consent=ConsentSwitch(Consent.GRANTED),
        randomness=system_randomness(),
    )


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Seen], list[bytes]]:
    """Return what an issuer saw of a device's requests, and the tokens in the same order."""
    clock = FakeClock()
    folder: Path = tmp_path_factory.mktemp("issuer")
    with running_issuer(folder, clock, tokens=COUNT) as site:
        issuer = site.issuer()
        tokens = tokens_of(issuer.url, issuer.plan, issuer.attestation_text(), clock)
        issued = [token for _, token in tokens._fetch(WEEK, 60.0)]
        tokens._transport.hang_up()
        rows = zip(site.seen, site.said, strict=True)
        requests = [Seen(body[3:], answer) for (_, _, body), (_, answer) in rows if body]
    return requests, issued


def spent_by(issued: Sequence[bytes]) -> list[bytes]:
    """Return tokens in the order in which a device spends them."""
    clock = FakeClock()
    tokens = tokens_of("https://issuer.example.org", "p" * 43, "x", clock)
    from client_sdk.wire.private_token import upload_id_of

    with tokens._store.transaction() as tx:
        assert tokens.count(tx, day_of(NOON)) == 0
        for token in issued:
            tx.execute("INSERT INTO tokens VALUES (?, ?, ?, 0)", (upload_id_of(token), WEEK, token))
        spent = [tokens.spend(tx, day_of(NOON)) for _ in issued]
        assert tokens.spend(tx, day_of(NOON)) is None
    return [pair[1] for pair in spent if pair is not None]


def test_the_limit_is_what_it_is_said_to_be() -> None:
    assert len(MATCHERS) / factorial(LIMIT) < 1e-9


def test_no_matcher_finds_whose_token_was_spent(
    transcript: tuple[list[Seen], list[bytes]],
) -> None:
    requests, issued = transcript
    spent = spent_by(issued)

    assert len(requests) == len(set(issued)) == len(spent) == COUNT
    assert {len(token) for token in issued} == {TOKEN_SIZE}
    assert most_right(requests, spent, issued) < LIMIT


def test_tokens_spent_in_the_order_of_their_issue_would_be_matched(
    transcript: tuple[list[Seen], list[bytes]],
) -> None:
    requests, issued = transcript

    assert most_right(requests, issued, issued) == COUNT


@pytest.mark.parametrize("factor", [1, 65_537**9])
def test_a_factor_that_is_none_or_hides_all_tokens_would_be_matched(
    transcript: tuple[list[Seen], list[bytes]], factor: int
) -> None:
    """The planted bugs: no blinding, and one draw for all."""
    _, tokens = transcript
    key = SigningKey(keys_from(WEEK, COUNT).secrets[WEEK])
    issued, requests = [], []
    for number, token in enumerate(tokens):
        message = token[:-256]
        encoded = encode(message, number.to_bytes(48, "big"), modulus().bit_length() - 1)
        blinding: Blinding = blind_with(encoded, modulus(), factor)
        answer = key.sign(blinding.blinded)
        assert answer is not None
        signature = finalize(message, modulus(), blinding.inverse, answer)
        assert signature is not None
        issued.append(message + signature)
        requests.append(Seen(blinding.blinded, answer))

    assert most_right(requests, spent_by(issued), issued) == COUNT
