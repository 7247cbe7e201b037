"""The issuer: who gets tokens and how many, what it refuses, and what it keeps of anybody."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from client_sdk.core.epoch import day_of
from client_sdk.wire.private_token import key_of, modulus_of, week_of
from collector.cli import main
from collector.core.errors import ConfigError, SlowBodyError, StorageUnavailableError
from collector.issuer.allowance import Allowance
from collector.issuer.attestation import (
    AttestationError,
    HttpCallback,
    SharedSecret,
    attestation_of,
)
from collector.issuer.keys import SigningKey, make_keys, read_keys, request_in, write_keys
from collector.issuer.server import ASKING, OF_ACCOUNT, WAITING, IssuerApp
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.issuing import (
    MACHINES,
    NAME,
    SECRET,
    TOKENS,
    IssuerSite,
    keys_from,
    running_issuer,
)
from tests.support.device.loopback import LoopbackServer, running
from tests.support.patience import PATIENCE
from tests.support.sites.rsgi import Protocol, Request
from tests.support.sites.trickler import ENDLESS, Trickler
from tests.support.store.processes import until_ended

WEEK: Final = week_of(day_of(NOON))
KIND: Final = "application/private-token-request"
CANARY: Final = "canary-of-a-machine"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def site(tmp_path: Path, clock: FakeClock) -> Iterator[IssuerSite]:
    with running_issuer(tmp_path, clock) as running_site:
        yield running_site


def request_for(site: IssuerSite, week: int = WEEK, message: bytes = b"\1" * 256) -> bytes:
    key_id = site.keys.plan.key_id(week)
    assert key_id is not None
    return b"\0\2" + key_id[-1:] + message


def ask(
    site: IssuerSite,
    body: bytes,
    said: str | None = None,
    kind: str = KIND,
    path: str = "/token-request",
) -> tuple[int, str, bytes]:
    """Return status, type and body of the answer to a token request."""
    headers = {"Content-Type": kind}
    if said is None:
        said = f"Bearer {MACHINES.attestation_of('laptop-7')}"
    if said:
        headers["Authorization"] = said
    connection = http.client.HTTPConnection("127.0.0.1", int(site.url.rpartition(":")[2]))
    with closing(connection):
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type") or "", response.read()


def test_an_attested_machine_gets_a_signature_of_what_it_sent(site: IssuerSite) -> None:
    status, kind, body = ask(site, request_for(site))

    assert (status, kind) == (200, "application/private-token-response")
    modulus = modulus_of(SigningKey(site.keys.secrets[WEEK]).public)
    assert pow(int.from_bytes(body, "big"), 65_537, modulus) == int.from_bytes(b"\1" * 256, "big")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"said": ""}, 401),
        ({"said": "Basic eDp5"}, 401),
        ({"said": "Bearer laptop-7"}, 403),
        ({"said": f"Bearer {MACHINES.attestation_of('a')[:-1]}"}, 403),
        ({"said": f"Bearer b{MACHINES.attestation_of('a')[1:]}"}, 403),
        ({"kind": "application/json"}, 415),
        ({"path": "/"}, 404),
    ],
)
def test_who_is_not_attested_gets_none(
    site: IssuerSite, change: dict[str, str], status: int
) -> None:
    answer = ask(site, request_for(site), **change)

    assert answer[:2] == (status, "application/problem+json")
    assert json.loads(answer[2])["status"] == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\2",
        b"\0\2" + bytes(256),
        b"\0\1" + b"\1" * 257,
        b"\0\2" + b"\1" * 258,
    ],
)
def test_a_request_of_another_form_is_refused_and_costs_nothing(
    site: IssuerSite, body: bytes
) -> None:
    assert ask(site, body)[0] == 422
    assert ask(site, request_for(site, message=b"\xff" * 256))[0] == 422


def test_a_key_signs_in_its_week_and_the_one_before_only(
    site: IssuerSite, clock: FakeClock
) -> None:
    assert [ask(site, request_for(site, WEEK + ahead))[0] for ahead in (0, 1, 2)] == [200, 200, 422]

    clock.advance(days=7)

    assert [ask(site, request_for(site, WEEK + ahead))[0] for ahead in (0, 1, 2)] == [422, 200, 200]


def test_concurrent_requests_get_no_more_than_the_plan_says(site: IssuerSite) -> None:
    statuses: list[int] = []

    def ask_often() -> None:
        for _ in range(3):
            statuses.append(ask(site, request_for(site))[0])

    threads = [threading.Thread(target=ask_often) for _ in range(OF_ACCOUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [200] * TOKENS + [429] * (3 * OF_ACCOUNT - TOKENS)


def test_a_restart_forgets_no_count_and_what_is_forgotten_gives_nothing_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state"
    for _ in range(2):
        with closing(Allowance(path, 2)) as allowance:
            taken = [allowance.take(WEEK, CANARY) for _ in range(2)]
    with closing(Allowance(path, 2)) as allowance:
        other = allowance.take(WEEK, "another"), allowance.take(WEEK + 1, CANARY)
        allowance.forget_before(WEEK + 1)
        again = [allowance.take(week, CANARY) for week in (WEEK - 1, WEEK)]
    with closing(Allowance(path, 2)) as allowance:
        again += [allowance.take(WEEK, CANARY)]
        later = [allowance.take(WEEK + 1, CANARY) for _ in range(2)]
    with closing(sqlite3.connect(path)) as database:
        weeks = {week for (week,) in database.execute("SELECT week FROM issued")}

    assert taken == [False, False]
    assert other == (True, True)
    assert again == [False, False, False]  # what was had of that week is not known any more
    assert later == [True, False]
    assert weeks == {WEEK + 1}
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(CANARY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_a_clock_that_jumps_ahead_and_back_brings_no_second_share(
    site: IssuerSite, clock: FakeClock
) -> None:
    statuses = [ask(site, request_for(site))[0] for _ in range(TOKENS + 1)]

    clock.advance(days=14)
    assert ask(site, request_for(site, WEEK + 2))[0] == 200  # it has gone on to that week
    clock.advance(days=-14)
    statuses += [ask(site, request_for(site))[0] for _ in range(2)]

    assert statuses == [200] * TOKENS + [429] * 3


def test_a_token_that_was_counted_is_given_though_its_week_ends_meanwhile(
    tmp_path: Path, clock: FakeClock
) -> None:
    class AtMidnight:
        """Vouches for everybody, and takes until the next week, of which others ask by then."""

        def identity(self, said: str) -> str:
            clock.advance(days=7)
            with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                connection.request("GET", "/.well-known/private-token-issuer-directory")
                connection.getresponse().read()
            return said

    with running_issuer(tmp_path, clock, AtMidnight()) as site:
        port = int(site.url.rpartition(":")[2])
        assert ask(site, request_for(site))[0] == 200


_GIVING: Final = """
import sys
from pathlib import Path
from collector.issuer.allowance import Allowance
allowance = Allowance(Path(sys.argv[1]), 150)
while allowance.take(1, "machine"):
    sys.stdout.write(".")
    sys.stdout.flush()
