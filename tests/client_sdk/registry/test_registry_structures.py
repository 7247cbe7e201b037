"""Types with joint values in a registry: their rules, their digests, and what clients do."""

from __future__ import annotations

import pytest

from client_sdk.mechanisms import ItemMechanism
from client_sdk.registry import Registry
from client_sdk.registry.types.items import ItemDomain
from client_sdk.registry.types.joint import MAX_JOINT, FunnelDomain, PairDomain, RetentionDomain
from client_sdk.registry.types.places import GridDomain
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client
from tests.support.device.registries import FUNNEL, LOCATION, PAIR, RETENTION, file_with
from tests.support.enumeration.populations import metric_of

KINDS = {
    "location": (LOCATION, GridDomain, 8, (8.5, 47.3)),
    "pair": (PAIR, PairDomain, 6, {"sex": "male", "income": "low"}),
    "funnel": (FUNNEL, FunnelDomain, 4, None),
    "retention": (RETENTION, RetentionDomain, 16, ["week 0", "week 2"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("longitudinal", ["fresh", "permanent"])
def test_a_joint_type_is_served_by_the_mechanisms_of_items(kind: str, longitudinal: str) -> None:
    """Whatever serves a category serves it, once or again and again."""
    fields, domain, size, value = KINDS[kind]

    found = metric_of(fields, longitudinal=f'"{longitudinal}"')

    assert found.type == kind
    assert isinstance(found.domain, ItemDomain)
    assert type(found.domain) is domain
    assert found.domain.encodes.family is ItemMechanism
    assert found.mechanism.domain_size == found.domain.size == size
    assert 0 <= found.domain.encode(value, "m") < size


def test_the_largest_grid_and_the_largest_pair_are_served() -> None:
    """The limit itself is allowed."""
    labels = ", ".join(f'"{i}"' for i in range(64))

    assert metric_of(LOCATION, cells="[128, 32]").domain.size == MAX_JOINT
    assert metric_of(PAIR, parts=f"{{ a = [{labels}], b = [{labels}] }}").domain.size == MAX_JOINT


def test_a_funnel_reports_the_furthest_step_of_an_epoch() -> None:
    """Steps may be recorded as they happen, in any order; of a silent epoch none is reported."""
    clock = FakeClock()
    text = file_with(FUNNEL, every='"1d"', aggregate='"max"', otherwise='"none"')
    registry = Registry.from_text(text)
    assert registry.metric("m").aggregation == "the furthest, or else no step"

    with make_client(registry=registry, clock=clock, remember=True) as client:
        for step in ("visit", "paid", "cart"):
            client.record("m", step)
        clock.advance(days=1)
        client.flush()
        clock.advance(days=1)
        client.flush()

        assert [told.truth for told in client.history()] == ["as far as paid", "no step"]
