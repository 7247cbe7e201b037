"""Simulated devices: people drawn from published counts, each reporting through the real SDK."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, TypeAlias

from client_sdk.client import Client
from client_sdk.privacy.consent import Consent, NoOptOuts
from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry
from client_sdk.upload.transport import Transport

from .analytics.answer import label_truth
from .demo_people import Person

Truth: TypeAlias = Mapping[str, Mapping[str, float]]  # metric name to row to true answer

DEMO_REGISTRY: Final = files("collector") / "demo_data" / "metrics.toml"
_PROGRESS_EVERY: Final = 200  # devices between two reports of progress


@dataclass(frozen=True)
class Traffic:
    """What a fleet did: devices driven, reports recorded, uploads acknowledged."""

    devices: int
    reports: int
    uploads: int


def truth_of(people: Sequence[Person], registry: Registry) -> Truth:
    """Return the exact answer of every metric for *people*: what a query should cover."""
    return {
        metric.name: label_truth(metric, Counter(_counted(person, metric) for person in people))
        for metric in registry
    }


def drive(
    people: Sequence[Person],
    registry: Registry,
    transport: Transport,
    progress: Callable[[int], None] = lambda done: None,
    clock: Callable[[], float] = time.time,
) -> Traffic:
    """Let each person's device record and upload once, one device after another.

    Every device has a ledger, an outbox and noise of its own; only the connection is shared.
    Args: clock: of the devices, in Unix seconds.
    """
    reports = uploads = 0
    for done, (recorded, uploaded) in enumerate(visits(people, registry, transport, clock), 1):
        reports += recorded
        uploads += uploaded > 0  # one pass seals all of a device into one upload
        if done % _PROGRESS_EVERY == 0 or done == len(people):
            progress(done)
    return Traffic(len(people), reports, uploads)


def visits(
    people: Iterable[Person],
    registry: Registry,
    transport: Transport,
    clock: Callable[[], float] = time.time,
) -> Iterable[tuple[int, int]]:
    """Let one device after another record and upload, and yield how many reports each did."""
    for person in people:
        client = Client(
            "http://127.0.0.1", "", registry, consent=Consent.GRANTED, data_dir=None,
            segment=person.segment, transport=transport, mode="manual", opt_outs=NoOptOuts(),
            clock=clock,
        )  # fmt: skip
        with client:
            for name, value in person.values.items():
                client.record(name, value)
            client.flush()
            stats = client.stats()
        yield stats["recorded"], stats["uploaded"]


def _counted(person: Person, metric: Metric) -> object:
    """Return the value of *person* in a form that can be counted."""
    value = person.values[metric.name]
    if metric.domain.parts and isinstance(value, Mapping):
        return tuple(value[name] for name in metric.domain.parts)
    return value