"""


def test_an_issuer_that_is_killed_gives_nobody_more_than_the_plan_says(tmp_path: Path) -> None:
    path, given = tmp_path / "state", 0
    for _ in range(2):
        child = subprocess.Popen((sys.executable, "-c", _GIVING, str(path)), stdout=subprocess.PIPE)
        with until_ended(child, signal.SIGKILL):
            assert child.stdout is not None
            given += len(child.stdout.read(20))  # it is at work
            child.kill()
            given += len(child.stdout.read())

    with closing(Allowance(path, 150)) as allowance:
        left = sum(allowance.take(1, "machine") for _ in range(151))
    assert given >= 40
    assert 150 - 2 <= given + left <= 150  # each kill may cost a token, and brings none


def test_a_count_that_cannot_be_written_gives_no_token(tmp_path: Path) -> None:
    allowance = Allowance(tmp_path / "state", 2)
    allowance.close()

    with pytest.raises(StorageUnavailableError):
        allowance.take(WEEK, "a")
    with pytest.raises(ConfigError, match="--state"):
        Allowance(tmp_path / "no" / "folder", 2)


def test_two_identities_in_one_week_share_nothing_with_those_of_another(tmp_path: Path) -> None:
    """The same identity has another hash each week, so the file cannot follow it."""
    with closing(Allowance(tmp_path / "state", 2)) as allowance:
        for week in (WEEK, WEEK + 1):
            for name in ("a", "b"):
                allowance.take(week, name)
        rows = allowance._database.execute("SELECT identity FROM issued").fetchall()

    assert len(set(rows)) == 4


def test_a_shared_secret_knows_its_machines_by_name() -> None:
    said = MACHINES.attestation_of("laptop-7")

    assert MACHINES.identity(said) == "laptop-7"
    assert SharedSecret(SECRET[::-1]).identity(said) is None
    for wrong in ("", "laptop-7", "laptop-7.", f"{said}A", said.replace("7", "8"), "é.x", ".x"):
        assert MACHINES.identity(wrong) is None
    with pytest.raises(ConfigError, match="NAME"):
        MACHINES.attestation_of("two words")
    with pytest.raises(ConfigError, match="secret"):
        SharedSecret(b"short")


@contextmanager
def service(status: int, body: bytes, more: str = "") -> Iterator[tuple[str, list[bytes]]]:
    """Run a service that answers each question like this; yield its address and the questions."""
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{more}\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with running(LoopbackServer(Handler)) as server:
        yield f"http://127.0.0.1:{server.port}/check?app=1", asked


def test_a_service_that_knows_licences_is_asked() -> None:
    with service(200, b'{"identity": "licence 7"}') as (url, asked):
        assert HttpCallback(url).identity("key-7") == "licence 7"

    assert [json.loads(question) for question in asked] == [{"attestation": "key-7"}]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_no_of_the_service_is_a_no(status: int) -> None:
    with service(status, b'{"identity": "x"}') as (url, _):
        assert HttpCallback(url).identity("key-7") is None


HOSTILE: Final = [
    *((status, b'{"identity": "x"}') for status in (201, 204, 301, 302, 307, 400, 429, 500, 503)),
    *(
        (200, body)
        for body in (
            b"",
            b"null",
            b"true",
            b"[]",
            b'"x"',
            b"{}",
            b'{"identity": null}',
            b'{"identity": 7}',
            b'{"identity": ""}',
            b'{"identity": ["x"]}',
            b'{"Identity": "x"}',
            b'{"identity": "\\ud800"}',
            b'{"identity": "a\\u0000"}',
            b'{"identity": "' + b"x" * 513 + b'"}',
            b'{"identity": "x"' + b" " * 4_096 + b"}",
            b"[" * 4_000,
            b"\xff\xfe",
            b"<html>",
        )
    ),
]


def test_a_service_that_answers_anything_else_attests_nobody() -> None:
    for status, body in HOSTILE:
        with (
            service(status, body, "Location: http://127.0.0.1:1/\r\n") as (url, _),
            pytest.raises(AttestationError),
        ):
            HttpCallback(url).identity("key-7")


def test_a_service_that_is_away_or_silent_gives_no_answer() -> None:
    with pytest.raises(AttestationError):
        HttpCallback("http://127.0.0.1:9/").identity("x")

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            threading.Event().wait(0.5)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with running(LoopbackServer(Silent)) as server, pytest.raises(AttestationError):
        HttpCallback(f"http://127.0.0.1:{server.port}", timeout=0.2).identity("x")


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_service_whose_answer_never_ends_is_left(kind: str) -> None:
    with running(Trickler(*ENDLESS[kind])) as server:
        with pytest.raises(AttestationError):
            HttpCallback(f"http://127.0.0.1:{server.port}", timeout=0.2).identity("x")

        assert server.left.wait(PATIENCE)


def test_while_nobody_can_attest_a_device_is_told_to_come_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    away = HttpCallback("http://127.0.0.1:9/")
    with running_issuer(tmp_path, clock, attestation=away) as site:
        assert ask(site, request_for(site))[0] == 503


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SlowBodyError(), 408),
        (AttestationError(), 503),
        (StorageUnavailableError(), 503),
        (ValueError(), 500),
    ],
)
def test_a_status_says_at_whose_end_a_request_failed(
    tmp_path: Path, error: Exception, status: int
) -> None:
    with closing(Allowance(tmp_path / "issuer.sqlite3", 1)) as allowance:
        app = IssuerApp(keys_from(WEEK, 1), MACHINES, allowance, FakeClock())
        answer = app.refuse(Request("/token-request").scope, error)
        app.close()

    assert (answer.status, json.loads(answer.body)["status"]) == (status, status)


class Slow:
    """A service that does not answer for some attestations until it may: at first made-up ones.

    The account is what stands before a slash.
    """

    def __init__(self) -> None:
        self.goes_on, self.asked = threading.Event(), list[str]()
        self.slow = "made-up"

    def identity(self, said: str) -> str | None:
        self.asked.append(said)
        if said.startswith(self.slow):
            self.goes_on.wait()
        return None if said.startswith("made-up") else said.partition("/")[0]


class SlowSite:
    """An issuer whose service is slow."""

    def __init__(self, folder: Path) -> None:
        self.way, self.ran = Slow(), FakeClock(0)
        keys = keys_from(WEEK, 100)
        self._allowance = Allowance(folder / "issuer.sqlite3", 100)
        self._app = IssuerApp(keys, self.way, self._allowance, FakeClock(), monotonic=self.ran)
        key_id = keys.plan.key_id(WEEK)
        assert key_id is not None
        self._body = b"\0\2" + key_id[-1:] + b"\1" * 256

    async def status_of(self, said: str) -> int:
        headers = {"content-type": KIND, "authorization": f"Bearer {said}"}
        request = Request("/token-request", headers=headers, parts=(self._body,))
        protocol = Protocol(request.parts)
        await self._app.__rsgi__(request.scope, protocol)
        assert protocol.response is not None
        return protocol.response.status

    async def waiting(
        self, said: Iterable[str], most: int
    ) -> tuple[list[int], list[asyncio.Task[int]]]:
        """Return the answers to who *said* this once *most* are left, and all."""
        asked = [asyncio.ensure_future(self.status_of(each)) for each in said]
        async with asyncio.timeout(PATIENCE):
            while sum(not each.done() for each in asked) > most:
                await asyncio.sleep(0.01)
        return [each.result() for each in asked if each.done()], asked

    def close(self) -> None:
        self.way.goes_on.set()
        self._app.close()
        self._allowance.close()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowSite]:
    with closing(SlowSite(tmp_path)) as site:
        yield site


def test_made_up_attestations_leave_room_for_those_that_were_good_before(slow: SlowSite) -> None:
    """However many come, and however slow the service is; and a no is kept for a minute."""
    way, licences = slow.way, [f"licence {n}" for n in range(ASKING + WAITING)]

    async def steps() -> list[list[int]]:
        first = [await slow.status_of(licence) for licence in licences]
        refused, made_up = await slow.waiting(
            (f"made-up {n}" for n in range(500)), ASKING + WAITING
        )
        good = await asyncio.gather(*map(slow.status_of, licences))
        way.goes_on.set()
        answers = await asyncio.gather(*made_up)
        before = len(way.asked)
        again = await slow.status_of("made-up 0")
        kept = len(way.asked) - before
        slow.ran.advance(seconds=61)
        later = await slow.status_of("made-up 0")
        return [first, refused, good, answers, [again, kept, later, len(way.asked) - before]]

    first, refused, good, made_up, again = asyncio.run(steps())

    assert first == [200] * len(licences)
    assert refused == [503] * (500 - ASKING - WAITING)
    assert good == first
    assert sorted(set(made_up)) == [403, 503]
    assert again == [403, 0, 403, 1]


@pytest.mark.parametrize("attestations", [1, ASKING + WAITING])
def test_one_account_leaves_room_for_the_others_however_many_attestations_it_has(
    slow: SlowSite, attestations: int
) -> None:
    own = [f"greedy/{n % attestations}" for n in range(ASKING + WAITING)]

    async def steps() -> tuple[list[int], list[int], list[int], list[int]]:
        for known in {*own, "licence"}:
            assert await slow.status_of(known) == 200
        slow.way.slow = "greedy"
        refused, asked = await slow.waiting(own, OF_ACCOUNT)
        others = await asyncio.gather(*(slow.status_of("licence") for _ in range(OF_ACCOUNT)))
        slow.way.goes_on.set()
        answers = await asyncio.gather(*asked)
        later = await asyncio.gather(*map(slow.status_of, own[:OF_ACCOUNT]))
        return refused, others, answers, later

    refused, others, answers, later = asyncio.run(steps())

    assert refused == [503] * (ASKING + WAITING - OF_ACCOUNT)
    assert others == [200] * OF_ACCOUNT
    assert sorted(answers) == sorted(refused + others)
    assert later == [200] * OF_ACCOUNT


class Everybody:
    """A way of an application's own."""

    def identity(self, said: str) -> str | None:
        return said


