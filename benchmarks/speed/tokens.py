"""What a one-time token costs: the web process, the issuer and the device.

Run: ``python -m benchmarks tokens``.  Costs are processor time of one thread, in many short rounds
that take turns: the least of them is the cost.  The steps of the web process are those between the
bytes of an upload and what is stored, with a token and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.lib.page import head, row, verdict
from benchmarks.lib.registries import items, registry_text
from client_sdk.core.base64url import from_base64url
from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from client_sdk.upload.blind_rsa import blind, finalize, is_permutation
from client_sdk.wire.private_token import (
    MODULUS_SIZE,
    challenge_digest,
    from_header,
    header_of,
    modulus_of,
    token_input,
    upload_id_of,
    week_of,
)
from client_sdk.wire.reports import Column, seal_padded
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, UNKNOWN
from collector.core.entry import encode
from collector.intake.tokens import Tokens, token_of
from collector.intake.validation import judge
from collector.intake.wire import JSON, decode
from collector.issuer.allowance import Allowance
from collector.issuer.keys import IssuerKeys, SigningKey, make_keys, write_keys
from collector.storage.values import SealedUpload

ROUNDS: Final = 40
EACH: Final = 100  # calls a round
TOKEN_BAR: Final = 30.0  # microseconds more of the web process
DAY: Final = 20_780
NAME: Final = "issuer.example.org"
REGISTRY: Final = registry_text({"m0": items("grr", 8)}, epsilon="2.0")


def least(call: Callable[[], object], calls: int = EACH) -> float:
    """Return the least microseconds of processor time that *call* took, of ROUNDS rounds."""
    costs = []
    for _ in range(ROUNDS):
        begin = time.thread_time()
        for _ in range(calls):
            call()
        costs.append((time.thread_time() - begin) / calls)
    return min(costs) * 1e6


def steps(
    tokens: Tokens, catalog: Catalog, body: bytes, header: str | None
) -> Callable[[], SealedUpload]:
    """Return what the web process does with an upload between its bytes and the store."""

    def run() -> SealedUpload:
        upload = decode(body, JSON)
        paying = token_of(header, upload)
        attested = tokens.is_attested(header, paying, upload, catalog)
        source = frozenset({ATTESTED}) if attested else UNKNOWN
        verdict = judge(upload, catalog, DAY, of_device=True, source=source)
        day = tokens.remembered_day(paying, upload, of_device=True)
        return SealedUpload(upload.id, day, encode(verdict.accepted), verdict.reports)

    return run


def new_token(keys: IssuerKeys, app: str) -> bytes:
    """Return a token as a device gets it."""
    week = week_of(DAY)
    key, randomness = SigningKey(keys.secrets[week]), system_randomness()
    message = token_input(bytes(32), challenge_digest(NAME, app, week), key.key_id)
    blinding = blind(message, modulus_of(key.public), randomness)
    signature = finalize(
        message, modulus_of(key.public), blinding.inverse, key.sign(blinding.blinded) or b""
    )
    return message + (signature or b"")


def rows(folder: Path) -> Iterator[str]:
    """Measure and print."""
    registry = Registry.from_text(REGISTRY)
    catalog, week = Catalog([registry]), week_of(DAY)
    keys = make_keys(NAME, week, 2, 1_000)
    write_keys(keys, folder / "secret", folder / "public")
    tokens = Tokens.of_files([str(folder / "public")], required=False)
    token = new_token(keys, registry.app)
    metric = registry.metric("m0")
    column = Column(metric.digest, DAY, bytes(metric.mechanism.payload_size))
    body = seal_padded(upload_id_of(token), DAY, {}, [column])
    text = header_of(token)
    if from_header(text) != token:
        raise SystemExit("tokens: the header does not hold the token")
    without, with_token = (steps(tokens, catalog, body, header) for header in (None, text))
    costs = [(least(without), least(with_token)) for _ in range(3)]
    more = min(b for _, b in costs) - min(a for a, _ in costs)
    yield head("web process, an upload of one report", "µs", "bar", "")
    yield row("steps without a token", f"{min(a for a, _ in costs):.1f}", "", verdict(None))
    yield row("the same with one", f"{min(b for _, b in costs):.1f}", "", verdict(None))
    yield row("a token", f"{more:.1f}", f"≤ {TOKEN_BAR:.0f} µs", verdict(more <= TOKEN_BAR))
    yield ""
    yield from parts(keys, folder, token[:-MODULUS_SIZE])


def parts(keys: IssuerKeys, folder: Path, message: bytes) -> Iterator[str]:
    """Measure what the issuer and the device do."""
    week, randomness = week_of(DAY), system_randomness()
    key = SigningKey(keys.secrets[week])
    modulus = modulus_of(key.public)
    blinding = blind(message, modulus, randomness)
    answer = key.sign(blinding.blinded) or b""
    allowance = Allowance(folder / "state", 10**9)
    roots = tuple(int.from_bytes(from_base64url(root), "big") for root in key.proof())
    runs: dict[str, Callable[[], object]] = {
        "issuer: sign": lambda: key.sign(blinding.blinded),
        "issuer: count on the disk": lambda: allowance.take(week, "a"),
        "device: blind": lambda: blind(message, modulus, randomness),
        "device: unblind and check": lambda: finalize(message, modulus, blinding.inverse, answer),
        "device, once a week: check a key": lambda: is_permutation(modulus, roots),
    }
    yield head("a token", "µs")
    for name, run in runs.items():
        yield row(name, f"{least(run, 10):,.0f}")
    allowance.close()


def main() -> None:
    """Print the tables."""
    with TemporaryDirectory() as folder:
        for line in rows(Path(folder)):
            print(line, flush=True)
