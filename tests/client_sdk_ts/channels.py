"""Channels and values as JSON for the device in TypeScript, and what that makes of them.

A channel holds what an entry of a compiled registry holds: parameters, chances, domain and payload
size.  Values are encoded, as a mechanism takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from client_sdk.mechanisms import Mechanism, Mixture
from client_sdk.registry.encodings import dump_constant
from tests.support.enumeration.vectors import build, values_of
from tests.support.node import Node

MECHANISMS: Final = (
    *("grr", "sue", "oue", "subset_selection", "pgr", "olh", "block_design", "hadamard"),
    *("exponential", "hierarchy", "duchi", "piecewise", "hybrid", "minimax", "one_bit_mean"),
    *("square_wave", "discrete_laplace", "sampled_item", "padding_sampling", "privset"),
    *("pckv_ue", "pckv_grr", "pem", "cover"),
)


def write_channel(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Return what of *mechanism* a compiled registry would hold."""
    base = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    constants = dict(base.constant_values())
    if isinstance(mechanism, Mixture):
        constants["kept"] = mechanism.kept
    return {
        "parameters": {name: hex(number) for name, number in base.parameters.items()},
        "constants": {name: dump_constant(number) for name, number in constants.items()},
        "domainSize": str(base.domain_size),
        "payloadSize": base.payload_size,
    }


def write_value(value: Any) -> dict[str, Any]:
    """Return an encoded *value*: an item, a position, a set, pairs or bytes."""
    match value:
        case bytes():
            return {"bytes": value.hex()}
        case Fraction():
            return {"position": f"{value.numerator}/{value.denominator}"}
        case Mapping():
            pairs = sorted(value.items())
            return {"pairs": [[str(k), f"{x.numerator}/{x.denominator}"] for k, x in pairs]}
        case frozenset():
            return {"set": [str(item) for item in sorted(value)]}
    return {"item": str(value)}


def vector_job(name: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return a case of a vector file as a job: its payloads are to be those of the case."""
    mechanism = build(name, case)
    return {
        "mechanism": name,
        "channel": write_channel(mechanism),
        "seed": case["seed"],
        "values": [write_value(value) for value in values_of(mechanism, case)],
    }


def draw(node: Node, jobs: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """Return the payloads of each of *jobs*, in hexadecimal; None for a value that was refused."""
    payloads: list[list[str | None]] = node.ask("support/draw.js", question=jobs)
    return payloads