def test_a_way_to_attest_is_named_or_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET + b"\n")
    said = MACHINES.attestation_of("a")

    assert attestation_of(f"secret={secret}").identity(said) == "a"
    assert attestation_of(f"python={__name__}:Everybody").identity("x") == "x"
    for wrong in (
        "",
        "anybody",
        "secret=",
        f"secret={tmp_path}/none",
        "callback=http://example.org/",
        "callback=https://user:secret@example.org/",
        "callback=ftp://example.org/",
        "python=no_such_module:x",
        f"python={__name__}:NAME",
    ):
        with pytest.raises((ConfigError, TypeError)) as refused:
            attestation_of(wrong)
        assert "user:secret" not in str(refused.value)


def test_the_files_of_keys_are_read_again_and_never_replaced(tmp_path: Path) -> None:
    keys, secret, public = keys_from(WEEK), tmp_path / "keys", tmp_path / "public"
    write_keys(keys, secret, public)

    assert read_keys(secret).plan == keys.plan
    assert secret.stat().st_mode & 0o777 == 0o600
    private = json.loads(secret.read_text("ascii"))["keys"]
    assert not any(text in public.read_text("ascii") for text in private)
    with pytest.raises(ConfigError, match="is there already"):
        write_keys(keys, secret, public)
    assert read_keys(secret).plan == keys.plan
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(secret)


