"""An issuer on loopback, with a clock that tests move: its own code behind a small HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final, NamedTuple

from client_sdk.core.epoch import day_of
from client_sdk.core.randomness import system_randomness
from client_sdk.upload.blind_rsa import blind, finalize
from client_sdk.upload.tokens import Issuer
from client_sdk.wire.private_token import (
    DIRECTORY_PATH,
    challenge_digest,
    modulus_of,
    token_input,
    upload_id_of,
    week_of,
)
from collector.issuer.allowance import Allowance
from collector.issuer.attestation import Attestation, SharedSecret
from collector.issuer.keys import IssuerKeys, SigningKey, make_keys
from collector.issuer.server import IssuerApp
from tests.support.device.loopback import LoopbackServer, running
from tests.support.sites import rsgi

NAME: Final = "issuer.example.org"
SECRET: Final = b"a secret of the machines' management"
MACHINES: Final = SharedSecret(SECRET)
WEEKS: Final = 4
TOKENS: Final = 3  # a week and identity


@lru_cache
def keys_from(first: int, tokens: int = TOKENS) -> IssuerKeys:
    """Return the keys of an issuer for WEEKS weeks; the same for the same arguments."""
    return make_keys(NAME, first, WEEKS, tokens)


def token_by(keys: IssuerKeys, app: str, day: int, issuer: str = NAME) -> bytes:
    """Return a token as a device gets it, for an upload of *app* that is sealed on *day*."""
    week, randomness = week_of(day), system_randomness()
    key = SigningKey(keys.secrets[week])
    nonce = randomness.uniform(1 << 256).to_bytes(32, "big")
    message = token_input(nonce, challenge_digest(issuer, app, week), key.key_id)
    blinding = blind(message, modulus_of(key.public), randomness)
    answer = key.sign(blinding.blinded)
    assert answer is not None
    signature = finalize(message, modulus_of(key.public), blinding.inverse, answer)
    assert signature is not None
    assert len(upload_id_of(message + signature)) == 16
    return message + signature


class IssuerSite(NamedTuple):
    """A running issuer."""

    url: str
    keys: IssuerKeys
    seen: list[tuple[str, dict[str, str], bytes]]  # path, headers and body of each request
    said: list[tuple[int, bytes]]  # status and body of each answer

    def issuer(self, machine: str = "laptop-7", **settings: bool) -> Issuer:
        return Issuer(self.url, self.keys.plan.digest, MACHINES.attestation_of(machine), **settings)


@contextmanager
def running_issuer(
    folder: Path,
    clock: Callable[[], float],
    attestation: Attestation = MACHINES,
    tokens: int = TOKENS,
    shows: bytes | None = None,
) -> Iterator[IssuerSite]:
    """Run an issuer whose first key is of the week of *clock*, until the block ends.

    Args: shows: a directory in place of its own: it lies.
    """
    keys = keys_from(week_of(day_of(clock())), tokens)
    allowance = Allowance(folder / "issuer.sqlite3", tokens)
    app = IssuerApp(keys, attestation, allowance, clock)
    seen: list[tuple[str, dict[str, str], bytes]] = []
    said: list[tuple[int, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.append((self.path, headers, body))
            request = rsgi.Request(self.path, self.command, headers, (body,))
            protocol = rsgi.Protocol(request.parts)
            asyncio.run(app.__rsgi__(request.scope, protocol))
            response = protocol.response
            assert response is not None
            if shows is not None and self.path == DIRECTORY_PATH:
                response = response._replace(body=shows)
            said.append((response.status, response.body))
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    try:
        with running(LoopbackServer(Handler)) as server:
            yield IssuerSite(f"http://127.0.0.1:{server.port}", keys, seen, said)
    finally:
        app.close()
        allowance.close()
