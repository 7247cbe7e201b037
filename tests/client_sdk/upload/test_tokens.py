"""One-time tokens on the device: got, spent once, and linked to nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import factorial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from client_sdk.client import Client
from client_sdk.core.base64url import base64url, from_base64url
from client_sdk.core.epoch import DAY, day_of
from client_sdk.core.errors import InvalidParameterError, TransportError
from client_sdk.core.randomness import system_randomness
from client_sdk.core.stats import Stats
from client_sdk.privacy.consent import Consent, ConsentSwitch, NoOptOuts
from client_sdk.storage.schema import property_of
from client_sdk.storage.store import Store
from client_sdk.testing import answer_of
from client_sdk.upload.blind_rsa import Blinding, blind_with, encode, finalize
from client_sdk.upload.tokens import Issuer, TokenStore
from client_sdk.upload.transport import Answer, RequestsTransport
from client_sdk.wire.private_token import (
    TOKEN_SIZE,
    from_header,
    modulus_of,
    parse,
    upload_id_of,
    week_of,
)
from collector.issuer.keys import SigningKey, directory
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import ENDPOINT, KEY, metric_text, registry_of
from tests.support.device.issuing import TOKENS, IssuerSite, keys_from, running_issuer

WEEK: Final = week_of(day_of(NOON))
METRICS = registry_of(metric_text("dark"), metric_text("beta"))


class Collector:
    """Keeps what it is sent and answers by a script; then it accepts."""

    def __init__(self, *script: int | Exception) -> None:
        self.script = list(script)
        self.sent: list[tuple[bytes, str | None]] = []

    def send(self, body: bytes, timeout: float, headers: Mapping[str, str] | None = None) -> Answer:
        self.sent.append((body, (headers or {}).get("Hearsay-Token")))
        step = self.script.pop(0) if self.script else 202
        if isinstance(step, Exception):
            raise step
        return answer_of(step)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def site(tmp_path: Path, clock: FakeClock) -> Iterator[IssuerSite]:
    with running_issuer(tmp_path, clock) as running:
        yield running


def device(
    clock: FakeClock, collector: Collector, issuer: Issuer | None, folder: Path | None = None
) -> Client:
    return Client(
        ENDPOINT,
        KEY,
        METRICS,
        consent="granted",
        data_dir=folder,
        mode="manual",
        transport=collector,
        tokens=issuer,
        opt_outs=NoOptOuts(),
        clock=clock,
        uptime=clock.uptime,
    )


def asked(site: IssuerSite) -> int:
    return sum(path == "/token-request" for path, _, _ in site.seen)


def test_an_upload_carries_a_token_whose_hash_is_its_id(site: IssuerSite, clock: FakeClock) -> None:
    collector = Collector()
    client = device(clock, collector, site.issuer())
    client.record("dark", True)

    client.flush()  # fetches, and sends nothing
    assert (collector.sent, asked(site)) == ([], 3)
    clock.advance(seconds=1)
    client.flush()

    [(body, header)] = collector.sent
    token = from_header(header or "")
    assert token is not None
    assert json.loads(body)["id"] == base64url(upload_id_of(token))
    assert asked(site) == 3
    client.close()


def test_tokens_of_the_next_week_are_asked_for_at_a_chance_moment_of_this_one(
    tmp_path: Path, site: IssuerSite, clock: FakeClock
) -> None:
    moments = set()
    for number in range(3):
        folder = tmp_path / str(number)
        client = device(clock, Collector(), site.issuer(f"machine-{number}"), folder)
        client.record("dark", True)
        client.flush()
        with client._engine.store.transaction() as tx:
            due = property_of(tx, "tokens_due")
        assert isinstance(due, float)
        assert clock() <= due <= (day_of(NOON) + 7) * DAY
        moments.add(due)
        client.close()

    assert len(moments) == 3


def test_a_device_fetches_for_the_week_to_come_and_spends_then(
    site: IssuerSite, clock: FakeClock
) -> None:
    collector = Collector()
    client = device(clock, collector, site.issuer())
    client.record("dark", True)
    client.flush()
    for _ in range(7 * 24):  # the chance moment is one of these hours
        clock.advance(seconds=3_600)
        client.flush()
        if week_of(day_of(clock())) > WEEK:
            break
    before = asked(site)
    client.record("dark", True)

    client.flush()

    *_, (body, header) = collector.sent
    token = parse(from_header(header or "") or b"")
    assert token is not None
    assert token.key_id == site.keys.plan.key_id(WEEK + 1)
    assert week_of(json.loads(body)["sealed"]) == WEEK + 1
    assert before == 6  # so the pass that spent had no need to ask
    client.close()


def test_the_pass_of_the_schedule_that_fetches_sends_nothing_for_hours(
    site: IssuerSite, clock: FakeClock, tmp_path: Path
) -> None:
    """Whoever knows both moments learns nothing from their order."""
    collector = Collector()
    client = device(clock, collector, site.issuer(), tmp_path / "device")
    client.record("dark", True)
    engine = client._engine
    while not asked(site):
        clock.advance(seconds=300)  # what is late by more counts as asleep, and rests
        engine.upload(60.0)
    fetched = clock()

    while not collector.sent:
        clock.advance(seconds=300)
        engine.upload(60.0)

    # a rest after a start, and perhaps another pass that fetches: those of the week to come
    assert 2 * 3_600 <= clock() - fetched <= 2 * (6 * 3_600 + 300) + 3_600
    client.close()


@pytest.mark.parametrize("failure", [503, TransportError("lost"), 403])
def test_a_retry_sends_the_same_bytes_with_the_same_token(
    site: IssuerSite, clock: FakeClock, failure: int | Exception
) -> None:
    collector = Collector(failure)
    client = device(clock, collector, site.issuer())
    client.record("dark", True)
    client.flush()

    for _ in range(3):  # one of them may be the moment at which tokens are fetched
        client.flush()
        clock.advance(days=0.5)

    first, second = collector.sent
    assert first == second
    assert first[1] is not None
    client.close()


def test_an_application_without_an_issuer_sends_what_was_sealed_with_a_token_as_it_was(
    tmp_path: Path, site: IssuerSite, clock: FakeClock
) -> None:
    """The collector remembers the id by the token: without it, a retry would be counted again."""
    before, after = Collector(TransportError("lost")), Collector()
    client = device(clock, before, site.issuer(), tmp_path)
    client.record("dark", True)
    client.flush()
    clock.advance(seconds=1)
    client.flush()
    client.close()

    client = device(clock, after, None, tmp_path)
    client.record("beta", True)
    while client.stats()["uploaded"] < 2:
        clock.advance(days=0.5)
        client.flush()

    (lost,) = before.sent
    assert lost[1] is not None
    assert lost in after.sent
    assert {header for _, header in after.sent} == {None, lost[1]}
    with client._engine.store.transaction() as tx:
        sealed = tx.execute("SELECT count(*) FROM tokens WHERE sealed").fetchone()
    assert sealed == (0,)
    client.close()


def test_a_token_that_nobody_saw_pays_for_the_next_upload(
    site: IssuerSite, clock: FakeClock
) -> None:
    """Else an outage would use up the tokens of a week."""
    away = [TransportError("refused", unseen=True)] * 8
    collector = Collector(*away)
    client = device(clock, collector, site.issuer())
    client.record("dark", True)
    client.flush()

    while not client.stats()["uploaded"]:
        client.flush()
        clock.advance(seconds=6 * 3_600)

    assert len(collector.sent) == 9
    assert None not in {header for _, header in collector.sent}
    client.close()


def test_no_two_uploads_have_one_token(site: IssuerSite, clock: FakeClock) -> None:
    collector = Collector()
    client = device(clock, collector, site.issuer())
    for name in ("dark", "beta"):
        client.record(name, True)
        for _ in range(3):  # two of them may be moments at which tokens are fetched
            client.flush()
        clock.advance(seconds=60)

    headers = [header for _, header in collector.sent]
    assert len(headers) == 2
    assert len(set(headers)) == 2
    client.close()


def test_an_issuer_that_has_given_all_is_not_asked_again(
    site: IssuerSite, clock: FakeClock
) -> None:
    first = device(clock, Collector(), site.issuer())
    first.record("dark", True)
    first.flush()
    second = device(clock, Collector(), site.issuer())
    second.record("dark", True)

    second.flush()
    second.flush()

    assert (asked(site), site.said[-1][0]) == (4, 429)
    assert second.stats()["refused"] == 1  # its reports wait for another week: that is told
    assert second.stats()["network"] == 0
    first.close()
    second.close()


REASONS = {
    "attestation": "internal",
    "directory": "refused",
    "away": "network",
    "stranger": "refused",
}


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("what", ["attestation", "directory", "away", "stranger"])
def test_what_goes_wrong_at_an_issuer_is_counted_and_stops_no_upload_that_needs_no_token(
    what: str, required: bool, tmp_path: Path, clock: FakeClock
) -> None:
    """Nor does a device ask at each of its passes if these are seldom."""

    def attestation() -> str:
        raise RuntimeError("the service of the platform is away")

    collector, shows = Collector(), b"[" * 60_000 if what == "directory" else None
    with running_issuer(tmp_path, clock, shows=shows) as site:
        known = "nobody.knows-this" if what == "stranger" else "secret-x"
        said = attestation if what == "attestation" else known
        url = "http://127.0.0.1:9" if what == "away" else site.url
        client = device(
            clock, collector, Issuer(url, site.keys.plan.digest, said, required=required)
        )
        client.record("dark", True)
        waiting = [client.flush().waiting for _ in range(2)]  # the second asks nobody
        asked_at_once = client.stats()[REASONS[what]]
        for _ in range(6):
            clock.advance(days=0.5)
            client.flush()
        stats = client.stats()
        client.close()

    assert (waiting[0], asked_at_once) == (1, 1)
    assert waiting[1] == stats["recorded"] - len(collector.sent) == int(required)
    assert 1 <= stats[REASONS[what]] <= 6
    assert {header for _, header in collector.sent} <= {None}


def test_only_the_issuer_itself_can_have_given_all(
    site: IssuerSite, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy before it that limits requests has given nothing."""
    collector, exchange = Collector(), RequestsTransport.exchange
    limits = [Answer(429, 1.0, b"<html>slow down</html>", "text/html")]

    def limited(self: RequestsTransport, path: str, *arguments: Any) -> Answer:
        if path == "/token-request" and limits:
            return limits.pop()
        return exchange(self, path, *arguments)

    monkeypatch.setattr(RequestsTransport, "exchange", limited)
    client = device(clock, collector, site.issuer())
    client.record("dark", True)
    for _ in range(10):
        client.flush()
        clock.advance(seconds=3_600)

    assert client.stats()["network"] == 1
    assert len(collector.sent) == 1
    client.close()