def test_keys_are_written_to_both_files_or_to_none(tmp_path: Path) -> None:
    keys, secret, public = keys_from(WEEK), tmp_path / "keys", tmp_path / "public"
    public.write_text("of somebody else", "ascii")

    for path in (public, tmp_path / "no-folder" / "public", secret):
        with pytest.raises(ConfigError):
            write_keys(keys, secret, path)
        assert not secret.exists()

    assert public.read_text("ascii") == "of somebody else"
    write_keys(keys, secret, tmp_path / "another")  # a second try succeeds


def test_a_damaged_file_of_keys_is_refused_and_shows_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "keys"
    write_keys(keys_from(WEEK), secret, tmp_path / "public")
    document = json.loads(secret.read_text("ascii"))
    turned = {**document, "keys": document["keys"][::-1]}
    for text in ("", "{}", "[]", json.dumps({**document, "keys": ["AAAA"]}), json.dumps(turned)):
        secret.write_text(text)
        with pytest.raises(ConfigError) as refused:
            read_keys(secret)
        assert document["keys"][0][:40] not in str(refused.value)


def test_keys_of_weeks_that_are_near_have_different_last_bytes() -> None:
    """A request names its key by that byte."""
    keys = make_keys(NAME, WEEK, 6, 1)
    last = [key_id[-1] for key_id in keys.plan.key_ids]

    assert all(len(set(last[place : place + 4])) == 4 for place in range(3))
    signing = keys.signing(WEEK)
    for week, key in signing.items():
        request = b"\0\2" + key.key_id[-1:] + bytes(256)
        assert request_in(request, signing) == (week, bytes(256))


