"""Types with joint values in a registry: their rules, their digests, and what clients do."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.mechanisms import ItemMechanism
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import ItemDomain
from client_sdk.registry.types.joint import MAX_JOINT, FunnelDomain, PairDomain, RetentionDomain
from client_sdk.registry.types.places import GridDomain
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client
from tests.support.device.registries import FUNNEL, LOCATION, PAIR, RETENTION, file_with

KINDS = {
    "location": (LOCATION, GridDomain, 8, (8.5, 47.3)),
    "pair": (PAIR, PairDomain, 6, {"sex": "male", "income": "low"}),
    "funnel": (FUNNEL, FunnelDomain, 4, None),
    "retention": (RETENTION, RetentionDomain, 16, ["week 0", "week 2"]),
}


def metric(fields: dict[str, str], **changes: str | None) -> Metric:
    """Return the metric of *fields* with *changes*."""
    return Registry.from_text(file_with(fields, **changes)).metric("m")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("longitudinal", ["fresh", "permanent"])
def test_a_joint_type_is_served_by_the_mechanisms_of_items(kind: str, longitudinal: str) -> None:
    """Whatever serves a category serves it, once or again and again."""
    fields, domain, size, value = KINDS[kind]

    found = metric(fields, longitudinal=f'"{longitudinal}"')

    assert found.type == kind
    assert isinstance(found.domain, ItemDomain)
    assert type(found.domain) is domain
    assert found.domain.encodes.family is ItemMechanism
    assert found.mechanism.domain_size == found.domain.size == size
    assert 0 <= found.domain.encode(value, "m") < size


@pytest.mark.parametrize(
    ("fields", "meant", "digest"),
    [
        (
            LOCATION,
            '{"cells":[4,2],"max":["30","95/2"],"min":["-10","91/2"]}',
            "6a88b227b68c",
        ),
        (
            PAIR,
            '{"parts":[["sex",["female","male"]],["income",["low","middle","high"]]]}',
            "383e020823d5",
        ),
        (FUNNEL, '{"values":["visit","cart","paid"]}', "3f7a76ec9e27"),
        (RETENTION, '{"periods":["week 0","week 1","week 2","week 3"]}', "f8f1b9506276"),
    ],
    ids=list(KINDS),
)
def test_the_meaning_holds_the_structure(fields: dict[str, str], meant: str, digest: str) -> None:
    """What an item stands for is in the digest, exactly."""
    found = metric(fields, mechanism='"grr"')

    assert f'"domain":{meant},' in found.meaning
    assert found.digest.hex() == digest


@pytest.mark.parametrize(("first", "second"), [(17, 241), (20_000, 20_000)])
def test_a_pair_of_too_many_values_is_refused_before_it_is_made(first: int, second: int) -> None:
    """Two lists that fit a file would make more labels than fit a memory."""
    a, b = (", ".join(f'"{i}"' for i in range(count)) for count in (first, second))

    with pytest.raises(RegistryError, match=r"parts: must have at most 4096 pairs of values, not"):
        metric(PAIR, parts=f"{{ a = [{a}], b = [{b}] }}")


def test_the_largest_grid_and_the_largest_pair_are_served() -> None:
    """The limit itself is allowed."""
    labels = ", ".join(f'"{i}"' for i in range(64))

    assert metric(LOCATION, cells="[128, 32]").domain.size == MAX_JOINT
    assert metric(PAIR, parts=f"{{ a = [{labels}], b = [{labels}] }}").domain.size == MAX_JOINT


@pytest.mark.parametrize(
    ("kind", "aggregates"),
    [
        ("location", "last, most_common"),
        ("pair", "last, most_common"),
        ("funnel", "max, last, most_common"),
        ("retention", "last, most_common"),
    ],
)
def test_joint_values_add_up_as_items_do(kind: str, aggregates: str) -> None:
    """Only steps have an order, and so a largest."""
    with pytest.raises(RegistryError) as caught:
        metric(KINDS[kind][0], aggregate='"sum"')

    rule = f"metrics.m.aggregate: must be one of {aggregates} for values of this type"
    assert [problem.partition(";")[0] for problem in caught.value.problems] == [rule]


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
