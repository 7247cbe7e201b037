"""A development collector keeps its last reports for ``hearsay tail``; no other one does."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from client_sdk.client import Client
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from client_sdk.wire.reports import Column
from collector.cli import main
from collector.core.config import Config
from collector.core.credentials import OPERATOR, READ, Credential
from collector.core.errors import ConfigError
from collector.web.ingest.recent import MOST, PATH
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    NOON,
    READ_TOKEN,
    TODAY,
    as_json,
    bearer,
    registry,
    registry_text,
    upload,
)
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post
from tests.support.sites.served import served
from tests.support.store.memory_credentials import MemoryCredentials

from .conftest import MakeApp

PAGE = registry().metric("page")
DEVELOPMENT = {"HEARSAY_REGISTRY": "metrics.toml", "HEARSAY_DEVELOPMENT": "1"}


@pytest.fixture
def collector(make_app: MakeApp) -> FlaskClient:
    return make_app(development=True).test_client()


def recent(client: FlaskClient, after: int = 0, token: str = READ_TOKEN) -> list[dict[str, str]]:
    answer = client.get(f"{PATH}?after={after}", headers=bearer(token))
    assert answer.status_code == 200, answer.text
    reports: list[dict[str, str]] = answer.get_json()["reports"]
    return reports


def send(client: FlaskClient, items: bytes, number: int) -> None:
    body = as_json(
        upload([Column(PAGE.digest, TODAY, items)], upload_id=bytes(15) + bytes([number]))
    )
    assert post(client, body, key=GATEWAY_KEY).status_code == 202


def test_an_accepted_report_is_told_in_words_once(collector: FlaskClient) -> None:
    """Law: what was sent and what it can mean; a repeated upload adds nothing."""
    send(collector, bytes([0]), 1)
    send(collector, bytes([0]), 1)
    send(collector, bytes([2]), 2)

    first, second = recent(collector)
    assert (first["metric"], first["epoch"], first["payload"]) == ("page", "2026-03-04", "00")
    assert (first["sent"], second["sent"]) == ('"home"', '"shop"')
    assert "It shifts nobody's odds by more than" in first["means"]
    assert recent(collector, after=int(first["number"])) == [second]
    assert recent(collector, after=99) == [first, second]  # of an earlier run of the collector


def test_only_the_last_reports_are_kept(collector: FlaskClient) -> None:
    send(collector, bytes([1]), 1)
    send(collector, bytes([0, 2] * MOST), 2)
    send(collector, bytes([0]), 3)

    told = recent(collector)
    assert len(told) == MOST
    assert "01" not in {report["payload"] for report in told}
    assert [report["payload"] for report in told[-2:]] == ["02", "00"]


def test_what_is_refused_is_not_kept(collector: FlaskClient) -> None:
    send(collector, bytes([99]), 1)

    assert recent(collector) == []


def test_no_other_collector_keeps_or_tells_reports(make_app: MakeApp) -> None:
    """Law: the route is not there at all."""
    client = make_app().test_client()
    send(client, bytes([0]), 1)

    assert client.get(PATH, headers=bearer(READ_TOKEN)).status_code == 404
    assert client.application.extensions["hearsay"].recent is None


def test_a_token_is_needed_and_opens_its_own_metrics_only(
    collector: FlaskClient, credentials: MemoryCredentials
) -> None:
    of_another = Credential(READ, role=OPERATOR, metrics=frozenset({"theme"}), expires=TODAY + 9)
    token = credentials.add("hsr_token-of-another-metric-0123", of_another)
    send(collector, bytes([0]), 1)

    assert collector.get(PATH).status_code == 401
    assert recent(collector, token=token) == []


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=", "before=1", "after=" + "9" * 30]
)
def test_a_wrong_question_is_refused(collector: FlaskClient, query: str) -> None:
    assert collector.get(f"{PATH}?{query}", headers=bearer(READ_TOKEN)).status_code == 400


@pytest.mark.parametrize(
    "settings",
    [{}, {"HEARSAY_PROFILE": "strict"}, {"HEARSAY_PROFILE": "volatile", "HEARSAY_HOST": "0.0.0.0"}],  # noqa: S104
    ids=["standard", "strict", "all addresses"],
)
def test_no_collector_in_production_starts_so(settings: dict[str, str]) -> None:
    """Law: it takes a store that keeps nothing, and an address that no other machine reaches."""
    with pytest.raises(ConfigError, match="HEARSAY_DEVELOPMENT=1: needs a loopback HEARSAY_HOST"):
        Config.from_env({**DEVELOPMENT, **settings})


def test_on_this_machine_and_volatile_it_starts() -> None:
    assert Config.from_env({**DEVELOPMENT, "HEARSAY_PROFILE": "volatile"}).development
    assert not Config.from_env({"HEARSAY_REGISTRY": "metrics.toml"}).development


def test_serve_keeps_reports_in_one_process_only() -> None:
    environment = {**DEVELOPMENT, "HEARSAY_PROFILE": None}  # put back, whatever the command sets
    done = CliRunner().invoke(main, ["serve", "--development", "--workers", "2"], env=environment)

    assert done.exit_code == 1
    assert "--workers=2: must be 1 with --development" in done.output


class Posting:
    """What carries uploads to the collector at an address."""

    def __init__(self, client: FlaskClient) -> None:
        self._client = client

    def send(self, body: bytes, timeout: float) -> Answer:
        reply = post(self._client, body)
        return Answer(reply.status_code, None, reply.data)


def test_tail_prints_what_a_device_sent_and_the_device_what_was_true(make_app: MakeApp) -> None:
    """Law: both name a report by its payload; the collector never learns the value."""
    app, clock = make_app(development=True), FakeClock(NOON)
    with (
        served(app) as url,
        Client(
            "https://collector.invalid", "", Registry.from_text(registry_text()),
            consent="granted", data_dir=None, mode="manual", remember=True, clock=clock,
            uptime=clock.uptime, opt_outs=NoOptOuts(), transport=Posting(app.test_client()),
        ) as device,
    ):  # fmt: skip
        device.record("theme", "dark")
        device.flush()
        env = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
        done = CliRunner().invoke(main, ["tail", "--once"], env=env)

    (local,) = device.history()
    assert done.exit_code == 0, done.output
    head, sent, means = done.output.splitlines()
    assert head.split()[:4] == ["theme", "2026-03-02", "(7d)", local.payload.hex()]
    assert re.fullmatch(r'  sent: "(light|dark)"', sent)
    assert means.startswith("  means: A report points to the true answer")
    assert local.truth == "dark"


def test_tail_of_another_collector_says_how_to_start_one(make_app: MakeApp) -> None:
    with served(make_app()) as url:
        env = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
        done = CliRunner().invoke(main, ["tail", "--once"], env=env)

    assert done.exit_code == 1
    assert "keeps no reports; start it with hearsay serve --development" in done.output
