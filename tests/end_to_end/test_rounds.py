"""Models on their whole way: four rounds of gradients, and factors of tastes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from click.testing import CliRunner, Result

from client_sdk.client import Client
from client_sdk.gateway import Gateway
from client_sdk.learning.rounds import Round, State, predict
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from collector.cli import main
from tests.support.crowds.uploads import GATEWAY_KEY, READ_TOKEN, WRITE_KEY, bearer
from tests.support.device.learning import SEED, registry_text
from tests.support.device.registries import CATEGORY, HEAD, TASTE, table
from tests.support.patience import PATIENCE
from tests.support.sites.page import Page
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


# The smallest of the two eigenvalues, near 1, is 9 deviations above the noise of so many reports.
TASTERS: Final = 600
RARE: Final = 120  # of them make a report of the other metric
ITEMS: Final = '["news", "chess", "sport"]'
TEXT: Final = HEAD + "".join(
    [
        table(
            "shows", TASTE, values=ITEMS, epsilon='"4"', min_reports="100", segments="[]",
            title='"Shows"', question='"Which shows are liked?"',
        ),
        table(
            "rare", TASTE, values=ITEMS, epsilon='"0.5"', min_reports="100", segments="[]",
            title='"Rare"', question='"Which rare shows are liked?"',
        ),
        table("plan", CATEGORY, every='"once"', segments="[]"),
    ]
)  # fmt: skip
REGISTRY: Final = Registry.from_text(TEXT)
PLACES: Final = (
    *("/", "/metric/shows", "/privacy", "/privacy/people", "/plan?metric=shows"),
    *("/ask?metric=shows", "/ask?metric=shows&verb=vector", "/ask?metric=shows&verb=estimate"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("registry") / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, path: Path) -> Iterator[Site]:
    """A collector that has a report of each of TASTERS, of a Client or behind a gateway."""
    folder = tmp_path_factory.mktemp("site")
    with running_site(folder, path, WRITE_KEY, READ_TOKEN, GATEWAY_KEY) as running:
        for _ in range(2):
            with Client(
                running.url, WRITE_KEY, path, consent="granted", data_dir=None, mode="manual",
                opt_outs=NoOptOuts(),
            ) as client:  # fmt: skip
                client.record("shows", ["news", "chess"])
                client.record("shows", ["sport"])  # a second answer is none
                client.flush()
        with Gateway(
            running.url, GATEWAY_KEY, path, consent="granted", data_dir=None,
            caps=Caps(report="9", metric_week="9", week="9"), opt_outs=NoOptOuts(),
        ) as gateway:  # fmt: skip
            for device in range(TASTERS - 2):
                likes = ["news", "chess"] if device % 6 else ["sport"]
                gateway.record(f"device {device}", "shows", likes)
                if device < RARE:
                    gateway.record(f"device {device}", "rare", likes)
            while not gateway.flush().complete:
                pass
        running.wait_until_folded()
        yield running


def learn(site: Site, path: Path, *words: str) -> Result:
    """Return what ``hearsay learn factors`` said."""
    settings = {"HEARSAY_REGISTRY": str(path), "REDIS_URL": site.redis_url}
    return CliRunner().invoke(main, ["learn", "factors", *words], env=settings)


def test_factors_that_were_learned_recommend_on_a_device(
    site: Site, path: Path, tmp_path: Path
) -> None:
    model = tmp_path / "factors.json"

    done = learn(site, path, "shows", "-o", str(model))

    assert done.exit_code == 0, done.output
    written = json.loads(model.read_text("utf-8"))
    assert (written["kind"], written["reports"]) == ("factors", TASTERS)
    assert written["definition"] == REGISTRY.metric("shows").digest.hex()
    with Client(
        site.url, WRITE_KEY, path, consent="denied", data_dir=None, mode="manual",
        opt_outs=NoOptOuts(),
    ) as client:  # fmt: skip
        assert client.recommend("shows", model, 1, likes=["news"]) == ["chess"]
        assert client.recommend("shows", model, likes=[])[0] in {"news", "chess"}


def test_too_few_reports_for_their_noise_are_refused_with_how_many_would_do(
    site: Site, path: Path
) -> None:
    done = learn(site, path, "rare")

    assert done.exit_code == 1
    assert "metric=rare: no eigenvalue is above the noise" in done.stderr
    assert "are enough for the first factor" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan",), "metric=plan: no reports in this window"),
        (("nothing",), "metric=nothing: is not known"),
        (("shows", "--rank", "0"), "rank=0: must be at least 1"),
    ],
)
def test_what_has_no_factors_is_said_in_a_line(
    site: Site, path: Path, words: tuple[str, ...], said: str
) -> None:
    done = learn(site, path, *words)

    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_tells_which_part_of_all_likes_an_item_has(site: Site) -> None:
    body = {"metrics": ["shows"], "verb": "vector"}

    answer = requests.post(
        f"{site.url}/v1/query", json=body, headers=bearer(READ_TOKEN), timeout=PATIENCE
    ).json()

    rows = {row["dimensions"]["item"]: row for row in answer["rows"]}
    assert list(rows) == ["news", "chess", "sport"]
    for item, exact in (("news", 41.7), ("chess", 41.7), ("sport", 16.6)):
        row = rows[item]
        assert row["unit"] == "% of likes"
        assert row["n"] == TASTERS
        assert abs(row["value"] - exact) < 7 * row["std_error"] + 1
        assert row["ci_low"] < row["value"] < row["ci_high"]


@pytest.mark.parametrize("place", PLACES)
def test_every_page_shows_a_taste(site: Site, place: str) -> None:
    session = requests.Session()
    session.cookies.set("hearsay", READ_TOKEN)

    shown = session.get(f"{site.url}{place}", headers={"Accept": "text/html"}, timeout=PATIENCE)

    assert shown.status_code == 200, shown.text
    assert 'class="fault"' not in shown.text
    text = Page(shown.text).text
    assert "Shows" in text or "shows" in text
    if place.startswith("/metric") or "verb" in place:
        assert "% of likes" in text
        assert "<svg" in shown.text
    session.close()