def test_a_denial_leaves_no_token(site: IssuerSite, clock: FakeClock, tmp_path: Path) -> None:
    client = device(clock, Collector(), site.issuer(), tmp_path / "device")
    client.record("dark", True)
    client.flush()
    with client._engine.store.transaction() as tx:
        tokens = [bytes(row[0]) for row in tx.execute("SELECT token FROM tokens")]
    assert len(tokens) == 3

    client.set_consent("denied")
    client.close()

    files = b"".join(path.read_bytes() for path in (tmp_path / "device").iterdir())
    assert not any(token[34:66] in files for token in tokens)


def test_nothing_that_an_issuer_sees_is_in_a_token(site: IssuerSite, clock: FakeClock) -> None:
    collector = Collector()
    client = device(clock, collector, site.issuer())
    client.record("dark", True)
    client.flush()
    client.flush()
    client.close()
    token = from_header(collector.sent[0][1] or "")
    assert token is not None

    transcript = b"".join(body for _, _, body in site.seen) + b"".join(b for _, b in site.said)

    parts = [token[at : at + 8] for at in range(2, 66)] + [
        token[at : at + 8] for at in range(98, 347)
    ]
    assert not any(part in transcript for part in parts)
    assert token[66:98] == site.keys.plan.key_id(WEEK)  # which all tokens of the week have


