"""Files that somebody changed: each is refused with a reason, or says what a model may say."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.learning import factors, naive_bayes, rounds
from client_sdk.learning.model import Model
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from tests.support.device.learning import SEED, registry, round_model
from tests.support.device.registries import HEAD, RECORD, TASTE, table

CHANGES: Final = 600  # of each kind
WRONG: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 5e-324, 1e308, -1e308, 10**400, float("inf"), float("nan")),
    *("", "\ud800", "x" * 5_000, "__class__", [], {}, [[]], {"a": 1}, [1] * 50),
)
REGISTRY: Final = Registry.from_text(HEAD + table("m", RECORD) + table("likes", TASTE))
LEARNER: Final = registry()
RANKER: Final = LEARNER.metric("ranker")
ATTRIBUTES: Final = [
    {
        "name": name,
        "values": list(values),
        **edges,
        "weights": [0.5, 0.0, -0.5],
        "centre": 0.1,
    }
    for name, values, edges in (
        ("plan", ("free", "pro", "team"), {}),
        ("age", ("below 30", "30 to 50.5", "50.5 or more"), {"edges": [30.0, 50.5]}),
    )
]
BAYES: Final = Model.of(
    naive_bayes.KIND,
    REGISTRY.metric("m"),
    4_000,
    {"label": "left", "prior": 0.3, "slope": 0.8, "left_out": [], "attributes": ATTRIBUTES},
)
LIKED: Final = Model.of(
    factors.KIND,
    REGISTRY.metric("likes"),
    4_000,
    {
        "items": ["news", "chess", "sport"],
        "rank": 1,
        "eigenvalues": [[0.6, 0.5, 0.7]],
        "factors": [[0.7], [0.7], [0.1]],
        "shares": [[0.4, 0.3, 0.5], [0.3, 0.2, 0.4], [0.2, 0.1, 0.3]],
    },
)


def chance(body: bytes) -> bool:
    """Whether a naive Bayes file tells a chance."""
    model = naive_bayes.load(body, REGISTRY.metric("m"))
    return 0 <= model.probability({"plan": "free", "age": 41}) <= 1


def liked(body: bytes) -> bool:
    """Whether a file of factors recommends items of the registry."""
    best = factors.recommend(REGISTRY.metric("likes"), body, 2, ["news"])
    return set(best) == {"chess", "sport"}


def predicted(body: bytes) -> bool:
    """Whether a final model tells a chance."""
    return 0 <= rounds.predict(RANKER, body, {"age": 30, "plan": "paid"}) <= 1


FINAL: Final = rounds.signed(
    Model.of(rounds.FINAL, RANKER, 400, {"theta": [0.0, 1.0, 0.0, 0.0]}), SEED
)
KINDS: Final[dict[str, tuple[Model, Callable[[bytes], bool]]]] = {
    "naive Bayes": (BAYES, chance),
    "factors": (LIKED, liked),
    "rounds": (FINAL, predicted),
}


def changed(form: Any, dice: random.Random) -> Any:
    """Return a copy of *form* with something replaced, removed or added somewhere."""
    copy = json.loads(json.dumps(form))
    whole, key = dice.choice(list(_places(copy)))
    what = dice.randrange(3)
    if what == 0:
        whole[key] = dice.choice(WRONG)
    elif what == 1:
        del whole[key]
    elif isinstance(whole, list):
        whole.insert(key, dice.choice(WRONG))
    else:
        whole[dice.choice(("name", "edges", "values", "more"))] = dice.choice(WRONG)
    return copy


def _places(form: Any) -> Iterator[tuple[Any, Any]]:
    keys = form if isinstance(form, dict) else range(len(form)) if isinstance(form, list) else ()
    for key in list(keys):
        yield form, key
        yield from _places(form[key])


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_refused_or_says_what_a_model_may_say(kind: str) -> None:
    model, says = KINDS[kind]
    form, dice, refused = json.loads(model.text()), random.Random(20261123), 0
    assert says(model.text().encode())

    for _ in range(CHANGES):
        other = changed(form, dice)
        if other and dice.random() < 0.3:
            other = changed(other, dice)
        body = json.dumps(other, ensure_ascii=dice.random() < 0.9).encode("utf-8", "surrogatepass")
        try:
            right, reason = says(body), ""
        except (InvalidParameterError, InvalidValueError) as error:
            right, reason = True, str(error)
        assert right
        assert len(reason) < 250
        refused += bool(reason)

    assert refused > CHANGES // 4


def test_no_changed_file_of_a_round_makes_a_device_report() -> None:
    """Not even a change that no publisher would make by mistake; the signature is over all."""
    form = json.loads(round_model(RANKER, 1, [0.0] * 4).text())
    dice, client = random.Random(20261123), MemoryClient(LEARNER)

    for _ in range(CHANGES):
        other = changed(form, dice)
        current = rounds.Round(client, "ranker", json.dumps(other).encode())
        current.record({"age": 30}, True)
        assert current.state is rounds.State.REFUSED or other == form

    assert client.stats()["recorded"] == 0