def test_a_signature_that_comes_out_wrong_is_not_given_out() -> None:
    """One would do to factor the key."""
    key = SigningKey(keys_from(WEEK).secrets[WEEK])
    assert key.sign(b"\1" * 256) is not None
    key._of_p += 2  # as a fault of the machine would

    with pytest.raises(ArithmeticError):
        key.sign(b"\1" * 256)


def test_the_command_makes_keys_and_says_what_each_file_is_for(tmp_path: Path) -> None:
    secret = tmp_path / "issuer.json"
    run = CliRunner().invoke
    made = run(main, ["issuer-keys", "new", str(secret), "--name", NAME, "--weeks", "2"])
    shown = run(main, ["issuer-keys", "show", str(secret)])
    refused = run(main, ["issuer-keys", "new", str(secret), "--name", NAME, "--weeks", "2"])

    assert made.exit_code == 0, made.output
    assert "HEARSAY_ISSUER_KEYS" in made.output
    assert read_keys(secret).plan.digest in made.output
    assert shown.output in made.output
    assert refused.exit_code == 1
    assert "is there already" in refused.output
    assert key_of(modulus_of(SigningKey(read_keys(secret).secrets[week_of_now()]).public))


def week_of_now() -> int:
    from time import time

    return week_of(day_of(time()))


def test_the_command_prints_what_machines_show(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)

    printed = CliRunner().invoke(main, ["issuer-keys", "attestation", str(secret), "a", "b"])

    assert printed.output.split() == [MACHINES.attestation_of(name) for name in ("a", "b")]