def directory_of(tokens: int = TOKENS) -> dict[str, Any]:
    """Return what the issuer of this many *tokens* shows."""
    keys = keys_from(WEEK, tokens)
    shown: dict[str, Any] = json.loads(directory(keys.plan, keys.signing(WEEK)))
    return shown


def with_keys(good: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return good | {"token-keys": [entry | changes for entry in good["token-keys"]]}


def key_of_its_own(good: dict[str, Any]) -> dict[str, Any]:
    key = SigningKey(keys_from(WEEK, OTHER).secrets[WEEK])
    first = {**good["token-keys"][0], "token-key": base64url(key.public)}
    return good | {"token-keys": [first]}


def wrong_proof(good: dict[str, Any]) -> dict[str, Any]:
    roots = good["token-keys"][0]["hearsay-proof"]
    turned = [base64url(from_base64url(root)[::-1]) for root in roots]
    return with_keys(good, **{"hearsay-proof": turned})


OTHER: Final = 7  # tokens of another issuer
# Keys are made where a test needs them, not when tests are collected: that takes a while.
WRONG: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "another plan": lambda good: directory_of(OTHER),
    "a key of its own for one user": key_of_its_own,
    "no proof": lambda good: with_keys(good, **{"hearsay-proof": []}),
    "a wrong proof": wrong_proof,
    "no keys": lambda good: good | {"token-keys": []},
    "more tokens than planned": lambda good: (
        good | {"hearsay-plan": good["hearsay-plan"] | {"tokens": 9}}
    ),
    "nothing": lambda good: {},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_device_believes_no_key_that_it_was_not_built_with(
    what: str, tmp_path: Path, clock: FakeClock
) -> None:
    collector, shown = Collector(), WRONG[what](directory_of())
    with running_issuer(tmp_path, clock, shows=json.dumps(shown).encode()) as site:
        client = device(clock, collector, site.issuer())
        client.record("dark", True)
        client.flush()
        client.flush()
        client.close()

    assert (asked(site), collector.sent) == (0, [])
    assert client.stats()["refused"] == 1


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"url": "http://issuer.example.org"}, "url"),
        ({"plan": ""}, "plan"),
        ({"plan": "short"}, "plan"),
        ({"attestation": "two words"}, "attestation"),
        ({"attestation": "x" * 4_097}, "attestation"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_at_once(
    change: dict[str, str], name: str
) -> None:
    settings: dict[str, Any] = {
        "url": "https://issuer.example.org",
        "plan": "p" * 43,
        "attestation": "secret-x",
    }

    assert Issuer(**settings).plans == ("p" * 43,)
    with pytest.raises(InvalidParameterError, match=f"^{name}=") as refused:
        Issuer(**settings | change)
    assert "secret-x" not in str(refused.value)
    assert "secret-x" not in repr(Issuer(**settings))


def test_command_mode_takes_a_text_as_attestation_only(tmp_path: Path) -> None:
    issuer = Issuer("https://issuer.example.org", "p" * 43, lambda: "x")

    with pytest.raises(InvalidParameterError, match="attestation"):
        issuer.as_settings()
    text = Issuer("https://issuer.example.org", "p" * 43, "x")
    assert Issuer(**text.as_settings()) == text  # type: ignore[arg-type]  # its own settings


COUNT: Final = 32  # tokens
LIMIT: Final = 13  # right pairs that nobody gets by chance

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
