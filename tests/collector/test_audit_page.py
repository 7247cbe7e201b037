"""The audit on docs/accuracy.md is one that ``hearsay audit`` could print today."""

from __future__ import annotations

import re
from pathlib import Path

from client_sdk.mechanisms import load, names
from collector.audit import DRAWS, HOLDS, LOOSE_VERDICT, Audit, table
from collector.auditing import closing

PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text("utf-8")
(SHOWN,) = re.findall(r"```\n(mechanism  .*?)\n```", PAGE, re.DOTALL)


def audits() -> list[Audit]:
    """Return the audits that the page shows."""
    rows = (row.split(None, 4) for row in SHOWN.splitlines()[1:-1])
    return [
        Audit(name, float(claimed), float(found), float(expected), DRAWS, verdict)
        for name, claimed, found, expected, verdict in rows
    ]


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
        assert 0 < audit.expected_bound < audit.epsilon
        assert 0 < audit.lower_bound <= audit.epsilon
        assert audit.verdict in {HOLDS, LOOSE_VERDICT}
        assert (audit.lower_bound < audit.expected_bound - 0.1) == (audit.verdict != HOLDS)
