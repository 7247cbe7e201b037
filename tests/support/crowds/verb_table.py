"""Print the table of verbs in docs/ask/query.md: ``python -m tests.support.crowds.verb_table``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from collector.analytics.rows import RAW
from collector.analytics.verb import load, names, summary


def verb_table() -> str:
    """Return the table in Markdown: a row a verb."""
    lines = ["| verb | what it answers | options | post-processing |", "|---|---|---|---|"]
    for name in names():
        verb = load(name)
        options = _listed(field.name for field in msgspec.structs.fields(verb.options))
        postprocess = _listed(method for method in verb.postprocess if method != RAW)
        lines.append(f"| `{name}` | {summary(name)} | {options} | {postprocess} |")
    return "\n".join(lines) + "\n"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"


if __name__ == "__main__":
    print(verb_table(), end="")
