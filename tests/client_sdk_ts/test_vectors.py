"""The device in TypeScript gives the payloads of every vector file in its scope, byte for byte."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, Final

from client_sdk.mechanisms import (
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    Mechanism,
    SetMechanism,
    TextMechanism,
    load,
    names,
)
from client_sdk.registry.longitudinal import Permanent, TwoLayer, encode_item, permanent_randomness
from tests.client_sdk_ts.channels import MECHANISMS, draw, vector_job, write_channel, write_value
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import Small, cases
from tests.support.node import Node, nodes

DEPLOYED: Final = {"cms", "dbitflip", "hcms", "loloha", "rappor"}  # of systems of others
LEFT_OUT: Final = {
    *DEPLOYED,
    *("codebook", "discrete_gaussian", "sampled_attribute", "sampled_number"),
}
SEEDS: Final = 1_000  # of each policy and mechanism
OUTSIDE: Final[dict[str, list[dict[str, Any]]]] = {
    "item": [{"item": "-1"}, {"item": "{d}"}, {"position": "0/1"}],
    "position": [{"position": "-1/3"}, {"position": "{d}/1"}, {"position": "1/0"}, {"item": "0"}],
    "set": [{"set": ["0", "{d}"]}, {"set": ["1", "0"]}, {"set": ["0", "0"]}, {"item": "0"}],
    "pairs": [
        {"pairs": [["{d}", "0/1"]]},
        {"pairs": [["0", "-1/2"]]},
        {"pairs": [["0", "999999999/1"]]},
        {"pairs": [["0", "0/1"], ["0", "0/1"]]},
        {"set": []},
    ],
    "bytes": [{"bytes": "00" * 200}, {"item": "0"}],
}


def test_every_mechanism_is_in_scope_or_left_out_by_name() -> None:
    assert {*MECHANISMS} | LEFT_OUT == set(names())


def test_the_payloads_are_those_of_the_vectors_on_every_node(node: Node) -> None:
    every = [(name, case) for mechanism in MECHANISMS for name, case in cases(mechanism)]
    jobs = [vector_job(name, case) for name, case in every]

    for each in nodes():
        for (name, case), payloads in zip(every, draw(each, jobs), strict=True):
            assert payloads == case["expected"]["payloads"], (name, each.version)


def seeded_job(
    name: str, mechanism: Mechanism[Any], values: list[Any], seed: bytes
) -> tuple[dict[str, Any], list[str]]:
    """Return a job, and what Python makes of it."""
    randomness = SeededRandomness(seed)
    expected = [mechanism.randomize(value, randomness).hex() for value in values]
    return {
        "mechanism": name,
        "channel": write_channel(mechanism),
        "seed": seed.hex(),
        "values": [write_value(value) for value in values],
    }, expected


def test_other_parameters_and_seeds_give_the_bytes_of_python(node: Node) -> None:
    """Small and large domains, every kind of value, and seeds that no vector has."""
    jobs, expected = [], []
    for name, epsilon, size in product(MECHANISMS, ("0.01", "1", "8"), (2, 3, 5, 17, 64, 128)):
        mechanism = load(name)(epsilon, size)
        small = Small(name, mechanism, Fraction(0))
        values = few_values(mechanism) if size > 3 else small.values
        job, payloads = seeded_job(name, mechanism, values, f"{name} {size}".encode())
        jobs.append(job)
        expected.append(payloads)

    assert draw(node, jobs) == expected


def few_values(mechanism: Mechanism[Any]) -> list[Any]:
    size = mechanism.domain_size
    if isinstance(mechanism, ItemMechanism):
        return [0, 1, size // 2, size - 1]
    if isinstance(mechanism, SetMechanism):
        return [frozenset(range(0, size, step)) for step in (1, 2, size)]
    if isinstance(mechanism, KeyValueMechanism):
        return [
            {key: Fraction(key % 3, 2 * step) for key in range(0, size, step)} for step in (1, 2)
        ]
    if isinstance(mechanism, TextMechanism):
        return [b"", b"a", bytes(range(size)), b"\xff" * size]
    return [Fraction(0), Fraction(1, 7), Fraction(size - 1, 3), Fraction(size - 1)]


def test_a_value_outside_of_the_domain_is_refused_and_nothing_is_drawn(node: Node) -> None:
    """The last value of a job is right, and gets the payload that it would get alone."""
    jobs, alone = [], []
    for name in MECHANISMS:
        _, case = cases(name)[0]
        right = vector_job(name, case)
        value = right["values"][0]
        size = right["channel"]["domainSize"]
        outside = [
            {kind: _filled(written, size) for kind, written in wrong.items()}
            for wrong in OUTSIDE[next(iter(value))]
        ]
        jobs.append({**right, "values": [*outside, value]})
        alone.append({**right, "values": [value]})

    payloads, usual = draw(node, jobs), draw(node, alone)

    for drawn, (payload,) in zip(payloads, usual, strict=True):
        assert payload is not None
        assert drawn == [*[None] * (len(drawn) - 1), payload]


def _filled(written: Any, size: str) -> Any:
    if isinstance(written, str):
        return written.replace("{d}", size)
    return [_filled(part, size) for part in written]


def oracle_of(name: str, epsilon: str, size: int) -> FrequencyOracle:
    oracle = load(name)(epsilon, size)
    assert isinstance(oracle, FrequencyOracle)
    return oracle


ORACLES: Final = [
    oracle_of(name, "3", 20)
    for name in ("grr", "oue", "sue", "subset_selection", "olh", "pgr", "hadamard")
]
REPEATED: Final[list[Permanent | TwoLayer]] = [
    *map(Permanent, ORACLES),
    *(TwoLayer(oracle, Fraction(1)) for oracle in ORACLES),
]


def test_a_payload_that_is_repeated_is_that_of_python(node: Node) -> None:
    jobs, expected = [], []
    for policy in REPEATED:
        channel = write_channel(policy.mechanism)
        for number in range(SEEDS):
            secret, digest = number.to_bytes(32, "big"), (number * 104729).to_bytes(6, "big")
            item = number % policy.oracle.domain_size
            permanent = permanent_randomness(secret, digest, encode_item(item))
            payload = policy.randomize(item, permanent, SeededRandomness(secret[-4:]))
            expected.append([payload.hex()])
            jobs.append(
                {
                    "mechanism": policy.oracle.name,
                    "channel": channel,
                    "seed": secret[-4:].hex(),
                    "values": [write_value(item)],
                    "longitudinal": policy.name,
                    "secret": secret.hex(),
                    "digest": digest.hex(),
                }
            )

    assert draw(node, jobs) == expected
