"""A model is learned in four rounds: commands, a real collector, devices with one report each.

600 devices of a gateway and one of its own, with ε 16, so that so few say something.  False alarms:
in 316 passes of 500 such reports the scores of both rows had the right sign with 6 standard
deviations to spare, of 600 it is 6.6: by a normal law 1e-10.  Reports are drawn from the operating
system's entropy.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from client_sdk.client import Client
from client_sdk.gateway import Gateway
from client_sdk.learning.rounds import Round, State, predict
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from collector.cli import main
from tests.support.crowds.uploads import GATEWAY_KEY, READ_TOKEN, WRITE_KEY
from tests.support.device.learning import SEED, registry_text
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

ROUNDS: Final = 4
DEVICES: Final = 150  # of a round
CAPS: Final = Caps(report="16", metric_week="16", week="16")
BUYER: Final = {"age": 60, "plan": "paid"}
OTHER: Final = {"age": 20, "plan": "free"}


def people() -> Iterator[tuple[dict[str, object], bool]]:
    """Yield rows and labels, in an order that is made up."""
    dice = random.Random(3)
    while True:
        buys = dice.random() < 0.5
        yield dict(BUYER if buys else OTHER), buys


def fetched(folder: Path) -> bytes:
    """Return what a web server would give to everybody."""
    return (folder / "current.json").read_bytes()


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(epsilon="16", rounds=ROUNDS, devices=DEVICES))
    return path


def hearsay(environment: dict[str, str], *words: str) -> str:
    """Return what a command prints, be it an error."""
    return CliRunner().invoke(main, words, env=environment).output


def test_a_model_is_learned_from_one_report_a_device(tmp_path: Path, registry: Path) -> None:
    """Law: the loop of the page, with devices that come too late, twice, and with a forged file."""
    key, folder = tmp_path / "key", tmp_path / "site"
    key.write_text(SEED.hex())
    with running_site(tmp_path / "store", registry, WRITE_KEY, READ_TOKEN, GATEWAY_KEY) as site:
        environment = {"HEARSAY_REGISTRY": str(registry), "REDIS_URL": site.redis_url}
        run = partial(hearsay, environment, "learn", "rounds")
        assert f"round 1: 0 of at least {DEVICES} reports" in run(
            "step", "ranker", str(folder), "--sign", str(key)
        )
        late = own_device(site, registry, tmp_path / "late")
        Round(late, "ranker", fetched(folder)).record(OTHER, False)  # and is sent at the end
        first = fetched(folder)
        forged = Round(late, "ranker", first.replace(b'"round": 1', b'"round": 2'))
        assert forged.state is State.REFUSED
        crowd = people()
        for number in range(1, ROUNDS + 1):
            report(site, registry, folder, number, crowd, tmp_path)
            site.wait_until_folded()
            if number == 2:
                late.close(timeout=PATIENCE)  # round 1 had its step long ago
                site.wait_until_folded()
            said = run("step", "ranker", str(folder), "--sign", str(key))
            steps = "1 step" if number == 1 else f"{number} steps"
            assert f"{steps} of {number * DEVICES} reports" in said, said

        with own_device(site, registry, tmp_path / "late") as again:  # another process and round
            assert Round(again, "ranker", fetched(folder)).state is State.OVER
            Round(again, "ranker", (folder / "round-0004.json").read_bytes()).record(BUYER, True)
            assert again.stats()["already_reported"] == 1
        site.wait_until_folded()
        said = run("status", "ranker", str(folder))

    assert "every round had its step" in said
    assert "in no step: 1 report that" in said  # the late one
    metric = Registry.from_file(registry).metric("ranker")
    model = json.loads(fetched(folder))
    assert model["rounds"] == [DEVICES] * ROUNDS
    assert model["reports"] == ROUNDS * DEVICES
    assert predict(metric, fetched(folder), BUYER) > 0.5 > predict(metric, fetched(folder), OTHER)
    test_set = tmp_path / "test.csv"
    test_set.write_text("age,plan,buys\n" + "60,paid,yes\n20,free,no\n" * 30)
    said = run("evaluate", "ranker", str(folder), str(test_set), "--label", "buys")
    assert "accuracy: 1.0000" in said
    assert "AUC: 1.0000" in said


def own_device(site: Site, registry: Path, folder: Path) -> Client:
    return Client(
        site.url, WRITE_KEY, registry, consent="granted", data_dir=folder, mode="manual",
        caps=CAPS, opt_outs=NoOptOuts(),
    )  # fmt: skip


def report(site: Site, registry: Path, folder: Path, number: int, crowd: Any, data: Path) -> None:
    """Let as many devices as a round takes report at what is published, each once."""
    with Gateway(
        site.url, GATEWAY_KEY, registry, consent="granted", data_dir=data / "gateway", caps=CAPS
    ) as gateway:
        # the check of a signature takes 9 ms: one round is enough for all devices of a gateway
        current = Round(gateway.device("any"), "ranker", fetched(folder))
        rows = [next(crowd) for _ in range(DEVICES)]
        values = [(f"{number} {at}", "ranker", current.value(*row)) for at, row in enumerate(rows)]
        gateway.record_many([*values, *values])  # the second is one too many for each
        assert gateway.stats()["recorded"] == DEVICES
        assert gateway.stats()["already_reported"] == DEVICES
        assert gateway.flush().complete
