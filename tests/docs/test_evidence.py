"""The audit of docs/evidence is one that could be printed today; SECURITY.md has true figures."""

from __future__ import annotations

import re
from typing import cast

import numpy as np
import pytest

from client_sdk.mechanisms import (
    FrequencyOracle,
    KeyValueMechanism,
    MeanMechanism,
    SetMechanism,
    TextMechanism,
    load,
    names,
)
from collector.audit.audit import DRAWS, HOLDS, LOOSE_VERDICT, PAIRS, Audit, Trial, closing, table
from tests.docs.pages import flowing, text_of

AUDIT = text_of("docs/evidence/tables/audit.md")
(SHOWN,) = re.findall(r"```\n(mechanism  .*?)\n```", AUDIT, re.DOTALL)
TOP = 100  # steps of the range; the figures do not depend on it


def audits() -> list[Audit]:
    """Return the audits that the page shows."""
    found = []
    for row in SHOWN.splitlines()[1:-1]:
        name, claimed, bound, expected, verdict, drawn = re.split(r"\s{2,}", row)
        first, *others = drawn.split()
        gravest = Trial(first, float(bound), float(expected), verdict)
        trials = (gravest, *(Trial(pair, 0.0, 0.0, HOLDS) for pair in others))
        found.append(Audit(name, float(claimed), DRAWS, trials))
    return found


def test_the_audit_of_the_page_is_laid_out_as_the_command_lays_it_out() -> None:
    """Header, columns and the closing line, to the letter."""
    assert f"{table(audits())}\n{closing(DRAWS)}" == SHOWN


def test_the_audit_of_the_page_has_every_mechanism_and_its_claim() -> None:
    """Names and epsilons are those of the mechanisms at the command's defaults."""
    claims = [(name, float(load(name)("1", 16).epsilon)) for name in names()]

    assert [(audit.mechanism, audit.epsilon) for audit in audits()] == claims


def test_no_bound_of_the_page_refutes_a_claim() -> None:
    """The bounds are of one run, so they are only held against the claim and the verdict."""
    for audit in audits():
        found = audit.gravest
        assert 0 < found.expected_bound < audit.epsilon
        assert 0 <= found.lower_bound <= audit.epsilon
        assert found.verdict in {HOLDS, LOOSE_VERDICT}
        assert (found.lower_bound < found.expected_bound - 0.1) == (found.verdict != HOLDS)


def test_the_audit_of_the_page_shows_the_pairs_that_it_drew() -> None:
    """Of items and keys four, no value in two of them; of numbers both ends."""
    for audit in audits():
        named = load(audit.mechanism)("1", 16)
        families = FrequencyOracle | SetMechanism | KeyValueMechanism | TextMechanism
        counted = isinstance(named, families)
        values = [value for trial in audit.trials for value in trial.pair.split(":")[0].split(">")]
        assert len(audit.trials) == (PAIRS if counted else 1)
        assert len(set(values)) == len(values)


def heaviest(name: str) -> float:
    """Return by how many full ranges one report of *name* at ε = 1 can raise the sum."""
    mechanism = cast("MeanMechanism", load(name)("1", TOP + 1))
    count: int = mechanism.payload_count  # type: ignore[attr-defined]  # these are one number
    payloads = (number.to_bytes(mechanism.payload_size, "big") for number in range(count))
    sums = (mechanism.debias(mechanism.tally(one, np), 1, np).totals for one in payloads)
    return max(float(np.ravel(total)[0]) for total in sums) / TOP


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("discrete_laplace", r"about (41) full ranges"),
        ("discrete_gaussian", r"about (41) full ranges"),
        ("hybrid", r"of `hybrid` by (2\.5)"),
        ("minimax", r"of `minimax` by (1\.86)"),
    ],
)
def test_the_weight_of_a_forged_number_is_what_the_page_says(name: str, said: str) -> None:
    """A reader who compares mechanisms by it must not be misled."""
    found = re.search(said, flowing("SECURITY.md"))

    assert found is not None
    assert heaviest(name) == pytest.approx(float(found[1]), rel=0.02)
