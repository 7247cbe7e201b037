"""A registry that learns, its keys, and signed models of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from client_sdk.learning.model import Model
from client_sdk.learning.rounds import ROUND, signed
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.wire.ed25519 import public_of

SEED: Final = bytes(range(32))
OTHER_SEED: Final = bytes(range(1, 33))
FEATURES: Final = """
age = { min = 20, max = 60, zero = 40 }
plan = { values = ["free", "paid"] }
"""
_TEXT: Final = """
schema = 1
app = "shop"

[metrics.ranker]
title = "Who buys"
question = "Which people buy?"
type = "vector"
epsilon = "{epsilon}"
every = "{every}"
longitudinal = "fresh"
owner = "tests"
expected_devices = 1000
min_reports = 100
expires = 2099-12-31

[metrics.ranker.learning]
kind = "{kind}"
rounds = {rounds}
devices = {devices}
key = "{key}"
{more}

[metrics.ranker.learning.features]
{features}
"""


def registry_text(
    *,
    kind: str = "logistic",
    rounds: int = 4,
    devices: int = 100,
    epsilon: str = "4",
    every: str = "once",
    key: str = public_of(SEED).hex(),
    features: str = FEATURES,
    more: str = "",
) -> str:
    """Return a registry with the metric ``ranker``."""
    if kind == "linear" and not more:
        more = "label = { min = 0, max = 10 }"
    return _TEXT.format(
        kind=kind, rounds=rounds, devices=devices, epsilon=epsilon, every=every, key=key,
        features=features, more=more,
    )  # fmt: skip


def registry(**changes: Any) -> Registry:
    """Return the registry of that text."""
    return Registry.from_text(registry_text(**changes))


def round_model(metric: Metric, number: object, theta: Sequence[Any], seed: bytes = SEED) -> Model:
    """Return the signed model of a round, whatever its coefficients are."""
    return signed(Model.of(ROUND, metric, 0, {"round": number, "theta": list(theta)}), seed)
